"""The engine of a process that is no worker, and what a worker does when it is asked, with a cluster in memory."""

import asyncio

import pytest

from tests.unit.engines.family import AGENT
from tests.unit.engines_restate.plant import Plant
from tests.unit.runs.house import LEASE_S, ask, hang, settled
from toolcrib.contracts import (
    CANCEL,
    ErrorCode,
    Json,
    RunEvent,
    RunFinished,
    RunResumed,
    RunSuspended,
    Signal,
    ToolError,
    Unavailable,
)
from toolcrib.core.engines import Engine, child_run_id
from toolcrib.core.engines.nested_runs import child_signal
from toolcrib.core.engines.restate.drives import moments
from toolcrib.core.runs import RunContext
from toolcrib.infrastructure.store import RunChange


def signal(name: str) -> Signal:
    return Signal(name=name, payload={}, made_by="ann", at=Plant().clock.now())


async def wait_for_go(context: RunContext) -> Json:
    got = await context.wait_signal("go")
    return None if got is None else got.name


async def rest(context: RunContext) -> Json:
    await context.sleep("rest", 60)
    return "rested"


@pytest.mark.requirement("restate.begins")
async def test_a_run_that_is_started_is_waited_for_and_not_driven_here():
    plant = Plant()
    engine: Engine = plant.engine
    await plant.house.save()
    starting = asyncio.create_task(engine.start(await plant.house.request()))
    await settled()
    assert plant.house.dispatched == []
    assert await plant.deliver() == ["ended"]
    await plant.clock.pass_time(1)
    driven = await starting
    assert driven.result.status == "completed"
    assert isinstance(driven.log[-1].event, RunFinished)
    assert engine.live is plant.house.engine.live


@pytest.mark.requirement("restate.begins")
async def test_a_refused_run_is_ended_at_once():
    plant = Plant()
    refusal = ToolError(code=ErrorCode.POLICY_DENIED, message="no")
    driven = await plant.engine.refuse(await plant.house.request(), refusal)
    assert (driven.result.status, plant.restate.asked) == ("failed", [])


@pytest.mark.requirement("restate.begins", "restate.waiting")
async def test_who_waits_for_a_run_is_told_that_it_waits_and_its_signal_has_it_driven():
    plant = Plant(wait_for_go)
    run_id = await plant.create()
    await settled()
    assert await plant.deliver() == ["waits"]
    assert (await plant.engine.resume(run_id)).result.status == "awaiting_client"
    await plant.deliver()
    assert plant.restate.scheduled == []

    assert await plant.engine.signal(run_id, signal("go"))
    assert not await plant.engine.signal(run_id, signal("go"))
    resuming = asyncio.create_task(plant.engine.resume(run_id))
    await settled()
    assert "ended" in await plant.deliver()
    await plant.clock.pass_time(1)
    assert (await resuming).result.output == "go"


@pytest.mark.requirement("restate.begins")
async def test_signals_that_are_left_together_have_each_run_driven():
    plant = Plant(wait_for_go)
    ids = [await plant.create() for _ in range(2)]
    await settled()
    await plant.deliver()
    assert await plant.engine.signal_all([(run_id, signal("go")) for run_id in ids])
    assert not await plant.engine.signal_all([(run_id, signal("go")) for run_id in ids])
    await settled()
    assert await plant.deliver() == ["ended", "ended"]


@pytest.mark.requirement("restate.harmless")
async def test_a_run_that_is_asked_for_too_early_and_too_often_is_driven_once():
    plant = Plant(wait_for_go)
    run_id = await plant.create()
    for _ in range(3):
        plant.engine.begin(run_id)
    await plant.engine.signal(run_id, signal("not waited for"))
    await settled()
    await plant.deliver()
    await plant.engine.signal(run_id, signal("go"))
    for _ in range(3):
        plant.engine.begin(run_id)
    await settled()
    assert set(await plant.deliver()) == {"ended"}
    events = await plant.house.events(run_id)
    assert len([event for event in events if isinstance(event, RunFinished)]) == 1
    assert len([event for event in events if isinstance(event, RunResumed)]) == 1


