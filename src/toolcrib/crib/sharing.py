"""What the processes of one crib share beside their store, wired: in Redis where there is one, else each for itself."""

from dataclasses import dataclass
from typing import Self

from toolcrib.crib.outside import Outside
from toolcrib.executor import Rates, Results, SlidingWindow
from toolcrib.shared import RedisRates, RedisResults, RedisServer


@dataclass(frozen=True, slots=True)
class Sharing:
    """All of it, for one crib."""

    redis: RedisServer | None
    results: Results
    rates: Rates

    @classmethod
    def wire(cls, outside: Outside) -> Self:
        """Make all of it; nothing is connected yet."""
        redis, alone = outside.redis, SlidingWindow()
        if redis is None:
            return cls(None, outside.store.cache, alone)
        return cls(redis, RedisResults(redis, outside.clock.now), RedisRates(redis, alone))

    async def close(self) -> None:
        """Let go of the connections."""
        if self.redis is not None:
            await self.redis.close()
