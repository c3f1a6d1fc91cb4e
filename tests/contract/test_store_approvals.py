"""The inbox: kept with the journal by every store, in the transaction of what each row follows from."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.unit.store.samples import FIRST, NOON, claimed, later, new_run, opened, opened_at, signal, started
from toolcrib.contracts import (
    Approval,
    ApprovalDecided,
    ApprovalDecision,
    ApprovalRequested,
    ApprovalStatus,
    ApprovalWithdrawn,
    Event,
    Fenced,
    NotFound,
    RunEvent,
    RunFinished,
    RunSuspended,
    Signal,
    approval_id,
    approval_signal,
)
from toolcrib.infrastructure.queries.grammar import OrderKey, equal
from toolcrib.infrastructure.store import ApprovalFilter, MemoryStore, RunChange, Store
from toolcrib.infrastructure.store.database.schema import migrate
from toolcrib.infrastructure.store.database.sqlite import Sqlite
from toolcrib.infrastructure.store.ports.queried_fields import StoreQuery

pytestmark = pytest.mark.requirement("approvals.rows")

ALL = ApprovalFilter()
DECISION = ApprovalDecision(approved=True, arguments_hash="sha256:a", content_hash="sha256:t", reason="fine")
ENDED = RunFinished(status="completed", stop_reason="final_answer")


@pytest.fixture
async def store(store_url: str) -> AsyncGenerator[Store]:
    async with opened_at(store_url) as opened_store:
        yield opened_store


def requested(position: str = "t1.c1", **fields: Any) -> ApprovalRequested:
    values: dict[str, Any] = {
        "position": position,
        "call_id": "c1",
        "name": "pay",
        "version": "1.0.0",
        "input": {"usd": 5},
        "arguments_hash": "sha256:a",
        "content_hash": "sha256:t",
        "policy_hash": "sha256:p",
        "requested_by": "owner",
        "acting": "clerk",
        "callers": ("head@1.0.0",),
        "root_run_id": "r0",
    }
    return ApprovalRequested(**(values | fields))


async def write(store: Store, *events: Event, run_id: str = "r1", after: int = 1, at: datetime = NOON) -> int:
    """Append events of an epoch that this process has; the number of the last one."""
    entries = [
        RunEvent(run_id, number, at, "default", "owner", event) for number, event in enumerate(events, start=after + 1)
    ]
    await store.journal.append(run_id, 1, entries)
    return after + len(entries)


async def rows(store: Store, which: ApprovalFilter = ALL, **how: Any) -> list[Approval]:
    return list(await store.approvals.page("default", which, **how))


async def test_a_request_is_a_row_that_waits(store: Store):
    await started(store.journal)
    await write(store, requested(expires_at=later(60), narrowed={"type": "object"}))

    [row] = await rows(store)
    assert row == Approval(
        approval_id=approval_id("r1", "approval:t1.c1"),
        realm="default",
        run_id="r1",
        position="t1.c1",
        root_run_id="r0",
        callers=("head@1.0.0",),
        call_id="c1",
        tool="pay",
        version="1.0.0",
        content_hash="sha256:t",
        arguments_hash="sha256:a",
        policy_hash="sha256:p",
        narrowed={"type": "object"},
        side_effects="writes",
        input={"usd": 5},
        requested_by="owner",
        acting="clerk",
        requested_at=NOON,
        expires_at=later(60),
    )
    assert await store.approvals.get("default", row.approval_id) == row


async def test_what_a_request_of_an_older_release_does_not_say_is_taken_from_its_run(store: Store):
    await started(store.journal)
    await write(store, requested(requested_by=None, acting=None, callers=(), root_run_id=None, policy_hash=None))

    [row] = await rows(store)
    assert (row.requested_by, row.acting, row.root_run_id) == ("owner", "owner", "r1")


@pytest.mark.parametrize(
    ("payload", "status"),
    [
        ({"approved": True, "reason": "fine"}, "approved"),
        ({"approved": True, "reason": "fine", "edited_input": {"usd": 1}}, "edited"),
        ({"approved": False, "reason": "fine"}, "rejected"),
        ({}, "expired"),
    ],
)
async def test_a_decision_is_in_the_row_as_soon_as_its_signal_is_left(
    store: Store, payload: dict[str, Any], status: ApprovalStatus
):
    await started(store.journal)
    await write(store, requested(), requested("t1.c2"))
    assert await store.journal.signal("r1", signal(**payload))
    assert not await store.journal.signal("r1", signal(approved=False))

    first, second = sorted(await rows(store), key=lambda row: row.position)
    assert (first.status, first.decided_by, first.decided_at) == (status, "ann", later(5))
    assert (first.reason, first.edited_input) == (payload.get("reason"), payload.get("edited_input"))
    assert second.status == "waiting"


async def test_a_decision_that_was_there_before_the_request_is_in_the_row_once_it_is_taken_up(store: Store):
    await started(store.journal)
    await store.journal.signal("r1", signal(approved=True))
    last = await write(store, requested())
    assert [row.status for row in await rows(store)] == ["waiting"]

    await write(store, ApprovalDecided(position="t1.c1", decision=DECISION, made_by="ann"), after=last, at=later(9))
    [row] = await rows(store)
    assert (row.status, row.decided_by, row.decided_at, row.reason) == ("approved", "ann", later(9), "fine")


async def test_time_that_is_over_is_an_answer(store: Store):
    await started(store.journal)
    await write(store, requested(), ApprovalDecided(position="t1.c1", decision=None, made_by="clock"))

    assert [(row.status, row.decided_by) for row in await rows(store)] == [("expired", "clock")]


async def test_a_withdrawn_request_says_why_whatever_was_answered_and_the_next_one_waits(store: Store):
    await started(store.journal)
    last = await write(store, requested())
    await store.journal.signal("r1", signal(approved=True))
    withdrawn = ApprovalWithdrawn(position="t1.c1", number=1, reason="the policy changed")
    await write(store, withdrawn, requested(number=2), after=last)

    found = {row.number: (row.status, row.reason, row.decided_by) for row in await rows(store)}
    assert found == {1: ("cancelled", "the policy changed", "ann"), 2: ("waiting", None, None)}
    await store.journal.signal("r1", signal(approval_signal("t1.c1", 2), approved=False))
    assert [row.status for row in await rows(store, ApprovalFilter("rejected"))] == ["rejected"]


async def test_the_end_of_a_run_cancels_what_waits_in_it_and_nothing_else(store: Store):
    await started(store.journal)
    await started(store.journal, "r2")
    await write(store, requested(), run_id="r2")
    last = await write(store, requested(), requested("t1.c2"))
    await store.journal.signal("r1", signal(approved=True))
    await write(store, ENDED, after=last)

    found = {(row.run_id, row.position): row.status for row in await rows(store)}
    assert found == {("r1", "t1.c1"): "approved", ("r1", "t1.c2"): "cancelled", ("r2", "t1.c1"): "waiting"}
    assert [row.reason for row in await rows(store, ApprovalFilter("cancelled"))] == ["its run has ended"]


async def test_a_process_that_lost_the_run_changes_no_row(store: Store):
    await started(store.journal)
    await write(store, requested())
    await claimed(store.journal, owner="p2", at=later(60))
    with pytest.raises(Fenced):
        await write(store, ENDED, requested("t9"), after=2)

    assert [(row.position, row.status) for row in await rows(store)] == [("t1.c1", "waiting")]


async def test_any_other_signal_is_no_decision(store: Store):
    await started(store.journal)
    await write(store, requested())
    await store.journal.signal("r1", signal("client:t1.c1", approved=True))

    assert [row.status for row in await rows(store)] == ["waiting"]


async def test_rows_are_read_oldest_first_page_by_page_and_by_what_they_are(store: Store):
    for number in (3, 1, 2):
        run_id = f"r{number}"
        await started(store.journal, run_id)
        name = "pay" if number < 3 else "ship"
        await write(store, requested(name=name, root_run_id=f"r{number % 2}"), run_id=run_id, at=later(number))

    first = await rows(store, limit=2)
    assert [row.run_id for row in first] == ["r1", "r2"]
    assert [row.run_id for row in await rows(store, after=first[-1].approval_id)] == ["r3"]
    assert [row.run_id for row in await rows(store, ApprovalFilter(tool="ship"))] == ["r3"]
    assert [row.run_id for row in await rows(store, ApprovalFilter(run_id="r1"))] == ["r1", "r3"]
    assert await rows(store, ApprovalFilter("expired")) == []
    with pytest.raises(NotFound, match="no approval 'apr_x'"):
        await rows(store, after="apr_x")


async def test_another_realm_has_no_such_row(store: Store):
    await started(store.journal)
    await write(store, requested())
    [row] = await rows(store)

    assert await store.approvals.page("elsewhere", ALL) == []
    with pytest.raises(NotFound):
        await store.approvals.get("elsewhere", row.approval_id)


async def test_a_run_that_is_forgotten_takes_its_rows_along():
    store = MemoryStore(keep_ended=1)
    for run_id in ("r1", "r2"):
        await started(store.journal, run_id)
        await write(store, requested(), run_id=run_id)
        done = RunEvent(run_id, 3, NOON, "default", "owner", ENDED)
        await store.journal.append(run_id, 1, [done], RunChange("completed"))

    assert [row.run_id for row in await rows(store)] == ["r2"]


@pytest.mark.requirement("approvals.migration")
async def test_calls_that_wait_in_a_database_of_an_older_release_are_in_the_inbox(tmp_path: Path):
    async with opened("sqlite", tmp_path) as store:
        for run_id in ("waits", "decided", "told", "ended"):
            await store.journal.create(new_run(run_id), FIRST)
            await claimed(store.journal, run_id)
            await write(store, requested(requested_by=None, acting=None, root_run_id=None), run_id=run_id)
        await write(store, ApprovalDecided(position="t1.c1", decision=None, made_by="x"), run_id="decided", after=2)
        await store.journal.signal("told", Signal(name="approval:t1.c1", payload={}, made_by="ann", at=NOON))
        suspended = RunSuspended(status="awaiting_approval", waiting_for=("approval:t1.c1",))
        change = RunChange("awaiting_approval", waiting_for=("approval:t1.c1",))
        await store.journal.append("waits", 1, [RunEvent("waits", 3, NOON, "default", "owner", suspended)], change)
        done = RunEvent("ended", 3, NOON, "default", "owner", ENDED)
        await store.journal.append("ended", 1, [done], RunChange("completed"))
        [before] = await rows(store, ApprovalFilter("waiting", run_id="waits"))
    older = tmp_path / "older"
    older.mkdir()
    with closing(Sqlite(f"sqlite:///{older}/crib.db").create()) as connection:
        connection.exec_driver_sql("BEGIN")
        migrate(connection, "0004")
        connection.commit()
    with closing(sqlite3.connect(older / "crib.db")) as copy:
        copy.execute("ATTACH ? AS newer", [str(tmp_path / "crib.db")])
        for table in ("runs", "events", "signals"):
            names = ", ".join(column[1] for column in copy.execute(f"PRAGMA main.table_info({table})"))
            copy.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM newer.{table}")
        copy.commit()

    async with opened("sqlite", older) as store:
        assert await rows(store) == [before]
        query = StoreQuery(equal("requested_by", before.requested_by), (OrderKey("approval_id"),))
        assert await store.approvals.find("default", query) == [before]
