"""What a failed call that writes says of its effect, and what is not made again because of it."""

from typing import Any

import pytest

from tests.twins import Rig, make_definition, make_tool
from tests.unit.executor.test_failures import fails, in_turn, raises
from toolcrib.contracts import (
    DELEGATES,
    AgenticImplementation,
    ErrorCode,
    Fenced,
    LLMConfig,
    Reason,
    RetryPolicy,
    ToolEnvelope,
    ToolRevision,
)
from toolcrib.contracts.base.errors import Effect
from toolcrib.contracts.workflows import StepRetry
from toolcrib.core.executor import CallFailed, Outcome, error, has_acted
from toolcrib.core.runs.journal.log import NullJournal
from toolcrib.kinds.mcp.shape import McpImplementation
from toolcrib.workflows.run.step_calls import wait_before_try

AGENTIC = AgenticImplementation(mode="agentic", llm=LLMConfig(model="scripted:x"), system_prompt="")
ONCE_MORE = RetryPolicy(count=1)


def writing(**fields: Any) -> ToolRevision:
    chosen: dict[str, Any] = {"side_effects": "writes", "retry": ONCE_MORE, **fields}
    return make_tool(**chosen)


def failure_of(envelope: ToolEnvelope) -> Any:
    assert envelope.error is not None
    return envelope.error


@pytest.mark.requirement("effects.told")
@pytest.mark.parametrize(
    ("code", "effect"),
    [
        (ErrorCode.TIMEOUT, "unknown"),
        (ErrorCode.NETWORK_ERROR, "unknown"),
        (ErrorCode.PROVIDER_ERROR, "unknown"),
        (ErrorCode.VALIDATION_ERROR, "none"),
        (ErrorCode.AUTH_REQUIRED, "none"),
        (ErrorCode.POLICY_DENIED, "none"),
        (ErrorCode.UNKNOWN, "none"),
    ],
)
async def test_the_code_of_a_failure_says_whether_a_write_may_have_taken_effect(code: ErrorCode, effect: Effect):
    failure = failure_of(await Rig(writing(), behaviour=raises(fails(code))).run())
    read = failure_of(await Rig(make_tool(), behaviour=raises(fails(code))).run())

    assert (failure.code, failure.reason, failure.effect) == (code, Reason.TOOL_FAILED, effect)
    assert failure.message.endswith("check before calling it again") == (effect == "unknown")
    assert (read.effect, read.message) == ("none", "it failed")


@pytest.mark.requirement("effects.told")
async def test_a_write_whose_output_cannot_be_used_has_taken_effect():
    tool = writing(output_schema={"type": "string"})

    failure = failure_of(await Rig(tool, behaviour=lambda dispatch: Outcome(7)).run())

    assert (failure.reason, failure.effect) == (Reason.OUTPUT_SCHEMA_MISMATCH, "done")
    assert "it has taken effect, or some of it has" in failure.message


@pytest.mark.requirement("effects.unsent", "effects.told")
@pytest.mark.parametrize("code", [ErrorCode.NETWORK_ERROR, ErrorCode.TIMEOUT])
async def test_a_write_that_was_never_sent_is_tried_again_and_changed_nothing(code: ErrorCode):
    unsent = CallFailed(error(code, Reason.TOOL_FAILED, "not reached"), effect="none")

    envelope = await Rig(writing(), behaviour=raises(unsent)).run()

    assert (envelope.attempts, failure_of(envelope).effect) == (2, "none")


@pytest.mark.requirement("effects.not_again")
@pytest.mark.parametrize("effect", ["none", "done"])
async def test_a_failure_over_there_is_not_tried_again_whatever_is_known_of_it(effect: Effect):
    failure = CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, "no"), effect=effect)

    envelope = await Rig(writing(), behaviour=raises(failure)).run()

    assert (envelope.attempts, failure_of(envelope).effect) == (1, effect)


