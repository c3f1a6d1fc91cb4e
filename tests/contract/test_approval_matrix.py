"""Approvals at any depth: each decision, streamed or not, in one process or over a restart; nothing runs twice."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.chaos.processes import Child
from tests.contract.chain import (
    ACTIONS,
    BOSS,
    EXPIRES_S,
    PAID,
    SAID,
    Action,
    Chain,
    act,
    act_elsewhere,
    begin,
    begin_elsewhere,
    end_elsewhere,
    waiting,
)
from toolcrib import Crib
from toolcrib.contracts import (
    Approval,
    ApprovalPending,
    CallFinished,
    Conflict,
    PermissionDenied,
    Run,
    Signal,
    StreamDone,
    StreamEvent,
)
from toolcrib.core.runs import decision_on

pytestmark = pytest.mark.requirement("approvals.matrix", "approvals.nesting")

DEPTHS = range(1, 6)
Life = Literal["same process", "after restart"]


async def carried_on(crib: Crib, run_id: str, *, stream: bool) -> list[StreamEvent]:
    """Carry the outermost run on; what a subscriber is told of it, if there is one."""
    if not stream:
        await crib.resume(run_id)
        return []
    with crib.engine.live.watch(run_id):  # so that its models are asked to stream
        await crib.resume(run_id)
        return [told.event async for told in crib.executions.follow(run_id)]


async def runs_of(crib: Crib) -> list[Run]:
    return list(await crib.store.journal.runs("default"))


async def check_once(crib: Crib) -> None:
    """Every call of every run has one outcome."""
    for run in await runs_of(crib):
        events = await crib.store.journal.events(run.run_id)
        outcomes = Counter(entry.event.position for entry in events if isinstance(entry.event, CallFinished))
        assert set(outcomes.values()) <= {1}


async def check_end(crib: Crib, chain: Chain, run_id: str, action: Action) -> None:
    """All runs have ended, the agents have heard the truth, and what was to be paid was paid once."""
    output = (await crib.store.journal.run(run_id)).output
    assert SAID[action] in output["response"].replace("\\", "")
    assert {run.status for run in await runs_of(crib)} == {"completed"}
    assert chain.ledger.paid() == PAID[action]
    await check_once(crib)


def check_stream(told: Sequence[StreamEvent], approval: Approval, output: Any) -> None:
    """A subscriber has heard of the approval, if it was this run's own, of the calls and of the end."""
    numbers = [event.number for event in told]
    assert numbers == sorted(numbers)
    pending = [event.approval_id for event in told if isinstance(event, ApprovalPending)]
    assert pending == ([approval.approval_id] if approval.run_id == approval.root_run_id else [])
    assert isinstance(told[-1], StreamDone)
    assert (told[-1].result.status, told[-1].result.output) == ("completed", output)


