"""Which calls of a run that is taken up are the same, and what is made of them."""

from datetime import datetime
from typing import Any

import pytest

from tests.twins import AT, make_tool
from toolcrib.contracts import (
    CallStarted,
    ErrorCode,
    FailedCall,
    GuardDecision,
    Json,
    JsonObject,
    Reason,
    ToolEnvelope,
)
from toolcrib.contracts.workflows import EarlierCall, Rerun, Takeover, WorkflowImplementation, WorkflowStep
from toolcrib.core.executor import CallRequest, error
from toolcrib.core.runs import Nested, ReusedCalls

SCHEMA: JsonObject = {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}}
WORKFLOW = make_tool("flow", implementation=WorkflowImplementation(steps=(WorkflowStep(name="a", output=1),)))
INTENT = CallStarted(
    position="a",
    call_id="c",
    name="send",
    version="1",
    content_hash="sha256:1",
    side_effects="writes",
    input={"size": 1},
    idempotency_key="run_0/a",
    decision=GuardDecision(outcome="allow", rule="all"),
)
FAILURE = error(ErrorCode.UNKNOWN, Reason.TOOL_FAILED, "no")


def envelope(name: str = "send", *, position: str = "a", **fields: Any) -> ToolEnvelope:
    """A success, unless it has an error."""
    status = "success" if fields.get("error") is None else "error"
    values: JsonObject = {"call_id": "c", "version": "1", "content_hash": "sha256:1", "side_effects": "writes"}
    return ToolEnvelope(
        name=name, position=position, status=status, t_start=AT, t_end=AT, attempts=2, **{**values, **fields}
    )


def earlier(
    asked: Json = None, *, child: str | None = None, intent: CallStarted | None = None, **fields: Any
) -> EarlierCall:
    """A call of the run before."""
    asked = {"size": 1} if asked is None else asked
    return EarlierCall(envelope=envelope(**fields), asked=asked, intent=intent, child_run_id=child)


async def never(intent: CallStarted, since: datetime) -> ToolEnvelope | None:
    """Judges nothing."""
    raise AssertionError(intent, since)


def taken(rerun: Rerun | None = None, **calls: EarlierCall) -> ReusedCalls:
    """What a run has taken over; `a_try2` stands for the position `a.try2`."""
    known = {position.replace("_", "."): call for position, call in calls.items()}
    facts = Takeover(run_id="run_1", calls=known, schemas={"sha256:1": SCHEMA})
    return ReusedCalls(facts, rerun or Rerun(run_id="run_1"))


def ask(position: str = "a", name: str = "send", given: Json = None) -> CallRequest:
    """A call of the new run."""
    return CallRequest(position, name, {} if given is None else given)


@pytest.mark.requirement("workflow_reruns.same_call")
@pytest.mark.parametrize(
    ("call", "is_same"),
    [
        (ask(), True),
        (ask(given={"size": 1}), True),
        (ask(given={"size": 2}), False),
        (ask(given={"colour": "red"}), False),
        (ask(given="no object"), False),
        (ask(name="other"), False),
        (ask(position="b"), False),
    ],
)
def test_a_call_is_the_same_by_place_tool_and_arguments(call: CallRequest, is_same: bool):
    known = taken(a=earlier())

    found = known.outcome(call, ())

    assert (found is not None) == is_same


@pytest.mark.requirement("workflow_reruns.same_call")
def test_arguments_of_a_tool_that_is_not_known_any_more_must_be_the_very_same():
    known = taken(a=earlier({"size": 1}, content_hash=None))

    assert known.outcome(ask(given={"size": 1}), ()) is not None
    assert known.outcome(ask(), ()) is None


@pytest.mark.requirement("workflow_reruns.same_call", "workflow_reruns.free")
def test_the_success_of_the_last_try_counts_and_is_free():
    known = taken(a=earlier(error=FAILURE), a_try2=earlier(error=FAILURE), a_try3=earlier(output=3, reused="run_0"))

    found = known.outcome(ask(), ())

    assert found is not None
    assert (found.position, found.output, found.reused) == ("a", 3, "run_0")
    assert (found.attempts, found.cost_usd) == (0, None)


