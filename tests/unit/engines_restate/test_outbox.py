"""What Restate is told, and how often, with a cluster in memory."""

import logging

import pytest

from tests.unit.engines_restate.plant import Plant
from tests.unit.runs.house import LEASE_S, settled
from toolcrib.contracts import NotFound, Unavailable
from toolcrib.core.engines.restate import Outbox
from toolcrib.core.engines.restate.outbox import BATCH, FIRST_S, LONGEST_S

pytestmark = pytest.mark.requirement("restate.outbox")


@pytest.fixture
def plant() -> Plant:
    return Plant()


async def test_a_new_run_is_sent_at_once_and_not_again_by_the_next_look(plant: Plant):
    run_id = await plant.create()
    await settled()
    assert plant.restate.asked == [run_id]
    await plant.engine.outbox.sweep()
    assert plant.restate.asked == [run_id]


async def test_a_run_that_can_still_go_on_is_sent_again_with_growing_pauses(plant: Plant):
    run_id = await plant.house.engine.create(await plant.house.request())
    pauses: list[float] = []
    last = 0.0
    for _ in range(2000):
        before = len(plant.restate.asked)
        await plant.engine.outbox.sweep()
        if len(plant.restate.asked) > before:
            pauses.append(plant.clock.elapsed - last)
            last = plant.clock.elapsed
        plant.clock.advance(1)
    assert set(plant.restate.asked) == {run_id}
    assert pauses[1:6] == [FIRST_S, FIRST_S * 2, FIRST_S * 4, FIRST_S * 8, FIRST_S * 16]
    assert max(pauses) <= LONGEST_S


async def test_two_processes_that_look_at_the_same_moment_ask_for_one_drive(plant: Plant):
    await plant.house.engine.create(await plant.house.request())
    other = Outbox(plant.house.store.journal, plant.restate, plant.clock, owner="second", sweep_s=1)
    await plant.engine.outbox.sweep()
    await other.sweep()
    assert len(plant.restate.asked) == 2
    assert len(plant.restate.scheduled) == 1


async def test_a_run_that_stands_elsewhere_is_sent_as_if_for_the_first_time(plant: Plant):
    run_id = await plant.house.engine.create(await plant.house.request())
    for _ in range(3):
        await plant.engine.outbox.sweep()
        plant.clock.advance(FIRST_S * 8)
    journal = plant.house.store.journal
    await journal.claim(run_id, owner="dead", now=plant.clock.now(), lease_s=LEASE_S)
    plant.clock.advance(LEASE_S + FIRST_S * 8)
    await plant.engine.outbox.sweep()
    plant.clock.advance(FIRST_S)
    await plant.engine.outbox.sweep()
    assert plant.restate.asked == [run_id] * 5


async def test_many_runs_are_sent_in_batches_the_oldest_first(plant: Plant):
    made = [await plant.house.engine.create(await plant.house.request()) for _ in range(BATCH + 5)]
    await plant.engine.outbox.sweep()
    assert len(plant.restate.asked) == BATCH
    await plant.engine.outbox.sweep()
    assert sorted(plant.restate.asked) == sorted(made)


async def test_that_restate_is_away_is_said_once_and_nothing_is_lost(plant: Plant, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    plant.restate.refusals = [Unavailable("it is away")] * 3
    run_id = await plant.create()
    await settled()
    for _ in range(3):
        await plant.engine.outbox.sweep()
    assert plant.restate.asked == [run_id]
    assert [record.message for record in caplog.records if "Restate" in record.message] == [
        "runs wait in the store until Restate takes them: it is away",
        "Restate takes runs again",
    ]


@pytest.mark.requirement("restate.server_lost")
async def test_who_finds_that_restate_knows_no_worker_does_something_about_it(plant: Plant):
    registered: list[int] = []

    async def register() -> None:
        registered.append(1)

    plant.engine.outbox.unknown = register
    plant.restate.refusals = [NotFound("no such service")]
    run_id = await plant.create()
    await settled()
    await plant.engine.outbox.sweep()
    assert (registered, plant.restate.asked) == ([1], [run_id])


async def test_a_process_that_is_closed_has_sent_what_it_was_to_send(plant: Plant):
    run_id = await plant.create()
    await plant.engine.close()
    assert plant.restate.asked == [run_id]
    assert plant.restate.closed


async def test_looks_go_on_for_ever_and_nothing_is_sent_while_the_store_is_away(plant: Plant):
    serving = plant.serve()
    await plant.clock.pass_time(1)
    plant.lose_store(away=True)
    await plant.clock.pass_time(1)
    run_id = await plant.house.engine.create(await plant.house.request())
    await plant.clock.pass_time(1)
    assert plant.restate.asked == []
    plant.lose_store(away=False)
    await plant.clock.pass_time(1)
    assert plant.restate.asked == [run_id]
    serving.cancel()
