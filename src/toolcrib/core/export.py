"""Descriptions of tools for other systems: universal, OpenAI, Anthropic, LangChain and MCP. Nothing runs here.

A description has three parts, written by rules: `Use this tool …`, `# Required inputs`, `# What the tool outputs`. An
author's `long_description` replaces it, and is checked for the same parts. Names are adapted to each target and stay
unique.

universal: `{name, description, parameters}`. openai: a function tool of Chat Completions. anthropic: a tool of the
Messages API. langchain: the fields of a `StructuredTool`, whose `args_schema` takes a JSON Schema. mcp: a `Tool` of
the Model Context Protocol, revision 2025-11-25.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final, Literal, TypeAlias, cast, get_args

from toolcrib.contracts import AgenticImplementation, Json, JsonObject, JsonSchema, ToolDefinition, ToolRevision

__all__ = [
    "FORMATS",
    "ExportFormat",
    "check_description",
    "describe",
    "export_names",
    "export_tools",
    "generate_description",
    "mcp_tool",
    "select_available",
]


_NOT_WORD = re.compile(r"[^A-Za-z0-9]+")
_BEFORE_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
LONGEST = 64
"""Characters that OpenAI and Anthropic take; MCP takes 128."""


def snake_case(name: str) -> str:
    """`hubspot.dealManager-v2` as `hubspot_deal_manager_v2`: letters, digits and `_`, not more than `LONGEST`."""
    words = _NOT_WORD.sub("_", _BEFORE_CAPITAL.sub("_", name)).strip("_")
    return words.lower()[:LONGEST].rstrip("_")


def export_names(names: Iterable[str]) -> Mapping[str, str]:
    """Name of each tool in every export; where two come out the same, the later one gets a number.

    The order decides, so give all the names that stand side by side, sorted.
    """
    found: dict[str, str] = {}
    names_in_use: set[str] = set()
    for name in dict.fromkeys(names):
        plain = snake_case(name)
        endings = (f"_{number}" if number > 1 else "" for number in count(1))
        candidates = (plain[: LONGEST - len(ending)] + ending for ending in endings)
        found[name] = next(free for free in candidates if free not in names_in_use)
        names_in_use.add(found[name])
    return found


OPENING: Final = "Use this tool"
REQUIRED: Final = "# Required inputs (always include these):"
OPTIONAL: Final = "# Optional inputs:"
OUTPUTS: Final = "# What the tool outputs:"

_WORDS: Final = """
add analyse analyze apply approve archive ask assign book build calculate cancel change check close compare compute
convert copy count create delete describe download draft edit estimate execute export extract fetch fill find format
forward generate get import insert inspect join list load look make manage merge modify move open order parse pay
plan post predict process publish put query rank read receive record refund register remove rename replace reply
report reserve resolve restore return review run save schedule score search select send set show sort split start
stop store submit subscribe summarise summarize sync take test track transfer translate trigger update upload
validate verify watch write
"""
_VERBS: Final = frozenset(_WORDS.split())
"""Words with which a description says what to do, and so can follow `Use this tool to`."""


def describe(definition: ToolDefinition) -> str:
    """The text for a parent agent: the author's `long_description`, or one made from the definition."""
    return definition.long_description or generate_description(definition)


def generate_description(definition: ToolDefinition) -> str:
    """The text made by rule; equal definitions give equal texts."""
    schema = definition.input_schema
    required = frozenset(cast("list[str]", schema.get("required", [])))
    properties = cast("dict[str, Json]", schema.get("properties", {}))
    needed = [_input(definition, name, properties[name]) for name in properties if name in required]
    optional = [_input(definition, name, properties[name]) for name in properties if name not in required]
    parts = [_purpose(definition), "\n".join([REQUIRED, *(needed or ["- none"])])]
    if optional:
        parts.append("\n".join([OPTIONAL, *optional]))
    parts.append(f"{OUTPUTS}\n{' '.join(_outputs(definition))}")
    return "\n\n".join(parts)


def check_description(text: str, definition: ToolDefinition) -> list[str]:
    """What is missing in a text for parents; empty if nothing is."""
    missing: list[str] = []
    if not text.startswith(OPENING):
        missing.append(f"it must begin with {OPENING!r}")
    missing += [f"it lacks the heading {heading!r}" for heading in (REQUIRED, OUTPUTS) if heading not in text]
    required = cast("list[str]", definition.input_schema.get("required", []))
    missing += [f"it does not list the required input {name!r}" for name in required if f"- {name}:" not in text]
    return missing


def _purpose(definition: ToolDefinition) -> str:
    description = " ".join(definition.description.split())
    if not description:
        description = definition.title or definition.name
    first = description.partition(" ")[0]
    if description.startswith(OPENING):
        opening = description
    elif first.lower() in _VERBS:
        opening = f"{OPENING} to {first.lower()}{description[len(first) :]}"
    else:
        opening = f"{OPENING} for the following: {description}"
    opening = opening if opening.endswith((".", "!", "?")) else f"{opening}."
    return " ".join(filter(None, (opening, *_abilities(definition), definition.usage)))


def _abilities(definition: ToolDefinition) -> Iterator[str]:
    """What the steps of a fixed sequence are for, where their author says it."""
    implementation = definition.implementation
    if isinstance(implementation, AgenticImplementation):
        purposes = [step.purpose.strip().rstrip(".") for step in implementation.steps if step.purpose.strip()]
        if purposes:
            yield f"It does this for you: {'; '.join(purposes)}."


