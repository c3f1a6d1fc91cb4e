"""The store in memory: it has all guarantees of `SqlStore` except durability.

Every operation takes effect before it returns. It keeps the given objects, and is not shared between processes or
threads.
"""

import heapq
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import takewhile

from pydantic_core import from_json, to_json

from toolcrib.contracts import (
    ENDED,
    Conflict,
    Event,
    JsonObject,
    LifeCycle,
    Run,
    RunEvent,
    RunResult,
    RunStatus,
    Signal,
    ToolcribError,
)
from toolcrib.infrastructure.queries.grammar import Condition
from toolcrib.infrastructure.store.memory.memory_records import (
    MemoryApprovals,
    MemoryBlobs,
    MemoryConversations,
    MemoryCounters,
    MemorySealedValues,
    beginning_with,
    count_rows,
    find_rows,
)
from toolcrib.infrastructure.store.memory.memory_retention import MemoryRetention
from toolcrib.infrastructure.store.ports import state_changes as rules
from toolcrib.infrastructure.store.ports.queried_fields import RUN_FIELDS, StoreQuery
from toolcrib.infrastructure.store.ports.store import (
    ApiKey,
    Changed,
    Claim,
    Definition,
    DefinitionKind,
    Lease,
    Removal,
    RunChange,
    VersionState,
)


