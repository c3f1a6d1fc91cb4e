"""What a tool does beyond its side effects: whether it deletes, and whether outsiders can write what it brings.

What the author has declared comes first; else the operation says it, as far as it does. A name says nothing.
"""

from typing import Final

from toolcrib.contracts import DELEGATES, EntityImplementation, HttpImplementation, JsonObject, ToolDefinition

_FOREIGN: Final = frozenset({"http", "mcp", "grpc", "plugin"})
"""Kinds whose output is another system's words."""


def deletes(tool: ToolDefinition, arguments: JsonObject) -> bool | None:
    """Whether a call takes away what no other call brings back; null if nothing says it.

    Args:
        tool: Its definition.
        arguments: The call's, which can name the method of an HTTP request.
    """
    if tool.deletes is not None or tool.side_effects != "writes":
        return tool.deletes or False
    match tool.implementation:
        case HttpImplementation(method=method, method_argument=argument):
            return (arguments.get(argument or "") or method) == "DELETE"
        case EntityImplementation(operation=operation):
            return operation == "delete"
        case _:
            return False if acts_through_others(tool) else None


def acts_through_others(tool: ToolDefinition) -> bool:
    """Whether all that a tool does are the calls inside it. What a client does with a prepared call is none of them."""
    return tool.implementation.kind in DELEGATES and tool.runs_on == "server"


def is_untrusted(tool: ToolDefinition) -> bool:
    """Whether outsiders can write what the tool itself brings."""
    return tool.implementation.kind in _FOREIGN if tool.untrusted is None else tool.untrusted
