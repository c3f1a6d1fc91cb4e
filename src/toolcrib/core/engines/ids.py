"""The system clock, and run ids that sort by time."""

import asyncio
import secrets
import time
from datetime import UTC, datetime


class SystemClock:
    """Time as the machine tells it."""

    def now(self) -> datetime:
        """The current moment in UTC."""
        return datetime.now(UTC)

    monotonic = staticmethod(time.perf_counter)
    """Seconds of a clock that never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Let so much time pass."""
        await asyncio.sleep(seconds)


def new_run_id() -> str:
    """`run_` and 32 hex characters: 48 bits of milliseconds, then 80 random bits, so that ids sort by time."""
    return f"run_{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"
