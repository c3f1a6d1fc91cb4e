"""What the processes of one crib share, wired: in Redis where there is one, else in the store, or each for itself."""

from dataclasses import dataclass
from typing import Self

from toolcrib.core.executor import Rates, Results, SlidingWindow
from toolcrib.core.policy import Caps, CountedCaps
from toolcrib.crib.container.outside import Outside
from toolcrib.infrastructure.shared import RedisCounters, RedisRates, RedisResults, RedisServer
from toolcrib.infrastructure.store import Counters


@dataclass(frozen=True, slots=True)
class Sharing:
    """All of it, for one crib."""

    redis: RedisServer | None
    results: Results
    rates: Rates
    caps: Caps | None
    """Null if the operator has set none."""

    @classmethod
    def wire(cls, outside: Outside) -> Self:
        """Make all of it; nothing is connected yet."""
        store, redis, now, alone = outside.store, outside.redis, outside.clock.now, SlidingWindow()
        if redis is None:
            return cls(None, store.cache, alone, _caps(outside, store.counters))
        caps = _caps(outside, RedisCounters(redis, now))
        return cls(redis, RedisResults(redis, now), RedisRates(redis, alone), caps)

    async def close(self) -> None:
        """Let go of the connections."""
        if self.redis is not None:
            await self.redis.close()


def _caps(outside: Outside, counters: Counters) -> Caps | None:
    return CountedCaps(outside.budgets, counters, outside.clock.now) if outside.budgets else None
