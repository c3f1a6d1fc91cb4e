"""One tool in the shapes of other systems, as JSON.

universal: `{name, description, parameters}` (000, section 4.10). openai: a function tool of Chat Completions.
anthropic: a tool of the Messages API. langchain: the fields of a `StructuredTool`, whose `args_schema` takes a JSON
Schema. mcp: a `Tool` of the Model Context Protocol, revision 2025-11-25.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias, get_args

from toolcrib.contracts import JsonObject, JsonSchema, ToolDefinition, ToolRevision
from toolcrib.core.export import describe
from toolcrib.core.names import export_names

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


def offered(tools: Iterable[ToolRevision], form: ExportFormat) -> list[ToolRevision]:
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


def _mcp(definition: ToolDefinition, name: str) -> JsonObject:
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
    "mcp": _mcp,
}
