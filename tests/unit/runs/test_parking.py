"""A part of a run that waits for somebody goes on while other parts work, and gives up when none does any more."""

import asyncio
from collections.abc import Collection
from decimal import Decimal

import pytest

from tests.twins import ManualClock, echo, make_definition
from tests.unit.runs.house import House, ask, settled
from toolcrib.contracts import (
    OWNER,
    ApprovalDecided,
    ApprovalRequested,
    Json,
    RunFinished,
    RunResumed,
    RunSuspended,
    Unavailable,
    approval_signal,
)
from toolcrib.core.engines import DriveResult
from toolcrib.core.executor import Dispatch, Outcome
from toolcrib.core.runs import RunContext, Suspended, client_signal, decision_on
from toolcrib.core.runs.context.pending import LOOK_S, Suspension

pytestmark = pytest.mark.requirement("workflow_running.parked")


class Long:
    """A call named `long` works until it is told to end; all others are quick."""

    def __init__(self) -> None:
        self.ends = asyncio.Event()

    async def __call__(self, dispatch: Dispatch) -> Outcome:
        if dispatch.position == "long":
            await self.ends.wait()
        return echo(dispatch)


def beside(position: str, name: str):
    """A program with a long branch, and one that makes a call which waits, and then another one."""

    async def branch(context: RunContext) -> Json:
        found = await context.call(ask(position, name, n=1))
        return [found.output, (await context.call(ask("after"))).output]

    async def script(context: RunContext) -> Json:
        first, second = context.start(branch(context)), context.call(ask("long"))
        await context.wait_all([first])
        return [first.result(), (await second).output]

    return script


async def begun(house: House) -> tuple["asyncio.Task[DriveResult]", str]:
    driving = asyncio.create_task(house.start())
    await settled()
    (run,) = await house.store.journal.runs(OWNER.realm, status="running")
    return driving, run.run_id


async def approve(house: House, run_id: str, position: str) -> None:
    (asked,) = [
        event
        for event in await house.events(run_id)
        if isinstance(event, ApprovalRequested) and event.position == position
    ]
    decision = decision_on(asked, approve=True, edited_input=None, reason=None)
    await house.signal(run_id, approval_signal(position), decision.model_dump(mode="json"))


async def test_an_approved_call_is_made_while_another_branch_still_works():
    work = Long()
    house = House(beside("asked", "confirmed"), work)
    await house.save()
    await house.save(make_definition("confirmed", requires_confirmation=True))
    driving, run_id = await begun(house)
    assert house.dispatched == ["long"]

    await approve(house, run_id, "asked")
    await house.clock.pass_time(LOOK_S)
    assert house.dispatched == ["long", "asked", "after"]

    work.ends.set()
    assert (await driving).result.output == [[{"n": 1}, {}], {}]
    events = await house.events(run_id)
    assert not [event for event in events if isinstance(event, RunSuspended | RunResumed)]
    assert len([event for event in events if isinstance(event, ApprovalDecided)]) == 1


async def test_when_the_last_working_branch_ends_the_run_is_suspended_without_any_time_passing():
    work = Long()
    house = House(beside("asked", "confirmed"), work)
    await house.save()
    await house.save(make_definition("confirmed", requires_confirmation=True))
    driving, run_id = await begun(house)

    work.ends.set()
    driven = await driving
    assert driven.result.status == "awaiting_approval"
    assert house.dispatched == ["long"]

    await approve(house, run_id, "asked")
    assert (await house.engine.resume(run_id)).result.output == [[{"n": 1}, {}], {}]


async def test_what_a_client_brings_is_taken_up_at_once_and_counted_once():
    work = Long()
    house = House(beside("handed", "client"), work)
    await house.save()
    await house.save(make_definition("client", runs_on="client", cost_usd_per_call=Decimal("0.5")))
    driving, run_id = await begun(house)
    assert house.dispatched == ["long", "handed"]

    await house.signal(run_id, client_signal("handed"), {"output": {"done": True}})
    await house.clock.pass_time(LOOK_S)
    assert house.dispatched == ["long", "handed", "after"]

    work.ends.set()
    driven = await driving
    assert driven.result.output == [[{"done": True}, {}], {}]
    assert (driven.result.tool_calls, driven.result.cost_usd) == (3, Decimal("0.5"))


