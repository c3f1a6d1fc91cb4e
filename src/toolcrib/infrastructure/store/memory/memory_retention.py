"""Deletion of old data from the store in memory."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from toolcrib.contracts import ENDED, ChildStarted, Run, RunEvent, RunResult, RunStatus, Signal
from toolcrib.infrastructure.store.memory.memory_records import MemoryApprovals, MemoryBlobs
from toolcrib.infrastructure.store.ports.retention import MOST_EVENTS, Family, Pruning, Root
from toolcrib.infrastructure.store.ports.state_changes import digests_named_in, runs_named_in


class MemoryRun(Protocol):
    """A run as the journal in memory keeps it."""

    created: Run
    log: list[RunEvent]
    updated_at: datetime
    result: RunResult | None
    signals: dict[str, Signal]

    @property
    def status(self) -> RunStatus:
        """How it stands."""
        ...


class StoredRuns(Protocol):
    """The journal in memory."""

    pruned_before: datetime | None

    @property
    def rows(self) -> Mapping[str, MemoryRun]:
        """All runs."""
        ...

    def forget(self, run_id: str) -> None:
        """Take one out, also of the inbox."""
        ...


class MemoryRetention:
    """Takes out what is old.

    Args:
        journal: The runs.
        approvals: The inbox.
        blobs: The blobs.
        texts: Everything else in which a blob can be named.
    """

    def __init__(
        self,
        journal: StoredRuns,
        approvals: MemoryApprovals,
        blobs: MemoryBlobs,
        texts: Callable[[], Iterable[str]],
    ) -> None:
        self._journal = journal
        self._runs = journal.rows
        self._approvals = approvals
        self._blobs = blobs
        self._texts = texts
        self._prunings: list[Pruning] = []

    async def realms(self) -> Sequence[str]:
        return sorted({run.created.realm for run in self._runs.values()})

    async def roots(
        self, realm: str, *, ended_before: datetime, after: Root | None = None, limit: int = 100
    ) -> Sequence[Root]:
        found = (
            Root(run_id, run.created.created_at, run.created.request.conversation_id, len(run.log))
            for run_id, run in self._runs.items()
            if run.created.realm == realm
            and run.created.request.parent_run_id is None
            and run.status in ENDED
            and run.updated_at < ended_before
        )
        page = (root for root in found if after is None or _age(root) > _age(after))
        return sorted(page, key=_age)[:limit]

    async def find_needed_runs(self, realm: str) -> frozenset[str]:
        found: set[str] = set()
        runs = [run for run in self._runs.values() if run.created.realm == realm and run.status not in ENDED]
        while runs:
            requests = (run.created.request.model_dump(mode="json") for run in runs)
            named = {run_id for request in requests for run_id in runs_named_in(request)} - found
            found |= named
            runs = [self._runs[run_id] for run_id in named if run_id in self._runs]
        return frozenset(found)

    async def prune(
        self, run_ids: Sequence[str], *, untouched_since: datetime, needed: Collection[str], dry_run: bool = False
    ) -> Sequence[Family]:
        families: list[Family] = []
        for run_id in run_ids:
            families.append(family := self._family(run_id, untouched_since, needed))
            if family.fate == "gone" and not dry_run:
                for each in family.run_ids:
                    self._journal.forget(each)
            if sum(each.events for each in families) > MOST_EVENTS:
                break
        return families

    async def unnamed_blobs(self, *, put_before: datetime) -> Sequence[tuple[str, str, int]]:
        named = set(digests_named_in((*self._texts(), *self._texts_of_runs())))
        return [blob for blob in self._blobs.put_before(put_before) if blob[1] not in named]

    async def compact(self) -> None:
        """Nothing: what is forgotten takes no space."""

    async def note(self, pruning: Pruning) -> None:
        self._prunings.append(pruning)
        self._journal.pruned_before = max(each.ended_before for each in self._prunings)

    async def prunings(self, realm: str, *, limit: int = 50) -> Sequence[Pruning]:
        found = (pruning for pruning in self._prunings if pruning.realm == realm)
        return sorted(found, key=lambda pruning: pruning.pruned_at, reverse=True)[:limit]

    # Inside -----------------------------------------------------------------------------------------------------------

    def _family(self, root: str, since: datetime, needed: Collection[str]) -> Family:
        known = tuple(run_id for run_id in self._members(root) if run_id in self._runs)
        runs = [self._runs[run_id] for run_id in known]
        if any(run.status not in ENDED or _last_change(run) >= since for run in runs):
            return Family("unfinished", known)
        if any(run_id in needed for run_id in known):
            return Family("needed", known)
        return Family("gone", known, sum(len(run.log) for run in runs), sum(map(self._approvals.count_of, known)))

    def _members(self, root: str) -> Iterator[str]:
        waiting = [root]
        while waiting:
            run_id = waiting.pop()
            yield run_id
            log = self._runs[run_id].log if run_id in self._runs else ()
            waiting += [entry.event.child_run_id for entry in log if isinstance(entry.event, ChildStarted)]

    def _texts_of_runs(self) -> Iterator[str]:
        for run in self._runs.values():
            yield run.created.request.model_dump_json()
            yield from (run.result.model_dump_json(),) if run.result is not None else ()
            yield from (signal.model_dump_json() for signal in run.signals.values())
            yield from (entry.event.model_dump_json() for entry in run.log)


def _age(root: Root) -> tuple[datetime, str]:
    return root.created_at, root.run_id


def _last_change(run: MemoryRun) -> datetime:
    return max((run.updated_at, *(signal.at for signal in run.signals.values())))
