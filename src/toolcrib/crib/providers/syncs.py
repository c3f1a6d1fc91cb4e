"""What is kept of a provider's syncs, and when the next one is due.

An attempt is written down before it is made, as one that failed: if the process dies in it, it is tried again
later, and no other process tries at the same time. Waits after failures double from a minute to an hour.
"""

from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from toolcrib.contracts import (
    AutoDiscover,
    CronSource,
    ImportOutcome,
    ProviderDefinition,
    ProviderSync,
    SyncResult,
)
from toolcrib.core.executor import Clock
from toolcrib.core.triggers import next_time
from toolcrib.infrastructure.store import ResultCache

_FIRST_WAIT_S: Final = 60.0
_LONGEST_WAIT_S: Final = 3600.0
_MOST_HELD: Final = 20
_LONGEST_ERROR: Final = 2_000
_MADE_BY: Final = "syncs"
_STORED: Final = frozenset({"new", "changed", "returned", "gone"})


class SyncRecord(Struct, frozen=True):
    """How a provider's syncs stand, as the store keeps it."""

    since: datetime
    """When its schedule was first looked at, or it was first synced."""
    at: datetime | None = None
    result: SyncResult | None = None
    synced_at: datetime | None = None
    counts: dict[str, int] = field(default_factory=dict[str, int])
    held: tuple[str, ...] = ()
    error: str | None = None
    failures: int = 0

    def begun(self, at: datetime) -> "SyncRecord":
        """With one more attempt, whose end nobody has written down yet."""
        error = "the process ended before the sync did; it is tried again"
        return replace(self, at=at, result="failed", error=error, failures=self.failures + 1)

    def failed(self, error: str) -> "SyncRecord":
        """With the attempt that was begun as a failure."""
        return replace(self, error=error[:_LONGEST_ERROR])

    def synced(self, at: datetime, outcome: ImportOutcome) -> "SyncRecord":
        """With a sync that did not fail."""
        counts = {str(name): count for name, count in outcome.counts().items()}
        held = tuple(found.tool for found in outcome.held)
        result: SyncResult = "held" if held else "changed" if _STORED & counts.keys() else "unchanged"
        return SyncRecord(since=self.since, at=at, result=result, synced_at=at, counts=counts, held=held[:_MOST_HELD])

    def shown(self, provider: ProviderDefinition) -> ProviderSync:
        """For people, with the time of the next one."""
        schedule = provider.auto_discover if provider.enabled else None
        return ProviderSync(
            provider=provider.name,
            at=self.at,
            result=self.result,
            synced_at=self.synced_at,
            counts=self.counts,
            held=self.held,
            error=self.error,
            failures=self.failures,
            next_at=None if schedule is None else due_at(schedule, self),
        )


def due_at(schedule: AutoDiscover, record: SyncRecord) -> datetime | None:
    """When a provider is to be synced next. What passed while no server ran is caught up by one sync.

    Args:
        schedule: Of the provider.
        record: What was done so far.
    """
    if record.failures and record.at is not None:
        wait_s = min(_FIRST_WAIT_S * 2 ** min(record.failures - 1, 10), _LONGEST_WAIT_S)
        return record.at + timedelta(seconds=wait_s)
    last = record.at or record.since
    if schedule.every_s is not None:
        return last + timedelta(seconds=schedule.every_s)
    return next_time(times_of(schedule), last)


def times_of(schedule: AutoDiscover) -> CronSource:
    """The times of a schedule that has some, as those of triggers."""
    return CronSource(cron=schedule.cron or "", timezone=schedule.timezone)


class SyncRecords:
    """The records of a store.

    Args:
        cache: Of the store.
        clock: Time.
    """

    def __init__(self, cache: ResultCache, clock: Clock) -> None:
        self._cache = cache
        self._clock = clock

    async def find(self, realm: str, provider: str) -> SyncRecord | None:
        """A provider's record; null if nobody has made one."""
        kept = await self._cache.get(_key(realm, provider), now=self._clock.now())
        return None if kept is None else msgspec.convert(kept, SyncRecord)

    async def get(self, realm: str, provider: str) -> SyncRecord:
        """A provider's record, or one that says nothing."""
        return await self.find(realm, provider) or SyncRecord(self._clock.now())

    async def keep(self, realm: str, provider: str, record: SyncRecord) -> SyncRecord:
        """Keep a record, and return it."""
        value = msgspec.to_builtins(record)
        await self._cache.put(_key(realm, provider), value, realm=realm, made_by=_MADE_BY, expires_at=None)
        return record


def _key(realm: str, provider: str) -> str:
    return f"provider-sync/{realm}/{provider}"
