"""The stores, told the same history, give the same answers: a state machine over claims, appends and crashes.

The clock is the machine's own. A crash is a store that is closed and opened while leases are alive and appends are
pending; the memory store, which has nothing to lose, just goes on.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.servers.postgres import PostgresServer
from tests.unit.store.samples import FIRST, LEASE_S, entry, later, new_run, signal, store_at
from toolcrib.contracts import (
    ApprovalDecided,
    ApprovalDecision,
    ApprovalRequested,
    ApprovalWithdrawn,
    RunEvent,
    RunResult,
    RunStatus,
    ToolcribError,
)
from toolcrib.infrastructure.store import ApprovalFilter, Journal, Lease, RunChange, Store

pytestmark = [
    pytest.mark.requirement("store.agreement", "store.fencing", "store.waiting", "approvals.rows"),
    pytest.mark.slow,
]

RUNS = st.sampled_from(["r1", "r2", "r3"])
OWNERS = st.sampled_from(["p1", "p2"])
NAMES = st.sampled_from(["approval:a", "client:b"])
STATUSES: tuple[RunStatus, ...] = ("queued", "awaiting_approval", "awaiting_client", "completed", "failed")


@st.composite
def changes(draw: st.DrawFn) -> RunChange:
    status = draw(st.sampled_from(STATUSES))
    result = RunResult(run_id="r", status=status, output=draw(st.integers(0, 9)))
    return RunChange(
        status,
        result=draw(st.sampled_from([None, result])),
        waiting_for=tuple(draw(st.lists(NAMES, max_size=2, unique=True))),
        wake_at=draw(st.sampled_from([None, later(30), later(60)])),
    )


@st.composite
def approval_events(draw: st.DrawFn) -> ApprovalRequested | ApprovalDecided | ApprovalWithdrawn:
    number = draw(st.sampled_from([1, 1, 2]))
    hashes: dict[str, Any] = {"arguments_hash": "sha256:a", "content_hash": "sha256:t"}
    asked = ApprovalRequested(
        position="a", number=number, call_id="c", name="pay", version="1.0.0", input={"usd": 5}, **hashes
    )
    decision = draw(st.none() | st.booleans().map(lambda approved: ApprovalDecision(approved=approved, **hashes)))
    decided = ApprovalDecided(position="a", number=number, decision=decision, made_by="ann")
    return draw(st.sampled_from([asked, asked, decided, ApprovalWithdrawn(position="a", number=number, reason="so")]))


class Agreement(RuleBasedStateMachine):
    def __init__(self, postgres_store: str) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.seconds = 0.0
        self.created: set[str] = set()
        urls = ("memory://", f"sqlite:///{Path(self.folder.name)}/crib.db", postgres_store)
        self.stores = [store_at(url) for url in urls]
        self.each(lambda store: store.open())

    def teardown(self) -> None:
        self.each(lambda store: store.close())
        self.runner.close()
        self.folder.cleanup()

    def each(self, operation: Callable[[Store], Awaitable[Any]]) -> Any:
        """What all stores answer; they must agree."""

        async def answer(store: Store) -> Any:
            try:
                return await operation(store)
            except ToolcribError as error:
                return type(error), str(error)

        memory, *others = (self.runner.run(answer(store)) for store in self.stores)
        assert others == [memory, memory]
        return memory

    def journals(self, operation: Callable[[Journal], Awaitable[Any]]) -> Any:
        return self.each(lambda store: operation(store.journal))

    @rule(run_id=RUNS, owner=st.none() | OWNERS)
    def create(self, run_id: str, owner: str | None) -> None:
        now = later(self.seconds)
        new = {} if owner is None else {"status": "running", "epoch": 1}
        lease = None if owner is None else Lease(owner, later(self.seconds + LEASE_S))
        run = new_run(run_id, created_at=now, **new)
        self.journals(lambda journal: journal.create(run, FIRST, lease=lease))
        self.created.add(run_id)

    @precondition(lambda self: self.created)
    @rule(run_id=RUNS, owner=OWNERS)
    def claim(self, run_id: str, owner: str) -> None:
        now = later(self.seconds)
        self.journals(lambda journal: journal.claim(run_id, owner=owner, now=now, lease_s=LEASE_S))

    @precondition(lambda self: self.created)
    @rule(
        run_id=RUNS,
        back=st.sampled_from([0, 0, 0, 1]),
        gap=st.sampled_from([0, 0, 0, 0, 1]),
        count=st.integers(0, 3),
        change=st.none() | changes(),
        awaited=st.booleans(),
    )
    def append(self, run_id: str, back: int, gap: int, count: int, change: RunChange | None, *, awaited: bool) -> None:
        if run_id not in self.created:
            return
        run = self.runner.run(self.stores[0].journal.run(run_id))
        first = run.events + 1 + gap
        events = [entry(number, run_id, seconds=self.seconds) for number in range(first, first + count)]

        async def append(journal: Journal) -> None:
            pending = journal.append(run_id, run.epoch - back, events, change)
            if awaited or back or gap:
                await pending

        self.journals(append)

    @precondition(lambda self: self.created)
    @rule(run_id=RUNS, event=approval_events())
    def ask(self, run_id: str, event: ApprovalRequested | ApprovalDecided | ApprovalWithdrawn) -> None:
        if run_id not in self.created:
            return
        run = self.runner.run(self.stores[0].journal.run(run_id))
        asked = RunEvent(run_id, run.events + 1, later(self.seconds), "default", "owner", event)
        self.journals(lambda journal: journal.append(run_id, run.epoch, [asked]))

    @precondition(lambda self: self.created)
    @rule(run_id=RUNS, name=NAMES, approved=st.booleans())
    def signal(self, run_id: str, name: str, *, approved: bool) -> None:
        sent = signal(name, approved=approved)
        self.journals(lambda journal: journal.signal(run_id, sent))

    @precondition(lambda self: self.created)
    @rule(run_ids=st.lists(RUNS, max_size=2, unique=True), names=st.lists(NAMES, max_size=2, unique=True))
    def signal_all(self, run_ids: list[str], names: list[str]) -> None:
        sent = [(run_id, signal(name)) for run_id in sorted(run_ids) for name in names]
        self.journals(lambda journal: journal.signal_all(sent))

    @rule(owner=OWNERS)
    def renew(self, owner: str) -> None:
        now = later(self.seconds)

        async def renew(journal: Journal) -> list[str]:
            return list(await journal.renew(["r1", "r2", "r3"], owner=owner, now=now, lease_s=LEASE_S))

        self.journals(renew)

    @rule(seconds=st.sampled_from([1.0, LEASE_S, 25.0]))
    def time_passes(self, seconds: float) -> None:
        self.seconds += seconds

    @rule()
    def crash(self) -> None:
        self.each(lambda store: store.close())
        self.each(lambda store: store.open())

    @invariant()
    def all_is_alike(self) -> None:
        now = later(self.seconds)

        async def seen(journal: Journal) -> list[Any]:
            runs = list(await journal.runs("default"))
            logs = [list(await journal.events(run.run_id)) for run in runs]
            assert [[event.number for event in log] for log in logs] == [list(range(1, run.events + 1)) for run in runs]
            return [runs, logs, list(await journal.claimable(now=now, limit=10))]

        self.journals(seen)
        self.each(lambda store: store.approvals.page("default", ApprovalFilter(), limit=100))


def test_all_stores_answer_every_history_alike(postgres: PostgresServer, postgres_store: str):
    class Afresh(Agreement):
        def __init__(self) -> None:
            postgres.clear(postgres_store.rpartition("/")[2])
            super().__init__(postgres_store)

    run_state_machine_as_test(Afresh, settings=settings(max_examples=25, stateful_step_count=30))
