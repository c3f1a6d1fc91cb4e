"""What a trace looks like."""

from decimal import Decimal
from io import StringIO
from textwrap import dedent

import pytest

from tests.unit.runs_trace.house import House, finished, started, written
from tests.unit.runs_trace.test_trace import answer_of, calls, plan
from toolcrib import Limits
from toolcrib.contracts import (
    ClientResult,
    ErrorCode,
    Json,
    LLMStep,
    ModelError,
    ProgressMade,
    RunFinished,
    RunResumed,
    SignalAwaited,
    SignalReceived,
    ToolError,
    Trace,
)
from toolcrib.core.runs import trace_of
from toolcrib.interfaces.cli.render.console import console, duration, money
from toolcrib.interfaces.cli.render.tree import draw
from toolcrib.llm import ToolCall


def text(trace: Trace) -> str:
    file = StringIO()
    console(file).print(draw(trace))
    return "\n".join(line.rstrip() for line in file.getvalue().replace(trace.run_id, "RUN").splitlines()) + "\n"


@pytest.mark.requirement("cli.tree")
async def test_a_deterministic_run_is_drawn_whole() -> None:
    house = House(plan)
    tool = house.crib.agentic_tool("finder", mode="deterministic", model="scripted:model", steps=["search"])
    async with house.crib:
        trace = (await tool("Find Acme's deals")).trace

    tokens = [f"{step.tokens} (input: {step.input_tokens}, output: {step.output_tokens})" for step in models(trace)]
    first = '{"reading": [{"words": "Find", "use": "request"}, {"words": "Acme\'s", "use": "condition",'
    last = '{"words": "deals", "use": "request"}]'
    assert text(trace) == dedent(f"""\
        Agentic Tool: finder@1.0.0 (deterministic)
        Run: RUN
        Request: "Find Acme's deals"
        Status: completed ✓
        Duration: 456ms
        Cost: $0
        Tokens: {trace.tokens}

        Execution Trace:
        ├── [1] Embedded LLM Planning (scripted:model)
        │   ├── Input: "Task: Find Acme's deals"
        │   ├── Reasoning: "Acme's deals are wanted."
        │   ├── Decision: {first} "value":
        │   │   "Acme"}}, {last}, "search": {{"input": {{"company": "Acme"}}}}}}
        │   ├── Tokens: {tokens[0]}
        │   ├── Cost: $0
        │   └── Duration: 0ms
        ├── [2] Progress: plan_settled
        │   └── Data: {{"answer": {first}
        │       "value": "Acme"}}, {last}, "reasoning": "Acme's deals are wan… (24 characters)",
        │       "search": {{"input": {{"compan… (456 characters)
        ├── [3] Tool Call: search
        │   ├── Parameters: {{"company": "Acme"}}
        │   ├── Result: 3 items
        │   └── Duration: 456ms
        └── [4] Embedded LLM Formatting (scripted:model)
            ├── Input: "Task: Find Acme's deals"
            ├── Decision: "Found 3 deals."
            ├── Tokens: {tokens[1]}
            ├── Cost: $0
            └── Duration: 0ms

        Final Response:
        "Found 3 deals."
        """)


def models(trace: Trace) -> list[LLMStep]:
    return [step for step in trace.steps if isinstance(step, LLMStep)]


@pytest.mark.requirement("cli.tree")
async def test_waiting_deciding_and_resuming_are_drawn() -> None:
    house = House([calls(ToolCall("a", "delete", '{"ids":["d1","d2"]}')), "Deleted."])
    async with house.crib:
        waiting = await house.agentic()("Delete d1 and d2")
        before = text(await house.crib.trace(waiting.run_id))
        await house.crib.decide(waiting.run_id, "t1.c1", approve=True, edited_input={"ids": ["d1"]}, reason="mine")
        house.clock.advance(3600)
        after = text((await house.crib.resume(waiting.run_id)).trace)

    assert "Status: awaiting_approval\n" in before
    assert "├── [2] Approval: delete waiting\n│   ├── Position: t1.c1\n" in before
    assert "└── [3] Suspended: awaiting_approval\n    └── Waiting for: approval:t1.c1\n" in before
    assert "Duration: 60m 01s (active 1.1s)\n" in after
    assert "├── [2] Approval: delete edited\n" in after
    assert '│   ├── Edited: {"ids": ["d1"]}\n│   ├── Reason: "mine"\n' in after
    assert "├── [4] Resumed: approval\n" in after
    assert '│   ├── Approved: {"ids": ["d1"]}\n│   ├── Result: deleted: 1\n' in after


@pytest.mark.requirement("cli.tree")
async def test_a_client_hand_off_is_drawn_with_what_came_back() -> None:
    show = calls(ToolCall("a", "show", '{"text":"hello"}'))
    house = House(lambda request: "Shown." if len(request.messages) > 1 else show)
    async with house.crib:
        tool = house.agentic()
        good, bad = await tool("Say hello"), await tool("Say hello")
        await house.crib.return_client_result(good.run_id, "t1.c1", ClientResult(output={"seen": True}))
        off = ToolError(code=ErrorCode.UNKNOWN, message="the screen is off")
        await house.crib.return_client_result(bad.run_id, "t1.c1", ClientResult(error=off))
        shown, failed = [text((await house.crib.resume(run.run_id)).trace) for run in (good, bad)]

    assert '│   ├── Payload: {"text": "hello"}\n│   ├── Result: seen: true\n' in shown
    assert "Client: show error\n" in failed
    assert "│   ├── Error: UNKNOWN: the screen is off\n" in failed


