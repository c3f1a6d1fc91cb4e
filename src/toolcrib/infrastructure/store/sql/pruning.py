"""Deletion of old data in SQL: families of runs, one transaction each, and unreferenced blobs.

A family is found through events, in which a run names its nested runs, so no row needs to store it.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from pydantic_core import from_json

from toolcrib.contracts import ENDED, SCHEMA_VERSION
from toolcrib.contracts.pruning_and_rehearsal import PrunedCounts
from toolcrib.infrastructure.store.database.database import Database
from toolcrib.infrastructure.store.database.session import Row, Session
from toolcrib.infrastructure.store.database.tables import (
    APPROVALS,
    BLOBS,
    CACHE,
    CONVERSATIONS,
    DEFINITIONS,
    EVENTS,
    PRUNINGS,
    RUNS,
    SIGNALS,
)
from toolcrib.infrastructure.store.ports.retention import MOST_EVENTS, Family, Pruning, Root
from toolcrib.infrastructure.store.ports.state_changes import digests_named_in, runs_named_in
from toolcrib.infrastructure.store.sql.rows import to_micros, to_moment, to_moment_or_none

_NOT_ENDED: Final = RUNS.c.status.not_in([sa.literal_column(f"'{status}'") for status in sorted(ENDED)])
_REQUEST: Final = sa.select(RUNS.c.request).where(RUNS.c.run_id == sa.bindparam("this_run"))
_OPEN_REQUESTS: Final = sa.select(RUNS.c.request).where(RUNS.c.realm == sa.bindparam("this_realm"), _NOT_ENDED)
_ROOTS: Final = (
    sa.select(*(RUNS.c[name] for name in ("run_id", "created_at", "request", "last_event", "status", "updated_at")))
    .where(
        RUNS.c.realm == sa.bindparam("this_realm"),
        RUNS.c.created_at < sa.bindparam("before"),
        sa.tuple_(RUNS.c.created_at, RUNS.c.run_id) > sa.tuple_(sa.bindparam("last_at"), sa.bindparam("last_id")),
    )
    .order_by(RUNS.c.created_at, RUNS.c.run_id)
    .limit(sa.bindparam("most"))
)
_FIRST_REALM: Final = sa.select(sa.func.min(RUNS.c.realm).label("realm")).where(RUNS.c.realm > sa.bindparam("after"))

_LOCKED: Final = (
    sa.select(*(RUNS.c[name] for name in ("status", "updated_at", "last_event")))
    .where(RUNS.c.run_id == sa.bindparam("this_run"))
    .with_for_update()
)
_NESTED: Final = sa.select(EVENTS.c.body).where(
    EVENTS.c.run_id == sa.bindparam("this_run"), EVENTS.c.type == sa.literal_column("'child_started'")
)
_LAST_SIGNAL: Final = sa.select(sa.func.max(SIGNALS.c.at).label("at")).where(
    SIGNALS.c.run_id == sa.bindparam("this_run")
)
_APPROVALS: Final = sa.select(sa.func.count().label("count")).where(APPROVALS.c.run_id == sa.bindparam("this_run"))
_DELETIONS: Final = tuple(
    sa.delete(table).where(table.c.run_id == sa.bindparam("this_run")) for table in (APPROVALS, SIGNALS, EVENTS, RUNS)
)
_OLD_BLOBS: Final = sa.select(*(BLOBS.c[name] for name in ("realm", "digest", "size"))).where(
    BLOBS.c.touched_at < sa.bindparam("before")
)
_TEXTS: Final = sa.union_all(
    *(
        sa.select(column)
        for column in (
            EVENTS.c.body,
            RUNS.c.request,
            RUNS.c.result,
            SIGNALS.c.payload,
            APPROVALS.c.request,
            APPROVALS.c.edited_input,
            DEFINITIONS.c.body,
            CONVERSATIONS.c.shared_context,
            CONVERSATIONS.c.summary,
            CACHE.c.value,
        )
    )
)
"""All texts in which a blob can be named: one statement, so that it sees them as they were at one moment."""
_NOTE: Final = sa.insert(PRUNINGS)
_PRUNINGS: Final = (
    sa.select(PRUNINGS)
    .where(PRUNINGS.c.realm == sa.bindparam("this_realm"))
    .order_by(PRUNINGS.c.pruned_at.desc())
    .limit(sa.bindparam("most"))
)
_PRUNED_BEFORE: Final = sa.select(sa.func.max(PRUNINGS.c.ended_before).label("at"))

_ROWS_AT_ONCE: Final = 1000


def pruning_moment(session: Session) -> datetime | None:
    """The moment until which runs of any realm were taken out; null if none were."""
    row = session.row(_PRUNED_BEFORE, {})
    return to_moment_or_none(row["at"] if row else None)


class SqlRetention:
    """Takes out what is old."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def realms(self) -> Sequence[str]:
        def work(session: Session) -> list[str]:
            found: list[str] = []
            while (row := session.row(_FIRST_REALM, {"after": found[-1] if found else ""})) and row["realm"]:
                found.append(row["realm"])  # each is one look into the index, however many runs a realm has
            return found

        await self._database.drain()
        return await self._database.read(work)

    async def roots(
        self, realm: str, *, ended_before: datetime, after: Root | None = None, limit: int = 100
    ) -> Sequence[Root]:
        before = to_micros(ended_before)
        place = (-1, "") if after is None else (to_micros(after.created_at), after.run_id)

        def work(session: Session) -> list[Root]:
            found: list[Root] = []
            last_at, last_id = place
            while True:
                parameters = {"this_realm": realm, "before": before, "last_at": last_at, "last_id": last_id}
                page = session.rows(_ROOTS, {**parameters, "most": limit})
                found += filter(None, (_root(row, before) for row in page))
                if len(found) >= limit or len(page) < limit:
                    return found[:limit]
                last_at, last_id = page[-1]["created_at"], page[-1]["run_id"]

        await self._database.drain()
        return await self._database.read(work)

    async def find_needed_runs(self, realm: str) -> frozenset[str]:
        def work(session: Session) -> frozenset[str]:
            found: set[str] = set()
            requests = session.rows(_OPEN_REQUESTS, {"this_realm": realm})
            while requests:
                named = {run_id for row in requests for run_id in runs_named_in(from_json(row["request"]))} - found
                found |= named
                requests = [row for run_id in sorted(named) for row in session.rows(_REQUEST, {"this_run": run_id})]
            return frozenset(found)

        await self._database.drain()
        return await self._database.read(work)

    async def prune(
        self, run_ids: Sequence[str], *, untouched_since: datetime, needed: Collection[str], dry_run: bool = False
    ) -> Sequence[Family]:
        since = to_micros(untouched_since)

        def work(session: Session) -> list[Family]:
            session.flush()
            families: list[Family] = []
            for run_id in run_ids:
                families.append(family := _family(session, run_id, since, needed))
                if not dry_run:
                    _delete(session, family)
                if sum(each.events for each in families) > MOST_EVENTS:
                    break
            return families

        return await self._database.write(work)

    async def unnamed_blobs(self, *, put_before: datetime) -> Sequence[tuple[str, str, int]]:
        parameters = {"before": to_micros(put_before)}

        def work(session: Session) -> list[tuple[str, str, int]]:
            old = session.rows(_OLD_BLOBS, parameters)
            unnamed = {row["digest"] for row in old}
            if unnamed:
                for texts in _texts(session):
                    unnamed.difference_update(digests_named_in(texts))
            return [(row["realm"], row["digest"], row["size"]) for row in old if row["digest"] in unnamed]

        await self._database.drain()
        return await self._database.read(work)

    async def compact(self) -> None:
        await self._database.drain()
        await self._database.read(Session.compact)

    async def note(self, pruning: Pruning) -> None:
        row = {
            "realm": pruning.realm,
            "pruned_at": to_micros(pruning.pruned_at),
            "made_by": pruning.made_by,
            "ended_before": to_micros(pruning.ended_before),
            "counts": pruning.counts.model_dump_json(),
            "schema_version": SCHEMA_VERSION,
        }
        await self._database.write(lambda session: session.run(_NOTE, row))

    async def prunings(self, realm: str, *, limit: int = 50) -> Sequence[Pruning]:
        parameters = {"this_realm": realm, "most": limit}
        rows = await self._database.read(lambda session: session.rows(_PRUNINGS, parameters))
        return [_pruning(row) for row in rows]


