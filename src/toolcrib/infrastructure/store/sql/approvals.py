"""Approvals in SQL, and the statements by which the journal updates them."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, cast

import sqlalchemy as sa
from pydantic_core import from_json, to_json

from toolcrib.contracts import SCHEMA_VERSION, Approval, RunEvent, Signal, read_event
from toolcrib.infrastructure.queries.grammar import Condition
from toolcrib.infrastructure.store.database.database import Database
from toolcrib.infrastructure.store.database.dialect import insert_new
from toolcrib.infrastructure.store.database.session import Row, Session, Statement
from toolcrib.infrastructure.store.database.tables import APPROVALS
from toolcrib.infrastructure.store.ports.queried_fields import APPROVAL_FIELDS, StoreQuery
from toolcrib.infrastructure.store.ports.records import ApprovalFilter, no_approval
from toolcrib.infrastructure.store.ports.state_changes import (
    Answered,
    Withdrawn,
    answer_from_signal,
    approval_from_event,
    change_from_event,
)
from toolcrib.infrastructure.store.sql.queries import QueriedTable
from toolcrib.infrastructure.store.sql.rows import ids_with_prefix, to_micros, to_moment, to_moment_or_none

Step: TypeAlias = tuple[Statement, dict[str, Any]]
"""A statement with its parameters."""

_C: Final = APPROVALS.c
_ANSWERS: Final = ("decided_by", "decided_at", "reason", "edited_input")
_ONE: Final = (_C.run_id == sa.bindparam("this_run"), _C.signal == sa.bindparam("this_signal"))
_INSERT: Final = insert_new(APPROVALS)
_ANSWER: Final = (
    sa.update(APPROVALS)
    .where(*_ONE, _C.status == sa.literal_column("'waiting'"))
    .values({name: sa.bindparam(f"new_{name}") for name in ("status", *_ANSWERS)})
)
_WITHDRAW: Final = (
    sa.update(APPROVALS).where(*_ONE).values(status=sa.literal_column("'cancelled'"), reason=sa.bindparam("new_reason"))
)
_END: Final = (
    sa.update(APPROVALS)
    .where(_C.run_id == sa.bindparam("this_run"), _C.status == sa.literal_column("'waiting'"))
    .values(status=sa.bindparam("new_status"), reason=sa.bindparam("new_reason"))
)
_GET: Final = sa.select(APPROVALS).where(_C.approval_id == sa.bindparam("this_approval"))


class SqlApprovals:
    """Approvals, in the table `approvals`, which the journal of the same store keeps."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, realm: str, approval_id: str) -> Approval:
        await self._database.drain()
        return _approval(await self._database.read(lambda session: _one(session, realm, approval_id)))

    async def find_ids(self, realm: str, prefix: str, *, limit: int) -> Sequence[str]:
        found = ids_with_prefix(_C.approval_id, realm, prefix, limit)
        await self._database.drain()
        return await self._database.read(lambda session: session.connection.execute(found).scalars().all())

    async def page(
        self, realm: str, which: ApprovalFilter, *, after: str | None = None, limit: int = 50
    ) -> Sequence[Approval]:
        def work(session: Session) -> list[Approval]:
            page = sa.select(APPROVALS).where(_C.realm == realm).order_by(_C.requested_at, _C.approval_id).limit(limit)
            if which.status is not None:
                page = page.where(_C.status == which.status)
            if which.tool is not None:
                page = page.where(_C.tool == which.tool)
            if which.run_id is not None:
                page = page.where((_C.run_id == which.run_id) | (_C.root_run_id == which.run_id))
            if after is not None:
                last = _one(session, realm, after)
                page = page.where(sa.tuple_(_C.requested_at, _C.approval_id) > (last["requested_at"], after))
            return [_approval(dict(row)) for row in session.connection.execute(page).mappings()]

        await self._database.drain()
        return await self._database.read(work)

    async def find(self, realm: str, query: StoreQuery) -> Sequence[Approval]:
        await self._database.drain()
        return await self._database.read(lambda session: _QUERIED.page(session, realm, query))

    async def count(self, realm: str, condition: Condition) -> int:
        await self._database.drain()
        return await self._database.read(lambda session: _QUERIED.count(session, realm, condition))


def following(entry: RunEvent, body: str) -> list[Step]:
    """What an event changes in the inbox.

    Args:
        entry: The event.
        body: The same as JSON.
    """
    steps: list[Step] = []
    approval = approval_from_event(entry)
    if approval is not None:
        steps.append((_INSERT, _row(approval, entry, body)))
    change = change_from_event(entry)
    if change is not None:
        steps.append(_step(entry.run_id, change))
    return steps


def hearing(run_id: str, signal: Signal) -> list[Step]:
    """What a signal changes in the inbox."""
    answer = answer_from_signal(signal)
    return [] if answer is None else [_step(run_id, answer)]


def _step(run_id: str, change: Answered | Withdrawn) -> Step:
    if isinstance(change, Withdrawn):
        return _WITHDRAW, {"this_run": run_id, "this_signal": change.signal, "new_reason": change.reason}
    if change.signal is None:
        return _END, {"this_run": run_id, "new_status": change.status, "new_reason": change.reason}
    return _ANSWER, {
        "this_run": run_id,
        "this_signal": change.signal,
        "new_status": change.status,
        "new_decided_by": change.by,
        "new_decided_at": to_micros(change.at),
        "new_reason": change.reason,
        "new_edited_input": None if change.edited_input is None else to_json(change.edited_input).decode(),
    }


def _row(approval: Approval, entry: RunEvent, body: str) -> dict[str, Any]:
    return {
        "approval_id": approval.approval_id,
        "realm": entry.realm,
        "made_by": entry.made_by,
        "run_id": entry.run_id,
        "signal": approval.signal,
        "root_run_id": approval.root_run_id,
        "tool": approval.tool,
        "request": body,
        "requested_at": to_micros(entry.at),
        "status": approval.status,
        "schema_version": SCHEMA_VERSION,
        "question": approval.question,
        "side_effects": approval.side_effects,
        "text": approval.message,
        "requested_by": approval.requested_by,
        "acting": approval.acting,
        "expires_at": to_micros(approval.expires_at),
        **dict.fromkeys(_ANSWERS),
    }


def _one(session: Session, realm: str, approval_id: str) -> Row:
    row = session.row(_GET, {"this_approval": approval_id})
    if row is None or row["realm"] != realm:
        raise no_approval(approval_id)
    return row


def _approval(row: Row) -> Approval:
    event = read_event(row["request"].encode())
    entry = RunEvent(row["run_id"], 0, to_moment(row["requested_at"]), row["realm"], row["made_by"], event)
    edited = row["edited_input"]
    answer = {
        "status": row["status"],
        "decided_by": row["decided_by"],
        "decided_at": to_moment_or_none(row["decided_at"]),
        "reason": row["reason"],
        "edited_input": None if edited is None else from_json(edited),
    }
    return cast("Approval", approval_from_event(entry)).model_copy(update=answer)


_QUERIED: Final = QueriedTable(APPROVALS, APPROVAL_FIELDS, {"created_at": _C.requested_at}, _approval)
