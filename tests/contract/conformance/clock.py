"""A clock that ticks each time somebody looks at it, so that spans add up exactly and no test waits."""

import asyncio
from datetime import UTC, datetime, timedelta

TICK_S = 0.001
_FOR_EVER = 10.0
"""Seconds from which on a sleep does not end: that of the lease's renewal, which no test needs."""


class TickingClock:
    """Wall and monotonic time are one number."""

    def __init__(self) -> None:
        self._elapsed = 0.0

    def now(self) -> datetime:
        """The moment, one tick after the last look."""
        return datetime(2026, 1, 31, 12, tzinfo=UTC) + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Seconds, one tick after the last look."""
        self._elapsed += TICK_S
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Let so much time pass at once."""
        if seconds >= _FOR_EVER:
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(0)
        self._elapsed += seconds
