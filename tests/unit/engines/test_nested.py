"""Runs that start runs: waits, crashes and ends on both levels."""

import asyncio
from datetime import datetime
from decimal import Decimal

import pytest

from tests.unit.engines.family import Family, acts
from tests.unit.runs.house import LEASE_S, ask, hang, settled
from toolcrib.contracts import ChildStarted, Conflict, Fenced, Json, Reason, RunResumed
from toolcrib.contracts.runs.runs import CostBounds
from toolcrib.core.engines import DriveResult, child_run_id
from toolcrib.core.executor import Dispatch, Outcome
from toolcrib.core.runs import ModelCall, RunContext, Suspended
from toolcrib.infrastructure.store import Claim
from toolcrib.llm import Request, ScriptedModel, user


async def acts_when_told(context: RunContext) -> Json:
    await context.call(ask("a", "act"))
    await context.wait_signal("go")
    return "acted"


async def driven_elsewhere(gate: asyncio.Event, outcome: Outcome) -> tuple[Family, str, asyncio.Task[DriveResult]]:
    """A family, the id of its run, and how another process drives the nested run: up to a call that needs the gate."""

    async def gated(dispatch: Dispatch) -> Outcome:
        await gate.wait()
        return outcome

    family = Family(acts_when_told, gated)
    gate.set()
    parent = await family.start()
    child_id = child_run_id(parent.run_id, "c1")
    gate.clear()

    async def acts_again(context: RunContext) -> Json:
        await context.wait_signal("go")
        return (await context.call(ask("b", "act"))).output

    other = Family(acts_again, gated, other=family, owner="other")
    await family.house.signal(child_id, "go")
    driving = asyncio.create_task(other.house.engine.resume(child_id))
    await settled()
    await family.house.signal(parent.run_id, f"child:{child_id}")
    return family, parent.run_id, driving


@pytest.mark.requirement("engines.nested")
async def test_a_nested_run_has_a_journal_of_its_own_and_draws_on_its_parent_s_budget():
    family = Family(acts)
    parent = await family.start()

    assert parent.output == ["completed", "acted", "0.25", 1]
    child_id = child_run_id(parent.run_id, "c1")
    child = await family.house.store.journal.run(child_id)
    request = child.request
    assert (request.parent_run_id, request.parent_position, request.depth) == (parent.run_id, "c1", 1)
    assert (request.input, child.output) == ({"task": "it"}, "acted")
    (started,) = [event for event in await family.house.events(parent.run_id) if isinstance(event, ChildStarted)]
    assert (started.child_run_id, started.tool) == (child_id, "agent@1.0.0")
    assert (parent.cost_usd, parent.tool_calls) == (Decimal("0.25"), 1)


@pytest.mark.requirement("engines.nested", "engines.nested_waits")
async def test_a_parent_waits_with_its_child_and_goes_on_when_the_child_has_ended():
    family = Family(acts_when_told)
    parent = await family.start()
    assert parent.status == "awaiting_client"
    child_id = child_run_id(parent.run_id, "c1")
    assert (await family.house.engine.resume(parent.run_id)).result.status == "awaiting_client"

    await family.house.signal(child_id, "go")
    ended = (await family.house.engine.resume(child_id)).result
    assert (ended.status, ended.cost_usd) == ("completed", Decimal("0.25"))
    (parent_again,) = await family.house.engine.recover()

    assert parent_again.result.output == ["completed", "acted", "0.25", 1]
    assert family.house.dispatched == ["a"]
    kinds = [event.type for event in await family.house.events(parent.run_id)]
    assert kinds.count("child_started") == 1


@pytest.mark.requirement("engines.nested_waits")
async def test_resuming_the_parent_resumes_the_child_that_can_go_on():
    family = Family(acts_when_told)
    parent = await family.start()
    await family.house.signal(child_run_id(parent.run_id, "c1"), "go")

    assert (await family.house.engine.resume(parent.run_id)).result.output == ["completed", "acted", "0.25", 1]


