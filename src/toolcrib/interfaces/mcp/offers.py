"""Which tools an MCP client is offered, and under which names.

A client is offered the tools that its principal may execute and that are `available_as` `mcp_tool`, but not those that
are blocked or disabled. A tool that is not offered is unknown to the client. Names are those of `toolcrib tool export
--as mcp`: at most 64 letters, digits and underscores, since clients pass them on to models.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from toolcrib.contracts import InvalidInput, JsonObject, Principal, ToolRevision
from toolcrib.core.export import export_names, mcp_tool
from toolcrib.core.policy import permits
from toolcrib.core.registry import RealmIndex
from toolcrib.crib import ActingCrib

PAGE: Final = 100
"""Tools of one page of `tools/list`."""


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """Some of the tools that a client is offered."""

    tools: Sequence[JsonObject]
    """Each a `Tool` of the protocol, by name."""
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


class ToolOffers:
    """The tools of a crib as MCP clients are offered them."""

    def __init__(self) -> None:
        self._names: dict[str, _Names] = {}

    async def page(self, crib: ActingCrib, cursor: str | None, *, limit: int = PAGE) -> OfferedTools:
        """The tools after a cursor.

        Args:
            crib: Acts as the client's principal.
            cursor: As an earlier page gave it; null for the beginning.
            limit: At most so many.

        Raises:
            InvalidInput: The cursor is not one of this server.
        """
        after = "" if cursor is None else _read_cursor(cursor)
        who = await crib.authorize(newest=True)
        page = await crib.listing.page(after=after, limit=limit, fits=lambda tool: _is_offered(tool, who))
        exported = self._of(crib, who).exported
        tools = [mcp_tool(tool.definition, exported[tool.name]) for tool in page.items]
        return OfferedTools(tools, _cursor(page.items[-1].name) if page.more else None)

    async def find(self, crib: ActingCrib, name: str) -> ToolRevision | None:
        """The tool that a client calls by a name; null if it is offered no such tool.

        Args:
            crib: Acts as the client's principal.
            name: As the client was told it.
        """
        who = await crib.authorize(newest=True)
        own = self._of(crib, who).tools.get(name)
        tool = None if own is None else crib.registry.find(who.realm, own, None)
        return tool if tool is not None and _is_offered(tool, who) else None

    def _of(self, crib: ActingCrib, who: Principal) -> _Names:
        index = crib.registry.index(who.realm)
        known = self._names.get(who.realm)
        if known is None or known.index is not index:
            exported = export_names(sorted(crib.registry.names(who.realm)))
            known = self._names[who.realm] = _Names(index, exported, {theirs: own for own, theirs in exported.items()})
        return known


def _is_offered(tool: ToolRevision, who: Principal) -> bool:
    definition = tool.definition
    return (
        tool.status != "blocked"
        and definition.enabled
        and "mcp_tool" in definition.available_as
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
