"""The times of a cron expression, in its time zone."""

from collections import deque
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from toolcrib.contracts import CronSource, InvalidDefinition

ON_TIME_S: Final = 60.0
"""Seconds by which a start may be late without being caught up."""
_CLOCK_CHANGE: Final = timedelta(hours=3)
"""More than any clock is changed by."""


def check_schedule(source: CronSource) -> None:
    """Refuse an expression or a time zone that cannot be used.

    Raises:
        InvalidDefinition: With what is wrong.
    """
    zone = zone_of(source.timezone)
    try:
        CronSim(source.cron, datetime.now(zone))
    except CronSimError as problem:
        msg = f"cron {source.cron!r}: {str(problem).lower()}; five fields are needed"
        raise InvalidDefinition(f"{msg}, as in '0 6 * * mon-fri' for weekdays at 6:00") from None


@lru_cache(maxsize=64)
def zone_of(name: str) -> ZoneInfo:
    """A time zone by its IANA name.

    Raises:
        InvalidDefinition: There is none.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        msg = f"time zone {name!r} is unknown; use a name of the IANA database, such as 'Europe/Berlin' or 'UTC'"
        raise InvalidDefinition(msg) from None


def next_time(source: CronSource, after: datetime) -> datetime | None:
    """The first time after a moment; null if none comes within 50 years."""
    found = next(CronSim(source.cron, after.astimezone(zone_of(source.timezone))), None)
    return None if found is None else found.astimezone(UTC)


def due_times(source: CronSource, after: datetime, now: datetime) -> tuple[datetime, ...]:
    """The times to start at: those that have passed since a moment, as far as they are caught up.

    Args:
        source: With the rule for what passed while no server ran.
        after: Up to when all was looked at.
        now: The present.

    Returns:
        In their order.
    """
    first = next_time(source, after)
    if first is None or first > now:
        return ()
    most = source.max_catch_up if source.catch_up == "all" else 1
    start = max(after, _before_the_last(source, now, most))
    found: deque[datetime] = deque(maxlen=most)
    moment = next_time(source, start)
    while moment is not None and moment <= now:
        found.append(moment)
        moment = next_time(source, moment)
    if source.catch_up == "none":
        return tuple(moment for moment in found if (now - moment).total_seconds() <= ON_TIME_S)
    return tuple(found)


def _before_the_last(source: CronSource, now: datetime, number: int) -> datetime:
    """A moment before the last so many times: a year without a server costs no more than a minute of it.

    Looked for backwards, where times in the hour of a changed clock are others; so it is earlier by some hours.
    """
    local = now.astimezone(zone_of(source.timezone)).replace(microsecond=0) + timedelta(seconds=1)
    passed = [*islice(CronSim(source.cron, local, reverse=True), number)]
    return (passed[-1].astimezone(UTC) if passed else now) - _CLOCK_CHANGE
