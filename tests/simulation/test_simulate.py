"""The simulation itself: a seed makes one schedule, and a schedule that fails is found and shortened."""

import asyncio
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from tests.simulation import Schedule, ScheduleFailed, Stuck, World, run_schedule, simulate, sweep
from tests.simulation.processes import DELAYS_S
from tests.simulation.scenarios import one, scenario
from toolcrib.contracts import JsonObject, ToolDefinition
from toolcrib.core.engines.replay import event_comparison
from toolcrib.core.runs.context import unknown_outcomes

pytestmark = [
    pytest.mark.requirement("runs.simulation"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # of what processes left that died
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
]

SEEDS = range(40, 46)
SECONDS_7 = DELAYS_S.index(7.0)
PRINTS = """
from hashlib import sha256
from tests.simulation import Schedule, run_schedule
from tests.simulation.files import template
from tests.simulation.scenarios import scenario
with template() as files:
    for seed in range(40, 46):
        print(sha256(run_schedule(scenario, Schedule(seed), files=files).value).hexdigest())
"""


def journals(seed: int, files: Path) -> str:
    outcome = run_schedule(scenario, Schedule(seed), files=files)
    assert outcome.failure is None
    return sha256(outcome.value).hexdigest()


def test_a_seed_makes_the_same_journals_each_time(office: Path):
    first = [journals(seed, office) for seed in SEEDS]
    assert [journals(seed, office) for seed in SEEDS] == first
    assert len(set(first)) == len(SEEDS)


@pytest.mark.slow
@pytest.mark.parametrize("hashes", ["1", "2"])
def test_a_seed_makes_the_same_journals_in_another_process(office: Path, hashes: str):
    around = {**os.environ, "PYTHONHASHSEED": hashes}
    printed = subprocess.run([sys.executable, "-c", PRINTS], env=around, check=True, capture_output=True, text=True)
    assert printed.stdout.split() == [journals(seed, office) for seed in SEEDS]


def test_the_decisions_that_were_taken_make_the_same_journals_as_their_seed(office: Path):
    drawn = run_schedule(scenario, Schedule(41), files=office)
    assert drawn.decisions
    assert run_schedule(scenario, Schedule(41, drawn.decisions), files=office).value == drawn.value


async def counts(world: World) -> None:
    """Two processes read a number, take their time, and write the next."""
    number = 0

    async def count(name: str) -> None:
        nonlocal number
        process = world.process(name)

        async def work() -> None:
            nonlocal number
            for _ in range(3):
                read = number
                if world.pick(f"{name} waits", 3) == 2:
                    await process.take("thinking")
                number = read + 1
                await process.take("resting")

        await process.run(work())

    await asyncio.gather(count("a"), count("b"))
    assert number == 6, f"update lost: {number}"


def test_a_schedule_that_fails_is_found_and_shortened():
    with pytest.raises(ScheduleFailed) as failed:
        simulate(counts, range(200))
    decisions = failed.value.shortest.schedule.decisions
    assert decisions is not None
    assert len(decisions) == 1
    assert str(decisions).strip("{}") in str(failed.value)
    again = run_schedule(counts, failed.value.shortest.schedule)
    assert str(again.failure and again.failure.error) == str(failed.value.shortest.error)


def test_what_can_never_end_is_told():
    async def waits(world: World) -> None:
        await asyncio.get_running_loop().create_future()

    failure = run_schedule(waits, Schedule(0)).failure
    assert failure is not None
    assert isinstance(failure.error, Stuck)


def test_a_process_that_dies_does_nothing_any_more():
    done: list[str] = []

    async def dies(world: World) -> None:
        process = world.process("first")

        async def work() -> None:
            try:
                done.append("begun")
                await process.take("step")
                done.append("never")
            finally:
                done.append("buried")

        await process.run(work())

    failure = run_schedule(dies, Schedule(0, {"first step crash 1": 1})).failure
    assert type(failure and failure.error).__name__ == "Died"
    assert done == ["begun", "buried"]


def test_it_finds_that_replays_compare_counts_that_depend_on_the_store(office: Path, monkeypatch: pytest.MonkeyPatch):
    def nothing(source: JsonObject, target: JsonObject) -> None:
        """Counts are compared as they are."""

    monkeypatch.setattr(event_comparison, "_take_over_counts", nothing)
    with pytest.raises(ScheduleFailed, match=r"^replay diverges: .*tool_calls"):
        simulate(scenario, range(150), files=office)


def test_it_finds_that_a_replay_suspends_a_run_that_has_just_heard_of_a_person(
    office: Path, monkeypatch: pytest.MonkeyPatch
):
    def always(stage: event_comparison.ReplayState, run_id: str) -> bool:
        return True

    monkeypatch.setattr(event_comparison.ReplayState, "suspends", always)
    with pytest.raises(ScheduleFailed, match=r"^replay diverges: .*run_suspended"):
        sweep(scenario, one("desk"), {"delay": SECONDS_7}, files=office)


def test_it_finds_that_what_must_not_be_repeated_is_repeated(office: Path, monkeypatch: pytest.MonkeyPatch):
    def always(tool: ToolDefinition) -> bool:
        return True

    monkeypatch.setattr(unknown_outcomes, "is_repeatable", always)
    with pytest.raises(ScheduleFailed, match=r"^unsafe effect twice: "):
        sweep(scenario, one("desk"), {"crash": 1}, files=office)
