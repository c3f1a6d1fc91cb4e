"""Guardrails in the pipeline: asked when the arguments are valid, and again of what a call brings."""

from typing import Any

import msgspec
import pytest

from tests.twins import Behaviour, Rig, echo, make_context, make_tool
from toolcrib.contracts import (
    ApprovalDecision,
    ApprovalRequested,
    ClientResult,
    ContentFilter,
    ErrorCode,
    Guardrail,
    NoDelete,
    Reason,
    RequireConfirmation,
    RetryPolicy,
    RunResult,
    ToolEnvelope,
    ToolRevision,
    UntrustedContent,
)
from toolcrib.core.executor import CallContext, CallFailed, Dispatch, Outcome, error
from toolcrib.core.policy import CallPolicy
from toolcrib.kinds.http.shape import HttpImplementation

HTTP = HttpImplementation(method="GET", url="https://x.example/")
REDACTS = ContentFilter(personal_data=("email",), action="redact")
BLOCKS = ContentFilter(words=("hush",))
FREE_TEXT: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string", "maxLength": 20}}}


def rig(*tools: ToolRevision, behaviour: Behaviour = echo) -> Rig:
    return Rig(*(tools or (make_tool(input_schema=FREE_TEXT),)), behaviour=behaviour)


def context(rig: Rig, *rules: Guardrail, tainted_by: str | None = None, attempt: int = 1) -> CallContext:
    made = make_context(journal=rig.journal, budget=rig.budget, policy=CallPolicy(guardrails=rules), attempt=attempt)
    return msgspec.structs.replace(made, tainted_by=tainted_by)


async def run(rig: Rig, *rules: Guardrail, text: str = "x", **more: Any) -> ToolEnvelope:
    return await rig.run(arguments={"text": text}, context=context(rig, *rules, **more))


def reason(envelope: ToolEnvelope) -> Reason | None:
    return envelope.error.reason if envelope.error else None


@pytest.mark.requirement("guardrails.content")
async def test_arguments_are_replaced_before_anybody_sees_them_and_the_journal_has_what_was_called():
    made = rig()

    envelope = await run(made, REDACTS, text="to ann@x.de")

    assert made.dispatcher.dispatched[0].input == envelope.input == {"text": "to [email]"}
    (intent,) = made.journal.intents
    assert intent.input == {"text": "to [email]"}
    assert intent.decision.inputs["found"] == {"email": 1}
    assert intent.decision.inputs["tool_calls"] == 0


@pytest.mark.requirement("guardrails.content")
async def test_arguments_that_are_replaced_must_still_meet_the_schema():
    envelope = await run(rig(), ContentFilter(words=("a",), action="redact"), text="a a a a a a")

    assert (envelope.status, reason(envelope)) == ("error", Reason.INPUT_SCHEMA_MISMATCH)


@pytest.mark.requirement("guardrails.content")
async def test_arguments_that_may_not_pass_deny_the_call_and_cost_nothing():
    made = rig()

    envelope = await run(made, BLOCKS, text="hush")

    assert (envelope.status, reason(envelope), envelope.attempts) == ("denied", Reason.CONTENT_BLOCKED, 0)
    assert made.untouched


@pytest.mark.requirement("guardrails.content")
@pytest.mark.parametrize("kind", ["output", "metadata", "failure", "failed metadata"])
async def test_what_a_tool_says_is_replaced_or_withheld_wherever_it_says_it(kind: str):
    def tells(dispatch: Dispatch) -> Outcome:
        said, told = ("ann@x.de", {}) if kind in {"output", "failure"} else ("", {"by": "ann@x.de"})
        if kind.startswith("fail"):
            raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, said or "no"), metadata=told)
        return Outcome(said, metadata=told)

    redacted = await run(rig(behaviour=tells), REDACTS)
    withheld = await run(rig(behaviour=tells), ContentFilter(personal_data=("email",)))

    assert "ann@x.de" not in redacted.model_dump_json()
    assert "[email]" in redacted.model_dump_json()
    assert "ann@x.de" not in withheld.model_dump_json()
    assert (withheld.status, reason(withheld), withheld.attempts) == ("error", Reason.CONTENT_BLOCKED, 1)


@pytest.mark.requirement("guardrails.content")
async def test_what_was_replaced_for_one_run_is_not_kept_for_others_and_what_is_kept_passes_their_filters():
    made = rig(make_tool(input_schema=FREE_TEXT, cache="forever"), behaviour=lambda dispatch: Outcome("ann@x.de"))

    first = await run(made, REDACTS)
    second = await run(made)
    third = await run(made, REDACTS)

    assert (first.output, first.cached) == ("[email]", False)
    assert (second.output, second.cached) == ("ann@x.de", False)
    assert (third.output, third.cached) == ("[email]", True)


