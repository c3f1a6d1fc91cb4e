"""The port for deleting old data: families of runs, unreferenced blobs, and a record of each pruning.

A family is a run without a caller and all runs nested in it; it is deleted in one transaction. A store never deletes a
family with an active run or a change since the given time, or a blob stored since then. The caller decides what is old
and needed.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple, Protocol

from toolcrib.contracts.pruning_and_rehearsal import PrunedCounts

MOST_EVENTS: Final = 2000
"""Events after which a transaction takes out no further family."""


class Root(NamedTuple):
    """A run that nobody called and that has ended."""

    run_id: str
    created_at: datetime
    conversation_id: str | None
    events: int


class Family(NamedTuple):
    """What becomes of one family, and what it has, or had."""

    fate: Literal["gone", "unfinished", "needed"]
    """`unfinished`: a run of it has not ended, or something has changed since."""
    run_ids: tuple[str, ...] = ()
    """The root first."""
    events: int = 0
    approvals: int = 0


@dataclass(frozen=True, slots=True)
class Pruning:
    """A record of what was taken out of a realm."""

    realm: str
    pruned_at: datetime
    made_by: str
    ended_before: datetime
    counts: PrunedCounts


class RetentionStore(Protocol):
    """Takes out what is old."""

    async def realms(self) -> Sequence[str]:
        """The realms that have runs, by name."""
        ...

    async def roots(
        self, realm: str, *, ended_before: datetime, after: Root | None = None, limit: int = 100
    ) -> Sequence[Root]:
        """A page of roots whose row was last changed before a moment, oldest first.

        Args:
            realm: Of the runs.
            ended_before: The moment.
            after: The last one of the page before; it may be gone by now.
            limit: Most roots of a page.
        """
        ...

    async def find_needed_runs(self, realm: str) -> frozenset[str]:
        """Ids of the runs that those which go on need: whatever their requests name, and so on.

        So a run that is taken up, that was forked or that waits for a nested one is kept as long as that goes on.
        """
        ...

    async def prune(
        self, run_ids: Sequence[str], *, untouched_since: datetime, needed: Collection[str], dry_run: bool = False
    ) -> Sequence[Family]:
        """Take out the families of some roots, all in one transaction.

        It ends with the family that makes more than `MOST_EVENTS`, so that nobody waits for long: call it again with
        the roots that are left.

        Args:
            run_ids: The roots; one that is unknown has nothing and is gone.
            untouched_since: A family stays of which a run has not ended, or whose rows or signals have changed since.
            needed: A family stays of which a run is among these.
            dry_run: Take nothing out, and tell what would be.

        Returns:
            What has become of each that was looked at, in order: at least of the first.
        """
        ...

    async def unnamed_blobs(self, *, put_before: datetime) -> Sequence[tuple[str, str, int]]:
        """Realm, digest and size in bytes of each blob that was last put before a moment and that nothing names.

        Named is a digest that stands anywhere in what is kept, as it was at one moment: events, requests, results,
        signals, approvals, definitions, conversations, cached results; in whatever realm.
        """
        ...

    async def compact(self) -> None:
        """Give the space of what was taken out back to the file system; it is used for what is new in any case.

        In SQLite the whole file is written anew, and nobody else writes meanwhile.

        Raises:
            Unavailable: Another process has the store locked, or there is no room for a second file.
        """
        ...

    async def note(self, pruning: Pruning) -> None:
        """Keep a record."""
        ...

    async def prunings(self, realm: str, *, limit: int = 50) -> Sequence[Pruning]:
        """The records of a realm, newest first."""
        ...