@pytest.mark.requirement("restate.waiting")
async def test_a_run_that_waits_for_a_moment_is_asked_for_then():
    plant = Plant(rest)
    run_id = await plant.create()
    await settled()
    assert await plant.deliver() == ["waits"]
    assert plant.restate.scheduled == [(60.0, run_id)]
    plant.clock.advance(60)
    assert await plant.deliver() == ["ended"]


@pytest.mark.requirement("restate.begins")
async def test_a_run_that_waits_is_cancelled_here_and_one_that_is_driven_where_it_is():
    plant = Plant(wait_for_go)
    run_id = await plant.create()
    await settled()
    await plant.deliver()
    assert await plant.engine.cancel(run_id, by="ann")
    assert (await plant.house.store.journal.run(run_id)).status == "cancelled"

    worker = Plant(other=plant, owner="worker", behaviour=hang)
    await worker.house.save()
    run_id = await plant.engine.create(await plant.house.request())
    driving = asyncio.create_task(worker.drives.drive(run_id))
    await settled()
    assert await plant.engine.cancel(run_id, by="ann", reason="enough")
    await worker.clock.pass_time(LEASE_S / 3)
    assert (await driving).standing == "ended"
    assert CANCEL in await plant.house.store.journal.signals(run_id)


@pytest.mark.requirement("restate.begins")
async def test_recovering_has_whatever_can_go_on_driven():
    plant = Plant()
    run_id = await plant.house.engine.create(await plant.house.request())
    await plant.house.save()
    recovering = asyncio.create_task(plant.engine.recover())
    await settled()
    assert await plant.deliver() == ["ended"]
    await plant.clock.pass_time(1)
    assert [driven.result.run_id for driven in await recovering] == [run_id]


@pytest.mark.requirement("restate.begins")
async def test_who_waits_for_a_run_while_the_process_stops_is_told_how_it_stands():
    plant = Plant()
    run_id = await plant.create()
    resuming = asyncio.create_task(plant.engine.resume(run_id))
    await settled()
    assert await plant.engine.drain(1) == []
    await plant.clock.pass_time(1)
    assert (await resuming).result.status == "queued"


@pytest.mark.requirement("restate.journal_missing")
async def test_a_run_that_the_journal_does_not_have_is_an_answer():
    plant = Plant()
    plant.engine.begin("run_nobody_knows")
    await settled()
    assert await plant.deliver() == ["journal_missing"]
    assert plant.restate.scheduled == []


@pytest.mark.requirement("restate.harmless", "restate.worker_lost")
async def test_a_run_that_another_process_holds_is_asked_for_again_when_its_lease_can_be_over():
    plant = Plant(behaviour=hang)
    run_id = await plant.create()
    other = Plant(other=plant, owner="other")
    holding = asyncio.create_task(plant.drives.drive(run_id))
    await settled()
    for _ in range(2):
        other.engine.begin(run_id)
    await settled()
    told = await other.deliver()
    assert set(told) == {"held"}
    assert plant.restate.scheduled == [(LEASE_S, run_id)]
    holding.cancel()


@pytest.mark.requirement("restate.connection")
async def test_who_asks_for_a_run_that_is_driven_here_is_told_the_same_end():
    gate = asyncio.Event()

    async def wait(context: RunContext) -> Json:
        await gate.wait()
        return (await context.call(ask("a"))).output

    plant = Plant(wait)
    run_id = await plant.create()
    cut_off = asyncio.create_task(plant.drives.drive(run_id))
    await settled()
    cut_off.cancel()
    await asyncio.wait([cut_off])
    again = asyncio.create_task(plant.drives.drive(run_id))
    await settled()
    gate.set()
    assert (await again).standing == "ended"
    assert plant.house.dispatched == ["a"]


@pytest.mark.requirement("restate.unable")
async def test_a_worker_that_lacks_what_a_run_needs_says_so():
    plant = Plant()
    run_id = await plant.create()
    plant.house.able = False
    with pytest.raises(Unavailable, match="cannot drive"):
        await plant.drives.drive(run_id)
    plant.house.able = True
    assert (await plant.drives.drive(run_id)).standing == "ended"


