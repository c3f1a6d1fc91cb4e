"""A call that was started by a process that died: repeated, looked up or labelled unknown; never blindly done twice."""

import asyncio
from typing import Any

import pytest

from tests.twins import make_definition
from tests.unit.runs.house import House, ask, hang
from toolcrib.contracts import CallStarted, ErrorCode, Json, Reason, ToolDefinition
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, error
from toolcrib.core.policy import CallPolicy
from toolcrib.core.runs import RunContext

REPEATED: list[dict[str, Any]] = [
    {"side_effects": "none"},
    {"side_effects": "reads"},
    {"side_effects": "writes", "idempotent": True},
    {"side_effects": "writes", "idempotency_key": "header:Idempotency-Key"},
]


async def call_it(context: RunContext) -> Json:
    envelope = await context.call(ask("a", "act", to=1))
    return [envelope.status, envelope.output]


def reconciled(**changes: Any) -> ToolDefinition:
    return make_definition("act", side_effects="writes").model_copy(update={"reconcile": "find", **changes})


async def crashed(definition: ToolDefinition) -> tuple[House, str]:
    """A run whose process died while the tool ran."""
    house = House(call_it, hang)
    await house.save(definition)
    await house.save(make_definition("find"))
    return house, await house.crash(asyncio.create_task(house.start()))


async def intents(house: House, run_id: str) -> list[tuple[str, int, str]]:
    found = [event for event in await house.events(run_id) if isinstance(event, CallStarted)]
    return [(event.position, event.attempt, event.idempotency_key) for event in found]


@pytest.mark.requirement("runs.in_doubt_repeated")
@pytest.mark.parametrize("fields", REPEATED, ids=lambda fields: "-".join(map(str, fields.values())))
async def test_a_call_that_may_run_twice_is_repeated_with_the_same_key(fields: dict[str, Any]):
    house, run_id = await crashed(make_definition("act", **fields))

    heir = House(call_it, other=house, owner="second")
    driven = await heir.engine.resume(run_id)

    assert driven.result.output == ["success", {"to": 1}]
    assert heir.dispatched == ["a"]
    assert await intents(heir, run_id) == [("a", 1, f"{run_id}/a"), ("a", 2, f"{run_id}/a")]


@pytest.mark.requirement("runs.in_doubt_unknown")
async def test_a_call_that_may_not_run_twice_ends_with_an_unknown_outcome():
    house, run_id = await crashed(make_definition("act", side_effects="writes"))

    heir = House(call_it, other=house, owner="second")
    driven = await heir.engine.resume(run_id)

    assert driven.result.output == ["error", None]
    assert heir.dispatched == []
    envelope = (await heir.envelopes(run_id))["a"]
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.UNKNOWN, Reason.OUTCOME_UNKNOWN)
    assert "'act' was started and the process stopped" in envelope.error.message
    assert (envelope.run_id, envelope.input, envelope.attempts) == (run_id, {"to": 1}, 1)
    assert driven.result.tool_calls == 1


@pytest.mark.requirement("runs.in_doubt_reconciled")
async def test_a_call_that_is_found_done_has_the_found_output():
    house, run_id = await crashed(reconciled())

    heir = House(call_it, lambda dispatch: Outcome({"found": True, "output": "done"}), other=house, owner="second")
    driven = await heir.engine.resume(run_id)

    assert driven.result.output == ["success", "done"]
    assert heir.dispatched == ["a.reconcile1"]
    assert heir.dispatcher.dispatched[0].input == {"idempotency_key": f"{run_id}/a"}
    assert driven.result.tool_calls == 1
    found = await heir.envelopes(run_id)
    assert found["a.reconcile1"].output == {"found": True, "output": "done"}
    assert found["a"].run_id == run_id


@pytest.mark.requirement("runs.in_doubt_reconciled", "taint.followed")
async def test_what_is_found_of_a_call_that_outsiders_can_write_marks_the_run():
    house, run_id = await crashed(reconciled(untrusted=True))

    heir = House(call_it, lambda dispatch: Outcome({"found": True, "output": "done"}), other=house, owner="second")
    driven = await heir.engine.resume(run_id)

    assert (await heir.envelopes(run_id))["a"].tainted
    assert driven.result.tainted


@pytest.mark.requirement("runs.in_doubt_reconciled")
async def test_a_call_that_is_found_undone_is_repeated():
    house, run_id = await crashed(reconciled(timeout_s=20))

    heir = House(call_it, lambda dispatch: Outcome({"found": False}), other=house, owner="second")
    driven = await heir.engine.resume(run_id)

    assert driven.result.output == ["success", {"found": False}]
    assert heir.dispatched == ["a.reconcile1", "a"]