@pytest.mark.requirement("cli.tree")
async def test_attempts_failures_and_limits_are_drawn() -> None:
    broken = [ModelError("overloaded", "too busy")] * 4
    house = House(
        [ModelError("overloaded", "too busy"), calls(ToolCall("a", "search", '{"company":"Broken"}')), *broken]
    )
    async with house.crib:
        tool = house.agentic(limits=Limits(max_iterations=1))
        limited = text((await tool("look")).trace)
        failed = text((await tool("look")).trace)

    assert "│   ├── Attempt 1: overloaded: too busy; tried again after" in limited
    assert "├── [2] Tool Call: search error\n" in limited
    assert "│   ├── Error: UNKNOWN: tool 'search' raised ValueError: the index is broken\n" in limited
    assert "└── [3] Limit: max_iterations\n    └── Message: limit max_iterations is 1" in limited
    assert "Status: incomplete ✗ (max_iterations)\n" in limited
    assert "Warning: limit max_iterations is 1" in limited
    assert "Status: failed ✗ (error)\n" in failed
    assert "Attempt 4: overloaded: too busy; gave up\n" in failed
    assert "Error:\nPROVIDER_ERROR: too busy\n" in failed


@pytest.mark.requirement("cli.tree")
async def test_a_nested_run_is_drawn_under_its_call() -> None:
    house = House(answer_of)
    house.agentic(name="inner", tools=["search"])
    async with house.crib:
        result = await house.agentic(name="outer", tools=["inner"])("outer task")
        drawn = text(await house.crib.trace(result.run_id))

    assert "│   └── Agentic Tool: inner@1.0.0 (agentic)\n" in drawn
    assert "│       ├── [2] Tool Call: search\n" in drawn


@pytest.mark.requirement("cli.tree")
def test_crashes_caches_pages_signals_and_progress_are_drawn() -> None:
    crash = RunResumed(epoch=2, cause="crash")
    again = started(attempt=2)
    done = finished()
    paging = {"paging": {"pages": 2, "items": 9, "complete": False}}
    envelope = done.envelope.model_copy(
        update={"cached": True, "attempts": 3, "metadata": paging, "cost_usd": Decimal("0.25")}
    )
    done = done.model_copy(update={"envelope": envelope})
    drawn = text(
        trace_of(
            written(
                started(),
                crash,
                again,
                done,
                SignalAwaited(name="go"),
                SignalReceived(name="go", payload={"fast": True}, made_by="ann"),
                SignalAwaited(name="stop"),
                ProgressMade(key="half", kind="percent", data=50),
                started("t1.c2"),
                seconds=[1, 60, 61, 125, 125],
            )
        )
    )

    assert "Status: running\nDuration: 2m 05s (active" in drawn
    assert "│   ├── Result: 0 items\n│   ├── Pages: 2, more were left\n│   ├── Attempts: 3\n" in drawn
    assert (
        "│   ├── Repeated: once after a crash\n│   ├── Cached: yes\n│   ├── Duration: 2.0s\n│   └── Cost: $0.25\n"
        in drawn
    )
    assert '├── [3] Signal: go received\n│   ├── Payload: {"fast": true}\n│   └── By: ann\n' in drawn
    assert "├── [4] Signal: stop waiting\n├── [5] Progress: percent\n│   └── Data: 50\n" in drawn
    assert '└── [6] Tool Call: search running\n    └── Parameters: {"company": "Acme"}\n' in drawn


@pytest.mark.requirement("cli.tree")
def test_results_and_answers_of_any_shape_have_a_line() -> None:
    results: list[tuple[Json, str]] = [
        ({"total": 2, "deep": {"a": 1}, "none": {}, "list": [1, 2], "cut": ["a", "… 8 more of 9"], "name": "x"},
         "total: 2, deep: {…}, none: {}, list: 2 items, cut: 9 items, name: x"),
        ("plain", "plain"),
        (None, "null"),
        ([], "0 items"),
    ]  # fmt: skip
    for result, line in results:
        done = finished()
        done = done.model_copy(update={"envelope": done.envelope.model_copy(update={"output": result})})
        assert f"Result: {line}\n" in text(trace_of(written(started(), done)))

    def answered(output: object) -> str:
        end = RunFinished(status="completed", stop_reason="final_answer", output=output)
        return text(trace_of(written(end))).partition("Final Response:\n")[2]

    assert answered({"question": "Which one?"}) == '"Which one?"\n'
    assert answered({"n": 1}) == '{\n  "n": 1\n}\n'
    assert answered([1]) == "[\n  1\n]\n"


@pytest.mark.requirement("cli.no_injection")
def test_control_characters_and_markup_from_outside_are_only_text() -> None:
    evil = "\x1b]0;owned\x07\x1b[2J[bold red]hi[/]\u009b31m"
    end = RunFinished(status="completed", stop_reason="final_answer", output={"summary": evil}, warnings=(evil,))
    done = finished()
    envelope = done.envelope.model_copy(update={"output": {"text": evil}})
    drawn = text(trace_of(written(started(), done.model_copy(update={"envelope": envelope}), end)))

    assert drawn.count("[bold red]hi[/]") == 3
    assert not [character for character in drawn if not character.isprintable() and character != "\n"]


@pytest.mark.requirement("cli.tree")
@pytest.mark.parametrize(
    ("milliseconds", "shown"), [(None, "…"), (0, "0ms"), (999, "999ms"), (3200, "3.2s"), (125_000, "2m 05s")]
)
def test_durations_are_short(milliseconds: int | None, shown: str) -> None:
    assert duration(milliseconds) == shown


@pytest.mark.requirement("cli.tree")
def test_money_is_exact_to_a_millionth_and_unknown_is_no_number() -> None:
    assert [money(Decimal(cost)) for cost in ("0", "0.004", "1.5", "10", "0.0000004")] == [
        "$0",
        "$0.004",
        "$1.5",
        "$10",
        "$0",
    ]
    assert money(None) == "unknown"