@pytest.mark.requirement("restate.drain")
async def test_a_worker_that_stops_lets_go_of_its_runs_and_takes_no_other():
    gate = asyncio.Event()

    async def wait(context: RunContext) -> Json:
        await gate.wait()
        await context.call(ask("a"))
        return (await context.call(ask("b"))).output

    plant = Plant(wait)
    run_id, later = await plant.create(), await plant.create()
    driving = asyncio.create_task(plant.drives.drive(run_id))
    await settled()
    draining = asyncio.create_task(plant.drives.drain(5))
    await settled()
    with pytest.raises(Unavailable, match="stopping"):
        await plant.drives.drive(later)
    gate.set()
    await settled()
    for _ in range(200):
        await plant.clock.pass_time(0.05)
    await draining
    with pytest.raises(Unavailable, match="stopping"):
        await driving
    other = Plant(wait, other=plant, owner="other")
    assert (await other.drives.drive(run_id)).standing == "ended"


@pytest.mark.requirement("restate.drain")
async def test_what_does_not_end_within_the_grace_is_cut_off():
    plant = Plant(behaviour=hang)
    run_id = await plant.create()
    driving = asyncio.create_task(plant.drives.drive(run_id))
    await settled()
    draining = asyncio.create_task(plant.drives.drain(1))
    for _ in range(40):
        await plant.clock.pass_time(0.05)
    await draining
    with pytest.raises((asyncio.CancelledError, Unavailable)):
        await driving


async def nested_plant() -> tuple[Plant, str]:
    """A parent that waits for a nested run, which rests; and the parent's id."""

    async def script(context: RunContext) -> Json:
        if context.request.parent_run_id is not None:
            return await rest(context)
        (result,) = await context.wait_all([context.start_child("c1", agent, {"task": "rest"})])
        return result.status

    plant = Plant(script)
    agent = await plant.house.save(AGENT)
    run_id = await plant.create()
    await settled()
    assert await plant.deliver() == ["waits"]
    return plant, run_id


@pytest.mark.requirement("restate.drives", "restate.waiting")
async def test_a_nested_run_is_asked_for_at_its_moment_and_its_end_has_its_caller_go_on():
    plant, run_id = await nested_plant()
    child_id = child_run_id(run_id, "c1")
    assert plant.restate.scheduled == [(60.0, child_id)]
    waiting = asyncio.create_task(plant.engine.resume(run_id))
    await settled()
    assert waiting.done()

    plant.clock.advance(60)
    overdue = asyncio.create_task(plant.engine.resume(run_id))
    await settled()
    assert not overdue.done()
    assert (await plant.deliver())[-1] == "ended"
    await plant.clock.pass_time(1)
    assert (await overdue).result.output == "completed"


@pytest.mark.requirement("restate.begins")
async def test_cancelling_a_nested_run_has_its_caller_go_on():
    plant, run_id = await nested_plant()
    await plant.engine.cancel(child_run_id(run_id, "c1"), by="ann")
    await settled()
    assert "ended" in await plant.deliver()
    assert (await plant.house.store.journal.run(run_id)).output == "cancelled"


@pytest.mark.requirement("restate.waiting")
async def test_a_nested_run_that_was_announced_and_never_made_is_no_moment():
    plant = Plant(wait_for_go)
    run_id = await plant.create()
    await plant.house.engine.drive(run_id)
    run = await plant.house.store.journal.run(run_id)
    suspended = RunSuspended(status=run.status, waiting_for=(child_signal("run_never_made"),))
    claim = await plant.house.store.journal.claim(run_id, owner="x", now=plant.clock.now(), lease_s=1)
    assert claim is None
    await plant.engine.signal(run_id, signal("go"))
    claim = await plant.house.store.journal.claim(run_id, owner="x", now=plant.clock.now(), lease_s=1)
    assert claim is not None
    last = RunEvent(run_id, claim.run.events + 1, plant.clock.now(), run.realm, run.made_by, suspended)
    change = RunChange(status="awaiting_client", waiting_for=suspended.waiting_for)
    await plant.house.store.journal.append(run_id, claim.run.epoch, [last], change)
    assert await moments(plant.house.store.journal, await plant.house.store.journal.run(run_id)) == {}
