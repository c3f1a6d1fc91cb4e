"""Who holds a run: leases, their renewal and loss, processes that were thought dead, and the loop that serves."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, cast

import pytest

from tests.twins import make_definition
from tests.unit.engines.family import other_store
from tests.unit.runs.house import LEASE_S, House, ask, settled
from toolcrib.contracts import Conflict, Fenced, Json, RunResumed, Unavailable
from toolcrib.core.executor import Dispatch, Outcome
from toolcrib.core.runs import RunContext
from toolcrib.infrastructure.store import Journal


async def call_it(context: RunContext) -> Json:
    return (await context.call(ask("a", "act"))).output


class Gate:
    """A tool's behaviour that waits to be let through."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def __call__(self, dispatch: Dispatch) -> Outcome:
        await self.open.wait()
        return Outcome(dispatch.input)


async def frozen_and_survived(behaviour: Gate) -> tuple[House, House, "asyncio.Task[Any]", str]:
    """A process that froze during a call until its lease was over, and the next one."""
    frozen = House(call_it, behaviour)
    await frozen.save(make_definition("act", side_effects="writes", idempotent=True))
    driving = asyncio.create_task(frozen.start())
    await settled()
    (run,) = await frozen.store.journal.runs("default")
    frozen.clock.advance(LEASE_S + 1)  # nobody wakes: the process does not run
    return frozen, House(call_it, other=frozen, owner="survivor"), driving, run.run_id


@pytest.mark.requirement("engines.fencing")
async def test_a_process_that_was_thought_dead_writes_nothing_more():
    gate = Gate()
    frozen, survivor, driving, run_id = await frozen_and_survived(gate)
    driven = await survivor.engine.resume(run_id)
    before = await survivor.events(run_id)

    gate.open.set()
    with pytest.raises(Fenced):
        await driving

    assert driven.result.status == "completed"
    assert await survivor.events(run_id) == before
    assert [event.cause for event in before if isinstance(event, RunResumed)] == ["crash"]
    assert list(await survivor.envelopes(run_id)) == ["a"]
    assert frozen.dispatched == survivor.dispatched == ["a"]


@pytest.mark.requirement("engines.fencing")
async def test_who_resumes_a_run_that_another_process_takes_is_told_its_end_all_the_same():
    gate = Gate()
    frozen = House(call_it, gate)
    await frozen.save(make_definition("act", side_effects="writes", idempotent=True))
    run_id = await frozen.engine.create(await frozen.request())
    resuming = asyncio.create_task(frozen.engine.resume(run_id))
    await settled()
    frozen.clock.advance(LEASE_S + 1)
    survivor = House(call_it, other=frozen, owner="survivor")
    driven = await survivor.engine.resume(run_id)

    gate.open.set()

    assert (await resuming).result == driven.result
    assert frozen.dispatched == survivor.dispatched == ["a"]


@pytest.mark.requirement("engines.fencing")
async def test_a_fenced_run_stops_everything_it_had_under_way():
    gate = Gate()
    stopped: list[str] = []

    async def behaviour(dispatch: Dispatch) -> Outcome:
        if dispatch.position == "a":
            return await gate(dispatch)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            stopped.append(dispatch.position)
        raise AssertionError

    async def script(context: RunContext) -> Json:
        first, _ = context.call(ask("a", "act")), context.call(ask("b", "act"))
        return (await first).output

    frozen = House(script, behaviour)
    await frozen.save(make_definition("act", side_effects="writes", idempotent=True))
    driving = asyncio.create_task(frozen.start())
    await settled()
    (run,) = await frozen.store.journal.runs("default")
    frozen.clock.advance(LEASE_S + 1)
    await House(script, other=frozen, owner="survivor").engine.resume(run.run_id)
    gate.open.set()

    with pytest.raises(Fenced):
        await driving
    assert stopped == ["b"]


@pytest.mark.requirement("engines.leases")
async def test_a_lease_is_renewed_as_long_as_the_run_is_driven():
    gate = Gate()
    house = House(call_it, gate)
    await house.save(make_definition("act"))
    driving = asyncio.create_task(house.start())
    await settled()
    (run,) = await house.store.journal.runs("default")
    other = House(call_it, other=house, owner="other")
    for _ in range(10):
        await house.clock.pass_time(LEASE_S / 3)
        with pytest.raises(Conflict, match="another process drives it"):
            await other.engine.drive(run.run_id)

    gate.open.set()
    assert (await driving).result.status == "completed"
    naps = len(house.clock.naps)
    await house.clock.pass_time(LEASE_S)
    await house.clock.pass_time(LEASE_S)
    assert len(house.clock.naps) == naps


