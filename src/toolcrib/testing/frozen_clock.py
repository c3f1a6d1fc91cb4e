"""A clock that a test moves."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

from toolcrib.contracts import InvalidInput
from toolcrib.core.engines import HEARTBEAT

START: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
"""The moment that a frozen clock shows at first."""


class FrozenClock:
    """A clock that stands still until a test moves it with `advance`.

    Code that sleeps on it, such as a retry with back-off, continues at once, and the clock has moved by as much. A test
    therefore never waits. The renewal of leases, which runs beside everything else, waits for `advance`.

    Args:
        start: The first moment, with a time zone; 2026-01-01, 12:00 UTC if null.

    Raises:
        InvalidInput: `start` has no time zone.

    Example:
        from toolcrib.testing import FrozenClock

        clock = FrozenClock()
        clock.advance(hours=2)
        print(clock.now())
    """

    def __init__(self, start: datetime | None = None) -> None:
        start = START if start is None else start
        if start.tzinfo is None:
            msg = f"the clock cannot start at {start.isoformat()}, which has no time zone; add tzinfo=UTC"
            raise InvalidInput(msg)
        self._start = start.astimezone(UTC)
        self._elapsed = timedelta()
        self._waiting: list[tuple[timedelta, asyncio.Future[None]]] = []
        self.slept: list[float] = []
        """Seconds of every sleep so far, such as the waits before retries, in order."""

    def __repr__(self) -> str:
        return f"FrozenClock({self.now().isoformat()})"

    def now(self) -> datetime:
        """The current moment in UTC."""
        return self._start + self._elapsed

    def monotonic(self) -> float:
        """Seconds since the start."""
        return self._elapsed.total_seconds()

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop in which something waits for `advance`; null if nothing does, or the loop is closed."""
        loops = (news.get_loop() for _, news in self._waiting)
        return next((loop for loop in loops if not loop.is_closed()), None)

    async def sleep(self, seconds: float) -> None:
        """Move the clock by so many seconds, after other tasks had a turn."""
        task = asyncio.current_task()
        if task is not None and task.get_name() == HEARTBEAT:
            await self._wait(seconds)
            return
        self.slept.append(seconds)
        await asyncio.sleep(0)
        self.advance(seconds=seconds)

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> datetime:
        """Let time pass. Nothing is driven by this alone: `toolcrib.testing.advance` also resumes runs.

        Returns:
            The new moment.

        Raises:
            InvalidInput: The time is negative.

        Example:
            from toolcrib.testing import FrozenClock

            print(FrozenClock().advance(days=1, minutes=30))
        """
        step = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        if step < timedelta():
            msg = f"the clock cannot go back by {-step}; make another FrozenClock(start)"
            raise InvalidInput(msg)
        self._elapsed += step
        for until, news in self._waiting:
            if until <= self._elapsed and not news.done() and not news.get_loop().is_closed():
                news.set_result(None)
        return self.now()

    async def _wait(self, seconds: float) -> None:
        entry = self._elapsed + timedelta(seconds=seconds), asyncio.get_running_loop().create_future()
        self._waiting.append(entry)
        try:
            await entry[1]
        finally:
            self._waiting.remove(entry)
