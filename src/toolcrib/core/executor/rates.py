"""Rate limits of tools: at most so many executions in any window of time.

What is here counts in memory, for one process; `toolcrib.infrastructure.shared` counts for all of them.
"""

from collections import OrderedDict, deque
from typing import Protocol

from toolcrib.contracts import RateLimit

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
