"""What an MCP client is offered: tools, and tools that are shown as resources or prompts.

A client is offered what its principal may execute and what is `available_as` `mcp_tool`, but nothing that is blocked
or disabled. What is not offered is unknown to the client. Names are those of `toolcrib tool export --as mcp`: at most
64 letters, digits and underscores, since clients pass them on to models.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

import orjson

from toolcrib.contracts import InvalidInput, Json, JsonObject, McpOffer, Principal, ToolRevision
from toolcrib.core.export import export_names
from toolcrib.core.policy import permits
from toolcrib.core.registry import RealmIndex
from toolcrib.crib import ActingCrib

PAGE: Final = 100
"""Tools of one page of `tools/list`."""

Shown: TypeAlias = Literal["tool", "resource", "prompt"]
NameOf: TypeAlias = Callable[[ToolRevision], str | None]
"""The name under which a tool is offered; null if it is not."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool under the name that clients know it by."""

    name: str
    tool: ToolRevision


@dataclass(frozen=True, slots=True)
class OfferedPage:
    """Some of the tools that a client is offered."""

    tools: Sequence[Offered]
    cursor: str | None
    """Of the next page; null if there is none."""


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of a realm's tools, worked out once for each state of its catalogue."""

    index: RealmIndex
    """The state."""
    exported: Mapping[str, str]
    """By the name of the tool."""
    tools: Mapping[str, str]
    """The reverse."""
    others: Mapping[Shown, Sequence[str]]
    """Names of the tools that are shown as something else."""


class ToolOffers:
    """The tools of a crib as MCP clients are offered them.

    Args:
        name_of: The name of a tool, or null if it is not offered; null for all tools under the names of the export.
    """

    def __init__(self, name_of: NameOf | None = None) -> None:
        self._name_of = name_of
        self._names: dict[str, _Names] = {}

    async def page(self, crib: ActingCrib, cursor: str | None, *, limit: int = PAGE) -> OfferedPage:
        """The tools after a cursor, by name.

        Args:
            crib: Acts as the client's principal.
            cursor: As an earlier page gave it; null for the beginning.
            limit: At most so many.

        Raises:
            InvalidInput: The cursor is not one of this server.
        """
        after = "" if cursor is None else _read_cursor(cursor)
        who = await crib.authorize(newest=True)
        exported = self._of(crib, who).exported
        page = await crib.listing.page(
            after=after, limit=limit, fits=lambda tool: tool.name in exported and _is_offered(tool, who, "tool")
        )
        offered = [Offered(exported[tool.name], tool) for tool in page.items]
        return OfferedPage(offered, _cursor(page.items[-1].name) if page.more else None)

    async def find(self, crib: ActingCrib, name: str, shown: Shown = "tool") -> ToolRevision | None:
        """What a client calls by a name; null if it is offered no such thing.

        Args:
            crib: Acts as the client's principal.
            name: As the client was told it.
            shown: As what it is offered.
        """
        who = await crib.authorize(newest=True)
        own = self._of(crib, who).tools.get(name)
        tool = None if own is None else crib.registry.find(who.realm, own, None)
        return tool if tool is not None and _is_offered(tool, who, shown) else None

    async def all(self, crib: ActingCrib, shown: Shown) -> Sequence[Offered]:
        """All that is offered as a resource or as a prompt, by name.

        Args:
            crib: Acts as the client's principal.
            shown: As what.
        """
        who = await crib.authorize(newest=True)
        names = self._of(crib, who)
        found = ((name, crib.registry.find(who.realm, name, None)) for name in names.others.get(shown, ()))
        return [
            Offered(names.exported[name], tool)
            for name, tool in found
            if tool is not None and _is_offered(tool, who, shown)
        ]

    def _of(self, crib: ActingCrib, who: Principal) -> _Names:
        index = crib.registry.index(who.realm)
        known = self._names.get(who.realm)
        if known is None or known.index is not index:
            exported = self._export(crib, who)
            names = {theirs: own for own, theirs in exported.items()}
            tools = (tool for tool in crib.registry.current(who.realm) if tool.name in exported)
            known = self._names[who.realm] = _Names(index, exported, names, _others(tools))
        return known

    def _export(self, crib: ActingCrib, who: Principal) -> Mapping[str, str]:
        if self._name_of is None:
            return export_names(sorted(crib.registry.names(who.realm)))
        found = {tool.name: self._name_of(tool) for tool in crib.registry.current(who.realm)}
        return {own: name for own, name in found.items() if name is not None}


def offer_of(tool: ToolRevision) -> McpOffer:
    """How a resource or a prompt is offered."""
    offer = tool.definition.mcp
    assert offer is not None  # noqa: S101 - it was found as one
    return offer


def parse_arguments(tool: ToolRevision, texts: Mapping[str, str]) -> JsonObject:
    """The arguments of a tool from an address or from a form of a prompt, where all of them are texts.

    Args:
        tool: Says which types its arguments have.
        texts: By name. What is not of type string is read as JSON, and stays a text if it is not JSON.
    """
    properties = cast("Mapping[str, Json]", tool.definition.input_schema.get("properties", {}))
    return {name: _parse(text, properties.get(name)) for name, text in texts.items()}


def _parse(text: str, schema: Json) -> Json:
    kind = cast("JsonObject", schema).get("type") if isinstance(schema, dict) else None
    if kind not in {"integer", "number", "boolean"}:
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text  # the check of the arguments tells what is wrong with it


def _others(tools: Iterable[ToolRevision]) -> Mapping[Shown, Sequence[str]]:
    found: dict[Shown, list[str]] = {}
    for tool in tools:
        if tool.definition.mcp is not None:
            found.setdefault(tool.definition.mcp.show_as, []).append(tool.name)
    return found


def _is_offered(tool: ToolRevision, who: Principal, shown: Shown) -> bool:
    definition = tool.definition
    return (
        tool.status != "blocked"
        and definition.enabled
        and "mcp_tool" in definition.available_as
        and shown == ("tool" if definition.mcp is None else definition.mcp.show_as)
        and permits(who.grants, definition.security())
    )


def _cursor(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _read_cursor(cursor: str) -> str:
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as problem:
        msg = f"the cursor {cursor[:100]!r} is not of this server; leave it out to list from the beginning"
        raise InvalidInput(msg) from problem