@pytest.mark.requirement("engines.nested_crash")
async def test_one_process_that_recovers_parent_and_child_at_once_brings_both_to_their_end():
    async def lasting(context: RunContext) -> Json:
        await settled()
        return await acts(context)

    family = Family(lasting, hang)
    await family.prepare()
    dying = asyncio.create_task(family.house.start())
    await settled()
    await settled()
    (parent_id,) = [
        run.run_id
        for run in await family.house.store.journal.runs("default")
        if run.status == "running" and run.request.parent_run_id is None
    ]
    dying.cancel()
    await asyncio.wait([dying])
    await family.house.clock.pass_time(LEASE_S + 1)
    heir = Family(lasting, other=family, owner="heir")

    recovering = asyncio.create_task(heir.house.engine.recover())
    for _ in range(5):
        await heir.house.clock.pass_time(1)
    assert {found.result.status for found in await recovering} == {"completed"}

    parent = await heir.house.store.journal.run(parent_id)
    child = await heir.house.store.journal.run(child_run_id(parent_id, "c1"))
    assert (parent.status, child.status) == ("completed", "completed")
    assert heir.house.dispatched == []
    found = await heir.house.envelopes(child.run_id)
    assert found["a"].error is not None
    assert found["a"].error.reason is Reason.OUTCOME_UNKNOWN


@pytest.mark.requirement("engines.nested_crash")
async def test_a_parent_that_is_taken_before_its_child_s_lease_is_over_waits_for_that():
    family = Family(acts_when_told)
    parent_id = (await family.start()).run_id
    child_id = child_run_id(parent_id, "c1")
    journal, clock = family.house.store.journal, family.house.clock
    await family.house.signal(child_id, "go")
    assert await journal.claim(child_id, owner="dead", now=clock.now(), lease_s=LEASE_S)
    await family.house.signal(parent_id, f"child:{child_id}")

    resuming = asyncio.create_task(family.house.engine.resume(parent_id))
    await clock.pass_time(LEASE_S - 1)
    assert not resuming.done()
    await clock.pass_time(1)

    assert (await resuming).result.output == ["completed", "acted", "0.25", 1]


@pytest.mark.requirement("engines.nested_crash")
async def test_a_parent_whose_child_another_process_drives_waits_for_it():
    gate = asyncio.Event()
    family, parent_id, driving = await driven_elsewhere(gate, Outcome("acted"))
    resuming = asyncio.create_task(family.house.engine.resume(parent_id))
    await settled()
    gate.set()
    assert (await driving).result.status == "completed"
    for _ in range(5):
        await family.house.clock.pass_time(1)

    assert (await resuming).result.status == "completed"


@pytest.mark.requirement("engines.nested_crash")
async def test_what_a_child_has_spent_counts_also_if_it_ends_while_its_parent_wants_to_take_it():
    gate = asyncio.Event()
    family, parent_id, driving = await driven_elsewhere(gate, Outcome("acted", cost_usd=Decimal("0.25")))
    child_id = child_run_id(parent_id, "c1")
    journal = family.house.store.journal
    claim = journal.claim

    async def claim_as_it_ends(run_id: str, *, owner: str, now: datetime, lease_s: float) -> Claim | None:
        if run_id == child_id:
            gate.set()
            await driving
        return await claim(run_id, owner=owner, now=now, lease_s=lease_s)

    journal.claim = claim_as_it_ends
    ended = (await family.house.engine.resume(parent_id)).result
    child = (await driving).result

    assert (ended.status, child.cost_usd) == ("completed", Decimal("0.50"))
    assert (ended.cost_usd, ended.tool_calls) == (child.cost_usd, child.tool_calls)


@pytest.mark.requirement("engines.nested_ends")
async def test_a_nested_run_whose_parent_has_ended_is_cancelled_with_what_it_had_spent():
    model = ScriptedModel(["It is so."])

    async def asks_and_waits(context: RunContext) -> Json:
        request = Request(messages=(user("Is it so?"),), max_tokens=10)
        await context.model(ModelCall("llm", "answer", model, request))
        pending = context.call(ask("open", "act"))
        await context.call(ask("a", "act"))
        await pending
        return None

    async def behaviour(dispatch: Dispatch) -> Outcome:
        return await hang(dispatch) if dispatch.position == "open" else Outcome(1)

    family = Family(asks_and_waits, behaviour)
    await family.prepare()
    dying = asyncio.create_task(family.house.start())
    for _ in range(5):
        await settled()
    parent_id = next(
        run.run_id
        for run in await family.house.store.journal.runs("default")
        if run.status == "running" and run.request.parent_run_id is None
    )
    dying.cancel()
    await asyncio.wait([dying])
    await family.house.clock.pass_time(LEASE_S + 1)

    async def gives_up(context: RunContext) -> Json:
        raise KeyError("x")

    heir = Family(asks_and_waits, other=family, owner="heir")
    heir.house.script = gives_up
    parent = (await heir.house.engine.resume(parent_id)).result

    assert parent.status == "failed"
    child_id = child_run_id(parent_id, "c1")
    child = (await heir.house.engine.drive(child_id)).result
    assert (child.status, child.stop_reason, child.cost_usd) == ("cancelled", "cancelled", Decimal("0.25"))
    assert child.cut_off == CostBounds(upper_usd=Decimal("0.25"))  # the call that a process died over
    assert child.usage.total_tokens > 0
    assert child.error is not None
    assert child.error.reason is Reason.CANCELLED
    found = await heir.house.envelopes(child_id)
    assert found["open"].error is not None
    assert found["open"].error.reason is Reason.OUTCOME_UNKNOWN
    assert heir.house.dispatched == []


