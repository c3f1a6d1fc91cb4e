"""The journal in SQL.

An append changes its run's row only if epoch and last number are what the writer expects, and its events are written
in the same transaction. `claimable_at` is compared between processes, so on several machines it is in the database's
time: a caller's time counts only as a span.
"""

import json
from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import sqlalchemy as sa

from toolcrib.contracts import ENDED, SCHEMA_VERSION, Event, Run, RunEvent, RunStatus, Signal, ToolcribError
from toolcrib.infrastructure.queries.grammar import Condition
from toolcrib.infrastructure.store.database.database import Database
from toolcrib.infrastructure.store.database.dialect import insert_new
from toolcrib.infrastructure.store.database.session import OnRuns, Row, Session, TouchesRuns
from toolcrib.infrastructure.store.database.tables import EVENTS, HAVE_ENDED, RUNS, SIGNALS, SUCCEEDED, UNSUCCESSFUL
from toolcrib.infrastructure.store.ports import state_changes as rules
from toolcrib.infrastructure.store.ports.queried_fields import RUN_FIELDS, StoreQuery
from toolcrib.infrastructure.store.ports.state_changes import LogState
from toolcrib.infrastructure.store.ports.store import Claim, Lease, RunChange
from toolcrib.infrastructure.store.sql.approvals import Step, following, hearing
from toolcrib.infrastructure.store.sql.pruning import pruning_moment
from toolcrib.infrastructure.store.sql.queries import QueriedTable, values_required
from toolcrib.infrastructure.store.sql.rows import (
    NO_OUTCOME,
    encode,
    entry_of,
    event_rows,
    first_row,
    ids_with_prefix,
    outcome_columns,
    run_of,
    run_row,
    signal_of,
    to_micros,
)

_THIS_RUN: Final = RUNS.c.run_id == sa.bindparam("this_run")
_NOT_ENDED: Final = RUNS.c.status.not_in([sa.literal_column(f"'{status}'") for status in sorted(ENDED)])

_INSERT_RUN: Final = insert_new(RUNS)
_INSERT_EVENTS: Final = sa.insert(EVENTS)
_INSERT_SIGNAL: Final = insert_new(SIGNALS)

_CLAIM: Final = (
    sa.update(RUNS)
    .where(_THIS_RUN, (RUNS.c.claimable_at <= sa.bindparam("now")) | (RUNS.c.owner == sa.bindparam("by")))
    .values(
        status="running",
        epoch=RUNS.c.epoch + 1,
        owner=sa.bindparam("by"),
        claimable_at=sa.bindparam("until"),
        waiting_for="[]",
        wake_at=sa.null(),
        updated_at=sa.bindparam("at"),
    )
    .returning(*RUNS.c)
)
_RENEW: Final = (
    sa.update(RUNS).where(_THIS_RUN, RUNS.c.owner == sa.bindparam("by")).values(claimable_at=sa.bindparam("until"))
)
_ADVANCE: Final = (
    sa.update(RUNS)
    .where(
        _THIS_RUN,
        RUNS.c.epoch == sa.bindparam("in_epoch"),
        RUNS.c.last_event == sa.bindparam("number", type_=sa.BigInteger) - sa.bindparam("count", type_=sa.BigInteger),
        _NOT_ENDED,
    )
    .values(last_event=sa.bindparam("number"), updated_at=sa.bindparam("now"))
)
_CHANGE: Final = (
    sa.update(RUNS)
    .where(_THIS_RUN)
    .values(
        status=sa.bindparam("standing"),
        owner=sa.null(),
        claimable_at=sa.bindparam("from"),
        waiting_for=sa.bindparam("names"),
        wake_at=sa.bindparam("wake"),
        last_event=sa.bindparam("number"),
        updated_at=sa.bindparam("now"),
        result=sa.func.coalesce(sa.bindparam("outcome", type_=sa.Text), RUNS.c.result),
    )
)
_END: Final = _CHANGE.values({name: sa.bindparam(f"its_{name}") for name in NO_OUTCOME})
_RELEASE: Final = (
    sa.update(RUNS)
    .where(_THIS_RUN)
    .values(status="queued", claimable_at=0, waiting_for="[]", wake_at=sa.null(), updated_at=sa.bindparam("now"))
)

_RUN: Final = sa.select(RUNS).where(_THIS_RUN)
_LOCKED_RUN: Final = _RUN.with_for_update(key_share=True)
_EVENTS: Final = (
    sa.select(EVENTS)
    .where(EVENTS.c.run_id == sa.bindparam("this_run"), EVENTS.c.number > sa.bindparam("after"))
    .order_by(EVENTS.c.number)
    .limit(sa.bindparam("limit"))
)
_SIGNALS: Final = (
    sa.select(SIGNALS).where(SIGNALS.c.run_id == sa.bindparam("this_run")).order_by(SIGNALS.c.at, SIGNALS.c.name)
)
_CLAIMABLE: Final = (
    sa.select(RUNS.c.run_id)
    .where(RUNS.c.claimable_at <= sa.bindparam("now"))
    .order_by(RUNS.c.created_at, RUNS.c.run_id)
    .limit(sa.bindparam("limit"))
)