def _root(row: Row, before: int) -> Root | None:
    """The run of a row, if it is one that nobody called and that has ended long enough ago."""
    if row["status"] not in ENDED or row["updated_at"] >= before:
        return None
    request = from_json(row["request"])
    if request.get("parent_run_id") is not None:
        return None
    return Root(row["run_id"], to_moment(row["created_at"]), request.get("conversation_id"), row["last_event"])


def _family(session: Session, root: str, since: int, needed: Collection[str]) -> Family:
    """What becomes of a family; its rows are locked from here on."""
    run_ids = tuple(_members(session, root))
    rows = {run_id: session.row(_LOCKED, {"this_run": run_id}) for run_id in sorted(run_ids)}  # always in one order
    known = tuple(run_id for run_id in run_ids if rows[run_id] is not None)
    standing = [row for row in rows.values() if row is not None]
    if any(row["status"] not in ENDED or row["updated_at"] >= since for row in standing):
        return Family("unfinished", known)
    if any((_number(session, _LAST_SIGNAL, run_id, "at") or 0) >= since for run_id in known):
        return Family("unfinished", known)
    if any(run_id in needed for run_id in known):
        return Family("needed", known)
    events = sum(row["last_event"] for row in standing)
    return Family("gone", known, events, sum(_number(session, _APPROVALS, run_id, "count") for run_id in known))


def _members(session: Session, root: str) -> Iterator[str]:
    waiting = [root]
    while waiting:
        run_id = waiting.pop()
        yield run_id
        nested = session.rows(_NESTED, {"this_run": run_id})
        waiting += [from_json(row["body"])["child_run_id"] for row in nested]


def _delete(session: Session, family: Family) -> None:
    if family.fate == "gone":
        for run_id in reversed(family.run_ids):
            for deletion in _DELETIONS:
                session.run(deletion, {"this_run": run_id})


def _number(session: Session, statement: sa.Select[Any], run_id: str, name: str) -> int:
    row = session.row(statement, {"this_run": run_id})
    return 0 if row is None or row[name] is None else row[name]


def _texts(session: Session) -> Iterator[Sequence[str | None]]:
    """All texts, as they were at one moment, without having all of them in memory."""
    session.connection.exec_driver_sql("BEGIN")  # what is streamed ends with its transaction, and never writes
    options = {"stream_results": True, "yield_per": _ROWS_AT_ONCE}
    with session.connection.execute(_TEXTS, execution_options=options) as rows:
        yield from rows.scalars().partitions()


def _pruning(row: Row) -> Pruning:
    return Pruning(
        realm=row["realm"],
        pruned_at=to_moment(row["pruned_at"]),
        made_by=row["made_by"],
        ended_before=to_moment(row["ended_before"]),
        counts=PrunedCounts.model_validate_json(row["counts"]),
    )
