"""Syncs of providers: when a serving process imports one again by itself, and what the last sync found.

Example:
    from toolcrib.contracts import AutoDiscover

    await crib.imports.schedule("files", AutoDiscover(every_s=3600))
    print((await crib.imports.last_sync("files")).next_at)
"""

from typing import Literal, Self, TypeAlias

from pydantic import Field, model_validator

from toolcrib.contracts.base.base import Contract, Timestamp

SyncResult: TypeAlias = Literal["unchanged", "changed", "held", "failed"]
"""unchanged: it offers what it did. changed: its tools were brought up to date. held: some changes wait for a person,
and the others were adopted. failed: it could not be asked, or nothing of its offer was adopted."""


class AutoDiscover(Contract):
    """When a serving process asks a provider again what it offers: at an interval, or at times."""

    every_s: float | None = Field(default=None, ge=60, le=31_536_000)
    """Seconds between syncs."""
    cron: str | None = Field(default=None, min_length=1, max_length=200)
    """Times, in place of an interval, as triggers have them: `0 6 * * mon-fri`."""
    timezone: str = "UTC"
    """Of the times: a name of the IANA database, such as `Europe/Berlin`."""

    @model_validator(mode="after")
    def _has_one_schedule(self) -> Self:
        if (self.every_s is None) == (self.cron is None):
            raise ValueError("give either every_s, the seconds between syncs, or cron, such as '0 6 * * *'")
        return self


class ProviderSync(Contract):
    """How a provider's syncs stand, whether a schedule or a person began them."""

    provider: str
    at: Timestamp | None = None
    """When it was asked last; null if never."""
    result: SyncResult | None = None
    """Of that sync."""
    synced_at: Timestamp | None = None
    """When the last one was that did not fail."""
    counts: dict[str, int] = Field(default_factory=dict)
    """Tools by what became of them in that one: `new`, `unchanged`, `changed`, `held`, `kept`, `gone`, `returned`."""
    held: tuple[str, ...] = ()
    """Tools whose change waits for a person; the first 20."""
    error: str | None = None
    """Why the last sync failed."""
    failures: int = 0
    """Failed syncs in a row."""
    next_at: Timestamp | None = None
    """When it is asked next by itself; null if it has no schedule, or is disabled."""