def _input(definition: ToolDefinition, name: str, schema: Json) -> str:
    found = cast("JsonSchema", schema) if isinstance(schema, dict) else {}
    description = " ".join(str(found.get("description", "")).split()) or _unsaid(found.get("type"))
    description = description if description.endswith((".", "!", "?")) else f"{description}."
    values = found.get("enum")
    if isinstance(values, list):
        description += f" One of: {', '.join(map(str, cast('list[Json]', values)))}."
    examples = list(_examples(definition, name))
    quoted = ", ".join(f'"{example}"' for example in dict.fromkeys(examples))
    return f"- {name}: {description} Examples: {quoted}." if quoted else f"- {name}: {description}"


def _unsaid(kind: Json) -> str:
    return f"A value of type {kind}." if isinstance(kind, str) else "A value as its schema says."


def _examples(definition: ToolDefinition, name: str) -> Iterator[str]:
    """Texts that were given for an input; the example queries of an agentic tool are tasks."""
    for example in definition.examples:
        if isinstance(example.input.get(name), str):
            yield example.input[name]
    implementation = definition.implementation
    if name == "task" and isinstance(implementation, AgenticImplementation):
        yield from implementation.context.example_queries


def _outputs(definition: ToolDefinition) -> Iterator[str]:
    implementation = definition.implementation
    schema = definition.output_schema
    if isinstance(implementation, AgenticImplementation):
        fields = list(_fields(implementation.result_schema or schema))
        yield f"Returns {', '.join(fields)}." if fields else "Returns a summary of what was done."
        yield (
            "If the task is unclear, or a limit or a rule keeps it from being done, it fails with an error that asks "
            "or says why, and with what was done. All details are handled inside the tool."
        )
        return
    fields = list(_fields(schema))
    if fields:
        yield f"Returns an object with {', '.join(fields)}."
    elif schema and schema.get("type") == "array":
        yield "Returns a list."
    else:
        yield "Returns the result of the call."


def _fields(schema: JsonSchema | None) -> Iterator[str]:
    for name, field in cast("dict[str, Json]", (schema or {}).get("properties", {})).items():
        description = cast("JsonSchema", field).get("description") if isinstance(field, dict) else None
        yield f"{name} ({' '.join(str(description).split()).rstrip('.')})" if description else name


ExportFormat: TypeAlias = Literal["universal", "openai", "anthropic", "langchain", "mcp"]
FORMATS: Final[tuple[ExportFormat, ...]] = get_args(ExportFormat)

_OPENAI_DESCRIPTION: Final = 1024
"""Characters that OpenAI takes."""


def export_tools(tools: Sequence[ToolRevision], form: ExportFormat, *, beside: Iterable[str] = ()) -> list[JsonObject]:
    """Describe tools to another system, in the order of their names, each under a name of its own.

    Args:
        tools: What is to be described; a blocked or disabled tool is described like any other.
        form: For whom.
        beside: Names of all tools of the crib: a tool then has the same name alone as among all others.
    """
    ordered = sorted(tools, key=lambda tool: tool.name)
    names = export_names(sorted({*beside, *(tool.name for tool in ordered)}))
    return [_SHAPES[form](tool.definition, names[tool.name]) for tool in ordered]


def select_available(tools: Iterable[ToolRevision], form: ExportFormat) -> list[ToolRevision]:
    """Those that are available to a system of this form: what is only a step of workflows is not.

    Args:
        tools: Of a realm.
        form: For whom.
    """
    surface = "mcp_tool" if form == "mcp" else "tool"
    return [tool for tool in tools if surface in tool.definition.available_as]


def _universal(definition: ToolDefinition, name: str) -> JsonObject:
    return {"name": name, "description": describe(definition), "parameters": _object(definition.input_schema)}


def _openai(definition: ToolDefinition, name: str) -> JsonObject:
    text = describe(definition)
    shortened = text if len(text) <= _OPENAI_DESCRIPTION else f"{text[: _OPENAI_DESCRIPTION - 1]}…"
    function = {"name": name, "description": shortened, "parameters": _object(definition.input_schema)}
    return {"type": "function", "function": function}


def _anthropic(definition: ToolDefinition, name: str) -> JsonObject:
    return {"name": name, "description": describe(definition), "input_schema": _object(definition.input_schema)}


def _langchain(definition: ToolDefinition, name: str) -> JsonObject:
    schema = {"title": name, **_object(definition.input_schema)}
    return {"name": name, "description": describe(definition), "args_schema": schema}


def mcp_tool(definition: ToolDefinition, name: str) -> JsonObject:
    """A tool as a `Tool` of the Model Context Protocol, under a name."""
    title = definition.title or name.replace("_", " ").capitalize()
    writes = definition.side_effects == "writes"
    tool: JsonObject = {
        "name": name,
        "title": title,
        "description": describe(definition),
        "inputSchema": _object(definition.input_schema),
        "annotations": {
            "title": title,
            "readOnlyHint": not writes,
            "destructiveHint": writes,
            "idempotentHint": definition.idempotent or not writes,
            "openWorldHint": definition.side_effects != "none",
        },
    }
    if (definition.output_schema or {}).get("type") == "object":  # the protocol has no structured results but objects
        tool["outputSchema"] = definition.output_schema
    return tool


def _object(schema: JsonSchema) -> JsonSchema:
    """The schema with what every target wants to be said."""
    return {"type": "object", "properties": {}, **schema}


_SHAPES: Final[Mapping[ExportFormat, Callable[[ToolDefinition, str], JsonObject]]] = {
    "universal": _universal,
    "openai": _openai,
    "anthropic": _anthropic,
    "langchain": _langchain,
    "mcp": mcp_tool,
}