@pytest.mark.requirement("engines.nested_crash", "engines.fencing")
async def test_a_parent_whose_child_was_taken_stops_too():
    gate = asyncio.Event()

    async def gated(dispatch: Dispatch) -> Outcome:
        await gate.wait()
        return Outcome("acted")

    family = Family(acts, gated)
    await family.prepare()
    driving = asyncio.create_task(family.house.start())
    for _ in range(3):
        await settled()
    child = next(
        run for run in await family.house.store.journal.runs("default") if run.request.parent_run_id is not None
    )
    family.house.clock.advance(LEASE_S + 1)
    assert await family.house.store.journal.claim(child.run_id, owner="x", now=family.house.clock.now(), lease_s=99)
    gate.set()

    with pytest.raises(Fenced):
        await driving
    assert not [event for event in await family.house.events(child.run_id) if isinstance(event, RunResumed)]


@pytest.mark.requirement("engines.nested_waits")
async def test_a_parent_whose_answer_comes_while_its_child_is_claimed_takes_the_child_with_it():
    family = Family(acts_when_told)

    async def waits_for_both(context: RunContext) -> Json:
        if context.request.parent_run_id is not None:
            return await acts_when_told(context)
        assert family.agent is not None
        started = context.start_child("c1", family.agent, {"task": "it"})
        try:
            await context.wait_all([started])
        except Suspended as wait:
            raise Suspended(wait.status, *wait.signals, "own") from None  # as a run that waits for an approval as well
        return "both"

    family.house.script = waits_for_both
    parent = await family.start()
    child_id = child_run_id(parent.run_id, "c1")
    await family.house.signal(child_id, "go")
    journal = family.house.store.journal
    claim = journal.claim

    async def claim_while_the_answer_comes(run_id: str, *, owner: str, now: datetime, lease_s: float) -> Claim | None:
        claimed = await claim(run_id, owner=owner, now=now, lease_s=lease_s)
        if run_id == child_id:
            journal.claim = claim
            await family.house.signal(parent.run_id, "own")
        return claimed

    journal.claim = claim_while_the_answer_comes
    ended = await asyncio.wait_for(family.house.engine.resume(parent.run_id), 10)

    assert ended.result.output == "both"
    assert family.house.dispatched == ["a"]


@pytest.mark.requirement("engines.nested_waits")
async def test_a_child_that_was_claimed_for_nothing_is_free_for_other_processes_at_once():
    family = Family(acts_when_told)
    parent = await family.start()
    child_id = child_run_id(parent.run_id, "c1")
    await family.house.signal(child_id, "go")
    journal, clock = family.house.store.journal, family.house.clock
    claim = journal.claim

    async def claim_while_the_parent_is_claimed(
        run_id: str, *, owner: str, now: datetime, lease_s: float
    ) -> Claim | None:
        await family.house.signal(parent.run_id, f"child:{child_id}")
        return await claim(run_id, owner=owner, now=now, lease_s=lease_s)

    journal.claim = claim_while_the_parent_is_claimed
    with pytest.raises(Conflict, match="continues with its caller"):
        await family.house.engine.drive(child_id)
    journal.claim = claim

    assert child_id in await journal.claimable(now=clock.now(), limit=10)
    other = Family(acts_when_told, other=family, owner="other")
    assert (await other.house.engine.resume(parent.run_id)).result.output == ["completed", "acted", "0.25", 1]
