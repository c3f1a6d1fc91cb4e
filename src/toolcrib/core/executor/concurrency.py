"""Order of parallel calls in a run, and rate limits of tools in this process.

Calls run in parallel up to a number. A sequential call waits for all earlier calls, and all later calls wait for it.
`Lanes` belongs to one run. `toolcrib.infrastructure.redis` has rate limits for all processes.
"""

import asyncio
from collections import OrderedDict, deque
from typing import Protocol

from toolcrib.contracts import JsonObject, RateLimit


class Lanes:
    """First come, first served.

    Args:
        max_parallel: Calls at the same time; null where something else orders them, and none has to wait here.
    """

    def __init__(self, max_parallel: int | None) -> None:
        self._max_parallel = max_parallel
        self._running = 0
        self._alone = False
        self._queue: deque[tuple[bool, asyncio.Future[None]]] = deque()

    def enter_at_once(self, *, alone: bool) -> bool:
        """Take a lane if nobody has to be waited for; `alone` for a sequential tool."""
        if self._queue or not self._has_room(alone=alone):
            return False
        self._running += 1
        self._alone = alone
        return True

    async def enter(self, *, alone: bool) -> None:
        """Wait for a lane and take it; whoever has it must `leave`."""
        if self.enter_at_once(alone=alone):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((alone, turn))
        try:
            await turn
        except asyncio.CancelledError:
            self._forget(alone=alone, turn=turn)
            raise

    def leave(self) -> None:
        """Give the lane back."""
        self._running -= 1
        self._alone = False
        if self._queue:
            self._admit()

    def _has_room(self, *, alone: bool) -> bool:
        if self._max_parallel is None:
            return True
        if alone:
            return self._running == 0
        return not self._alone and self._running < self._max_parallel

    def _admit(self) -> None:
        while self._queue and self._has_room(alone=self._queue[0][0]):
            alone, turn = self._queue.popleft()
            if not turn.cancelled():
                self._running += 1
                self._alone = alone
                turn.set_result(None)

    def _forget(self, *, alone: bool, turn: asyncio.Future[None]) -> None:
        if turn.done() and not turn.cancelled():
            self._running -= 1
            self._alone = False
        else:
            self._queue = deque(entry for entry in self._queue if entry != (alone, turn))
        self._admit()


class OngoingCall:
    """A call that is being made, for which equal calls wait."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.kept: JsonObject | None = None
        """What it has brought for all of them; null if nothing that may be kept."""
        self.over = asyncio.Event()


_MOST_KEYS = 10_000


class Rates(Protocol):
    """Counts executions."""

    async def take(self, key: str, limit: RateLimit, *, now: float) -> float | None:
        """Count one execution at monotonic time `now`, or say in how many seconds one will be possible."""
        ...


class SlidingWindow:
    """Remembers the moments of the last executions: exact, and bounded by the limits themselves."""

    def __init__(self) -> None:
        self._moments: OrderedDict[str, deque[float]] = OrderedDict()

    async def take(self, key: str, limit: RateLimit, *, now: float) -> float | None:
        """Count one execution at monotonic time `now`, or say in how many seconds one will be possible."""
        moments = self._moments.setdefault(key, deque())
        self._moments.move_to_end(key)
        if len(self._moments) > _MOST_KEYS:
            self._moments.popitem(last=False)
        while moments and moments[0] <= now - limit.per_s:
            moments.popleft()
        if len(moments) >= limit.count:
            return moments[0] + limit.per_s - now
        moments.append(now)
        return None