@pytest.mark.requirement("guardrails.confirmation")
async def test_a_person_is_asked_with_the_time_that_the_rule_gives():
    made = rig(make_tool(input_schema=FREE_TEXT, side_effects="writes"))

    envelope = await run(made, RequireConfirmation(expires_s=60), text="go")

    assert envelope.ok
    (request,) = made.journal.requests
    assert request.expires_at is not None
    assert made.journal.intents[0].decision.outcome == "ask"


@pytest.mark.requirement("guardrails.content", "guardrails.confirmation")
async def test_arguments_that_a_person_has_edited_are_judged_again():
    made = rig(make_tool(input_schema=FREE_TEXT, side_effects="writes"))

    def edits(text: str) -> Any:
        def decide(request: ApprovalRequested) -> ApprovalDecision:
            return ApprovalDecision(
                approved=True,
                arguments_hash=request.arguments_hash,
                content_hash=request.content_hash,
                policy_hash=request.policy_hash,
                edited_input={"text": text},
            )

        return decide

    made.journal.decide = edits("to bob@x.de")
    redacted = await run(made, RequireConfirmation(), REDACTS, BLOCKS)
    made.journal.decide = edits("hush")
    blocked = await run(made, RequireConfirmation(), REDACTS, BLOCKS)

    assert redacted.input == redacted.approved_input == {"text": "to [email]"}
    assert (blocked.status, reason(blocked)) == ("denied", Reason.CONTENT_BLOCKED)


@pytest.mark.requirement("guardrails.deletion")
async def test_a_rule_denies_a_call_with_the_facts_that_it_was_decided_on():
    made = rig(make_tool(input_schema=FREE_TEXT, side_effects="writes", deletes=True))

    envelope = await run(made, NoDelete())

    assert (envelope.status, reason(envelope)) == ("denied", Reason.DELETION_FORBIDDEN)
    assert envelope.error is not None
    assert envelope.error.details is not None
    assert envelope.error.details["rule"] == "no_delete"
    assert envelope.error.details["inputs"]["deletes"] is True
    assert made.untouched


@pytest.mark.requirement("taint.guarded")
async def test_a_call_of_a_run_that_has_read_what_outsiders_write_is_denied():
    made = rig(make_tool(input_schema=FREE_TEXT, side_effects="writes"))

    free = await run(made, UntrustedContent(action="deny"))
    denied = await run(made, UntrustedContent(action="deny"), tainted_by="mail at t1.c1")

    assert (free.status, denied.status) == ("success", "denied")
    assert "mail at t1.c1" in (denied.error.message if denied.error else "")


@pytest.mark.requirement("taint.followed")
async def test_an_envelope_says_that_its_output_is_outsiders_also_when_it_failed_or_was_kept():
    def fails(dispatch: Dispatch) -> Outcome:
        raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, "no"))

    web = make_tool(input_schema=FREE_TEXT, implementation=HTTP, cache="forever")
    made = rig(web)

    found = [await run(made), await run(made), await run(rig(web, behaviour=fails)), await run(rig())]

    assert [(envelope.tainted, envelope.cached) for envelope in found] == [
        (True, False),
        (True, True),
        (True, False),
        (False, False),
    ]


@pytest.mark.requirement("taint.followed")
@pytest.mark.parametrize("fails", [False, True])
async def test_what_a_nested_run_has_read_marks_the_call(*, fails: bool):
    def tells(dispatch: Dispatch) -> Outcome:
        if fails:
            raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, "no"), tainted=True)
        return Outcome("x", tainted=True)

    assert (await run(rig(behaviour=tells))).tainted


@pytest.mark.requirement("taint.followed")
async def test_a_client_can_say_that_what_it_brings_is_outsiders():
    made = rig(make_tool(input_schema=FREE_TEXT, runs_on="client"))
    made.journal.perform = lambda prepared: ClientResult(output="x", tainted=True)

    assert (await run(made)).tainted


@pytest.mark.requirement("policy.counted")
async def test_a_call_that_was_dispatched_before_a_crash_counts_also_if_it_is_denied_now():
    made = rig()

    await run(made, BLOCKS, text="hush", attempt=2)

    assert made.budget.tool_calls == 1


@pytest.mark.requirement("policy.counted")
async def test_what_failed_attempts_have_used_is_told_with_the_last():
    results = iter([RunResult(run_id="one", status="failed"), RunResult(run_id="two", status="completed")])

    def delegates(dispatch: Dispatch) -> Outcome:
        facts = {"run_id": next(results).run_id, "tool_calls": 2, "tokens": 10}
        if facts["run_id"] == "one":
            failure = error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, "no")
            raise CallFailed(failure, metadata=facts, cost_usd=None)
        return Outcome("x", metadata=facts)

    made = rig(make_tool(input_schema=FREE_TEXT, retry=RetryPolicy(count=1, backoff="none")), behaviour=delegates)

    envelope = await run(made)

    assert (envelope.metadata["tool_calls"], envelope.metadata["tokens"]) == (4, 20)
    assert envelope.metadata["run_id"] == "two"