@pytest.mark.parametrize("life", ["same process", "after restart"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("depth", DEPTHS)
async def test_a_decision_reaches_the_call_and_its_result_the_outermost_agent(
    tmp_path: Path, depth: int, action: Action, stream: bool, life: Life
):
    chain = Chain(tmp_path, depth, in_memory=life == "same process")
    crib = chain.crib()
    run_id = await begin(crib)
    if life == "after restart":
        await crib.close()
        crib = chain.crib()
    [approval] = await waiting(crib)
    assert (approval.root_run_id, approval.tool) == (run_id, "pay")
    assert [ref.partition("@")[0] for ref in approval.callers] == [f"l{level}" for level in range(1, depth + 1)]
    await act(crib, approval, action)
    if life == "after restart":
        await crib.close()
        crib = chain.crib()
    if action == "expire":
        chain.clock.advance(EXPIRES_S)

    told = await carried_on(crib, run_id, stream=stream)

    await check_end(crib, chain, run_id, action)
    if stream:
        check_stream(told, approval, (await crib.store.journal.run(run_id)).output)
    await crib.resume(run_id)
    assert chain.ledger.paid() == PAID[action]
    assert await waiting(crib) == ()
    await crib.close()


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("depth", [1, 3, 5])
async def test_asking_deciding_and_going_on_are_three_processes(tmp_path: Path, depth: int, action: Action):
    run_id = await Child(tmp_path / "begun", begin_elsewhere, tmp_path, depth).result()
    assert await Child(tmp_path / "acted", act_elsewhere, tmp_path, action).result() == 1
    late = action == "expire"
    ended = await Child(tmp_path / "ended", end_elsewhere, tmp_path, depth, run_id, late).result()

    assert ended["status"] == "completed"
    async with Chain(tmp_path, depth).crib() as crib:
        await check_end(crib, Chain(tmp_path, depth), run_id, action)


@pytest.mark.requirement("approvals.binding")
@pytest.mark.parametrize("changed", ["arguments_hash", "content_hash", "policy_hash"])
@pytest.mark.parametrize("depth", DEPTHS)
async def test_an_approval_of_something_else_is_not_used_and_the_person_is_asked_again(
    tmp_path: Path, depth: int, changed: str
):
    chain = Chain(tmp_path, depth, in_memory=True)
    async with chain.crib() as crib:
        run_id = await begin(crib)
        [first] = await waiting(crib)
        other = decision_on(first, approve=True, edited_input=None, reason=None).model_copy(
            update={changed: "sha256:what-it-was-before"}
        )
        signal = Signal(name=first.signal, payload=other.model_dump(mode="json"), made_by="boss", at=crib.clock.now())
        await crib.engine.signal(first.run_id, signal)
        assert (await crib.resume(run_id)).summary.status == "awaiting_approval"
        assert chain.ledger.paid() == []
        with pytest.raises(Conflict, match="changed after it was shown"):
            await act(crib, first, "approve")
        [second] = await waiting(crib)
        assert (second.number, second.call_id) == (2, first.call_id)
        await act(crib, second, "approve")
        await crib.resume(run_id)
        await check_end(crib, chain, run_id, "approve")


@pytest.mark.parametrize("depth", [2, 4])
async def test_a_server_carries_all_runs_on_by_itself(tmp_path: Path, depth: int):
    chain = Chain(tmp_path, depth)
    async with chain.crib() as crib:
        run_id = await begin(crib)
        [approval] = await waiting(crib)
        await act(crib, approval, "approve")
        for _ in range(depth):
            await crib.engine.recover()
        await check_end(crib, chain, run_id, "approve")


@pytest.mark.parametrize("depth", [2, 4])
async def test_time_that_is_over_wakes_the_innermost_run_and_all_above_it(tmp_path: Path, depth: int):
    chain = Chain(tmp_path, depth)
    async with chain.crib() as crib:
        run_id = await begin(crib)
        assert list(await crib.engine.recover()) == []
        chain.clock.advance(EXPIRES_S)
        for _ in range(depth):
            await crib.engine.recover()
        await check_end(crib, chain, run_id, "expire")
        expired = (await crib.approvals.page(status="expired")).items[0]
        assert (expired.decided_by, expired.tool) == ("clock", "pay")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
async def test_several_leaves_wait_at_once_and_each_is_decided_by_itself(tmp_path: Path, order: tuple[int, ...]):
    chain = Chain(tmp_path, 3, leaves=3)
    actions: tuple[Action, ...] = ("approve", "edit", "reject")
    async with chain.crib() as crib:
        run_id = await begin(crib)
        found = {approval.callers[-1]: approval for approval in await waiting(crib)}
        assert len(found) == 3
        assert {approval.root_run_id for approval in found.values()} == {run_id}
        leaves = sorted(found)
    for left, index in zip((2, 1, 0), order, strict=True):
        async with chain.crib() as crib:
            await act(crib, found[leaves[index]], actions[index])
            status = (await crib.resume(run_id)).summary.status
            assert status == ("awaiting_approval" if left else "completed")
            assert len(await waiting(crib)) == left
    async with chain.crib() as crib:
        assert sorted(chain.ledger.paid()) == [3, 5]
        said = (await crib.store.journal.run(run_id)).output["response"].replace("\\", "")
        assert all(SAID[action] in said for action in actions)
        await check_once(crib)


@pytest.mark.requirement("approvals.expiry", "approvals.outdated")
async def test_a_decision_after_the_time_is_refused_and_the_call_expires(tmp_path: Path):
    chain = Chain(tmp_path, 2)
    async with chain.crib() as crib:
        run_id = await begin(crib)
        [approval] = await waiting(crib)
        chain.clock.advance(EXPIRES_S)
        with pytest.raises(Conflict, match="expired"):
            await act(crib, approval, "approve")
        await crib.resume(run_id)
        await check_end(crib, chain, run_id, "expire")


@pytest.mark.requirement("approvals.outdated")
async def test_the_first_of_several_decisions_counts(tmp_path: Path):
    chain = Chain(tmp_path, 2)
    async with chain.crib() as crib:
        run_id = await begin(crib)
        [approval] = await waiting(crib)
        await act(crib, approval, "reject")
        with pytest.raises(Conflict, match="rejected already, by 'boss'"):
            await act(crib, approval, "approve")
        await crib.resume(run_id)
        await check_end(crib, chain, run_id, "reject")
        with pytest.raises(Conflict):
            await act(crib, approval, "approve")


@pytest.mark.requirement("approvals.outdated")
async def test_a_run_that_was_cancelled_leaves_nothing_to_decide(tmp_path: Path):
    chain = Chain(tmp_path, 3)
    async with chain.crib() as crib:
        run_id = await begin(crib)
        [approval] = await waiting(crib)
        await crib.cancel(run_id)
        await crib.engine.recover()
        with pytest.raises(Conflict, match="was withdrawn: its run has ended"):
            await act(crib, approval, "approve")
        assert await waiting(crib) == ()
        assert chain.ledger.paid() == []


@pytest.mark.requirement("approvals.self")
@pytest.mark.parametrize("depth", [1, 5])
async def test_who_started_it_all_cannot_approve_at_any_depth(tmp_path: Path, depth: int):
    async with Chain(tmp_path, depth, in_memory=True).crib() as crib:
        await begin(crib)
        [approval] = await waiting(crib)
        for who in (crib.principal, BOSS.model_copy(update={"id": "bot", "kind": "service", "acts_for": "owner"})):
            with pytest.raises(PermissionDenied, match="takes part in the run"):
                await crib.acting_as(who).approvals.decide(approval.approval_id, approve=True)
        robot = BOSS.model_copy(update={"kind": "agent"})
        with pytest.raises(PermissionDenied, match="is an agent"):
            await crib.acting_as(robot).approvals.decide(approval.approval_id, approve=True)


@pytest.mark.requirement("approvals.binding")
async def test_a_new_revision_of_the_tool_changes_no_call_that_waits(tmp_path: Path):
    chain = Chain(tmp_path, 2)
    async with chain.crib() as crib:
        run_id = await begin(crib)
        [approval] = await waiting(crib)
        changed = (await crib.registry.get_revision("default", approval.content_hash)).definition
        await crib.save(changed.model_copy(update={"description": "Pays another way.", "version": "2.0.0"}))
        await act(crib, approval, "approve")
        await crib.resume(run_id)
        await check_end(crib, chain, run_id, "approve")
