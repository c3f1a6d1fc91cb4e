"""How tools fail: crashes, time-outs, retries, and what is not a failure of the tool."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.twins import Rig, echo, make_tool
from toolcrib.contracts import (
    ErrorCode,
    ErrorRule,
    Fenced,
    JsonObject,
    Reason,
    RetryPolicy,
    SideEffects,
    ToolEnvelope,
    ToolError,
)
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, error
from toolcrib.core.executor.retries import with_reason
from toolcrib.core.runs import Suspended


class Mute(Exception):
    """An exception that cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no")


def raises(crash: BaseException) -> Callable[[Dispatch], Outcome]:
    def behaviour(dispatch: Dispatch) -> Outcome:
        raise crash

    return behaviour


def fails(code: ErrorCode, *, http_status: int | None = None, retry_after_s: float | None = None) -> CallFailed:
    failure = error(code, Reason.TOOL_FAILED, "it failed").model_copy(update={"retry_after_s": retry_after_s})
    return CallFailed(failure, http_status=http_status)


def in_turn(*outcomes: BaseException | Outcome) -> Callable[[Dispatch], Outcome]:
    """A tool that fails or succeeds in this order; the last for ever."""

    def behaviour(dispatch: Dispatch) -> Outcome:
        outcome = outcomes[min(dispatch.attempt, len(outcomes)) - 1]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return behaviour


def outcome(envelope: ToolEnvelope) -> tuple[str | None, str | None]:
    assert envelope.error is not None
    return envelope.error.code, envelope.error.reason


