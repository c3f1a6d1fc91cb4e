"""Cancelling runs: what is under way, what waits, what was only queued, and what another process drives."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from tests.twins import make_definition
from tests.unit.engines.family import Family, other_store
from tests.unit.runs.house import LEASE_S, House, ask, hang, settled
from toolcrib.contracts import CANCEL, Conflict, Json, NotFound, Reason, RunFinished, RunSuspended, SignalReceived
from toolcrib.core.engines import DriveResult, child_run_id
from toolcrib.core.executor import Dispatch, Outcome
from toolcrib.core.runs import RunContext
from toolcrib.infrastructure.store import Journal

pytestmark = pytest.mark.requirement("engines.cancel")


async def writes(context: RunContext) -> Json:
    context.partial = lambda: "so far"
    return (await context.call(ask("a", "act"))).output


async def waits(context: RunContext) -> Json:
    await context.wait_signal("go")
    return "gone on"


async def under_way(house: House) -> "tuple[asyncio.Task[DriveResult], str]":
    """A run that this house drives and that has a write under way."""
    await house.save(make_definition("act", side_effects="writes"))
    driving = asyncio.create_task(house.start())
    await settled()
    (run,) = await house.store.journal.runs("default")
    return driving, run.run_id


async def end_of(house: House, run_id: str) -> RunFinished:
    (end,) = [event for event in await house.events(run_id) if isinstance(event, RunFinished)]
    assert (await house.events(run_id))[-1] is end
    return end


async def test_a_run_under_way_is_stopped_at_once_with_what_it_has_and_who_wanted_it():
    house = House(writes, hang)
    driving, run_id = await under_way(house)

    assert await house.engine.cancel(run_id, by="ann", reason="wrong customer")

    result = (await driving).result
    assert (result.status, result.stop_reason, result.output) == ("cancelled", "cancelled", "so far")
    assert result.error is not None
    assert result.error.reason is Reason.CANCELLED
    assert "'ann': wrong customer" in result.error.message
    (told,) = [event for event in await house.events(run_id) if isinstance(event, SignalReceived)]
    assert (told.name, told.payload, told.made_by) == (CANCEL, {"reason": "wrong customer"}, "ann")
    envelope = (await house.envelopes(run_id))["a"]
    assert envelope.error is not None
    assert envelope.error.reason is Reason.OUTCOME_UNKNOWN
    current = asyncio.current_task()
    assert current is not None
    assert current.cancelling() == driving.cancelling() == 0


async def test_a_run_is_cancelled_once_and_one_that_has_ended_not_at_all():
    house = House(waits)
    run_id = await house.engine.create(await house.request())
    house.able = False  # so nobody drives its program

    assert await house.engine.cancel(run_id, by="ann")
    with pytest.raises(Conflict, match="is cancelled and cannot be cancelled any more"):
        await house.engine.cancel(run_id, by="bob")
    with pytest.raises(NotFound):
        await house.engine.cancel("run_none", by="ann")


async def test_of_two_who_cancel_at_the_same_time_the_first_stands():
    house = House(writes, hang)
    driving, run_id = await under_way(house)

    assert await house.engine.cancel(run_id, by="ann", reason="first")
    assert not await house.engine.cancel(run_id, by="bob", reason="second")

    error = (await driving).result.error
    assert error is not None
    assert "first" in error.message


@pytest.mark.parametrize("waiting", [False, True])
async def test_a_run_that_nobody_drives_is_ended_without_its_program(waiting: bool):
    house = House(waits)
    run_id = await house.engine.create(await house.request())
    if waiting:
        assert (await house.engine.drive(run_id)).result.status == "awaiting_client"

    async def never(_: RunContext) -> Json:
        raise AssertionError

    house.script = never
    assert await house.engine.cancel(run_id, by="ann")

    assert (await end_of(house, run_id)).status == "cancelled"
    assert list(await house.store.journal.claimable(now=house.clock.now(), limit=9)) == []


async def test_a_run_of_another_process_ends_at_that_one_s_next_heartbeat():
    house = House(writes, hang)
    driving, run_id = await under_way(house)
    other = House(writes, other=house, owner="other")

    assert await other.engine.cancel(run_id, by="ann")
    assert not driving.done()
    await house.clock.pass_time(LEASE_S / 3)

    assert (await driving).result.status == "cancelled"
    assert other.dispatched == []


async def test_a_cancelled_run_whose_process_died_is_ended_by_the_one_that_finds_it():
    house = House(writes, hang)
    driving, run_id = await under_way(house)
    survivor = House(writes, other=house, owner="survivor")
    assert await survivor.engine.cancel(run_id, by="ann")
    driving.cancel()
    await asyncio.wait([driving])
    await house.clock.pass_time(LEASE_S + 1)

    (found,) = await survivor.engine.recover()

    assert (found.result.run_id, found.result.status) == (run_id, "cancelled")
    assert survivor.dispatched == []
    assert list(await survivor.envelopes(run_id)) == ["a"]


async def test_a_run_that_is_cancelled_by_a_call_of_its_own_ends():
    async def behaviour(dispatch: Dispatch) -> Outcome:
        await house.engine.cancel(dispatch.context.run_id, by="itself")
        return Outcome("done")

    house = House(writes, behaviour)
    await house.save(make_definition("act"))

    assert (await house.start()).result.status == "cancelled"


class Watched:
    """A journal that lets somebody act at the very moment at which a run was claimed, or began to wait."""

    def __init__(self, inner: Journal) -> None:
        self._inner = inner
        self.claimed = self.suspended = nothing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def claim(self, run_id: str, **fields: Any) -> Any:
        found = await self._inner.claim(run_id, **fields)
        hook, self.claimed = self.claimed, nothing
        await hook(run_id)
        return found

    def append(self, run_id: str, epoch: int, events: Any, change: Any = None) -> Awaitable[None]:
        appended = self._inner.append(run_id, epoch, events, change)
        return appended if change is None or change.result is not None else self._then(appended, run_id)

    async def _then(self, appended: Awaitable[None], run_id: str) -> None:
        await appended
        await self.suspended(run_id)


async def nothing(_: str) -> None:
    """What happens if nobody acts."""


@pytest.mark.parametrize("moment", ["claimed", "suspended"])
async def test_a_run_that_is_cancelled_while_it_is_claimed_or_begins_to_wait_ends(moment: str):
    store = other_store(Watched)
    house = House(waits, store=store)

    async def cancels(run_id: str) -> None:
        assert await house.engine.cancel(run_id, by="ann")

    setattr(store.journal, moment, cancels)
    run_id = await house.engine.create(await house.request())

    assert (await house.engine.drive(run_id)).result.status == "cancelled"
    suspensions = [event for event in await house.events(run_id) if isinstance(event, RunSuspended)]
    assert len(suspensions) == (moment == "suspended")


async def test_nested_runs_end_with_the_run_that_called_them():
    async def child(context: RunContext) -> Json:
        return (await context.call(ask("a", "act"))).output

    family = Family(child, hang)
    await family.prepare()
    driving = asyncio.create_task(family.house.start())
    await settled()
    (parent,) = [run for run in await family.house.store.journal.runs("default") if run.request.depth == 0]

    assert await family.house.engine.cancel(parent.run_id, by="ann")

    assert (await driving).result.status == "cancelled"
    end = await end_of(family.house, child_run_id(parent.run_id, "c1"))
    assert end.status == "cancelled"
    assert end.error is not None
    assert "that called this one has ended" in end.error.message
    assert list(await family.house.envelopes(child_run_id(parent.run_id, "c1"))) == ["a"]


async def test_a_nested_run_that_waits_ends_with_the_waiting_run_that_called_it():
    family = Family(waits)
    parent = await family.start()
    assert parent.status == "awaiting_client"

    assert await family.house.engine.cancel(parent.run_id, by="ann")

    assert (await end_of(family.house, parent.run_id)).status == "cancelled"
    assert (await end_of(family.house, child_run_id(parent.run_id, "c1"))).status == "cancelled"


async def test_a_nested_run_that_is_cancelled_lets_its_caller_go_on():
    family = Family(waits)
    parent = await family.start()

    assert await family.house.engine.cancel(child_run_id(parent.run_id, "c1"), by="ann")
    (ended,) = await family.house.engine.recover()

    assert ended.result.output[:2] == ["cancelled", None]


async def test_somebody_who_also_cancels_the_task_that_drives_is_heard():
    house = House(writes, hang)
    driving, run_id = await under_way(house)

    await house.engine.cancel(run_id, by="ann")
    driving.cancel()

    with pytest.raises(asyncio.CancelledError):
        await driving
    assert (await house.store.journal.run(run_id)).status == "running"


@pytest.mark.requirement("engines.nested_ends")
async def test_a_nested_run_that_is_created_when_its_caller_has_ended_does_not_begin():
    house = House(waits)
    parent = await house.engine.create(await house.request())
    await house.engine.cancel(parent, by="ann")
    late = await house.engine.create(await house.request(parent_run_id=parent))

    ended = (await house.engine.drive(late)).result

    assert (ended.status, ended.tool_calls) == ("cancelled", 0)
    assert ended.error is not None
    assert "that called this one has ended" in ended.error.message


async def test_a_process_that_lost_a_run_while_it_cancels_it_writes_nothing_more():
    house = House(writes, hang)
    driving, run_id = await under_way(house)
    house.clock.advance(LEASE_S + 1)  # nobody wakes: the process does not run
    survivor = House(writes, other=house, owner="survivor")
    assert await survivor.engine.cancel(run_id, by="ann")
    before = await survivor.events(run_id)

    await house.engine.close()
    await house.clock.pass_time(0)
    driving.cancel()
    await asyncio.wait([driving])

    assert (await end_of(survivor, run_id)).status == "cancelled"
    assert await survivor.events(run_id) == before
