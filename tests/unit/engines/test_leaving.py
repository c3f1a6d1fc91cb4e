"""A process that is about to stop, and one that woke up late: what they leave to others."""

import asyncio
from typing import Any

import pytest

from tests.twins import make_definition
from tests.unit.engines.family import Family
from tests.unit.engines.test_ownership import Gate
from tests.unit.runs.house import LEASE_S, House, ask, settled
from toolcrib.contracts import Fenced, Json, RunResumed, RunSuspended
from toolcrib.core.executor import Dispatch, Outcome
from toolcrib.core.runs import RunContext

pytestmark = pytest.mark.requirement("leaving.queued")

GRACE_S = 5.0


async def two_calls(context: RunContext) -> Json:
    first = await context.call(ask("a", "act"))
    second = await context.call(ask("b", "act"))
    return [first.output, second.output]


async def begun(house: House) -> tuple["asyncio.Task[Any]", str]:
    """A run that is in the middle of its first call."""
    driving = asyncio.create_task(house.start())
    await settled()
    (run,) = await house.store.journal.runs("default")
    return driving, run.run_id


async def test_a_run_is_left_when_its_call_has_ended_and_goes_on_at_once_elsewhere():
    gate = Gate()
    house = House(two_calls, gate)
    await house.save(make_definition("act", side_effects="writes"))
    driving, run_id = await begun(house)
    leaving = asyncio.create_task(house.engine.drain(GRACE_S))
    await settled()
    gate.open.set()

    assert (await driving).result.status == "queued"
    await house.clock.pass_time(1)
    assert await leaving == []
    other = House(two_calls, other=house, owner="next")
    driven = await other.engine.drive(run_id)

    assert driven.result.status == "completed"
    assert house.dispatched == ["a"]
    assert other.dispatched == ["b"]
    events = await other.events(run_id)
    assert [event.status for event in events if isinstance(event, RunSuspended)] == ["queued"]
    assert [event.cause for event in events if isinstance(event, RunResumed)] == ["shutdown"]


async def test_nothing_is_begun_once_a_process_is_about_to_stop():
    house = House(two_calls)
    await house.save(make_definition("act", side_effects="writes"))
    run_id = await house.engine.create(await house.request())
    await house.engine.drain(GRACE_S)

    house.engine.begin(run_id)
    started = await house.start()
    resumed = await house.engine.resume(run_id)

    assert house.dispatched == []
    assert started.result.status == resumed.result.status == "queued"
    other = House(two_calls, other=house, owner="next")
    assert {driven.result.status for driven in await other.engine.recover()} == {"completed"}
    assert other.dispatched == ["a", "a", "b", "b"]


@pytest.mark.requirement("leaving.nested")
async def test_a_nested_run_is_left_with_its_caller_and_both_go_on_elsewhere():
    gate = Gate()

    async def child(context: RunContext) -> Json:
        return await two_calls(context)

    family = Family(child, gate)
    await family.prepare()
    driving = asyncio.create_task(family.house.start())
    await settled()
    leaving = asyncio.create_task(family.house.engine.drain(GRACE_S))
    await settled()
    gate.open.set()
    left = await driving
    await family.house.clock.pass_time(1)
    await leaving

    other = Family(child, other=family, owner="next")
    driven = await other.house.engine.drive(left.result.run_id)

    assert left.result.status == "queued"
    assert driven.result.status == "completed"
    assert driven.result.output[0] == "completed"
    assert family.house.dispatched == ["a"]
    assert other.house.dispatched == ["b"]


