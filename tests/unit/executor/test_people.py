"""Calls that others take part in: a person who approves, a client that performs; and dry runs, in which nobody does."""

from datetime import timedelta
from typing import Any

import pytest

from tests.twins import Rig, approve, make_context, make_tool
from toolcrib.contracts import (
    ApprovalDecision,
    ApprovalRequested,
    ClientResult,
    ErrorCode,
    GuardDecision,
    Reason,
    call_id,
)
from toolcrib.core.executor import CallRequest, Dispatch, Outcome, error
from toolcrib.core.executor.approval import request_of
from toolcrib.core.executor.envelope import EnvelopeBuilder
from toolcrib.core.policy import CallPolicy
from toolcrib.core.runs import Suspended

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "unit": {"type": "string", "default": "EUR"}},
    "required": ["n"],
}
ASKS = make_tool(requires_confirmation=True, side_effects="writes", input_schema=SCHEMA, title="Pay")
PREPARES = make_tool(runs_on="client", max_output_bytes=100)


@pytest.mark.requirement("executor.approval")
async def test_an_approved_call_runs_with_what_was_shown():
    rig = Rig(ASKS)

    envelope = await rig.run(arguments={"n": 1})

    assert envelope.output == {"n": 1, "unit": "EUR"}
    assert envelope.approved_input is None
    [request] = rig.journal.requests
    assert (request.call_id, request.input) == (envelope.call_id, {"n": 1, "unit": "EUR"})
    assert request.content_hash == ASKS.content_hash
    assert request.message == "Pay writes; a person must confirm"
    assert rig.journal.intents[0].decision.outcome == "ask"


@pytest.mark.requirement("executor.approval")
async def test_a_run_may_ask_for_tools_that_do_not_ask_themselves():
    rig = Rig(make_tool("a"), make_tool("b", side_effects="none"))
    context = make_context(policy=CallPolicy(confirm=frozenset({"b"})), journal=rig.journal)

    await rig.run("a", context=context)
    await rig.run("b", context=context)

    [request] = rig.journal.requests
    assert (request.name, request.message) == ("b", "b changes nothing; a person must confirm")


def changed(request: ApprovalRequested, **changes: Any) -> ApprovalDecision:
    return approve(request).model_copy(update=changes)


@pytest.mark.requirement("executor.approval", "executor.budget_returned")
@pytest.mark.parametrize(
    ("changes", "reason", "said"),
    [
        ({"approved": False}, Reason.APPROVAL_REJECTED, "a person rejected the call"),
        ({"approved": False, "reason": "too much"}, Reason.APPROVAL_REJECTED, "a person rejected the call: too much"),
        ({"arguments_hash": "sha256:other"}, Reason.APPROVAL_REJECTED, "is not for this call: the arguments changed"),
        (
            {"content_hash": "sha256:other"},
            Reason.APPROVAL_REJECTED,
            "the tool's revision changed since",
        ),
        ({"policy_hash": "sha256:other"}, Reason.APPROVAL_REJECTED, "is not for this call: the policy changed"),
        (None, Reason.APPROVAL_EXPIRED, "nobody approved the call in time"),
    ],
    ids=["rejected", "with reason", "other arguments", "other revision", "other policy", "expired"],
)
async def test_a_call_that_is_not_approved_as_shown_does_not_run(changes: Any, reason: Reason, said: str):
    rig = Rig(ASKS)
    rig.journal.decide = lambda request: None if changes is None else changed(request, **changes)

    envelope = await rig.run(arguments={"n": 1})

    assert envelope.status == "denied"
    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.POLICY_DENIED
    assert envelope.error.reason is reason
    assert said in envelope.error.message
    assert rig.untouched


@pytest.mark.requirement("executor.approval")
async def test_an_answer_to_a_request_without_a_policy_is_good_for_any():
    rig = Rig(ASKS)
    rig.journal.decide = lambda request: changed(request, policy_hash=None)

    assert (await rig.run(arguments={"n": 1})).ok


@pytest.mark.requirement("approvals.expiry")
@pytest.mark.parametrize(("of_tool", "of_rule", "after"), [(60, None, 60), (60, 30, 30), (None, 30, 30)])
async def test_the_shortest_time_that_tool_and_rule_give_ends_the_wait(of_tool: Any, of_rule: Any, after: int):
    rig = Rig(ASKS)
    asks = GuardDecision(outcome="ask", rule="rule", expires_s=of_rule)
    tool = make_tool(confirmation_expires_s=of_tool)
    receipt = EnvelopeBuilder(CallRequest("t1.c1", tool.name, {}), make_context(), rig.clock)

    assert request_of(receipt, tool, asks, rig.clock).expires_at == rig.clock.now() + timedelta(seconds=after)


