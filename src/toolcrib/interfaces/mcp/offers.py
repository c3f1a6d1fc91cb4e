"""What an MCP client is offered: tools, and tools that are shown as resources or prompts.

A client is offered what its principal may execute and what is `available_as` `mcp_tool`, but nothing that is blocked
or disabled. What is not offered is unknown to the client. Names are those of `toolcrib tool export --as mcp`: at most
64 letters, digits and underscores, since clients pass them on to models.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

import orjson

from toolcrib.contracts import (
    InvalidInput,
    Json,
    JsonObject,
    McpOffer,
    McpServerDefinition,
    NotFound,
    Principal,
    ToolRevision,
)
from toolcrib.core.export import export_names
from toolcrib.core.policy import permits
from toolcrib.core.registry import RealmIndex
from toolcrib.crib import ActingCrib

_VISIBLE: Final = "mcp visible tools"
_MOST_KEPT: Final = 32
"""Combinations of grants and selections whose visible tools are kept."""
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

    exported: Mapping[str, str]
    """By the name of the tool."""
    tools: Mapping[str, str]
    """The reverse."""
    others: Mapping[Shown, Sequence[str]]
    """Names of the tools that are shown as something else."""


class ToolOffers:
    """The tools of a crib as one MCP client is offered them.

    Args:
        crib: Acts as the client's principal.
        name_of: The name of a tool, or null if it is not offered; null for all tools under the names of the export.
        server: The virtual server that the client uses: only what it selects is offered; null for everything.
    """

    def __init__(
        self, crib: ActingCrib, name_of: NameOf | None = None, server: McpServerDefinition | None = None
    ) -> None:
        self.crib = crib
        self.server = server
        self._name_of = name_of

    @property
    def searches(self) -> bool:
        """Whether the client searches for tools in place of listing them."""
        return self.server is not None and self.server.offer == "search"

    async def page(self, cursor: str | None, *, limit: int = PAGE) -> OfferedPage:
        """The tools after a cursor, by name.

        Args:
            cursor: As an earlier page gave it; null for the beginning.
            limit: At most so many.

        Raises:
            InvalidInput: The cursor is not one of this server.
        """
        after = "" if cursor is None else _read_cursor(cursor)
        who = await self.crib.authorize(newest=True)
        exported = self._names(who).exported
        page = await self.crib.listing.page(
            after=after,
            limit=limit,
            fits=lambda tool: tool.name in exported and _is_offered(tool, who, "tool"),
            among=self._selected(who),
        )
        offered = [Offered(exported[tool.name], tool) for tool in page.items]
        return OfferedPage(offered, _cursor(page.items[-1].name) if page.more else None)

    async def find(self, name: str, shown: Shown = "tool") -> ToolRevision | None:
        """What the client calls by a name; null if it is offered no such thing.

        Args:
            name: As the client was told it.
            shown: As what it is offered.
        """
        who = await self.crib.authorize(newest=True)
        own = self._names(who).tools.get(name)
        tool = None if own is None else self.crib.registry.find(who.realm, own, None)
        return tool if tool is not None and self._selects(who, tool) and _is_offered(tool, who, shown) else None

    async def all(self, shown: Shown) -> Sequence[Offered]:
        """All that is offered as a resource or as a prompt, by name.

        Args:
            shown: As what.
        """
        who = await self.crib.authorize(newest=True)
        names = self._names(who)
        found = ((name, self.crib.registry.find(who.realm, name, None)) for name in names.others.get(shown, ()))
        return [
            Offered(names.exported[name], tool)
            for name, tool in found
            if tool is not None and self._selects(who, tool) and _is_offered(tool, who, shown)
        ]

    async def search(self, query: str, *, limit: int, group: str | None = None) -> Sequence[Offered]:
        """The tools that do what a query says, best first.

        Args:
            query: Words in any order.
            limit: At most so many.
            group: Only tools of this group; null for all.
        """
        among = {tool.name for tool in await self.visible()}
        found = await self.crib.listing.search(query, limit=limit, group=group, status=None, among=among)
        exported = self._names(self.crib.principal).exported
        return [Offered(exported[tool.name], tool) for tool, _ in found]

    async def visible(self) -> Sequence[ToolRevision]:
        """All tools that the client is offered as tools, by name; kept until the catalogue changes."""
        who = await self.crib.authorize(newest=True)
        index = self.crib.registry.index(who.realm)
        kept: dict[object, Sequence[ToolRevision]] = index.derived.get(_VISIBLE, {})
        key = (who.grants, self._name_of, self._selection)
        if key not in kept:
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            kept[key] = self._find_visible(who)
            index.derive(_VISIBLE, kept)
        return kept[key]

    def _find_visible(self, who: Principal) -> Sequence[ToolRevision]:
        exported = self._names(who).exported
        found = (self.crib.registry.find(who.realm, name, None) for name in sorted(self._selected(who) or ()))
        tools = self.crib.registry.current(who.realm) if self.server is None else found
        return [each for each in tools if each is not None and each.name in exported and _is_offered(each, who, "tool")]

    async def has(self, name: str) -> bool:
        """Whether the client is offered a tool of this name of its own, as a tool, a resource or a prompt."""
        who = await self.crib.authorize(newest=True)
        tool = self.crib.registry.find(who.realm, name, None)
        shown: tuple[Shown, ...] = ("tool", "resource", "prompt")
        return tool is not None and any(_is_offered(tool, who, each) for each in shown)

    async def fingerprint(self, shown: Shown) -> int:
        """A number that differs if other tools are offered, or if one of them was changed.

        Args:
            shown: As what they are offered.
        """
        who = await self.crib.authorize(newest=True)
        index = self.crib.registry.index(who.realm)
        offer = None if self.server is None else self.server.offer
        key = ("mcp fingerprint", shown, who.grants, self._name_of, self._selection, offer)
        known: int | None = index.derived.get(key)
        if known is None:
            found = await self.visible() if shown == "tool" else [each.tool for each in await self.all(shown)]
            known = hash((offer, tuple((tool.name, tool.content_hash) for tool in found)))
            index.derive(key, known)
        return known

    async def runs_of(self, tool_name: str) -> bool:
        """Whether the client is shown runs of a tool: on a virtual server, only those of what it selects."""
        selected = self._selected(await self.crib.authorize())
        return selected is None or tool_name in selected

    async def concerns(self, provider: str) -> bool:
        """Whether the client is shown what a provider has: where tools are selected, if one is the provider's."""
        if self.server is None and self._name_of is None:
            return True
        return any(tool.definition.provider == provider for tool in await self.visible())

    @property
    def _selection(self) -> tuple[tuple[str, ...], ...]:
        return () if self.server is None else (self.server.tools, self.server.excluded_tools)

    def _selects(self, who: Principal, tool: ToolRevision) -> bool:
        selected = self._selected(who)
        return selected is None or tool.name in selected

    def _selected(self, who: Principal) -> AbstractSet[str] | None:
        """Names of the tools that the virtual server selects; null if there is no virtual server."""
        if self.server is None:
            return None
        index = self.crib.registry.index(who.realm)
        key = ("mcp selection", self._selection)
        known: AbstractSet[str] | None = index.derived.get(key)
        if known is None:
            known = _meant_by(index, self.server.tools) - _meant_by(index, self.server.excluded_tools)
            index.derive(key, known)
        return known

    def _names(self, who: Principal) -> _Names:
        index, key = self.crib.registry.index(who.realm), ("mcp names", self._name_of)
        known: _Names | None = index.derived.get(key)
        if known is None:
            exported = self._export(who)
            names = {theirs: own for own, theirs in exported.items()}
            tools = (tool for tool in self.crib.registry.current(who.realm) if tool.name in exported)
            known = _Names(exported, names, _others(tools))
            index.derive(key, known)
        return known

    def _export(self, who: Principal) -> Mapping[str, str]:
        registry = self.crib.registry
        if self._name_of is None:
            return export_names(sorted(registry.names(who.realm)))
        found = {tool.name: self._name_of(tool) for tool in registry.current(who.realm)}
        return {own: name for own, name in found.items() if name is not None}


async def find_server(crib: ActingCrib, name: str) -> McpServerDefinition:
    """The virtual server of a name.

    Raises:
        NotFound: There is none in the realm, or it is disabled.
    """
    found = await crib.mcp_servers.get(name)
    if not found.enabled:
        raise NotFound(f"MCP server {name!r} is disabled; set enabled: true in its definition")
    return found


def _meant_by(index: RealmIndex, refs: Iterable[str]) -> AbstractSet[str]:
    return {tool.name for ref in refs for tool in index.meant_by(ref)}


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