_ALL: Final = 2**62
"""A limit that limits nothing."""


def _status_hints(condition: Condition) -> list[sa.ColumnElement[bool]]:
    """The condition of the index that has only runs of the statuses that are asked for."""
    statuses = values_required(condition, "status")
    if not statuses:
        return []
    if statuses.isdisjoint(ENDED):
        return [_NOT_ENDED]
    return [UNSUCCESSFUL] if statuses <= ENDED - {SUCCEEDED} else []


_RUNS: Final = QueriedTable(
    RUNS, RUN_FIELDS, {"ended_at": sa.case((HAVE_ENDED, RUNS.c.updated_at))}, run_of, _status_hints
)


class SqlJournal:
    """Runs and their logs, in the tables `runs`, `events` and `signals`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, run: Run, first: Event, *, lease: Lease | None = None) -> Awaitable[None]:
        chain = (run.run_id, run.epoch)
        try:
            rules.check_new(run, lease)
            row = run_row(run, lease)
            events = (first_row(run, first, row["request"]),)
        except ToolcribError as error:
            return self._database.write(partial(_refuse, error), chain)

        until = row["claimable_at"]

        def work(session: Session) -> None:
            if lease is not None:
                row["claimable_at"] = until + _ahead(session, row["created_at"])
            if not session.run(_INSERT_RUN, row):
                raise rules.id_conflict(run.run_id)
            session.defer(_INSERT_EVENTS, events)

        return self._database.write(work, chain)

    async def claim(self, run_id: str, *, owner: str, now: datetime, lease_s: float) -> Claim | None:
        at, until = to_micros(now), to_micros(now + timedelta(seconds=lease_s))

        def work(session: Session) -> tuple[Row, list[Row], list[Row]] | None:
            ahead = _ahead(session, at)
            lease = {"this_run": run_id, "by": owner, "at": at, "now": at + ahead, "until": until + ahead}
            row = session.row(_CLAIM, lease)
            if row is None:
                _one(session, run_id)
                return None
            session.flush()
            log = session.rows(_EVENTS, {"this_run": run_id, "after": 0, "limit": _ALL})
            return row, log, session.rows(_SIGNALS, {"this_run": run_id})

        rows = await self._database.write(OnRuns(work, run_id))
        if rows is None:
            return None
        row, log, signals = rows
        return Claim(run_of(row), tuple(map(entry_of, log)), {signal["name"]: signal_of(signal) for signal in signals})

    async def claimable(self, *, now: datetime, limit: int) -> Sequence[str]:
        at = to_micros(now)

        def work(session: Session) -> list[str]:
            found = session.rows(_CLAIMABLE, {"now": at + _ahead(session, at), "limit": limit})
            return [row["run_id"] for row in found]

        await self._database.drain()
        return await self._database.read(work)

    async def renew(self, run_ids: Sequence[str], *, owner: str, now: datetime, lease_s: float) -> Sequence[str]:
        at, until = to_micros(now), to_micros(now + timedelta(seconds=lease_s))

        def work(session: Session) -> list[str]:
            lease = {"by": owner, "until": until + _ahead(session, at)}
            return [run_id for run_id in run_ids if session.run(_RENEW, {"this_run": run_id, **lease})]

        return await self._database.write(OnRuns(work, *run_ids))

    def append(
        self, run_id: str, epoch: int, events: Sequence[RunEvent], change: RunChange | None = None
    ) -> Awaitable[None]:
        chain = (run_id, epoch)
        try:
            rules.check_numbers(run_id, events)
            queued = self._database.find_open_job(chain)
            if queued is not None and isinstance(queued.work, _Append) and queued.work.take(events, change):
                return queued
            append = _Append(run_id, epoch)
            append.take(events, change)
        except ToolcribError as error:
            return self._database.write(partial(_refuse, error), chain)
        return self._database.write(append, chain)

    async def signal(self, run_id: str, signal: Signal) -> bool:
        left = _LeftSignal(run_id, signal)

        def work(session: Session) -> bool:
            return left(session, _one(session, run_id, _LOCKED_RUN))

        return await self._database.write(OnRuns(work, run_id))

    async def signal_all(self, signals: Sequence[tuple[str, Signal]]) -> bool:
        left = [_LeftSignal(run_id, signal) for run_id, signal in signals]
        run_ids = dict.fromkeys(run_id for run_id, _ in signals)

        def work(session: Session) -> bool:
            runs = {run_id: _one(session, run_id, _LOCKED_RUN) for run_id in run_ids}
            known = {(run_id, row["name"]) for run_id in runs for row in session.rows(_SIGNALS, {"this_run": run_id})}
            if any((run_id, signal.name) in known for run_id, signal in signals):
                return False
            return all(one(session, runs[one.run_id]) for one in left)

        return await self._database.write(OnRuns(work, *run_ids))

    async def signals(self, run_id: str) -> Mapping[str, Signal]:
        def work(session: Session) -> dict[str, Signal]:
            return {row["name"]: signal_of(row) for row in session.rows(_SIGNALS, {"this_run": run_id})}

        return await self._database.read(work)

    async def runs_with_signal(self, name: str, run_ids: Sequence[str]) -> Sequence[str]:
        found = sa.select(SIGNALS.c.run_id).where(SIGNALS.c.name == name, SIGNALS.c.run_id.in_(run_ids))
        return await self._database.read(lambda session: session.connection.execute(found).scalars().all())

    async def run(self, run_id: str) -> Run:
        await self._database.drain()
        return await self._database.read(lambda session: run_of(_one(session, run_id)))

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
        given = {"realm": realm, "tool": tool, "made_by": made_by, "status": status}

        def work(session: Session) -> list[Run]:
            page = sa.select(RUNS).order_by(RUNS.c.created_at.desc(), RUNS.c.run_id.desc()).limit(limit)
            page = page.where(*(RUNS.c[name] == value for name, value in given.items() if value is not None))
            if status is not None and status not in ENDED:
                page = page.where(_NOT_ENDED)  # so that the index of the runs that go on is enough
            if before is not None:
                last = _one(session, before)
                if last["realm"] != realm:
                    raise rules.no_run(before)
                page = page.where(sa.tuple_(RUNS.c.created_at, RUNS.c.run_id) < (last["created_at"], last["run_id"]))
            return [run_of(dict(row)) for row in session.connection.execute(page).mappings()]

        await self._database.drain()
        return await self._database.read(work)

    async def find(self, realm: str, query: StoreQuery) -> Sequence[Run]:
        await self._database.drain()
        return await self._database.read(lambda session: _RUNS.page(session, realm, query))

    async def count(self, realm: str, condition: Condition) -> int:
        await self._database.drain()
        return await self._database.read(lambda session: _RUNS.count(session, realm, condition))

    async def ended_runs(
        self, realm: str, *, tool: str, after: tuple[datetime, str], limit: int = 100
    ) -> Sequence[Run]:
        place = (to_micros(after[0]), after[1])
        page = (
            sa.select(RUNS)
            .where(RUNS.c.realm == realm, RUNS.c.tool == tool, HAVE_ENDED)
            .where(sa.tuple_(RUNS.c.updated_at, RUNS.c.run_id) > place)
            .order_by(RUNS.c.updated_at, RUNS.c.run_id)
            .limit(limit)
        )
        await self._database.drain()
        return await self._database.read(
            lambda session: [run_of(dict(row)) for row in session.connection.execute(page).mappings()]
        )

    async def find_ids(self, realm: str, prefix: str, *, limit: int) -> Sequence[str]:
        found = ids_with_prefix(RUNS.c.run_id, realm, prefix, limit)
        await self._database.drain()
        return await self._database.read(lambda session: session.connection.execute(found).scalars().all())

    async def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[RunEvent]:
        parameters = {"this_run": run_id, "after": after, "limit": _ALL if limit is None else limit}
        await self._database.drain()
        return await self._database.read(
            lambda session: tuple(entry_of(row) for row in session.rows(_EVENTS, parameters))
        )


class _LeftSignal:
    """A signal for a run, encoded when it was left."""

    def __init__(self, run_id: str, signal: Signal) -> None:
        self.run_id = run_id
        self._name = signal.name
        self._row = {
            "run_id": run_id,
            "name": signal.name,
            "made_by": signal.made_by,
            "at": to_micros(signal.at),
            "payload": encode(signal.payload, f"signal {signal.name!r} for run {run_id}"),
            "schema_version": SCHEMA_VERSION,
        }
        self._inbox = hearing(run_id, signal)

    def __call__(self, session: Session, run: Row) -> bool:
        """Leave it for the run of this row, which is locked. False if there was one of its name."""
        is_new = session.run(_INSERT_SIGNAL, {**self._row, "realm": run["realm"]}) == 1
        if is_new and rules.wakes(self._name, run["status"], json.loads(run["waiting_for"])):
            session.run(_RELEASE, {"this_run": self.run_id, "now": self._row["at"]})
        if is_new:
            _run(session, self._inbox)
        return is_new


class _Append(TouchesRuns):
    """Appends that follow each other as one operation, so that a commit changes the row of a run once.

    Encoded when they are asked for, so that later changes to the objects do not matter.
    """

    def __init__(self, run_id: str, epoch: int) -> None:
        self.run_ids = {run_id}
        self._run_id = run_id
        self._epoch = epoch
        self._change: RunChange | None = None
        self._left: _LeftSignal | None = None
        self._outcome: str | None = None
        self._ending: dict[str, Any] = {}
        self._rows: list[dict[str, Any]] = []
        self._inbox: list[Step] = []

    def take(self, events: Sequence[RunEvent], change: RunChange | None) -> bool:
        """Take on another append. False if it does not follow what is here.

        Raises:
            InvalidInput: An event is not JSON, or the change is none that a run can make; nothing was taken.
        """
        if self._change is not None or (self._rows and events and events[0].number != self._rows[-1]["number"] + 1):
            return False
        rows = event_rows(events)
        if change is not None:
            rules.settle(change, ())
            self._left = _LeftSignal(*change.tells) if change.tells is not None else None
            if change.result is not None:
                self._outcome = change.result.model_dump_json()
                self._ending = {f"its_{name}": value for name, value in outcome_columns(change.result).items()}
        if self._left is not None:
            self.run_ids.add(self._left.run_id)
        self._change = change
        self._rows += rows
        for entry, row in zip(events, rows, strict=True):
            if entry.event.type in rules.OF_APPROVALS:
                self._inbox += following(entry, row["body"])
        return True

    def __call__(self, session: Session) -> None:
        if self._change is not None or not self._advance(session):
            self._alter(session)
        session.defer(_INSERT_EVENTS, self._rows)
        if self._inbox:
            _run(session, self._inbox)

    def _advance(self, session: Session) -> bool:
        """The common case in one statement: events, and nothing else."""
        if not self._rows:
            return False
        last = self._rows[-1]
        parameters = {
            "this_run": self._run_id,
            "in_epoch": self._epoch,
            "number": last["number"],
            "count": len(self._rows),
            "now": last["at"],
        }
        return session.run(_ADVANCE, parameters) == 1

    def _alter(self, session: Session) -> None:
        """Say what does not fit, or change the row."""
        row = _one(session, self._run_id, _LOCKED_RUN)
        first = self._rows[0]["number"] if self._rows else None
        if row["epoch"] != self._epoch or row["status"] in ENDED or first not in {None, row["last_event"] + 1}:
            raise rules.refusal(
                self._run_id,
                own_epoch=self._epoch,
                epoch=row["epoch"],
                status=row["status"],
                last=row["last_event"],
                first=first,
            )
        if self._change is None:
            return
        signals = () if self._change.status in ENDED else self._signals(session)
        standing = rules.settle(self._change, signals)
        last = self._rows[-1] if self._rows else {"number": row["last_event"], "at": row["updated_at"]}
        parameters = {
            "this_run": self._run_id,
            "standing": standing.status,
            "from": self._claimable_at(session, standing),
            "names": json.dumps(standing.waiting_for),
            "wake": to_micros(standing.wake_at),
            "number": last["number"],
            "now": last["at"],
            "outcome": self._outcome,
        }
        session.run(_END if self._ending else _CHANGE, parameters | self._ending)
        run = session.row(_LOCKED_RUN, {"this_run": self._left.run_id}) if self._left is not None else None
        if self._left is not None and run is not None:
            self._left(session, run)

    def _claimable_at(self, session: Session, standing: LogState) -> int | None:
        """From when on it may be claimed; the end of a wait, by the clock that all machines share."""
        waits = self._rows and standing.wake_at is not None
        ahead = _ahead(session, self._rows[-1]["at"]) if waits else 0
        return None if standing.claimable_at is None else to_micros(standing.claimable_at) + ahead

    def _signals(self, session: Session) -> set[str]:
        return {row["name"] for row in session.rows(_SIGNALS, {"this_run": self._run_id})}


def _ahead(session: Session, now: int) -> int:
    """Microseconds by which the clock that all machines share is ahead of the one that says `now`."""
    shared = session.time()
    return 0 if shared is None else shared - now


def _run(session: Session, steps: Sequence[Step]) -> None:
    for statement, parameters in steps:
        session.run(statement, parameters)


def _refuse(error: ToolcribError, session: Session) -> None:
    del session
    raise error


def _one(session: Session, run_id: str, statement: sa.Select[Any] = _RUN) -> Row:
    row = session.row(statement, {"this_run": run_id})
    if row is None:
        raise rules.no_run(run_id, pruning_moment(session))
    return row
