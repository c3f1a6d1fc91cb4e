"""Any number of processes at one journal, in any order, at any time: what the journal must promise, as a small model.

Processes claim runs, renew, write, wait, and end them; they die, or are thought dead and go on with what they know.
People leave signals and cancel, early and twice. The model says of each step whether it may take effect, and after
each step which runs anybody may take: so nobody writes whose time is over, no number is missing or given twice, no
wait is slept through, and of several answers the first one counts.
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.unit.store.samples import FIRST, LEASE_S, entry, later, new_run, store_at
from toolcrib.contracts import CANCEL, ENDED, Conflict, Fenced, RunResult, RunStatus, Signal, ToolcribError
from toolcrib.infrastructure.store import RunChange, Store

pytestmark = [pytest.mark.slow, pytest.mark.requirement("chaos_engines.journal_model")]

PROCESSES = st.sampled_from(["p1", "p2", "p3"])
PLACES = st.integers(0, 1)
NAMES = st.sampled_from(["approval:a", "client:b"])
_MACHINES = count(1)


class Halt(NamedTuple):
    """How a process is done with a run."""

    status: RunStatus
    waits_for: frozenset[str] = frozenset()
    rest_s: float | None = None

    def change(self, now: float) -> RunChange:
        """What it writes."""
        result = RunResult(run_id="r", status=self.status) if self.status in ENDED else None
        wake_at = None if self.rest_s is None else later(now + self.rest_s)
        return RunChange(self.status, result=result, waiting_for=tuple(sorted(self.waits_for)), wake_at=wake_at)


HALTS = st.sampled_from([Halt("queued"), Halt("completed")]) | st.builds(
    Halt,
    status=st.just("awaiting_approval"),
    waits_for=st.frozensets(NAMES),
    rest_s=st.sampled_from([None, 1.0, 3 * LEASE_S]),
)


class Known(NamedTuple):
    """What a process knows of a run that it has claimed, whether that is so still or not."""

    epoch: int
    last: int


@dataclass
class Model:
    """A run as it must stand."""

    epoch: int = 0
    last: int = 1
    status: RunStatus = "queued"
    owner: str | None = None
    free_at: float | None = 0.0
    """From when on anybody may take it; null for never."""
    waits_for: frozenset[str] = frozenset()
    signals: dict[str, int] = field(default_factory=dict[str, int])
    """Which answer counts, by name."""
    known: dict[str, Known] = field(default_factory=dict[str, Known])
    """By process."""

    def is_free(self, now: float) -> bool:
        return self.free_at is not None and self.free_at <= now

    def halt(self, halt: Halt, now: float) -> None:
        """The run ends, or waits, unless what it waits for is there."""
        self.owner, self.waits_for = None, frozenset()
        if halt.status in ENDED:
            self.status, self.free_at = halt.status, None
        elif halt.status == "queued" or {CANCEL, *halt.waits_for} & self.signals.keys():
            self.status, self.free_at = "queued", 0.0
        else:
            self.status, self.waits_for = halt.status, halt.waits_for
            self.free_at = None if halt.rest_s is None else now + halt.rest_s

    def hear(self, name: str, answer: int) -> bool:
        """Whether an answer is the first of its name."""
        if name in self.signals:
            return False
        self.signals[name] = answer
        if name in self.waits_for or (name == CANCEL and self.status == "awaiting_approval"):
            self.status, self.free_at, self.waits_for = "queued", 0.0, frozenset()
        return True


class Processes(RuleBasedStateMachine):
    """What happens."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.journal = store.journal
        self.store = store
        self.now = 0.0
        self.machine = next(_MACHINES)
        self.runs: list[Model] = []
        self.answers = count(1)
        self.do(store.open())

    def teardown(self) -> None:
        self.do(self.store.close())
        self.runner.close()

    def do(self, work: Awaitable[Any]) -> Any:
        async def done() -> Any:
            return await work

        return self.runner.run(done())

    def refused(self, work: Awaitable[Any]) -> type[ToolcribError] | None:
        try:
            self.do(work)
        except (Conflict, Fenced) as refusal:
            return type(refusal)
        return None

    def name(self, place: int) -> str:
        return f"m{self.machine}-{place}"

    @precondition(lambda self: len(self.runs) < 2)
    @rule()
    def create(self) -> None:
        run_id = self.name(len(self.runs))
        self.do(self.journal.create(new_run(run_id, created_at=later(len(self.runs))), FIRST))
        assert self.refused(self.journal.create(new_run(run_id), FIRST)) is Conflict
        self.runs.append(Model())

    @precondition(lambda self: self.runs)
    @rule(place=PLACES, process=PROCESSES)
    def claim(self, place: int, process: str) -> None:
        place %= len(self.runs)
        run = self.runs[place]
        found = self.do(self.journal.claim(self.name(place), owner=process, now=later(self.now), lease_s=LEASE_S))
        if not run.is_free(self.now) and run.owner != process:
            assert found is None
            return
        run.epoch += 1
        run.status, run.owner, run.free_at = "running", process, self.now + LEASE_S
        run.waits_for = frozenset()
        run.known[process] = Known(run.epoch, run.last)
        assert (found.run.epoch, len(found.events)) == (run.epoch, run.last)
        assert {name: told.payload["answer"] for name, told in found.signals.items()} == run.signals

    @rule(process=PROCESSES)
    def renew(self, process: str) -> None:
        names = [self.name(place) for place in range(len(self.runs))]
        kept = self.do(self.journal.renew(names, owner=process, now=later(self.now), lease_s=LEASE_S))
        mine = [place for place, run in enumerate(self.runs) if run.owner == process]
        assert list(kept) == [self.name(place) for place in mine]
        for place in mine:
            self.runs[place].free_at = self.now + LEASE_S

    @precondition(lambda self: self.runs)
    @rule(place=PLACES, process=PROCESSES, events=st.integers(1, 3), halt=st.none() | st.none() | HALTS)
    def write(self, place: int, process: str, events: int, halt: Halt | None) -> None:
        """A process goes on with what it knows; it may have been thought dead long ago."""
        place %= len(self.runs)
        run = self.runs[place]
        known = run.known.get(process)
        if known is None:
            return
        new = [entry(number, self.name(place)) for number in range(known.last + 1, known.last + events + 1)]
        change = None if halt is None else halt.change(self.now)
        refusal = self.refused(self.journal.append(self.name(place), known.epoch, new, change))
        if known.epoch != run.epoch:
            assert refusal is Fenced
        elif known.last != run.last or run.status in ENDED:
            assert refusal is Conflict
        else:
            assert refusal is None
            run.last += events
            run.known[process] = Known(run.epoch, run.last)
            if halt is not None:
                run.halt(halt, self.now)

    @rule(place=PLACES, process=PROCESSES)
    def die(self, place: int, process: str) -> None:
        """A process dies: it knows nothing any more, and nobody is told."""
        for run in self.runs[place:]:
            run.known.pop(process, None)

    @precondition(lambda self: self.runs)
    @rule(place=PLACES, name=NAMES | st.just(CANCEL))
    def answer(self, place: int, name: str) -> None:
        place %= len(self.runs)
        answer = next(self.answers)
        told = Signal(name=name, payload={"answer": answer}, made_by="ann", at=later(self.now))
        assert self.do(self.journal.signal(self.name(place), told)) is self.runs[place].hear(name, answer)

    @rule(seconds=st.sampled_from([1.0, LEASE_S / 2, LEASE_S + 1, 5 * LEASE_S]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def all_stands_as_it_must(self) -> None:
        free = [self.name(place) for place, run in enumerate(self.runs) if run.is_free(self.now)]
        found = self.do(self.journal.claimable(now=later(self.now), limit=10_000))
        assert [run_id for run_id in found if run_id.startswith(f"m{self.machine}-")] == free
        for place, run in enumerate(self.runs):
            row = self.do(self.journal.run(self.name(place)))
            assert (row.status, row.epoch, row.events) == (run.status, run.epoch, run.last)
            log = self.do(self.journal.events(self.name(place)))
            assert [event.number for event in log] == list(range(1, run.last + 1))


def check(url: str, histories: int) -> None:
    class AtUrl(Processes):
        def __init__(self) -> None:
            super().__init__(store_at(url))

    run_state_machine_as_test(AtUrl, settings=settings(max_examples=histories, stateful_step_count=40))


def test_no_order_of_claims_writes_deaths_and_answers_breaks_a_promise_in_memory():
    check("memory://", 150)


def test_no_order_of_claims_writes_deaths_and_answers_breaks_a_promise_on_sqlite(tmp_path: Path):
    check(f"sqlite:///{tmp_path}/crib.db", 10)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_no_long_search_finds_an_order_that_breaks_a_promise(kind: str, tmp_path: Path, postgres_store: str):
    check(postgres_store if kind == "postgres" else f"sqlite:///{tmp_path}/crib.db", 500)