async def test_a_call_that_waits_for_a_client_when_the_run_is_suspended_is_counted_once_too():
    work = Long()
    house = House(beside("handed", "client"), work)
    await house.save()
    await house.save(make_definition("client", runs_on="client", cost_usd_per_call=Decimal("0.5")))
    driving, run_id = await begun(house)
    work.ends.set()
    assert (await driving).result.status == "awaiting_client"

    await house.signal(run_id, client_signal("handed"), {"output": 2})
    driven = await house.engine.resume(run_id)
    assert (driven.result.tool_calls, driven.result.cost_usd) == (3, Decimal("0.5"))


async def test_a_time_that_comes_while_another_branch_works_is_kept_to_the_moment():
    async def sleeper(context: RunContext) -> Json:
        await context.sleep("nap", 2.5)
        return (await context.call(ask("after"))).output

    async def script(context: RunContext) -> Json:
        sleeping, long = context.start(sleeper(context)), context.call(ask("long"))
        return [await sleeping, (await long).output]

    work = Long()
    house = House(script, work)
    await house.save()
    driving, _ = await begun(house)
    await house.clock.pass_time(1)
    await house.clock.pass_time(1)
    assert house.dispatched == ["long"]
    await house.clock.pass_time(0.5)
    assert house.dispatched == ["long", "after"]
    work.ends.set()
    assert (await driving).result.status == "completed"


async def test_a_signal_wakes_the_branch_that_waits_for_it_and_no_other():
    async def branch(context: RunContext, name: str) -> Json:
        signal = await context.wait_signal(name)
        await context.call(ask(f"after {name}"))
        return None if signal is None else signal.payload

    async def script(context: RunContext) -> Json:
        parts = [context.start(branch(context, name)) for name in ("one", "two")]
        long = context.call(ask("long"))
        await context.wait_all([*parts])
        return [*[part.result() for part in parts], (await long).output]

    work = Long()
    house = House(script, work)
    await house.save()
    driving, run_id = await begun(house)
    await house.signal(run_id, "two", {"n": 2})
    await house.clock.pass_time(LOOK_S)
    assert house.dispatched == ["long", "after two"]

    work.ends.set()
    driven = await driving
    assert isinstance(driven.log[-1].event, RunSuspended)
    assert driven.log[-1].event.waiting_for == ("one",)
    await house.signal(run_id, "one", {"n": 1})
    assert (await house.engine.resume(run_id)).result.output == [{"n": 1}, {"n": 2}, {}]


async def test_parts_that_are_awaited_together_wait_before_one_of_them_fails_the_run():
    async def fails() -> Json:
        raise ValueError("broken")

    async def script(context: RunContext) -> Json:
        parts = [context.start(fails()), context.start(context.wait_signal("go"))]
        await context.wait_all([*parts])
        raise AssertionError

    house = House(script)
    await house.save()
    driven = await house.start()
    assert driven.result.status == "awaiting_client"

    await house.signal(driven.result.run_id, "go", {})
    ended = (await house.engine.resume(driven.result.run_id)).result
    assert ended.status == "failed"
    assert ended.error is not None
    assert "broken" in ended.error.message


async def test_a_program_can_give_up_all_that_waits_and_go_on():
    async def script(context: RunContext) -> Json:
        waits = context.start(context.wait_signal("never"))
        await context.call(ask("quick"))
        context.stop_waiting()
        try:
            await waits
        except Suspended as given_up:
            return [*given_up.signals]
        raise AssertionError

    house = House(script)
    await house.save()
    driven = await house.start()
    assert (driven.result.status, driven.result.output) == ("completed", ["never"])
    assert isinstance(driven.log[-1].event, RunFinished)


async def test_looks_go_on_when_the_store_is_away_for_a_moment():
    looks: list[int] = []

    async def arrived() -> Collection[str]:
        looks.append(1)
        if len(looks) == 1:
            raise Unavailable("the store is away")
        return {"go"} if len(looks) > 2 else ()

    tries: list[int] = []

    async def work() -> str:
        tries.append(1)
        if len(looks) < 3:
            raise Suspended("awaiting_client", "go")
        return "went"

    parking = Suspension(ManualClock(), arrived)
    parking.begin()
    assert await parking.through(work) == "went"
    assert (len(looks), len(tries)) == (3, 2)


async def test_what_is_cancelled_while_it_is_parked_leaves_no_trace():
    async def arrived() -> Collection[str]:
        raise AssertionError

    async def waits() -> None:
        raise Suspended("awaiting_client", "never")

    clock = House(lambda context: settled()).clock
    parking = Suspension(clock, arrived)
    parking.begin()
    parked = asyncio.create_task(parking.through(waits))
    await settled()
    parked.cancel()
    await asyncio.wait([parked])
    await settled()
    parking.end()
    with pytest.raises(Suspended):
        await parking.through(waits)