@pytest.mark.requirement("workflow_reruns.keys")
async def test_a_call_that_is_made_again_has_its_key():
    known = taken(a=earlier(error=FAILURE, intent=INTENT), b=earlier(error=FAILURE))

    async def key_of(call: CallRequest) -> ToolEnvelope | str | None:
        return await known.decide_repeat(call, (), never)

    assert await key_of(ask()) == "run_0/a"
    assert await key_of(ask("b")) is None
    assert await key_of(ask("c")) is None


@pytest.mark.requirement("workflow_reruns.unknown")
async def test_what_is_said_of_a_call_in_doubt_is_its_outcome_unless_it_may_be_made_again():
    unknown = error(ErrorCode.UNKNOWN, Reason.OUTCOME_UNKNOWN, "who knows")
    known = taken(a=earlier(error=unknown, intent=INTENT, reused="run_0"))
    verdicts: list[ToolEnvelope | None] = [envelope(error=unknown), envelope(output=7), None]

    async def judge(intent: CallStarted, since: datetime) -> ToolEnvelope | None:
        assert intent == INTENT
        return verdicts.pop(0)

    refused, found, again = [await known.decide_repeat(ask(), (), judge) for _ in range(3)]

    assert isinstance(refused, ToolEnvelope)
    assert refused.error is not None
    assert "in run run_0, and whether it took effect is unknown" in refused.error.message
    assert isinstance(found, ToolEnvelope)
    assert (found.output, found.reused, found.attempts) == (7, "run_0", 0)
    assert again == "run_0/a"


@pytest.mark.requirement("workflow_reruns.unknown")
@pytest.mark.parametrize(
    ("reason", "effects", "repeat", "in_doubt"),
    [
        (Reason.OUTCOME_UNKNOWN, "writes", False, True),
        (Reason.TOOL_TIMEOUT, "writes", False, True),
        (Reason.OUTCOME_UNKNOWN, "writes", True, False),
        (Reason.OUTCOME_UNKNOWN, "reads", False, False),
        (Reason.TOOL_FAILED, "writes", False, False),
        (None, "writes", False, False),
    ],
)
def test_a_call_is_in_doubt_if_it_writes_and_nobody_knows_what_became_of_it(
    reason: Reason | None, effects: str, repeat: bool, in_doubt: bool
):
    failure = None if reason is None else error(ErrorCode.UNKNOWN, reason, "who knows")
    known = taken(Rerun(run_id="run_1", repeat_unknown=repeat))

    assert known.in_doubt(earlier(error=failure, side_effects=effects)) == in_doubt


@pytest.mark.requirement("workflow_reruns.nested")
def test_a_nested_workflow_takes_up_the_run_of_the_last_try_of_the_same_call():
    first = earlier(name="flow", error=FAILURE, child="run_2")
    known = taken(
        Rerun(run_id="run_1", repeat_unknown=True),
        a=first,
        a_try2=earlier(name="flow", error=FAILURE, child="run_3"),
        b=first,
        c=earlier(name="flow", error=FAILURE),
    )

    assert known.rerun_of(Nested("a", WORKFLOW, {})) == Rerun(run_id="run_3", repeat_unknown=True)
    assert known.rerun_of(Nested("b", WORKFLOW, {})) == Rerun(run_id="run_2", repeat_unknown=True)
    assert known.rerun_of(Nested("b", WORKFLOW, {"size": 2})) is None
    assert known.rerun_of(Nested("c", WORKFLOW, {})) is None


@pytest.mark.requirement("workflow_reruns.nested")
def test_what_is_no_workflow_or_stands_in_for_one_takes_up_nothing():
    known = taken(a=earlier(name="flow", error=FAILURE, child="run_2"))
    failed = FailedCall(tool="flow@1.0.0", content_hash="sha256:1", error=FAILURE)

    assert known.rerun_of(Nested("a", make_tool("flow"), {})) is None
    assert known.rerun_of(Nested("a", WORKFLOW, {}, instead_of=failed)) is None
