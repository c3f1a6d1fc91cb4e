"""The default system prompt of an agentic tool, written by rules, without a model.

Equal definitions give equal prompts, so a difference shows what has changed. Schemas and valid values are placeholders
that a run fills in.
"""

from collections.abc import Mapping
from typing import cast

from toolcrib.contracts import AgenticImplementation, AgenticStep, Json, JsonSchema, ToolDefinition

_DETERMINISTIC = """You carry out tasks with a fixed sequence of operations. You fill in their inputs.

# Operations, in this order
{operations}
{schemas}{values}
# Task
{{{{user_task}}}}

# Instructions
- Use field names and values exactly as the schemas say{only_valid}.
- Set only what the task asks for.

# Answer of the whole task
After the last operation the result is reported as {answer}. Until then, answer in the format that you are asked for.

# If something does not fit
- A name or value that is not exact: take the valid one that is clearly meant.
- The task cannot be done with these operations, or two readings are possible: ask a question instead of guessing."""

_AGENTIC = """You carry out tasks with the tools that you are given.

# Tools
{{{{available_tools}}}}
{values}
# Instructions
- Choose the tools that the task needs. Look at each result before you decide on the next step.
- Whenever you call tools, first say in one sentence why.
- Use field names and values exactly as the tools' schemas say{only_valid}.
- After an error, read it, correct the input and try again once; then say what could not be done.

# Answer
When the task is done, answer with a short and truthful summary; name your sources where there are any.{answer}"""


def default_prompt(
    implementation: AgenticImplementation, *, purpose: str = "", tools: Mapping[str, ToolDefinition] | None = None
) -> str:
    """The prompt for a tool of either mode, as a template.

    Args:
        implementation: Mode, tools, reference data and result; its own prompt is not looked at.
        purpose: What the tool is for, as its description says; the first paragraph is used.
        tools: Definitions by the references in the implementation, for steps that do not say what they are for.
    """
    names = reference_names(implementation)
    values = "".join(f"\n## {name}\n{{{{reference_data.{name}}}}}\n" for name in names)
    parts = {
        "values": f"\n# Valid values{values}" if values else "",
        "only_valid": ", and only the valid values above" if values else "",
    }
    if implementation.mode == "deterministic":
        text = _DETERMINISTIC.format(
            operations=_operations(implementation.steps, tools or {}),
            schemas=_SCHEMAS if implementation.context.include_schemas else "",
            answer=_shape(implementation.result_schema) or '{"summary": "…"}',
            **parts,
        )
    else:
        shape = _shape(implementation.result_schema)
        text = _AGENTIC.format(answer=f" It is put into {shape}." if shape else "", **parts)
    opening = _paragraph(purpose)
    return f"{opening}\n\n{text}" if opening else text


def reference_names(implementation: AgenticImplementation) -> tuple[str, ...]:
    """Names of the lists of valid values that a prompt can show as `{{reference_data.NAME}}`."""
    own = [source.name for source in implementation.context.reference_data]
    theirs = [name for data in implementation.context.provider_data for name in data.data_types]
    return (*own, *theirs)


_SCHEMAS = """
# Schemas of their inputs
{{integration_schema}}
"""


def _operations(steps: tuple[AgenticStep, ...], tools: Mapping[str, ToolDefinition]) -> str:
    lines: list[str] = []
    for number, step in enumerate(steps, start=1):
        tool = tools.get(step.tool)
        what = step.purpose or (_sentence(tool.description) if tool else "")
        name = step.id if step.id == step.tool else f"{step.id} ({step.tool})"
        lines.append(f"{number}. {name}: {what}" if what else f"{number}. {name}")
    return "\n".join(lines)


def _shape(schema: JsonSchema | None) -> str:
    """A JSON object with the type of each field: `{"summary": string, "deals_affected": integer}`."""
    properties = (schema or {}).get("properties", {})
    fields = ", ".join(f'"{name}": {_type(field)}' for name, field in properties.items())
    return f"{{{fields}}}" if fields else ""


def _type(field: Json) -> str:
    kind = cast("JsonSchema", field).get("type", "any") if isinstance(field, dict) else "any"
    return kind if isinstance(kind, str) else " or ".join(kind)


def _paragraph(text: str) -> str:
    return " ".join(text.strip().partition("\n\n")[0].split())


def _sentence(text: str) -> str:
    return _paragraph(text).partition(". ")[0].rstrip(".")
