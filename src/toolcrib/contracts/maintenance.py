"""What was taken out of a store because nobody needs it any more, and what was kept although it is old."""

from typing import Self

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Timestamp


class PrunedCounts(Contract):
    """What went, by kind."""

    families: int = 0
    """Runs that nobody called, each with all that were nested in it."""
    runs: int = 0
    """All runs, the nested ones included."""
    events: int = 0
    approvals: int = 0
    conversations: int = 0

    def __add__(self, other: Self) -> "PrunedCounts":
        """The sum, kind by kind."""
        return PrunedCounts(**{name: getattr(self, name) + getattr(other, name) for name in PrunedCounts.model_fields})


class KeptCounts(Contract):
    """Families whose outermost run has ended long ago and that stay all the same, by the reason."""

    unfinished: int = 0
    """A nested run goes on, or something of the family has changed since."""
    needed: int = 0
    """A run that goes on names one of its runs: it takes it up, or was forked from it."""
    in_conversation: int = 0
    """It is a turn of a conversation that stays."""

    def __add__(self, other: Self) -> "KeptCounts":
        """The sum, reason by reason."""
        return KeptCounts(**{name: getattr(self, name) + getattr(other, name) for name in KeptCounts.model_fields})


class PrunedRealm(Contract):
    """What pruning did in one realm."""

    gone: PrunedCounts = PrunedCounts()
    kept: KeptCounts = KeptCounts()


class Pruned(Contract):
    """What pruning a store did, or would do."""

    ended_before: Timestamp
    """What has ended or changed since was not looked at."""
    dry_run: bool = False
    """Nothing was removed: the counts say what would be."""
    realms: dict[str, PrunedRealm] = Field(default_factory=dict)
    """By name, those that have runs."""
    expired_results: int = 0
    """Cached results whose time was over; not counted in a dry run."""
    blobs: int = 0
    """Blobs that nothing names any more; in a dry run those that nothing names now."""
    blob_bytes: int = 0

    @property
    def gone(self) -> PrunedCounts:
        """What went in all realms."""
        return sum((realm.gone for realm in self.realms.values()), PrunedCounts())

    @property
    def kept(self) -> KeptCounts:
        """What stays in all realms."""
        return sum((realm.kept for realm in self.realms.values()), KeptCounts())
