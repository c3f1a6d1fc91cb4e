"""What simulations have found, each as a schedule of its own."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.simulation import Died, Process, Schedule, World, run_schedule
from tests.simulation.office import Ledger, open_office
from toolcrib import Crib
from toolcrib.contracts import JsonObject, Replay

pytestmark = [
    pytest.mark.requirement("runs.simulation"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # of what processes left that died
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
]


async def opened(world: World, process: Process, ledger: Ledger) -> Crib:
    crib = open_office(world.folder, process, ledger)
    await crib.open()
    return crib


async def drive(world: World, process: Process, ledger: Ledger, kind: str, given: JsonObject) -> None:
    crib = await opened(world, process, ledger)
    await crib.invoke(kind, given)


async def replays(crib: Crib, *, parked: bool = False) -> Sequence[Replay]:
    runs = await crib.store.journal.runs("default")
    return [await crib.replay(run.run_id, parked=parked) for run in runs if run.request.parent_run_id is None]


async def play(world: World, kind: str, given: JsonObject, *, approve: bool | None = None) -> Sequence[str]:
    """One run to its end, in the process `first` and after its death in another one; returns where replays differ."""
    ledger, first, second = Ledger(), world.process("first"), world.process("second", calm=True)
    crib = await second.run(opened(world, second, ledger))
    driving = asyncio.create_task(first.run(drive(world, first, ledger, kind, given)))
    while not (runs := await second.run(crib.store.journal.runs("default"))):
        await second.clock.sleep(0.1)
    run_id = runs[-1].run_id
    if approve is not None:
        while not await second.run(crib.pending_approvals(run_id)):
            await second.clock.sleep(0.1)
        await second.run(crib.decide(run_id, "asked", approve=approve))
        await second.run(crib.instances.signal(run_id, "news", {}))
    with suppress(Died):
        await driving
    await second.run(crib.resume(run_id))
    return [str(replay.divergence) for replay in await second.run(replays(crib)) if not replay.same]


@pytest.mark.parametrize("approve", [False, True])
def test_a_timer_beside_an_answer_of_a_person_replays_the_same(office: Path, approve: bool):
    async def scenario(world: World) -> Sequence[str]:
        return await play(world, "desk", {}, approve=approve)

    outcome = run_schedule(scenario, Schedule(0, {}), files=office)
    assert (outcome.value, outcome.failure) == ([], None)


def test_a_timer_that_ended_before_its_process_died_replays_the_same(office: Path):
    async def scenario(world: World) -> Sequence[str]:
        return await play(world, "desk", {}, approve=True)

    outcome = run_schedule(scenario, Schedule(0, {"first look crash 1": 1}), files=office)
    assert "first look crash 1" in outcome.decisions
    assert (outcome.value, outcome.failure) == ([], None)


@pytest.mark.parametrize("late", ["pay", "pay answer"])
def test_a_call_that_timed_out_and_was_looked_up_replays_the_same(office: Path, late: str):
    async def scenario(world: World) -> Sequence[str]:
        return await play(world, "pay", {"n": 1})

    outcome = run_schedule(scenario, Schedule(0, {f"first {late} delay 1": 8}), files=office)
    assert f"first {late} delay 1" in outcome.decisions
    assert (outcome.value, outcome.failure) == ([], None)


def test_the_replay_of_a_run_whose_process_died_beside_a_wait_comes_to_an_end(office: Path):
    async def scenario(world: World) -> Sequence[str]:
        ledger, first, second = Ledger(), world.process("first"), world.process("second", calm=True)
        crib = await second.run(opened(world, second, ledger))
        with suppress(Died):
            await first.run(drive(world, first, ledger, "desk", {}))
        found = await second.run(replays(crib, parked=True))
        return [str(replay.divergence) for replay in found if not replay.same]

    outcome = run_schedule(scenario, Schedule(0, {"first pay crash 1": 1}), files=office)
    assert "first pay crash 1" in outcome.decisions
    assert (outcome.value, outcome.failure) == ([], None)
