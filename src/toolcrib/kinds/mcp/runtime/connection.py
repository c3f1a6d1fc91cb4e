"""One connection to an MCP server. One task owns it: it opens the session, keeps it open, and closes it.

The SDK requires that the task that entered a session also leaves it, so calls do not open sessions themselves. A
closed connection is not reopened; a new one replaces it.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from toolcrib.contracts import JsonObject
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.kinds.mcp.importer import ServerListing
from toolcrib.kinds.mcp.runtime.failures import TransportTroubles, connection_failure, late
from toolcrib.kinds.mcp.runtime.server_target import ServerTarget
from toolcrib.kinds.mcp.shape import McpCapability

if TYPE_CHECKING:
    from toolcrib.kinds.mcp.runtime.input_requests import InputAnswers
    from toolcrib.kinds.mcp.runtime.session import McpSession

CLOSE_S: Final = 10.0
"""Seconds that a connection may take to close before it is torn down."""
OPEN_S: Final = 30.0
"""Seconds that it may take to open, and each request that is no call, if the provider names no others."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A listing, and the time of its request."""

    listing: ServerListing
    asked_at: float


class Connection:
    """A connection that is being opened, is open, or has ended. Made in the event loop that uses it.

    Args:
        reach: The server.
        idle_s: Seconds without a use after which it is closed.
    """

    def __init__(self, reach: ServerTarget, *, idle_s: float) -> None:
        self.reach = reach
        self.users = 0
        self.used_at = 0.0
        self.has_ended = False
        self._idle_s = idle_s
        self._limit_s = reach.provider.timeout_s or OPEN_S
        self._loop = asyncio.get_running_loop()
        self._troubles = TransportTroubles()
        self._leave = asyncio.Event()
        self._decided = asyncio.Event()
        """That it is open, or cannot be."""
        self._session: McpSession | None = None
        self._known: dict[tuple[str, ...], _Known] = {}
        self._listing = asyncio.Lock()
        self._timer = self._loop.call_later(self._limit_s, self._give_up)
        self._task = asyncio.create_task(self._own(), name=f"mcp {reach.provider.name}")
        self._task.add_done_callback(self._over)

    @property
    def is_closed(self) -> bool:
        """Whether it has ended, and is closed too."""
        return self._task.done()

    @property
    def never_opened(self) -> bool:
        """Whether it has not been open at any time."""
        return self._session is None

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets that it has sent, or given to its program, for redaction."""
        return (*self.reach.secrets, *self._troubles.secrets)

    # Using ------------------------------------------------------------------------------------------------------------

    async def listing(self, lists: Collection[str], max_age_s: float = 0.0) -> ServerListing:
        """What the server offers, in the lists of these names, asked for at most `max_age_s` before this call.

        Calls that ask at the same time share an answer.

        Raises:
            CallFailed: There is no connection, or no answer.
        """
        session = await self._require_session()
        key = tuple(lists)
        oldest = self._loop.time() - max_age_s
        async with self._listing:
            known = self._known.get(key)
            if known is None or known.asked_at < oldest:
                asked_at = self._loop.time()
                known = _Known(await session.listing(key), asked_at)
                if not known.listing.is_cut_off:
                    self._known[key] = known
        return known.listing

    async def call(
        self, capability: McpCapability, name: str, arguments: JsonObject, *, limit_s: float, answers: "InputAnswers"
    ) -> JsonObject:
        """Call a tool, read a resource or get a prompt; see `McpSession.call`."""
        session = await self._require_session()
        return await session.call(capability, name, arguments, limit_s=limit_s, answers=answers)

    def take(self) -> None:
        """Count a user more, for whom it stays open."""
        self.users += 1
        if self._session is not None:
            self._timer.cancel()

    def give_back(self) -> None:
        """Count a user less; without any, it is closed after a while."""
        self.users -= 1
        self.used_at = self._loop.time()
        if self._session is not None:
            self._wait_for_users()

    def leave(self) -> None:
        """Have it closed."""
        self.has_ended = True
        self._leave.set()

    async def close(self) -> None:
        """Close it, and wait until it is; what takes too long is torn down."""
        self.leave()
        await asyncio.wait({self._task}, timeout=CLOSE_S)
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=CLOSE_S)

    # Owning -----------------------------------------------------------------------------------------------------------

    async def _own(self) -> None:
        from toolcrib.kinds.mcp.runtime.session import SessionOptions  # noqa: PLC0415 - the SDK loads with the first connection
        from toolcrib.kinds.mcp.runtime.transports import serve  # noqa: PLC0415 - as above

        asking = SessionOptions(
            self.reach.provider.name,
            self._troubles,
            self._limit_s,
            changed=self._known.clear,
            ended=self.leave,
            input_requests=self.reach.connection.input_requests,
        )
        await serve(self.reach, asking, self._open, self._leave)

    def _open(self, session: "McpSession") -> None:
        self._session = session
        self._wait_for_users()
        self._decided.set()

    def _wait_for_users(self) -> None:
        self._timer.cancel()
        if not self.users:
            self._timer = self._loop.call_later(self._idle_s, self.leave)

    def _give_up(self) -> None:
        """It takes too long to open."""
        self._troubles.last = late(self.reach.provider.name, self._limit_s)
        self._task.cancel()

    def _over(self, task: "asyncio.Task[None]") -> None:
        self.has_ended = True
        self._timer.cancel()
        if not task.cancelled() and (problem := task.exception()) is not None and self._troubles.last is None:
            cause = _leaf(problem)
            why = type(cause).__name__
            if isinstance(cause, ModuleNotFoundError):
                why = missing_extra("an MCP server", "mcp", "mcp")
            self._troubles.last = connection_failure(self.reach.provider.name, why, self._troubles.output)
        self._decided.set()

    async def _require_session(self) -> "McpSession":
        await self._decided.wait()
        if self._session is None:
            raise self._troubles.last or connection_failure(
                self.reach.provider.name, "it ended at once", self._troubles.output
            )
        return self._session


def _leaf(problem: BaseException) -> BaseException:
    """The first of the exceptions that a group of them is about."""
    while isinstance(problem, BaseExceptionGroup):
        problem = cast("BaseExceptionGroup[BaseException]", problem).exceptions[0]
    return problem