@pytest.mark.requirement("executor.failures")
@pytest.mark.parametrize(
    ("crash", "code", "reason", "said"),
    [
        (ValueError("no such stage"), ErrorCode.UNKNOWN, Reason.TOOL_FAILED, "ValueError: no such stage"),
        (ZeroDivisionError(), ErrorCode.UNKNOWN, Reason.TOOL_FAILED, "raised ZeroDivisionError"),
        (TimeoutError("read"), ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT, "TimeoutError: read"),
        (ConnectionResetError("by peer"), ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED, "ConnectionResetError: by peer"),
        (asyncio.CancelledError(), ErrorCode.UNKNOWN, Reason.CANCELLED, "CancelledError"),
        (SystemExit(3), ErrorCode.UNKNOWN, Reason.TOOL_FAILED, "SystemExit: 3"),
        (ExceptionGroup("two", [ValueError()]), ErrorCode.UNKNOWN, Reason.TOOL_FAILED, "two (1 sub-exception)"),
        (Mute(), ErrorCode.UNKNOWN, Reason.TOOL_FAILED, "Mute"),
        (ValueError("\ud800!"), ErrorCode.UNKNOWN, Reason.TOOL_FAILED, "ValueError: ?!"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
async def test_an_exception_of_a_tool_is_an_error_in_the_envelope(
    crash: BaseException, code: ErrorCode, reason: Reason, said: str
):
    envelope = await Rig(make_tool(), behaviour=raises(crash)).run()

    assert outcome(envelope) == (code, reason)
    assert envelope.error is not None
    assert "tool 'look_up' raised " in envelope.error.message
    assert said in envelope.error.message
    assert (envelope.status, envelope.output, envelope.attempts) == ("error", None, 1)


@pytest.mark.requirement("executor.failures")
async def test_a_message_is_cut_and_says_how_long_it_was():
    envelope = await Rig(make_tool(), behaviour=raises(ValueError("x" * 10_000))).run()

    assert envelope.error is not None
    assert len(envelope.error.message) < 2_100
    assert envelope.error.message.endswith("… (10034 characters)")


@pytest.mark.requirement("executor.failures")
@pytest.mark.parametrize("code", list(ErrorCode))
async def test_a_failure_that_a_runtime_describes_is_told_as_it_is(code: ErrorCode):
    failure = CallFailed(error(code, Reason.REQUEST_REFUSED, "no", hint=1), http_status=418, metadata={"page": 1})

    envelope = await Rig(make_tool(), behaviour=raises(failure)).run()

    assert outcome(envelope) == (code, Reason.REQUEST_REFUSED)
    assert envelope.error is not None
    assert envelope.error.details == {"reason": "request_refused", "hint": 1}
    assert (envelope.http_status, envelope.metadata) == (418, {"page": 1})


@pytest.mark.requirement("executor.failures")
async def test_a_failure_without_details_is_told_without():
    failure = fails(ErrorCode.UNKNOWN)
    failure.error = failure.error.model_copy(update={"details": None})

    envelope = await Rig(make_tool(), behaviour=raises(failure)).run()

    assert envelope.error is not None
    assert envelope.error.details is None


@pytest.mark.requirement("executor.passes_through")
@pytest.mark.parametrize("signal", [Suspended("awaiting_client", "client:t1.c1"), Fenced("lost"), KeyboardInterrupt()])
async def test_what_is_not_about_the_tool_passes_through_and_frees_the_lane(signal: BaseException):
    rig = Rig(make_tool(sequential=True), behaviour=raises(signal))

    with pytest.raises(type(signal)):
        await rig.run()

    rig.dispatcher.behaviour = echo
    assert (await rig.run()).ok


@pytest.mark.requirement("executor.passes_through")
async def test_cancelling_a_call_cancels_its_tool_and_gives_no_envelope():
    async def hang(dispatch: Dispatch) -> Outcome:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(dispatch.position)
        return Outcome(1)

    started, stopped = asyncio.Event(), list[str]()
    rig = Rig(make_tool(), behaviour=hang)
    task = asyncio.create_task(rig.run())
    await started.wait()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped == ["t1.c1"]
    assert rig.budget.tool_calls == 1


async def hang(dispatch: Dispatch) -> Outcome:
    return Outcome(await asyncio.Event().wait())


async def stall_once(dispatch: Dispatch) -> Outcome:
    try:
        return await hang(dispatch)
    except asyncio.CancelledError:
        raise ValueError("stopped") from None


@pytest.mark.requirement("executor.failures", "executor.logged")
async def test_the_log_of_an_exception_names_the_run_and_the_call_and_tells_no_secret(
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level("INFO", logger="toolcrib")
    envelope = await Rig(make_tool(), behaviour=raises(ValueError("key sk-123"))).run()

    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"run {envelope.run_id}, call {envelope.call_id}: tool 'look_up' at {envelope.position} ")
    assert f"raised ValueError in {__file__}, line " in line
    assert "sk-123" not in line


@pytest.mark.requirement("executor.timeout")
async def test_a_tool_that_does_not_end_is_stopped():
    rig = Rig(make_tool(timeout_s=0.001, retry=RetryPolicy(count=3)), behaviour=hang)

    envelope = await rig.run()

    assert outcome(envelope) == (ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT)
    assert envelope.error is not None
    assert envelope.error.message.endswith("within timeout_s=0.001")
    assert envelope.attempts == 1


@pytest.mark.requirement("executor.timeout", "effects.told")
@pytest.mark.parametrize(
    ("side_effects", "says", "details"),
    [
        ("none", "within timeout_s=0.001", {"reason": "tool_timeout"}),
        ("reads", "within timeout_s=0.001", {"reason": "tool_timeout"}),
        ("writes", "timeout_s=0.001; the effect is unknown", {"reason": "tool_timeout", "effect": "unknown"}),
    ],
)
async def test_the_time_out_of_a_read_is_no_unknown_effect(side_effects: SideEffects, says: str, details: JsonObject):
    rig = Rig(make_tool(timeout_s=0.001, side_effects=side_effects), behaviour=hang)

    envelope = await rig.run()

    assert envelope.error is not None
    assert envelope.error.message.endswith(says)
    assert envelope.error.details == details


@pytest.mark.requirement("executor.timeout")
async def test_a_tool_that_fails_when_it_is_stopped_has_failed_in_its_own_way():
    envelope = await Rig(make_tool(timeout_s=0.001), behaviour=stall_once).run()

    assert outcome(envelope) == (ErrorCode.UNKNOWN, Reason.TOOL_FAILED)


@pytest.mark.requirement("executor.timeout", "executor.retries")
async def test_a_tools_own_time_out_may_be_retried():
    rig = Rig(make_tool(retry=RetryPolicy(count=1)), behaviour=in_turn(TimeoutError(), Outcome("late")))

    envelope = await rig.run()

    assert (envelope.output, envelope.attempts) == ("late", 2)


@pytest.mark.requirement("executor.timeout", "executor.retries")
async def test_the_authors_message_explains_a_time_out_too():
    rule = ErrorRule(when="TIMEOUT", action="fail", message="The archive sleeps at night.")

    envelope = await Rig(make_tool(timeout_s=0.001, error_handling=(rule,)), behaviour=hang).run()

    assert envelope.error is not None
    assert envelope.error.message.startswith("The archive sleeps at night. (tool 'look_up' did not end")


@pytest.mark.requirement("executor.retries")
@pytest.mark.parametrize(
    ("backoff", "naps"), [("none", [0, 0, 0, 0]), ("linear", [1, 2, 3, 3]), ("exponential", [1, 2, 3, 3])]
)
async def test_attempts_are_repeated_with_the_tools_back_off(backoff: Any, naps: list[float]):
    policy = RetryPolicy(count=4, backoff=backoff, base_s=1, max_s=3)
    rig = Rig(make_tool(retry=policy), behaviour=raises(fails(ErrorCode.NETWORK_ERROR)))

    envelope = await rig.run()

    assert rig.clock.naps == naps
    assert envelope.attempts == 5
    assert envelope.timings.execute == sum(naps)
    assert [dispatch.attempt for dispatch in rig.dispatcher.dispatched] == [1, 2, 3, 4, 5]
    assert {dispatch.idempotency_key for dispatch in rig.dispatcher.dispatched} == {"run_1/t1.c1"}
    assert len(rig.journal.intents) == rig.budget.tool_calls == 1


@pytest.mark.requirement("executor.retries")
@pytest.mark.parametrize(("asked", "naps"), [(5, [5]), (0.1, [1]), (31, []), (float("inf"), [])])
async def test_the_other_sides_retry_after_is_honoured_up_to_the_longest_wait(asked: float, naps: list[float]):
    policy = RetryPolicy(count=1, base_s=1, max_s=30)
    rig = Rig(make_tool(retry=policy), behaviour=raises(fails(ErrorCode.RATE_LIMIT, retry_after_s=asked)))

    await rig.run()

    assert rig.clock.naps == naps


@pytest.mark.requirement("executor.retries")
@pytest.mark.parametrize("code", list(ErrorCode))
async def test_without_a_rule_only_what_may_pass_is_repeated(code: ErrorCode):
    rig = Rig(make_tool(retry=RetryPolicy(count=1)), behaviour=raises(fails(code)))

    envelope = await rig.run()

    passing = {ErrorCode.RATE_LIMIT, ErrorCode.TIMEOUT, ErrorCode.PROVIDER_ERROR, ErrorCode.NETWORK_ERROR}
    assert envelope.attempts == (2 if code in passing else 1)


@pytest.mark.requirement("executor.retries")
async def test_an_answer_that_cannot_be_used_is_not_asked_for_again_unless_a_rule_says_so():
    unusable = CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, "no JSON"), http_status=200)
    tool = make_tool(retry=RetryPolicy(count=1))
    ruled = make_tool(retry=RetryPolicy(count=1), error_handling=(ErrorRule(when="2xx", action="retry"),))

    assert (await Rig(tool, behaviour=raises(unusable)).run()).attempts == 1
    assert (await Rig(ruled, behaviour=raises(unusable)).run()).attempts == 2


@pytest.mark.requirement("executor.retries")
@pytest.mark.parametrize(("own", "attempts"), [(RetryPolicy(), 3), (RetryPolicy(count=1), 2)])
async def test_a_tool_without_retries_of_its_own_is_repeated_as_the_failure_says(own: RetryPolicy, attempts: int):
    failure = fails(ErrorCode.NETWORK_ERROR)
    failure.retry = RetryPolicy(count=2)

    assert (await Rig(make_tool(retry=own), behaviour=raises(failure)).run()).attempts == attempts


def repeatable() -> Iterator[Any]:
    from toolcrib.contracts import AgenticImplementation, LLMConfig

    agentic = AgenticImplementation(mode="agentic", llm=LLMConfig(model="scripted:x"), system_prompt="")
    retry = RetryPolicy(count=1)
    yield make_tool(side_effects="none", retry=retry), True
    yield make_tool(side_effects="writes", retry=retry), False
    yield make_tool(side_effects="writes", retry=retry, idempotent=True), True
    yield make_tool(side_effects="writes", retry=retry, idempotency_key="header:Key"), True
    yield make_tool(side_effects="writes", retry=retry, implementation=agentic), False
    yield make_tool(side_effects="writes", retry=retry, implementation=agentic, idempotent=True), True


@pytest.mark.requirement("executor.retries")
@pytest.mark.parametrize(("tool", "again"), list(repeatable()))
async def test_a_write_is_repeated_only_if_that_cannot_do_twice(tool: Any, again: bool):
    rig = Rig(tool, behaviour=raises(fails(ErrorCode.NETWORK_ERROR)))

    assert (await rig.run()).attempts == (2 if again else 1)


@pytest.mark.requirement("executor.retries")
async def test_a_write_that_was_refused_by_rate_is_repeated():
    tool = make_tool(side_effects="writes", retry=RetryPolicy(count=1))

    envelope = await Rig(tool, behaviour=in_turn(fails(ErrorCode.RATE_LIMIT), Outcome("done"))).run()

    assert (envelope.output, envelope.attempts) == ("done", 2)


@pytest.mark.requirement("executor.retries")
@pytest.mark.parametrize(
    ("when", "action", "attempts"),
    [("503", "fail", 1), ("5xx", "clarify", 1), ("503", "retry", 2), ("PROVIDER_ERROR", "fail", 1), ("404", "fail", 2)],
)
async def test_a_rule_for_a_status_a_class_or_a_code_decides(when: str, action: Any, attempts: int):
    rule = ErrorRule(when=when, action=action, message="Ask the owner.")
    tool = make_tool(retry=RetryPolicy(count=1), error_handling=(rule,))

    envelope = await Rig(tool, behaviour=raises(fails(ErrorCode.PROVIDER_ERROR, http_status=503))).run()

    assert envelope.attempts == attempts
    assert envelope.error is not None
    told = "it failed" if when == "404" else "Ask the owner. (it failed)"
    assert envelope.error.message == told


@pytest.mark.requirement("executor.retries")
async def test_a_rule_may_retry_what_otherwise_would_not_be_and_the_first_rule_counts():
    rules = (ErrorRule(when="UNKNOWN", action="retry"), ErrorRule(when="UNKNOWN", action="fail"))
    tool = make_tool(retry=RetryPolicy(count=1), error_handling=rules)

    assert (await Rig(tool, behaviour=raises(ValueError())).run()).attempts == 2


@pytest.mark.requirement("executor.isolation")
async def test_each_attempt_gets_the_arguments_as_they_were_validated():
    def vandal(dispatch: Dispatch) -> Outcome:
        seen.append(dict(dispatch.input))
        dispatch.input.clear()
        raise fails(ErrorCode.NETWORK_ERROR)

    seen: list[Any] = []
    await Rig(make_tool(retry=RetryPolicy(count=1)), behaviour=vandal).run(arguments={"a": 1})

    assert seen == [{"a": 1}, {"a": 1}]


@pytest.mark.requirement("executor.failures")
def test_the_tools_exit_does_not_end_the_process():
    rig = Rig(make_tool(), behaviour=lambda dispatch: sys.exit("bye"))

    envelope = asyncio.run(rig.run())

    assert outcome(envelope) == (ErrorCode.UNKNOWN, Reason.TOOL_FAILED)


@pytest.mark.requirement("executor.failures")
def test_an_error_from_outside_without_a_known_reason_gets_the_one_that_is_closest_to_its_code():
    told = ToolError(code=ErrorCode.TIMEOUT, message="late", details={"reason": "of its own", "at": 7})

    assert with_reason(told).details == {"reason": Reason.TOOL_TIMEOUT, "at": 7}
    assert with_reason(with_reason(told)) == with_reason(told)