@pytest.mark.requirement("leaving.cut_off")
@pytest.mark.parametrize(("effects", "status"), [("reads", "queued"), ("writes", "running")])
async def test_what_does_not_end_in_time_is_cut_off_and_queued_unless_it_is_an_effect(effects: Any, status: str):
    gate = Gate()
    house = House(two_calls, gate)
    await house.save(make_definition("act", side_effects=effects))
    run_id = await house.engine.create(await house.request())
    house.engine.begin(run_id)
    await settled()
    leaving = asyncio.create_task(house.engine.drain(GRACE_S))
    await settled()
    await house.clock.pass_time(GRACE_S)
    assert await leaving == [run_id]

    await house.engine.close()

    assert (await house.store.journal.run(run_id)).status == status
    other = House(two_calls, other=house, owner="next")
    if status == "running":
        assert await other.engine.recover() == []
        other.clock.advance(LEASE_S + 1)
    (driven,) = await other.engine.recover()
    assert driven.result.status == "completed"
    assert other.dispatched == (["a", "b"] if effects == "reads" else ["b"])


@pytest.mark.requirement("leaving.waiting")
async def test_a_run_that_waits_is_not_touched_and_one_that_works_beside_a_wait_is_left():
    gate = Gate()

    async def waits_and_works(context: RunContext) -> Json:
        waiting, working = context.start(context.wait_signal("go")), context.call(ask("a", "act"))
        await context.wait_all([waiting, working])  # pyright: ignore[reportArgumentType] - of two kinds
        return "went"

    house = House(waits_and_works, gate)
    await house.save(make_definition("act"))
    driving, run_id = await begun(house)
    leaving = asyncio.create_task(house.engine.drain(GRACE_S))
    await settled()
    gate.open.set()
    left = await driving
    await house.clock.pass_time(1)
    await leaving

    assert left.result.status in {"queued", "awaiting_client"}
    other = House(waits_and_works, other=house, owner="next")
    await other.signal(run_id, "go")
    assert (await other.engine.resume(run_id)).result.output == "went"


@pytest.mark.requirement("leaving.fence")
async def test_a_process_that_wakes_late_makes_no_effect_if_another_one_has_the_run():
    slow = asyncio.Event()

    async def looks_then_acts(context: RunContext) -> Json:
        await context.once("thought", "thinking", thinking)
        return (await context.call(ask("a", "act"))).output

    async def thinking() -> Json:
        await slow.wait()
        return None

    frozen = House(looks_then_acts)
    await frozen.save(make_definition("act", side_effects="writes"))
    driving, run_id = await begun(frozen)
    frozen.clock.advance(LEASE_S + 1)

    async def at_once(context: RunContext) -> Json:
        return (await context.call(ask("a", "act"))).output

    survivor = House(at_once, other=frozen, owner="survivor")
    await survivor.engine.resume(run_id)
    slow.set()

    with pytest.raises(Fenced):
        await driving
    assert frozen.dispatched == []
    assert survivor.dispatched == ["a"]


@pytest.mark.requirement("leaving.fence")
async def test_a_process_that_wakes_late_goes_on_if_nobody_has_taken_the_run():
    dispatched: list[str] = []

    async def behaviour(dispatch: Dispatch) -> Outcome:
        dispatched.append(dispatch.position)
        house.clock.advance(LEASE_S + 1)
        return Outcome(None)

    house = House(two_calls, behaviour)
    await house.save(make_definition("act", side_effects="writes"))

    driven = await house.start()

    assert driven.result.status == "completed"
    assert dispatched == ["a", "b"]


@pytest.mark.requirement("leaving.fence")
async def test_a_run_that_is_taken_between_intent_and_effect_has_no_effect_here():
    house = House(two_calls)
    await house.save(make_definition("act", side_effects="writes"))
    survivors: list[House] = []
    journal: Any = house.store.journal
    renew = journal.renew

    async def taken_first(*args: Any, **more: Any) -> Any:
        if not survivors:
            survivors.append(House(two_calls, other=house, owner="survivor"))
            (run,) = await journal.runs("default")
            await survivors[0].engine.resume(run.run_id)
        return await renew(*args, **more)

    append = journal.append

    def late(run_id: str, epoch: int, events: Any, change: Any = None) -> Any:
        if events and events[0].event.type == "call_started" and not survivors:
            house.clock.advance(LEASE_S + 1)
        return append(run_id, epoch, events, change)

    journal.renew, journal.append = taken_first, late

    with pytest.raises(Fenced, match="lease of run"):
        await house.start()
    assert house.dispatched == []