@pytest.mark.requirement("engines.leases", "engines.fencing")
async def test_a_run_whose_lease_was_lost_is_stopped_and_its_caller_told():
    gate = Gate()
    frozen, survivor, driving, run_id = await frozen_and_survived(gate)
    taken = asyncio.create_task(survivor.engine.resume(run_id))
    await settled()

    await frozen.clock.pass_time(0)  # it wakes, and looks after its leases

    with pytest.raises(Fenced, match="raise lease_s"):
        await driving
    assert not driving.cancelled()
    assert (await taken).result.status == "completed"


@pytest.mark.requirement("engines.leases")
async def test_a_store_that_is_away_for_a_moment_costs_no_lease():
    class Flaky:
        def __init__(self, inner: Journal) -> None:
            self.inner = inner
            self.away = False

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        async def renew(self, run_ids: Sequence[str], *, owner: str, now: datetime, lease_s: float) -> Sequence[str]:
            if self.away:
                raise Unavailable("away")
            return await self.inner.renew(run_ids, owner=owner, now=now, lease_s=lease_s)

    store, gate = other_store(Flaky), Gate()
    house = House(call_it, gate, store=store)
    await house.save(make_definition("act"))
    driving = asyncio.create_task(house.start())
    await settled()
    (run,) = await house.store.journal.runs("default")
    for away in (True, False, True, False):
        cast("Any", store.journal).away = away
        await house.clock.pass_time(LEASE_S / 3)

    with pytest.raises(Conflict):
        await House(call_it, other=house, owner="other").engine.drive(run.run_id)
    gate.open.set()
    assert (await driving).result.status == "completed"
    await house.engine.close()


@pytest.mark.requirement("engines.one_task")
async def test_a_process_does_not_drive_a_run_twice_at_once():
    gate = Gate()
    house = House(call_it, gate)
    await house.save(make_definition("act", side_effects="writes"))
    run_id = await house.engine.create(await house.request())
    driving = asyncio.create_task(house.engine.drive(run_id))
    await settled()

    with pytest.raises(Conflict, match="resume it to wait for its end"):
        await house.engine.drive(run_id)
    waiting = asyncio.create_task(house.engine.resume(run_id))
    await settled()
    gate.open.set()
    ended = await driving
    await house.clock.pass_time(1)

    assert (await waiting).result == ended.result
    assert house.dispatched == ["a"]


@pytest.mark.requirement("engines.resume")
async def test_resuming_waits_until_the_lease_of_a_dead_process_is_over():
    gate = Gate()
    house = House(call_it, gate)
    await house.save(make_definition("act"))
    dying = asyncio.create_task(house.start())
    await settled()
    (run,) = await house.store.journal.runs("default")
    dying.cancel()
    await asyncio.wait([dying])
    heir = House(call_it, other=house, owner="heir")
    resuming = asyncio.create_task(heir.engine.resume(run.run_id))
    await settled()
    assert heir.dispatched == []

    for _ in range(100):
        await house.clock.pass_time(0.5)

    assert (await resuming).result.output == {}
    assert heir.dispatched == ["a"]


@asynccontextmanager
async def serving(house: House) -> AsyncGenerator["asyncio.Task[None]"]:
    """The house's engine, serving until the end of the block."""
    task = asyncio.create_task(house.engine.serve())
    await settled()
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def wait_for_go(context: RunContext) -> Json:
    await context.wait_signal("go")
    return "gone"


@pytest.mark.requirement("engines.serve")
async def test_a_serving_engine_goes_on_with_runs_that_were_queued_woken_or_left_behind():
    async def by_input(context: RunContext) -> Json:
        if context.request.input == "woken":
            return await wait_for_go(context)
        if context.request.input == "asleep":
            await context.sleep("nap", 60)
        return "done"

    house = House(by_input)
    woken = (await house.start(input="woken")).result.run_id
    asleep = (await house.start(input="asleep")).result.run_id
    left = await house.engine.create(await house.request(input="left"))
    await house.store.journal.claim(left, owner="dead", now=house.clock.now(), lease_s=LEASE_S)
    queued = await house.engine.create(await house.request(input="queued"))

    async def status(run_id: str) -> str:
        return (await house.store.journal.run(run_id)).status

    async with serving(house):
        assert await status(queued) == "completed"
        assert await status(left) == "running"
        await house.signal(woken, "go")
        await house.clock.pass_time(1)
        assert await status(woken) == "completed"
        await house.clock.pass_time(LEASE_S)
        assert await status(left) == "completed"
        assert await status(asleep) == "awaiting_client"
        await house.clock.pass_time(60)
        assert await status(asleep) == "completed"


