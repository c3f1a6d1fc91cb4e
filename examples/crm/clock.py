"""Where the CRM reads the time; tests pass their own."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Two readings of time."""

    utc: Callable[[], datetime] = _utc_now
    """The moment, for records."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds from any fixed start, for rates."""
