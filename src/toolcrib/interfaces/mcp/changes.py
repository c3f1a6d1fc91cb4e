"""Tells connected MCP clients what has changed: the lists that they are offered, and runs that they have subscribed to.

Changes may be made by any process, so the store is asked for them: once a second for each realm and each run, while a
client is there that wants to know. Clients of protocol revision 2026-07-28 open a stream with `subscriptions/listen`.
Sessions of older revisions are told of lists that they have read, and of resources they have subscribed to.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolcrib.contracts import NotFound, PermissionDenied
from toolcrib.interfaces.mcp.offers import ToolOffers
from toolcrib.interfaces.mcp.resources import McpResources

Context: TypeAlias = ServerRequestContext[Any, Any]
ListKind: TypeAlias = Literal["tools", "resources", "prompts"]

EVENTS: Final[Mapping[ListKind, ServerEvent]] = {
    "tools": ToolsListChanged(),
    "resources": ResourcesListChanged(),
    "prompts": PromptsListChanged(),
}
MOST_CLIENTS: Final = 1_000
"""Connected clients that are told of changes; further streams are refused."""
MOST_URIS: Final = 100
"""Resources that one client subscribes to."""

_EVERY_S: Final = 1.0
_TELL_S: Final = 5.0
"""Seconds after which a client that does not read is told nothing any more."""
_STREAM_S: Final = 3_600.0
"""Seconds after which a stream ends, so that its client connects with a key that is still valid."""
_KEY: Final = "toolcrib/watched"
_logger = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Watched:
    """What one client wants to know, and what it knows."""

    offers: Callable[[], Awaitable[ToolOffers]]
    """What the client is offered now."""
    tell: Callable[[ServerEvent], Awaitable[object]]
    kinds: set[ListKind] = field(default_factory=set[ListKind])
    uris: set[str] = field(default_factory=set[str])
    until: float | None = None
    """When its stream ends, by the clock of the crib; null for a session."""
    realm: str = ""
    number: int = -1
    """Of the last change of the catalogue that was compared."""
    lists: dict[ListKind, int] = field(default_factory=dict[ListKind, int])
    runs: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """States by address; null of a run that has ended, which is not read any more."""
    close: Callable[[], None] = lambda: None


class ChangeWatch:
    """Compares what clients know with what is there, while there are clients."""

    def __init__(self) -> None:
        self._watched: set[Watched] = set()
        self._task: asyncio.Task[None] | None = None

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams, offers: Callable[[], Awaitable[ToolOffers]]
    ) -> types.SubscriptionsListenResult:
        """Serve one stream of a client of the newest revision, until the client closes it.

        Raises:
            MCPError: Too many clients listen, or the client subscribes to too many resources.
        """
        wanted = params.notifications
        uris = set(wanted.resource_subscriptions or ())
        _check_number(uris)
        flags: Mapping[ListKind, bool | None] = {
            "tools": wanted.tools_list_changed,
            "resources": wanted.resources_list_changed,
            "prompts": wanted.prompts_list_changed,
        }
        bus = InMemorySubscriptionBus()
        handler = ListenHandler(bus)
        kinds = set[ListKind](kind for kind, flag in flags.items() if flag)
        crib = (await offers()).crib
        until = crib.clock.monotonic() + _STREAM_S
        watched = Watched(offers, bus.publish, kinds, uris, until, close=handler.close)
        await self._add(watched)
        try:
            return await handler(ctx, params)
        finally:
            self._remove(watched)

    async def note_list(self, ctx: Context, kind: ListKind, offers: Callable[[], Awaitable[ToolOffers]]) -> None:
        """Tell the session of an older revision from now on when a list changes that it has read."""
        watched = await self._of_session(ctx, offers)
        if watched is not None:
            watched.kinds.add(kind)

    async def subscribe(self, ctx: Context, uri: str, offers: Callable[[], Awaitable[ToolOffers]]) -> None:
        """Tell the session of an older revision from now on when a resource changes.

        Raises:
            MCPError: The client subscribes to too many resources.
        """
        watched = await self._of_session(ctx, offers)
        if watched is not None:
            _check_number(watched.uris | {uri})
            watched.uris.add(uri)
            watched.runs[uri] = await _state(await offers(), uri)

    async def unsubscribe(self, ctx: Context, uri: str, offers: Callable[[], Awaitable[ToolOffers]]) -> None:
        """Tell a session nothing of a resource any more."""
        watched = await self._of_session(ctx, offers)
        if watched is not None:
            watched.uris.discard(uri)
            watched.runs.pop(uri, None)

    async def __aenter__(self) -> None:
        """Begin; there is nothing to do until a client is there."""

    async def __aexit__(self, *_: object) -> None:
        """End all streams."""
        for watched in tuple(self._watched):
            self._remove(watched)
            watched.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _of_session(self, ctx: Context, offers: Callable[[], Awaitable[ToolOffers]]) -> Watched | None:
        """What a session wants to know; null for a connection that nothing can be sent to."""
        connection = cast("Connection", cast("Any", ctx.session)._connection)  # noqa: SLF001 - the SDK has no other way
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS or not connection.has_standalone_channel:
            return None
        known: Watched | None = connection.state.get(_KEY)
        if known is None:
            known = connection.state[_KEY] = Watched(offers, _teller(ctx))
            connection.exit_stack.callback(self._remove, known)
        if known not in self._watched:
            await self._add(known)
        return known

    async def _add(self, watched: Watched) -> None:
        if len(self._watched) >= MOST_CLIENTS:
            msg = f"{MOST_CLIENTS} clients are told of changes already; read the lists again from time to time"
            raise MCPError(types.INTERNAL_ERROR, msg)
        self._watched.add(watched)
        offers = await watched.offers()
        watched.realm = offers.crib.principal.realm
        watched.number = await offers.crib.registry.changes(watched.realm)
        watched.runs = {uri: await _state(offers, uri) for uri in watched.uris}
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch(offers))

    def _remove(self, watched: Watched) -> None:
        self._watched.discard(watched)

    async def _end(self, watched: Watched) -> None:
        self._remove(watched)
        with contextlib.suppress(Exception):
            for kind in sorted(watched.kinds):
                await _tell(watched, EVENTS[kind])
        watched.close()

    async def _watch(self, first: ToolOffers) -> None:
        clock = first.crib.clock
        while self._watched:
            numbers: dict[str, int] = {}
            for watched in tuple(self._watched):
                try:
                    if watched.until is not None and clock.monotonic() > watched.until:
                        watched.close()
                    await _compare(watched, numbers)
                except TimeoutError:
                    self._remove(watched)
                except MCPError:  # its virtual server is not there any more
                    await self._end(watched)
                except Exception:  # another client must not be told less; the next round tries again
                    _logger.warning("a client of MCP could not be told of changes", exc_info=True)
            await clock.sleep(_EVERY_S)


async def _compare(watched: Watched, numbers: dict[str, int]) -> None:
    offers = await watched.offers() if watched.uris or watched.realm not in numbers else None
    if offers is not None and watched.realm not in numbers:
        numbers[watched.realm] = await offers.crib.registry.changes(watched.realm)
    number = numbers[watched.realm]
    missing = watched.kinds - watched.lists.keys()
    if number != watched.number or missing:
        offers = offers or await watched.offers()
        changed = number != watched.number
        watched.number = number
        for kind in sorted(watched.kinds):
            now = await _fingerprint(offers, kind)
            if changed and watched.lists.get(kind) != now:
                await _tell(watched, EVENTS[kind])
            watched.lists[kind] = now
    for uri in sorted(watched.uris):
        before = watched.runs.get(uri)
        if before is not None and offers is not None:
            now = await _state(offers, uri)
            watched.runs[uri] = now
            if now != before:
                await _tell(watched, ResourceUpdated(uri))


async def _tell(watched: Watched, event: ServerEvent) -> None:
    async with asyncio.timeout(_TELL_S):
        await watched.tell(event)


async def _fingerprint(offers: ToolOffers, kind: ListKind) -> int:
    """A number that differs if what the client is offered differs."""
    return await offers.fingerprint("tool" if kind == "tools" else "resource" if kind == "resources" else "prompt")


async def _state(offers: ToolOffers, uri: str) -> str | None:
    """The state of the run at an address; null if it has ended, or the address is not one of a run."""
    with contextlib.suppress(NotFound, PermissionDenied):
        return await McpResources(offers).open_state(uri)
    return None


def _check_number(uris: set[str]) -> None:
    if len(uris) > MOST_URIS:
        msg = f"{len(uris)} subscriptions; the limit is {MOST_URIS} for a client; unsubscribe from runs that have ended"
        raise MCPError(types.INVALID_PARAMS, msg)


def _teller(ctx: Context) -> Callable[[ServerEvent], Awaitable[None]]:
    session = ctx.session

    async def tell(event: ServerEvent) -> None:
        match event:
            case ToolsListChanged():
                await session.send_tool_list_changed()
            case ResourcesListChanged():
                await session.send_resource_list_changed()
            case PromptsListChanged():
                await session.send_prompt_list_changed()
            case ResourceUpdated(uri):
                await session.send_resource_updated(uri)

    return tell