@pytest.mark.requirement("engines.serve")
async def test_a_serving_engine_leaves_a_run_alone_that_it_is_driving():
    gate = Gate()
    house = House(call_it, gate)
    await house.save(make_definition("act"))
    async with serving(house):
        driving = asyncio.create_task(house.start())
        await settled()
        house.clock.advance(LEASE_S + 1)
        await house.clock.pass_time(1)
        gate.open.set()
        assert (await driving).result.status == "completed"
    assert house.dispatched == ["a"]


@pytest.mark.requirement("engines.serve")
async def test_an_engine_that_stops_serving_stops_what_it_drives():
    house = House(call_it, Gate())
    await house.save(make_definition("act"))
    run_id = await house.engine.create(await house.request())
    async with serving(house):
        assert house.dispatched == ["a"]

    assert (await house.store.journal.run(run_id)).status == "running"
    await house.engine.close()
    await house.clock.pass_time(LEASE_S + 1)
    assert (await House(call_it, other=house, owner="heir").engine.resume(run_id)).result.output == {}


@pytest.mark.requirement("engines.serve")
async def test_a_serving_engine_outlives_a_store_that_is_away_and_runs_that_others_take():
    class Flaky:
        def __init__(self, inner: Journal) -> None:
            self.inner = inner
            self.away = True
            self.lists = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        async def claimable(self, *, now: datetime, limit: int) -> Sequence[str]:
            self.lists += 1
            if self.away:
                raise Unavailable("away")
            return [*await self.inner.claimable(now=now, limit=limit), "taken"]

        async def run(self, run_id: str) -> Any:
            if run_id == "taken":
                raise Conflict("another process was quicker")
            return await self.inner.run(run_id)

    store = other_store(Flaky)
    house = House(wait_for_go, store=store)
    run_id = (await house.start()).result.run_id
    await house.signal(run_id, "go")
    async with serving(house) as task:
        cast("Any", store.journal).away = False
        await house.clock.pass_time(1)
        await house.clock.pass_time(1)
        assert not task.done()

    assert (await house.store.journal.run(run_id)).status == "completed"


@pytest.mark.requirement("engines.able")
async def test_a_process_that_lacks_what_a_run_needs_leaves_it_to_another_one():
    house = House(wait_for_go)
    run_id = (await house.start()).result.run_id
    await house.signal(run_id, "go")
    house.able = False
    with pytest.raises(Unavailable):
        await house.engine.resume(run_id)
    async with serving(house) as task:
        await house.clock.pass_time(1)
        assert not task.done()
    assert (await house.store.journal.run(run_id)).status == "queued"

    assert (await House(wait_for_go, other=house, owner="able").engine.resume(run_id)).result.output == "gone"


@pytest.mark.requirement("engines.able")
async def test_runs_that_a_process_cannot_drive_keep_none_from_it_that_it_can_however_many_they_are():
    house = House(call_it, max_runs=2)
    await house.save(make_definition("act"))
    foreign = [await house.engine.create(await house.request()) for _ in range(5)]
    house.foreign = set(foreign)
    house.clock.advance(1)
    own = await house.engine.create(await house.request())
    async with serving(house):
        for _ in range(3):
            await house.clock.pass_time(1)
        assert (await house.store.journal.run(own)).status == "completed"

        house.foreign = set()
        for _ in range(3):
            await house.clock.pass_time(1)

    assert {(await house.store.journal.run(run_id)).status for run_id in foreign} == {"completed"}


@pytest.mark.requirement("engines.recover")
async def test_recovering_drives_what_can_go_on_and_tells_how_it_stands():
    house = House(wait_for_go)
    first = (await house.start()).result.run_id
    second = (await house.start()).result.run_id
    await house.signal(first, "go")
    third = await house.engine.create(await house.request())

    driven = await house.engine.recover()

    assert {found.result.run_id: found.result.status for found in driven} == {
        first: "completed",
        third: "awaiting_client",
    }
    assert (await house.store.journal.run(second)).status == "awaiting_client"
    assert await house.engine.recover() == []


@pytest.mark.requirement("engines.close")
async def test_a_closed_engine_holds_no_lease_and_can_be_closed_twice():
    house = House(call_it, Gate())
    await house.save(make_definition("act"))
    driving = asyncio.create_task(house.start())
    await settled()

    await house.engine.close()
    await house.engine.close()
    await house.clock.pass_time(LEASE_S + 1)

    assert len(await house.store.journal.claimable(now=house.clock.now(), limit=10)) == 1
    driving.cancel()
    await asyncio.wait([driving])