@pytest.mark.requirement("runs.in_doubt_reconciled", "runs.in_doubt_unknown")
@pytest.mark.parametrize("answer", [{}, {"found": None}, {"found": 1}, "found", None])
async def test_a_call_of_which_nothing_can_be_found_out_ends_with_an_unknown_outcome(answer: Json):
    house, run_id = await crashed(reconciled())

    heir = House(call_it, lambda dispatch: Outcome(answer), other=house, owner="second")
    driven = await heir.engine.resume(run_id)

    assert driven.result.output == ["error", None]
    assert heir.dispatched == ["a.reconcile1"]


@pytest.mark.requirement("runs.in_doubt_reconciled", "runs.in_doubt_unknown")
@pytest.mark.parametrize("name", ["find", "missing", "act"])
async def test_a_reconciling_tool_that_fails_is_missing_or_writes_tells_nothing(name: str):
    def fail(dispatch: Dispatch) -> Outcome:
        raise CallFailed(error(ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED, "no answer"))

    house, run_id = await crashed(reconciled(reconcile=name))

    heir = House(call_it, fail, other=house, owner="second")
    resuming = asyncio.create_task(heir.engine.resume(run_id))
    for wait_s in (0, 1, 10, 60):
        await heir.clock.pass_time(wait_s)
        if resuming.done() and (await heir.store.journal.run(run_id)).ended is False:
            resuming = asyncio.create_task(heir.engine.resume(run_id))
    await heir.clock.pass_time(1)
    driven = await resuming

    assert driven.result.output == ["error", None]
    assert "a" not in heir.dispatched


@pytest.mark.requirement("runs.in_doubt_reconciled")
async def test_the_run_s_own_allow_list_and_budget_do_not_keep_recovery_from_asking():
    async def narrow(context: RunContext) -> Json:
        context.policy = CallPolicy(allowed=frozenset({"act"}))
        for _ in range(context.budget.limits.max_tool_calls):
            context.budget.take_tool_call()
        return await call_it(context)

    house, run_id = await crashed(reconciled())
    heir = House(narrow, lambda dispatch: Outcome({"found": True, "output": "done"}), other=house, owner="second")

    assert (await heir.engine.resume(run_id)).result.output == ["success", "done"]


@pytest.mark.requirement("runs.in_doubt_reconciled")
async def test_an_answer_is_good_for_one_attempt_only():
    async def undone_then_hang(dispatch: Dispatch) -> Outcome:
        return await hang(dispatch) if dispatch.position == "a" else Outcome({"found": False})

    house, run_id = await crashed(reconciled(timeout_s=20))
    second = House(call_it, undone_then_hang, other=house, owner="second")
    await second.crash(asyncio.create_task(second.engine.resume(run_id)))

    third = House(call_it, lambda dispatch: Outcome({"found": True, "output": "done"}), other=house, owner="third")
    driven = await third.engine.resume(run_id)

    assert second.dispatched == ["a.reconcile1", "a"]
    assert third.dispatched == ["a.reconcile2"]
    assert driven.result.output == ["success", "done"]


@pytest.mark.requirement("runs.in_doubt_reconciled")
async def test_an_answer_that_the_journal_has_is_not_asked_for_again():
    async def undone_then_wait(dispatch: Dispatch) -> Outcome:
        return Outcome({"found": False})

    async def confirmed(context: RunContext) -> Json:
        context.policy = CallPolicy(confirm=frozenset({"act"}))
        return await call_it(context)

    house, run_id = await crashed(reconciled(timeout_s=20))
    second = House(confirmed, undone_then_wait, other=house, owner="second")
    driven = await second.engine.resume(run_id)
    assert driven.result.status == "awaiting_approval"
    (asked,) = [event for event in await house.events(run_id) if event.type == "approval_requested"]
    decision = {"approved": True, "arguments_hash": asked.arguments_hash, "content_hash": asked.content_hash}
    await second.signal(run_id, "approval:a", decision)

    assert (await second.engine.resume(run_id)).result.output == ["success", {"found": False}]
    assert second.dispatched == ["a.reconcile1", "a"]


@pytest.mark.requirement("runs.in_doubt_prepared")
async def test_a_call_that_a_client_performs_is_not_in_doubt_while_it_waits():
    house = House(call_it)
    await house.save(make_definition("act", side_effects="writes", runs_on="client"))
    run_id = (await house.start()).result.run_id
    await house.signal(run_id, "client:a", {"output": "performed"})

    assert (await house.engine.resume(run_id)).result.output == ["success", "performed"]
