"""`search_tools` and `call_tool`: what a virtual server lists in place of many tools.

A model searches for what it needs, reads the schemas of what was found, and calls it by name. Each call is the call of
the tool itself, with the same permission, policy and journal. A search is not recorded, as `tools/list` is not.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import mcp_types as types
import orjson

from toolcrib.contracts import Json, JsonObject
from toolcrib.core.export import mcp_tool
from toolcrib.core.registry import SchemaValidator, compile_schema, group_of
from toolcrib.interfaces.mcp.offers import Offered, ToolOffers

SEARCH: Final = "search_tools"
CALL: Final = "call_tool"

_FOUND: Final = 8
"""Tools of one search, unless the model asks for another number."""
_MOST_FOUND: Final = 50
_MOST_GROUPS: Final = 60
_SEARCH_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "description": "What the tool should do, in a few words."},
        "group": {"type": "string", "description": "Only tools of this group."},
        "limit": {"type": "integer", "minimum": 1, "maximum": _MOST_FOUND, "default": _FOUND},
    },
    "required": ["query"],
    "additionalProperties": False,
}
_CALL_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": f"The name of a tool that {SEARCH} has found."},
        "arguments": {"type": "object", "description": "Its arguments, which its inputSchema describes."},
    },
    "required": ["name"],
    "additionalProperties": False,
}
_FOUND_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"tools": {"type": "array", "items": {"type": "object"}}, "hint": {"type": "string"}},
    "required": ["tools", "hint"],
}


async def search_pair(offers: ToolOffers) -> Sequence[types.Tool]:
    """The two tools, with the groups of what can be found."""
    groups = Counter(group_of(tool.definition) for tool in await offers.visible())
    shown = "; ".join(f"{name} ({number})" for name, number in groups.most_common(_MOST_GROUPS))
    found = f"Finds tools by what they do, best first. {groups.total()} tools can be found. Groups: {shown}"
    search = {"name": SEARCH, "title": "Search tools", "description": found, "inputSchema": _SEARCH_SCHEMA}
    search |= {"outputSchema": _FOUND_SCHEMA, "annotations": {"readOnlyHint": True, "openWorldHint": False}}
    call = {"name": CALL, "title": "Call a tool", "description": f"Calls a tool that {SEARCH} has found."}
    call |= {"inputSchema": _CALL_SCHEMA, "annotations": {"readOnlyHint": False, "destructiveHint": True}}
    return [types.Tool.model_validate(each) for each in (search, call)]


async def search_tools(offers: ToolOffers, arguments: Mapping[str, Any]) -> types.CallToolResult:
    """The tools that fit a query, with their schemas."""
    problem = _problem(compile_schema(_SEARCH_SCHEMA), arguments)
    if problem is not None:
        return refuse(problem)
    limit = int(arguments.get("limit", _FOUND))
    found = await offers.search(arguments["query"], limit=limit, group=arguments.get("group"))
    hint = f"Call one with {CALL}." if found else "Nothing fits. Use other words, or leave the group out."
    listed: Json = [_shown(each) for each in found]
    output: JsonObject = {"tools": listed, "hint": hint}
    text = types.TextContent(type="text", text=orjson.dumps(output).decode())
    return types.CallToolResult(content=[text], structured_content=output)


def meant_call(params: types.CallToolRequestParams) -> types.CallToolRequestParams | types.CallToolResult:
    """The call that `call_tool` stands for; or a result that says what is wrong with it."""
    given = params.arguments or {}
    problem = _problem(compile_schema(_CALL_SCHEMA), given)
    if problem is not None:
        return refuse(problem)
    return params.model_copy(update={"name": given["name"], "arguments": given.get("arguments") or {}})


def refuse(text: str) -> types.CallToolResult:
    """A result that tells the model what to do instead."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


def _problem(schema: SchemaValidator, given: Mapping[str, Any]) -> str | None:
    problems = schema.problems(dict(given))
    return f"invalid_input: {'; '.join(map(str, problems))}" if problems else None


def _shown(offered: Offered) -> JsonObject:
    return mcp_tool(offered.tool.definition, offered.name)