@pytest.mark.requirement("executor.approval", "executor.identity")
async def test_edited_arguments_are_what_runs_and_the_call_keeps_its_id():
    rig = Rig(ASKS)
    rig.journal.decide = lambda request: changed(request, edited_input={"n": 2})

    envelope = await rig.run(arguments={"n": 1})

    assert envelope.output == envelope.input == rig.journal.intents[0].input == {"n": 2, "unit": "EUR"}
    assert envelope.approved_input == {"n": 2}
    assert envelope.call_id == rig.journal.intents[0].call_id
    assert envelope.call_id == call_id("look_up", "1.0.0", {"n": 1, "unit": "EUR"}, "t1.c1")


@pytest.mark.requirement("executor.approval", "executor.arguments")
async def test_edited_arguments_must_be_valid():
    rig = Rig(ASKS)
    rig.journal.decide = lambda request: changed(request, edited_input={"n": "two"})

    envelope = await rig.run(arguments={"n": 1})

    assert envelope.error is not None
    assert envelope.error.reason is Reason.INPUT_SCHEMA_MISMATCH
    assert envelope.approved_input == {"n": "two"}
    assert rig.untouched


@pytest.mark.requirement("executor.passes_through", "executor.budget_returned", "executor.lanes_cancelled")
async def test_a_call_that_waits_for_a_person_suspends_and_leaves_nothing_behind():
    def suspend(request: ApprovalRequested) -> None:
        raise Suspended("awaiting_approval", f"approval:{request.position}")

    rig = Rig(make_tool(requires_confirmation=True, sequential=True))
    rig.journal.decide = suspend

    with pytest.raises(Suspended) as waiting:
        await rig.run()

    assert waiting.value.signals == ("approval:t1.c1",)
    assert rig.untouched
    rig.journal.decide = approve
    assert (await rig.run()).ok


@pytest.mark.requirement("executor.client")
async def test_a_clients_tool_is_prepared_handed_over_and_ends_with_what_the_client_did():
    def perform(payload: Any) -> ClientResult:
        rig.clock.advance(90)
        return ClientResult(output={"clicked": True}, metadata={"screen": 2})

    rig = Rig(PREPARES)
    rig.journal.perform = perform

    envelope = await rig.run(arguments={"button": "ok"})

    [prepared] = rig.journal.handed
    assert prepared.requires_client_execution
    assert prepared.output == {"button": "ok"}
    assert envelope.requires_client_execution
    assert (envelope.status, envelope.output, envelope.metadata) == ("success", {"clicked": True}, {"screen": 2})
    assert envelope.call_id == prepared.call_id
    assert envelope.timings.wait == 90


@pytest.mark.requirement("executor.client")
async def test_a_clients_failure_is_the_calls_failure():
    rig = Rig(PREPARES)
    refused = error(ErrorCode.UNKNOWN, Reason.TOOL_FAILED, "the window was closed")
    rig.journal.perform = lambda prepared: ClientResult(error=refused, output="ignored", metadata={"screen": 2})

    envelope = await rig.run()

    assert (envelope.status, envelope.output, envelope.error) == ("error", None, refused)
    assert envelope.metadata == {"screen": 2}


@pytest.mark.requirement("executor.client", "executor.truncation")
async def test_what_a_client_brings_back_is_held_to_the_size():
    rig = Rig(PREPARES)
    rig.journal.perform = lambda prepared: ClientResult(output="x" * 500)

    envelope = await rig.run()

    assert (envelope.output, envelope.truncated, len(envelope.attachments)) == ("x" * 98, True, 1)


@pytest.mark.requirement("executor.client", "executor.passes_through")
async def test_a_call_that_waits_for_a_client_suspends():
    def suspend(prepared: Any) -> ClientResult:
        raise Suspended("awaiting_client", "client:t1.c1")

    rig = Rig(PREPARES)
    rig.journal.perform = suspend

    with pytest.raises(Suspended):
        await rig.run()

    assert rig.budget.tool_calls == 1


@pytest.mark.requirement("executor.client")
async def test_a_payload_that_cannot_be_prepared_is_not_handed_over():
    def behaviour(dispatch: Dispatch) -> Outcome:
        raise ValueError("no such button")

    rig = Rig(PREPARES, behaviour=behaviour)

    assert (await rig.run()).status == "error"
    assert rig.journal.handed == []


@pytest.mark.requirement("executor.dry_run", "executor.budget_returned")
async def test_a_dry_run_validates_and_then_skips_what_writes_without_asking_anybody():
    rig = Rig(ASKS)
    context = make_context(journal=rig.journal, budget=rig.budget, dry_run=True)

    skipped = await rig.run(arguments={"n": 1}, context=context)
    invalid = await rig.run(arguments={}, context=context)

    assert (skipped.status, skipped.output, skipped.error) == ("skipped", None, None)
    assert skipped.metadata == {"dry_run": True}
    assert skipped.input == {"n": 1, "unit": "EUR"}
    assert invalid.status == "error"
    assert rig.journal.requests == []
    assert rig.untouched


@pytest.mark.requirement("executor.dry_run")
async def test_a_dry_run_runs_what_only_reads():
    assert (await Rig(make_tool()).run(context=make_context(dry_run=True))).ok