@pytest.mark.requirement("effects.nested", "effects.not_again")
@pytest.mark.parametrize(
    ("metadata", "attempts", "effect"),
    [
        ({"wrote": True}, 1, "done"),
        ({"wrote": False}, 2, "none"),
        ({"tool_calls": 0}, 2, "none"),
        ({"tool_calls": 2}, 1, "unknown"),
        ({}, 1, "unknown"),
    ],
)
async def test_a_nested_run_that_has_written_is_not_made_anew(metadata: Any, attempts: int, effect: Effect):
    failure = CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, "no"), metadata=metadata)
    assert AGENTIC.kind in DELEGATES

    envelope = await Rig(writing(implementation=AGENTIC), behaviour=raises(failure)).run()

    assert (envelope.attempts, failure_of(envelope).effect) == (attempts, effect)


@pytest.mark.requirement("effects.told")
async def test_what_a_nested_run_says_of_its_effect_is_not_said_again():
    inner = error(ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED, "lost", effect="unknown")

    failure = failure_of(
        await Rig(writing(implementation=AGENTIC), behaviour=raises(CallFailed(inner, metadata={"wrote": True}))).run()
    )

    assert (failure.message, failure.effect) == ("lost", "unknown")


@pytest.mark.requirement("effects.told")
async def test_a_refusal_of_a_later_attempt_says_nothing_of_the_one_before():
    keyed = writing(idempotency_key="header:Idempotency-Key")
    behaviour = in_turn(fails(ErrorCode.NETWORK_ERROR), fails(ErrorCode.VALIDATION_ERROR))

    failure = failure_of(await Rig(keyed, behaviour=behaviour).run())

    assert (failure.code, failure.effect) == (ErrorCode.VALIDATION_ERROR, "unknown")


@pytest.mark.requirement("effects.not_again", "effects.key")
async def test_a_key_that_does_not_reach_the_other_side_lets_nothing_be_called_twice():
    server = McpImplementation(provider="server", capability="tool", name="send", fingerprint={})
    tool = writing(implementation=server, idempotency_key="key")

    envelope = await Rig(tool, behaviour=raises(fails(ErrorCode.NETWORK_ERROR))).run()

    assert (envelope.attempts, failure_of(envelope).effect) == (1, "unknown")


@pytest.mark.requirement("effects.fence")
async def test_no_further_attempt_of_a_write_begins_once_another_process_may_have_the_run():
    unsent = CallFailed(error(ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED, "not reached"), effect="none")
    rig = Rig(writing(), behaviour=raises(unsent))
    rig.journal.fenced = True

    with pytest.raises(Fenced):
        await rig.run()

    assert len(rig.dispatcher.dispatched) == 1
    await NullJournal().fence()


@pytest.mark.requirement("effects.not_again")
@pytest.mark.parametrize(("effect", "codes", "wait"), [("unknown", (), None), ("done", (), None)])
def test_a_step_is_not_tried_again_after_what_may_have_taken_effect(effect: str, codes: Any, wait: float | None):
    lost = error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, "502", effect=effect)
    tool = make_definition("send", side_effects="writes")

    assert wait_before_try(StepRetry(count=3, base_s=1, codes=codes), tool, lost, 1) == wait
    assert wait_before_try(StepRetry(count=3, base_s=1), tool.model_copy(update={"idempotent": True}), lost, 1) == 1


@pytest.mark.requirement("effects.not_again")
@pytest.mark.parametrize(("effect", "wait"), [("unknown", 1), ("done", None)])
def test_an_author_may_risk_what_is_unknown_by_naming_its_code_but_not_what_is_done(effect: str, wait: float | None):
    lost = error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, "502", effect=effect)
    retry = StepRetry(count=3, base_s=1, codes=(ErrorCode.PROVIDER_ERROR,))

    assert wait_before_try(retry, make_definition("send", side_effects="writes"), lost, 1) == wait


@pytest.mark.requirement("effects.nested")
async def test_a_call_has_acted_if_it_wrote_or_may_have_here():
    done = await Rig(writing(), behaviour=lambda dispatch: Outcome("done")).run()
    lost = await Rig(writing(), behaviour=raises(fails(ErrorCode.NETWORK_ERROR))).run()
    refused = await Rig(writing(), behaviour=raises(fails(ErrorCode.VALIDATION_ERROR))).run()
    read = await Rig(make_tool(), behaviour=lambda dispatch: Outcome("done")).run()
    idle = done.model_copy(update={"metadata": {"wrote": False}})
    taken = done.model_copy(update={"reused": "run_0"})

    assert [has_acted(each) for each in (done, lost, refused, read, idle, taken)] == [True, True, *[False] * 4]
