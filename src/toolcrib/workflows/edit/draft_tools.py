"""Definitions of the tools with which an agent writes workflow drafts.

They are ordinary tools: saved in the agent's realm, permitted, guarded and journaled. Neither publishes; a person
does. Their implementation is not here.
"""

from typing import Final

from toolcrib.contracts import JsonObject, JsonSchema, ToolDefinition
from toolcrib.contracts.specs.agents import FIND_WORKFLOW_TOOLS, SAVE_WORKFLOW_DRAFT
from toolcrib.kinds.python.shape import PythonImplementation

CATEGORY: Final = "authoring"

_WRITING: Final = """Saves a workflow that you have written as a draft, for a person to look at and publish. You \
cannot publish or run it yourself. If something is wrong with it, nothing is saved and you are told every problem with \
its place: correct all of them and call again.

A workflow is a list of steps. A step calls one tool with an input; its output is read by later steps. Steps run in \
parallel unless one reads what another puts out, or names it in depends_on.

A string ${…} in an input is an expression, evaluated when the step runs. It reads: input (the workflow's arguments), \
the output of a step by the step's name, item and index inside for_each, error in a step that another one goes to. \
Paths: ${input.order_id}, ${fetch.items[0].id}, ${fetch.items[*].id} (of all), ${fetch.items.length}. Operators: \
== != < <= > >= && || ! ?? ? : + - * / %. A string that is one expression keeps the value's type; otherwise it is put \
into the text. There are no loops and no function definitions.

Example:
{"name": "restock", "description": "Orders what is running out.",
 "input_schema": {"type": "object", "properties": {"least": {"type": "integer"}}, "required": ["least"]},
 "steps": [
  {"name": "stock", "tool": "warehouse.list_stock", "input": {"below": "${input.least}"}},
  {"name": "order", "tool": "purchasing.order", "for_each": "${stock.items}",
   "input": {"sku": "${item.sku}", "quantity": "${input.least - item.left}"}, "on_error": "continue"},
  {"name": "tell", "tool": "chat.post", "condition": "${stock.items.length > 0}",
   "input": {"text": "Ordered ${stock.items.length} articles."}, "depends_on": ["order"]}],
 "output": {"ordered": "${order}"}}"""

_STEP: Final[JsonSchema] = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {
            "type": "string",
            "pattern": "^[A-Za-z_][A-Za-z0-9_]*$",
            "description": "Unique; later steps read its output by it. Not: input, steps, item, index, output, error.",
        },
        "title": {"type": "string", "description": "For people."},
        "tool": {"type": "string", "description": "Name of the tool that it calls."},
        "agent": {"type": "string", "description": "Instead of tool: an agent; input is {message, context}."},
        "workflow": {"type": "string", "description": "Instead of tool: another workflow."},
        "approval": {
            "type": "object",
            "description": "Instead of tool: a person decides. Rejected, it fails.",
            "required": ["message"],
            "properties": {
                "message": {"type": "string", "description": "What is asked, with ${…}."},
                "show": {"type": "object", "description": "What the person sees, with ${…}; the step's output."},
            },
        },
        "wait": {
            "type": "object",
            "description": "Instead of tool: let time pass, or wait for a signal from outside.",
            "properties": {
                "seconds": {"type": ["number", "string"]},
                "until": {"type": "string", "description": "A moment of RFC 3339."},
                "signal": {"type": "string", "description": "Its payload is the step's output."},
            },
        },
        "input": {"type": "object", "description": "The tool's arguments, with ${…} in strings."},
        "output": {"description": "What later steps read, with ${…} over output; without it, what the tool puts out."},
        "depends_on": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Steps that come first although nothing of them is read.",
        },
        "condition": {"type": "string", "description": "${…}: if it does not hold, the step is skipped."},
        "for_each": {"type": ["string", "object"], "description": "${…} of a list: the step runs for each item."},
        "on_error": {
            "type": ["string", "object"],
            "description": "fail (default), continue, or {go_to: a step that then runs and reads error}.",
        },
        "retry": {
            "type": "object",
            "properties": {"count": {"type": "integer"}, "backoff": {"enum": ["none", "linear", "exponential"]}},
        },
        "timeout_s": {"type": "number", "description": "Seconds."},
    },
}

_DEFINITION: Final[JsonSchema] = {
    "type": "object",
    "required": ["name", "description", "steps"],
    "properties": {
        "name": {"type": "string", "description": "Short, unique, like restock or order-fulfillment."},
        "title": {"type": "string"},
        "description": {"type": "string", "description": "What it does, for people and for agents that may call it."},
        "input_schema": {"type": "object", "description": "JSON Schema of its arguments, an object."},
        "output_schema": {"type": "object", "description": "JSON Schema of output."},
        "steps": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/step"}},
        "output": {"description": "What the workflow puts out, with ${…}; without it, outputs of the last steps."},
        "requires_confirmation": {"type": "boolean", "description": "Every run waits for a person first."},
    },
}


def function_of(name: str) -> str:
    """What the function of such a tool is called."""
    return f"toolcrib:{name}"


def authoring_tools() -> tuple[ToolDefinition, ...]:
    """The definitions, the same in every realm."""
    return (_finding(), _saving())


def _finding() -> ToolDefinition:
    properties: JsonObject = {
        "query": {"type": "string", "minLength": 1, "description": "What the tool should do, in a few words."},
        "names": {"type": "array", "maxItems": 20, "items": {"type": "string"}, "description": "Or tools by name."},
    }
    return _definition(
        FIND_WORKFLOW_TOOLS,
        title="Find tools for a workflow",
        description=(
            "Finds tools that the steps of a workflow can call, with the schemas of what goes in and what comes out. "
            "Look up every tool before you write a step that calls it."
        ),
        input_schema={"type": "object", "properties": properties, "additionalProperties": False},
        side_effects="reads",
    )


def _saving() -> ToolDefinition:
    return _definition(
        SAVE_WORKFLOW_DRAFT,
        title="Save the draft of a workflow",
        description=_WRITING,
        input_schema={
            "type": "object",
            "properties": {
                "definition": _DEFINITION,
                "note": {"type": "string", "maxLength": 2000, "description": "For the person who looks at it."},
            },
            "required": ["definition"],
            "additionalProperties": False,
            "$defs": {"step": _STEP},
        },
        side_effects="writes",
        idempotent=True,
    )


def _definition(name: str, **fields: object) -> ToolDefinition:
    return ToolDefinition.model_validate(
        {
            "name": name,
            "category": CATEGORY,
            "source": "auto_generated",
            "available_as": ("tool",),
            "implementation": PythonImplementation(function=function_of(name)),
            **fields,
        }
    )
