"""Steps of journals written by hand: what takes a crash, a signal or days to happen for real."""

from datetime import timedelta

import pytest

from tests.unit.runs_trace.house import AT, finished, started, written
from toolcrib.contracts import (
    ApprovalDecided,
    ApprovalRequested,
    ApprovalStep,
    ApprovalWithdrawn,
    InvalidInput,
    LLMStep,
    ModelStarted,
    ProgressMade,
    ProgressStep,
    RunFinished,
    RunResumed,
    RunSuspended,
    SignalAwaited,
    SignalReceived,
    SignalStep,
    ToolStep,
)
from toolcrib.core.runs import clip_text, shorten_json, trace_of

CRASH = RunResumed(epoch=2, cause="crash")


@pytest.mark.requirement("trace.crash")
def test_a_call_repeated_after_a_crash_is_one_step_with_a_mark() -> None:
    again = started(attempt=2)
    trace = trace_of(written(started(), CRASH, again, CRASH, again, finished(), seconds=[1, 60, 61, 62, 63, 65]))

    call, *resumptions = trace.steps
    assert isinstance(call, ToolStep)
    assert (call.status, call.repeats, call.latency_ms) == ("success", 2, 2000)
    assert call.started_at == AT + timedelta(seconds=1)
    assert [step.type for step in resumptions] == ["resumption", "resumption"]


@pytest.mark.requirement("trace.crash")
def test_a_call_started_anew_after_a_wait_was_not_repeated_by_a_crash() -> None:
    wait = RunSuspended(status="awaiting_client", waiting_for=("child:run_2",))
    back = RunResumed(epoch=2, cause="signal")
    call = trace_of(written(started(), wait, back, started(attempt=2), finished())).steps[0]

    assert isinstance(call, ToolStep)
    assert call.repeats == 0


@pytest.mark.requirement("trace.model_calls", "trace.crash")
def test_a_model_call_sent_again_after_a_crash_is_one_step() -> None:
    sent = ModelStarted(position="t1.llm", purpose="tool_selection", model="m:1")
    trace = trace_of(written(sent, CRASH, sent.model_copy(update={"attempt": 2})))

    call, _ = trace.steps
    assert isinstance(call, LLMStep)
    assert (call.status, call.attempts, call.input) == ("running", 2, "")
    assert trace.status == "running"


@pytest.mark.requirement("trace.steps")
def test_what_was_under_way_when_the_run_ended_is_no_longer_running() -> None:
    sent = ModelStarted(position="t1.llm", purpose="tool_selection", model="m:1")
    end = RunFinished(status="timed_out", stop_reason="timeout")
    trace = trace_of(written(started(), sent, end))

    assert [getattr(step, "status", None) for step in trace.steps] == ["error", "error"]
    assert (trace.status, trace.stop_reason, trace.cost, trace.cost_unknown) == ("timed_out", "timeout", 0, False)


@pytest.mark.requirement("trace.steps")
def test_nobody_deciding_in_time_is_an_expired_approval() -> None:
    asked = ApprovalRequested(
        position="t1.c1",
        call_id="sha256:1",
        name="delete",
        version="1.0.0",
        input={},
        arguments_hash="sha256:2",
        content_hash="sha256:3",
    )
    over = ApprovalDecided(position="t1.c1", decision=None, made_by="clock")
    [step] = trace_of(written(asked, over)).steps

    assert isinstance(step, ApprovalStep)
    assert (step.status, step.made_by, step.reason) == ("expired", "clock", None)


@pytest.mark.requirement("trace.steps")
def test_signals_are_steps_whether_they_were_waited_for_or_not() -> None:
    trace = trace_of(
        written(
            SignalAwaited(name="go", wake_at=AT + timedelta(days=1)),
            SignalAwaited(name="sleep:nap", wake_at=AT + timedelta(seconds=5)),
            SignalReceived(name="go", payload={"by": "hand"}, made_by="ann"),
            SignalReceived(name="sleep:nap", payload=None, made_by="clock"),
            SignalReceived(name="early", payload={}, made_by="bob"),
            SignalAwaited(name="never"),
        )
    )

    found = [(step.name, step.status, step.made_by) for step in trace.steps if isinstance(step, SignalStep)]
    assert found == [
        ("go", "received", "ann"),
        ("sleep:nap", "timed_out", "clock"),
        ("early", "received", "bob"),
        ("never", "waiting", None),
    ]


@pytest.mark.requirement("trace.steps")
def test_progress_is_a_step() -> None:
    [step] = trace_of(written(ProgressMade(key="half", kind="percent", data=50))).steps

    assert isinstance(step, ProgressStep)
    assert (step.kind, step.data, step.number) == ("percent", 50, 1)


@pytest.mark.requirement("trace.any_moment")
def test_events_without_their_beginning_are_refused() -> None:
    with pytest.raises(InvalidInput, match="run_started"):
        trace_of([])
    with pytest.raises(InvalidInput, match="run_started"):
        trace_of(written(started())[1:])


@pytest.mark.requirement("trace.tool_calls")
def test_a_large_result_is_shortened_to_its_first_items_and_what_was_left_out() -> None:
    deals = [{"id": str(number), "note": "x" * 400} for number in range(237)]
    short = shorten_json({"total": 237, "results": deals}, 2000)

    assert short["total"] == 237
    *kept, rest = short["results"]
    assert rest == f"… {237 - len(kept)} more of 237"
    assert kept[0]["id"] == "0"
    assert kept[0]["note"].endswith("… (400 characters)")


@pytest.mark.requirement("trace.tool_calls")
def test_every_batch_is_kept_before_the_items_of_the_first() -> None:
    batches = [{"updated": 100, "results": [{"id": str(number)} for number in range(100)]} for _ in range(12)]
    short = shorten_json(batches, 3000)

    assert [batch["updated"] for batch in short] == [100] * 12
    assert shorten_json(batches[0], 10_000) == batches[0]
    assert clip_text("abc", 3) == "abc"


@pytest.mark.requirement("trace.steps")
def test_a_request_that_was_withdrawn_is_a_step_that_says_why() -> None:
    asked = ApprovalRequested(
        position="t1.c1", call_id="c", name="pay", version="1.0.0", input={}, arguments_hash="a", content_hash="b"
    )
    withdrawn = ApprovalWithdrawn(position="t1.c1", number=1, reason="the arguments changed")
    (step,) = trace_of(written(asked, withdrawn)).steps

    assert isinstance(step, ApprovalStep)
    assert (step.status, step.reason) == ("cancelled", "the arguments changed")
