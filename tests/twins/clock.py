"""A clock that stands still until it is told to go on."""

import asyncio
from datetime import UTC, datetime, timedelta


class ManualClock:
    """Wall and monotonic time move together, and only through `advance` and `sleep`."""

    def __init__(self, start: datetime = datetime(2026, 1, 31, 12, tzinfo=UTC)) -> None:
        self.start = start
        self.elapsed = 0.0
        self.naps: list[float] = []
        """Seconds of every sleep, in order."""

    def now(self) -> datetime:
        """The start and what has passed since."""
        return self.start + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        """Seconds since the start."""
        return self.elapsed

    async def sleep(self, seconds: float) -> None:
        """Let so much time pass at once, after giving others a turn."""
        self.naps.append(seconds)
        await asyncio.sleep(0)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.elapsed += seconds