class MemoryStore:
    """All ports of `Store`, in dictionaries.

    Args:
        keep_ended: How many ended runs are kept; the ones that ended first are forgotten, so that a long-lived process
            does not grow for ever. Not many by default: the garbage collector walks through all that is kept.
        now: Tells the time at which a blob is put.
    """

    def __init__(self, *, keep_ended: int = 200, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._definitions = _Definitions()
        self._approvals = MemoryApprovals()
        self._journal = _Journal(keep_ended, self._approvals)
        self._cache = _Cache()
        self._blobs = MemoryBlobs(now)
        self._api_keys = _ApiKeys()
        self._sealed = MemorySealedValues()
        self._conversations = MemoryConversations()
        self._counters = MemoryCounters()
        journal, approvals = self._journal, self._approvals
        self._retention = MemoryRetention(journal, approvals, self._blobs, self._texts)

    @property
    def definitions(self) -> "_Definitions":
        """Definitions."""
        return self._definitions

    @property
    def journal(self) -> "_Journal":
        """Runs and their logs."""
        return self._journal

    @property
    def approvals(self) -> MemoryApprovals:
        """The inbox."""
        return self._approvals

    @property
    def cache(self) -> "_Cache":
        """Cached results."""
        return self._cache

    @property
    def blobs(self) -> MemoryBlobs:
        """Blobs."""
        return self._blobs

    @property
    def api_keys(self) -> "_ApiKeys":
        """API keys."""
        return self._api_keys

    @property
    def sealed(self) -> MemorySealedValues:
        """Sealed values."""
        return self._sealed

    @property
    def conversations(self) -> MemoryConversations:
        """Conversations."""
        return self._conversations

    @property
    def retention(self) -> MemoryRetention:
        """Takes out what is old."""
        return self._retention

    def _texts(self) -> Iterator[str]:
        """What may name a blob, besides runs."""
        yield from self._definitions.texts()
        yield from self._approvals.texts()
        yield from self._conversations.texts()
        yield from self._cache.texts()

    @property
    def counters(self) -> MemoryCounters:
        """Counters."""
        return self._counters

    async def open(self) -> None:
        """Nothing to connect."""

    async def close(self) -> None:
        """Nothing to let go of; what was stored stays readable."""


class _Definitions:
    def __init__(self) -> None:
        self._by_name: dict[tuple[DefinitionKind, str, str], list[Definition]] = {}
        self._by_hash: dict[tuple[str, str], tuple[list[Definition], int]] = {}
        """Where the revision is, as only the list knows its status."""
        self._removed: set[tuple[DefinitionKind, str, str, int]] = set()
        self._changes: Counter[str] = Counter()
        self._changed: dict[tuple[DefinitionKind, str, str, int], int] = {}
        """Number of the last change of each revision."""

    async def save(self, definition: Definition, *, after: int | None = None) -> Definition:
        known = self._by_name.setdefault((definition.kind, definition.realm, definition.name), [])
        listed = any(_revision_key(revision) not in self._removed for revision in known)
        rules.require_newest(definition, len(known), after, listed=listed)
        return self._save(definition, known)

    async def save_all(
        self,
        realm: str,
        definitions: Sequence[Definition],
        states: Sequence[VersionState] = (),
        *,
        seen: int,
        removals: Sequence[Removal] = (),
    ) -> Sequence[Definition]:
        rules.require_unchanged(realm, self._changes[realm], seen)
        saved = [
            self._save(definition, self._by_name.setdefault((definition.kind, realm, definition.name), []))
            for definition in definitions
        ]
        for state in states:
            self._set_status(state)
        for each in removals:
            self._remove(realm, each)
        return saved

    def _save(self, definition: Definition, known: list[Definition]) -> Definition:
        of_version = [revision for revision in reversed(known) if revision.version == definition.version]
        same = next((found for found in of_version if found.content_hash == definition.content_hash), None)
        if same is not None and same is of_version[0]:
            self._restore(same)
            return same
        saved = replace(definition, revision=len(known) + 1)
        if same is not None:
            saved = replace(
                saved,
                status=same.status,
                status_message=same.status_message,
                sunset=same.sunset,
                replacement=same.replacement,
            )
        self._note(saved)
        self._by_hash.setdefault((saved.realm, saved.content_hash), (known, len(known)))
        known.append(saved)
        return saved

    def _restore(self, revision: Definition) -> None:
        if _revision_key(revision) in self._removed:
            self._removed.discard(_revision_key(revision))
            self._note(revision)

    def _note(self, *revisions: Definition) -> None:
        """Number one change."""
        self._changes[revisions[0].realm] += 1
        for revision in revisions:
            key = _revision_key(revision)
            self._changed.pop(key, None)  # so that the latest change comes last
            self._changed[key] = self._changes[revision.realm]

    async def changes(self, realm: str) -> int:
        return self._changes[realm]

    async def changes_since(
        self, kind: DefinitionKind, realm: str, since: int, *, without: Collection[str] = ()
    ) -> Changed:
        del without  # nothing would be saved by it here
        latest = ((key, at) for key, at in reversed(self._changed.items()) if key[1] == realm)
        keys = sorted(key for key, _ in takewhile(lambda found: found[1] > since, latest) if key[0] == kind)
        return Changed(
            [self._by_name[key[:3]][key[3] - 1] for key in keys if key not in self._removed],
            [(key[2], key[3]) for key in keys if key in self._removed],
        )

    def texts(self) -> Iterator[str]:
        """All bodies."""
        yield from (to_json(one.body).decode() for revisions in self._by_name.values() for one in revisions)

    async def get(self, realm: str, content_hash: str) -> Definition | None:
        known, index = self._by_hash.get((realm, content_hash), ([], 0))
        return known[index] if known else None

    async def revisions(self, kind: DefinitionKind, realm: str, name: str | None = None) -> Sequence[Definition]:
        keys: list[tuple[DefinitionKind, str, str]] = [(kind, realm, name or "")]
        if name is None:
            keys = sorted(key for key in self._by_name if key[:2] == (kind, realm))
        found = (revision for key in keys for revision in self._by_name.get(key, ()))
        return [revision for revision in found if _revision_key(revision) not in self._removed]

    async def set_status(
        self,
        kind: DefinitionKind,
        realm: str,
        name: str,
        version: str,
        *,
        status: LifeCycle,
        message: str | None = None,
        sunset: datetime | None = None,
        replacement: str | None = None,
    ) -> int:
        return self._set_status(VersionState(kind, realm, name, version, status, message, sunset, replacement))

    def _set_status(self, state: VersionState) -> int:
        known = self._by_name.get((state.kind, state.realm, state.name), [])
        places = [index for index, revision in enumerate(known) if revision.version == state.version]
        for index in places:
            known[index] = replace(
                known[index],
                status=state.status,
                status_message=state.message,
                sunset=state.sunset,
                replacement=state.replacement,
            )
        if places:
            self._note(*(known[index] for index in places))
        return len(places)

    async def remove(self, kind: DefinitionKind, realm: str, name: str, version: str | None = None) -> int:
        return self._remove(realm, Removal(kind, name, version))

    def _remove(self, realm: str, what: Removal) -> int:
        known = self._by_name.get((what.kind, realm, what.name), ())
        listed = [
            each for each in known if _revision_key(each) not in self._removed and what.version in {None, each.version}
        ]
        self._removed |= {_revision_key(revision) for revision in listed}
        if listed:
            self._note(*listed)
        return len(listed)


def _revision_key(revision: Definition) -> tuple[DefinitionKind, str, str, int]:
    return revision.kind, revision.realm, revision.name, revision.revision


class _Done:
    """An operation that has taken effect, or was refused."""

    __slots__ = ("_error",)

    def __init__(self, error: ToolcribError | None = None) -> None:
        self._error = error

    def __await__(self) -> Generator[None, None, None]:
        if self._error is not None:
            raise self._error
        return
        yield


_DONE = _Done()


class _Row:
    __slots__ = ("created", "epoch", "lease_until", "log", "owner", "result", "signals", "standing", "updated_at")

    def __init__(self, created: Run, first: RunEvent, lease: Lease | None) -> None:
        self.created = created
        self.log = [first]
        self.standing = rules.READY
        """Where it stands while nobody owns it."""
        self.owner = None if lease is None else lease.owner
        self.lease_until = rules.AT_ONCE if lease is None else lease.until
        """Of the owner, while there is one."""
        self.epoch = 0 if lease is None else created.epoch
        self.updated_at = created.created_at
        self.result: RunResult | None = None
        self.signals: dict[str, Signal] = {}

    @property
    def status(self) -> RunStatus:
        return self.standing.status if self.owner is None else "running"

    @property
    def claimable_at(self) -> datetime | None:
        return self.standing.claimable_at if self.owner is None else self.lease_until

    def view(self) -> Run:
        now: JsonObject = {
            "status": self.status,
            "epoch": self.epoch,
            "events": len(self.log),
            "updated_at": self.updated_at,
            "wake_at": self.standing.wake_at,
        }
        if self.result is not None:
            now |= {name: getattr(self.result, name) for name in _OUTCOME}
        return self.created.model_copy(update=now)


_OUTCOME = ("stop_reason", "output", "partial", "error", "warnings", "usage", "tokens", "cost_usd", "cost_unknown")


class _Journal:
    def __init__(self, keep_ended: int, approvals: MemoryApprovals) -> None:
        self._keep_ended = keep_ended
        self._approvals = approvals
        self._ended: deque[str] = deque()
        self.rows: dict[str, _Row] = {}
        """All runs."""
        self.pruned_before: datetime | None = None
        """The moment until which runs were taken out; null if none were."""
        self._live: dict[str, _Row] = {}
        """Those that have not ended."""

    def create(self, run: Run, first: Event, *, lease: Lease | None = None) -> Awaitable[None]:
        try:
            rules.check_new(run, lease)
            if run.run_id in self.rows:
                raise rules.id_conflict(run.run_id)
        except ToolcribError as error:
            return _Done(error)
        row = _Row(run, rules.first_entry(run, first), lease)
        self.rows[run.run_id] = self._live[run.run_id] = row
        return _DONE

    async def claim(self, run_id: str, *, owner: str, now: datetime, lease_s: float) -> Claim | None:
        row = self._row(run_id)
        if row.owner != owner and not _due(row, now):
            return None
        row.owner, row.lease_until = owner, now + timedelta(seconds=lease_s)
        row.standing = rules.READY
        row.epoch += 1
        row.updated_at = now
        return Claim(row.view(), tuple(row.log), dict(row.signals))

    async def claimable(self, *, now: datetime, limit: int) -> Sequence[str]:
        due = (row.created for row in self._live.values() if _due(row, now))
        return [run.run_id for run in heapq.nsmallest(limit, due, key=_age)]

    async def renew(self, run_ids: Sequence[str], *, owner: str, now: datetime, lease_s: float) -> Sequence[str]:
        held = [run_id for run_id in run_ids if run_id in self._live and self._live[run_id].owner == owner]
        for run_id in held:
            self._live[run_id].lease_until = now + timedelta(seconds=lease_s)
        return held

    def append(
        self, run_id: str, epoch: int, events: Sequence[RunEvent], change: RunChange | None = None
    ) -> Awaitable[None]:
        row = self.rows.get(run_id)
        if row is not None and row.owner is not None and epoch == row.epoch and len(events) == 1:
            (entry,) = events
            if change is None and entry.run_id == run_id and entry.number == len(row.log) + 1:  # as is usual
                row.log.append(entry)
                row.updated_at = entry.at
                if entry.event.type in rules.OF_APPROVALS:
                    self._approvals.follow(entry)
                return _DONE
        try:
            row = row or self._row(run_id)
            rules.check_numbers(run_id, events)
            standing = None if change is None else rules.settle(change, row.signals)
            log, first = row.log, events[0].number if events else None
            has_ended = row.owner is None and row.status in ENDED
            if epoch != row.epoch or has_ended or (first is not None and first != len(log) + 1):
                last, status = len(log), row.status
                raise rules.refusal(run_id, own_epoch=epoch, epoch=row.epoch, status=status, last=last, first=first)
        except ToolcribError as error:
            return _Done(error)
        if events:
            log += events
            row.updated_at = events[-1].at
            for event in events:
                if event.event.type in rules.OF_APPROVALS:
                    self._approvals.follow(event)
        if change is not None and standing is not None:
            self._change(row, change, standing)
        return _DONE

    def _change(self, row: _Row, change: RunChange, standing: rules.LogState) -> None:
        run_id = row.created.run_id
        row.owner, row.standing = None, standing
        row.result = change.result or row.result
        if change.tells is not None and change.tells[0] in self.rows:
            self._leave(*change.tells)
        if standing.status in ENDED:
            del self._live[run_id]
            self._ended.append(run_id)
            if len(self._ended) > self._keep_ended:
                self.forget(self._ended.popleft())

    def forget(self, run_id: str) -> None:
        """Take out a run that has ended, if it is still there."""
        self.rows.pop(run_id, None)
        self._approvals.forget(run_id)

    async def signal(self, run_id: str, signal: Signal) -> bool:
        return self._leave(run_id, signal)

    def _leave(self, run_id: str, signal: Signal) -> bool:
        row = self._row(run_id)
        if signal.name in row.signals:
            return False
        row.signals[signal.name] = signal
        self._approvals.hear(run_id, signal)
        if rules.wakes(signal.name, row.status, row.standing.waiting_for):
            row.standing = rules.READY
            row.updated_at = signal.at
        return True

    async def signal_all(self, signals: Sequence[tuple[str, Signal]]) -> bool:
        rows = [(self._row(run_id), signal) for run_id, signal in signals]
        if any(signal.name in row.signals for row, signal in rows):
            return False
        return all(self._leave(run_id, signal) for run_id, signal in signals)

    async def signals(self, run_id: str) -> Mapping[str, Signal]:
        row = self.rows.get(run_id)
        return dict(row.signals) if row else {}

    async def runs_with_signal(self, name: str, run_ids: Sequence[str]) -> Sequence[str]:
        return [run_id for run_id in run_ids if run_id in self.rows and name in self.rows[run_id].signals]

    async def run(self, run_id: str) -> Run:
        return self._row(run_id).view()

    async def runs(
        self,
        realm: str,
        *,
        tool: str | None = None,
        made_by: str | None = None,
        status: RunStatus | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[Run]:
        last = self._row(before).created if before is not None else None
        if last is not None and last.realm != realm:
            raise rules.no_run(last.run_id)
        page = (
            row
            for row in self.rows.values()
            if row.created.realm == realm
            and tool in {None, row.created.request.tool_name}
            and made_by in {None, row.created.made_by}
            and status in {None, row.status}
            and (last is None or _age(row.created) < _age(last))
        )
        return [row.view() for row in heapq.nlargest(limit, page, key=lambda row: _age(row.created))]

    async def find(self, realm: str, query: StoreQuery) -> Sequence[Run]:
        return find_rows(self._views(realm), RUN_FIELDS, query)

    async def count(self, realm: str, condition: Condition) -> int:
        return count_rows(self._views(realm), RUN_FIELDS, condition)

    def _views(self, realm: str) -> Iterator[Run]:
        return (row.view() for row in self.rows.values() if row.created.realm == realm)

    async def ended_runs(
        self, realm: str, *, tool: str, after: tuple[datetime, str], limit: int = 100
    ) -> Sequence[Run]:
        views = (
            row.view()
            for row in self.rows.values()
            if row.created.realm == realm and row.created.request.tool_name == tool and row.status in ENDED
        )
        found = (run for run in views if (run.updated_at, run.run_id) > after)
        return heapq.nsmallest(limit, found, key=lambda run: (run.updated_at, run.run_id))

    async def find_ids(self, realm: str, prefix: str, *, limit: int) -> Sequence[str]:
        ids = (run_id for run_id, row in self.rows.items() if row.created.realm == realm)
        return beginning_with(prefix, ids, limit)

    async def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[RunEvent]:
        row = self.rows.get(run_id)
        log = row.log if row else []
        page = log[after:] if limit is None else log[after : after + limit]
        return tuple(page)

    def _row(self, run_id: str) -> _Row:
        row = self.rows.get(run_id)
        if row is None:
            raise rules.no_run(run_id, self.pruned_before)
        return row


def _due(row: _Row, now: datetime) -> bool:
    at = row.claimable_at
    return at is not None and at <= now


def _age(run: Run) -> tuple[datetime, str]:
    return run.created_at, run.run_id


class _Cache:
    def __init__(self) -> None:
        self._values: dict[str, tuple[bytes, datetime | None]] = {}

    async def get(self, key: str, *, now: datetime) -> JsonObject | None:
        value, expires_at = self._values.get(key, (None, None))
        if value is None or (expires_at is not None and expires_at <= now):
            return None
        return from_json(value)

    async def put(self, key: str, value: JsonObject, *, realm: str, made_by: str, expires_at: datetime | None) -> None:
        del realm, made_by  # kept by stores that are asked who wrote what; this one forgets with the process
        self._values[key] = (to_json(value), expires_at)

    async def add(
        self, key: str, value: JsonObject, *, realm: str, made_by: str, now: datetime, expires_at: datetime
    ) -> bool:
        if await self.get(key, now=now) is not None:
            return False
        await self.put(key, value, realm=realm, made_by=made_by, expires_at=expires_at)
        return True

    def texts(self) -> Iterator[str]:
        """All values."""
        yield from (value.decode() for value, _ in self._values.values())

    async def purge(self, *, now: datetime) -> int:
        kept = {name: entry for name, entry in self._values.items() if entry[1] is None or entry[1] > now}
        count = len(self._values) - len(kept)
        self._values = kept
        return count


class _ApiKeys:
    def __init__(self) -> None:
        self._keys: dict[str, ApiKey] = {}

    async def add(self, key: ApiKey) -> None:
        if key.key_id in self._keys:
            msg = f"an API key {key.key_id} already exists; use a new id"
            raise Conflict(msg)
        self._keys[key.key_id] = key

    async def get(self, key_id: str) -> ApiKey | None:
        return self._keys.get(key_id)

    async def count(self) -> int:
        return len(self._keys)

    async def list(self, realm: str) -> Sequence[ApiKey]:
        found = (key for key in self._keys.values() if key.realm == realm)
        return sorted(found, key=lambda key: (key.created_at, key.key_id))

    async def find_ids(self, realm: str, prefix: str, *, limit: int) -> Sequence[str]:
        return beginning_with(prefix, (key.key_id for key in self._keys.values() if key.realm == realm), limit)

    async def remove(self, realm: str, key_id: str) -> bool:
        key = self._keys.get(key_id)
        if key is None or key.realm != realm:
            return False
        del self._keys[key_id]
        return True
