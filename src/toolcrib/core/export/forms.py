"""Tools in the shapes of other systems. Nothing runs here.

| form | content |
|---|---|
| `universal` | `name`, `description`, `parameters` |
| `openai` | a function of Chat Completions, without strictness |
| `openai_strict` | the same with `strict: true`; a tool whose schema has no strict form has `strict: false` |
| `openai_responses` | a function of the Responses API; strict if that changes nothing of the schema's meaning |
| `anthropic` | a tool of the Messages API |
| `gemini` | a `FunctionDeclaration` with `parameters` in its subset of OpenAPI |
| `mcp` | a `Tool` of the Model Context Protocol, revision 2025-11-25 |
| `langchain` | the arguments of a `StructuredTool`, whose `args_schema` takes a JSON Schema |
| `typescript` | `name`, and the `declaration` of a function for a prompt |
| `skill` | `name` of a folder, and its `files` by path: an Agent Skill |
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias, get_args

from toolcrib.contracts import JsonObject, JsonSchema, ToolDefinition, ToolRevision
from toolcrib.core.export.descriptions import describe
from toolcrib.core.export.dialects import SchemaDialect
from toolcrib.core.export.names import export_names
from toolcrib.core.export.portable import translate_schema
from toolcrib.core.export.skills import skill_of
from toolcrib.llm.base.messages import Tool, ToolExample
from toolcrib.llm.base.strict import strict_schema
from toolcrib.llm.text.prompt import declare

ExportFormat: TypeAlias = Literal[
    "universal",
    "openai",
    "openai_strict",
    "openai_responses",
    "anthropic",
    "gemini",
    "mcp",
    "langchain",
    "typescript",
    "skill",
]
FORMATS: Final[tuple[ExportFormat, ...]] = get_args(ExportFormat)

_OPENAI_DESCRIPTION: Final = 1024
"""Characters that OpenAI takes."""
_DIALECTS: Final[Mapping[ExportFormat, SchemaDialect]] = {
    "openai": "openai",
    "openai_strict": "openai_strict",
    "openai_responses": "openai",
    "anthropic": "anthropic",
    "gemini": "gemini",
}
"""Of the forms whose vendors take only part of JSON Schema."""


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


def lost_in_export(definition: ToolDefinition, form: ExportFormat) -> tuple[str, ...]:
    """What the arguments' schema of a tool says and its export does not, and what the vendor would refuse.

    Args:
        definition: The tool.
        form: For whom. Forms that carry the whole schema lose nothing.

    Returns:
        One text for each, which begins with its place: `properties.amount: multipleOf 5`.

    Example:
        from toolcrib.core.export import lost_in_export

        print(lost_in_export(search_deals.definition, "gemini"))
    """
    if form not in _DIALECTS:
        return ()
    portable = translate_schema(definition.input_schema, _DIALECTS[form])
    return (*portable.lost, *portable.refused)


def _universal(definition: ToolDefinition, name: str) -> JsonObject:
    return {"name": name, "description": describe(definition), "parameters": _object(definition.input_schema)}


def _openai(definition: ToolDefinition, name: str) -> JsonObject:
    parameters = translate_schema(definition.input_schema, "openai").schema
    return {"type": "function", "function": {**_function(definition, name), "parameters": parameters}}


def _openai_strict(definition: ToolDefinition, name: str) -> JsonObject:
    strict = translate_schema(definition.input_schema, "openai_strict")
    if strict.refused:
        plain = _openai(definition, name)
        return {**plain, "function": {**plain["function"], "strict": False}}
    function = {**_function(definition, name), "parameters": strict.schema, "strict": True}
    return {"type": "function", "function": function}


def _openai_responses(definition: ToolDefinition, name: str) -> JsonObject:
    """A function; `strict` is always said, because this API is strict where nothing is."""
    plain = translate_schema(definition.input_schema, "openai").schema
    strict = strict_schema(plain, "openai")
    return {
        "type": "function",
        **_function(definition, name),
        "parameters": plain if strict is None else strict,
        "strict": strict is not None,
    }


def _function(definition: ToolDefinition, name: str) -> JsonObject:
    text = describe(definition)
    shortened = text if len(text) <= _OPENAI_DESCRIPTION else f"{text[: _OPENAI_DESCRIPTION - 1]}…"
    return {"name": name, "description": shortened}


def _anthropic(definition: ToolDefinition, name: str) -> JsonObject:
    schema = translate_schema(definition.input_schema, "anthropic").schema
    return {"name": name, "description": describe(definition), "input_schema": schema}


def _gemini(definition: ToolDefinition, name: str) -> JsonObject:
    described: JsonObject = {"name": name, "description": describe(definition)}
    schema = translate_schema(definition.input_schema, "gemini").schema
    return {**described, "parameters": schema} if schema.get("properties") else described  # an empty one is refused


def _langchain(definition: ToolDefinition, name: str) -> JsonObject:
    schema = {"title": name, **_object(definition.input_schema)}
    return {"name": name, "description": describe(definition), "args_schema": schema}


def _typescript(definition: ToolDefinition, name: str) -> JsonObject:
    examples = tuple(ToolExample(example.input, example.scenario) for example in definition.examples)
    tool = Tool(
        name,
        describe(definition),
        _object(definition.input_schema),
        examples=examples,
        returns=definition.output_schema,
    )
    return {"name": name, "declaration": declare(tool)}


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
    "openai_strict": _openai_strict,
    "openai_responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "mcp": mcp_tool,
    "langchain": _langchain,
    "typescript": _typescript,
    "skill": skill_of,
}
