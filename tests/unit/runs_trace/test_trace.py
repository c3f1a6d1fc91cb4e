"""Traces of runs that really ran, in memory, with scripted models."""

import json
from datetime import datetime
from decimal import Decimal

import pytest

from tests.unit.runs_trace.house import MODEL, House
from toolcrib import Limits, ScriptedModel
from toolcrib.contracts import (
    AgentDefinition,
    ApprovalStep,
    ClientResult,
    ErrorCode,
    HandoffStep,
    LimitStep,
    LLMConfig,
    LLMStep,
    ModelError,
    NotFound,
    ProgressStep,
    ResumptionStep,
    SuspensionStep,
    ToolError,
    ToolStep,
    Trace,
)
from toolcrib.core.runs import trace_of
from toolcrib.llm import Cost, Message, Request, Response, Text, Thinking, TokenUsage, ToolCall, assistant


def calls(*wanted: ToolCall, text: str = "", thinking: str = "") -> Message:
    parts = (Thinking(thinking), Text(text)) if thinking else (Text(text),)
    return Message("assistant", (*parts, *wanted))


def plan(request: Request) -> str:
    if request.output_name == "plan":
        reading = [
            {"words": "Find", "use": "request"},
            {"words": "Acme's", "use": "condition", "value": "Acme"},
            {"words": "deals", "use": "request"},
        ]
        steps = {"search": {"input": {"company": "Acme"}}}
        return json.dumps({"reading": reading, "reasoning": "Acme's deals are wanted.", **steps})
    return json.dumps({"summary": "Found 3 deals."})


@pytest.mark.requirement("trace.steps", "trace.model_calls", "trace.tool_calls", "trace.header")
async def test_a_deterministic_run_is_a_plan_its_calls_and_an_answer() -> None:
    house = House(plan)
    tool = house.crib.agentic_tool("finder", mode="deterministic", model=MODEL, steps=["search"])
    async with house.crib:
        result = await tool("Find Acme's deals")
        trace = await house.crib.trace(result.run_id)

    assert trace == result.trace
    assert (trace.tool, trace.kind, trace.mode, trace.task) == (
        "finder@1.0.0",
        "agentic",
        "deterministic",
        "Find Acme's deals",
    )
    assert (trace.status, trace.stop_reason, trace.duration_ms, trace.active_ms) == (
        "completed",
        "final_answer",
        456,
        456,
    )
    assert (trace.cost, trace.cost_unknown, trace.output) == (Decimal(0), False, {"summary": "Found 3 deals."})
    planning, settled, search, formatting = trace.steps
    assert isinstance(planning, LLMStep)
    assert (planning.purpose, planning.model, planning.status) == ("planning", MODEL, "success")
    assert planning.input.startswith("Task: Find Acme's deals\n")
    assert planning.reasoning == "Acme's deals are wanted."
    assert planning.decision is not None
    decided = json.loads(planning.decision)
    assert list(decided) == ["reading", "search"]
    assert decided["search"] == {"input": {"company": "Acme"}}
    assert isinstance(settled, ProgressStep)
    assert (settled.kind, settled.data["warnings"], settled.data["assumptions"]) == ("plan_settled", [], [])
    assert planning.tokens == planning.input_tokens + planning.output_tokens > 0
    assert (planning.cost, planning.cost_source) == (Decimal(0), "scripted")
    assert isinstance(search, ToolStep)
    assert (search.action, search.version, search.position, search.parameters) == (
        "search",
        "1.0.0",
        "search",
        {"company": "Acme"},
    )
    assert [found["id"] for found in search.result] == ["d0", "d1", "d2"]
    assert (search.rule, search.attempts, search.cached, search.latency_ms) == ("allowed", 1, False, 456)
    assert search.idempotency_key is not None
    assert search.idempotency_key.startswith(trace.run_id)
    assert isinstance(formatting, LLMStep)
    assert (formatting.purpose, formatting.decision) == ("formatting", "Found 3 deals.")
    assert trace.tokens == planning.tokens + formatting.tokens
    assert [step.number for step in trace.steps] == [1, 2, 3, 4]


@pytest.mark.requirement("trace.shape")
async def test_the_json_of_a_step_begins_with_its_type_and_purpose_or_action() -> None:
    house = House(plan)
    tool = house.crib.agentic_tool("finder", mode="deterministic", model=MODEL, steps=["search"])
    async with house.crib:
        trace = (await tool("Find Acme's deals")).trace

    steps = json.loads(trace.model_dump_json())["steps"]
    beginnings = [list(step.items())[:2] for step in steps]
    assert beginnings == [
        [("type", "llm_call"), ("purpose", "planning")],
        [("type", "progress"), ("kind", "plan_settled")],
        [("type", "tool_call"), ("action", "search")],
        [("type", "llm_call"), ("purpose", "formatting")],
    ]
    assert Trace.model_validate_json(trace.model_dump_json()) == trace


@pytest.mark.requirement("trace.model_calls", "trace.tool_calls")
async def test_an_agentic_run_shows_thinking_choices_denials_and_errors() -> None:
    house = House(
        [
            calls(ToolCall("a", "search", '{"company":"Broken"}'), ToolCall("b", "nope", "{}"), thinking="Look first."),
            calls(ToolCall("c", "search", '{"company":"Acme"}')),
            "There are 3 deals.",
        ]
    )
    async with house.crib:
        trace = (await house.agentic()("How many deals has Acme?")).trace

    first, broken, denied, second, found, last = trace.steps
    assert isinstance(first, LLMStep)
    assert isinstance(second, LLMStep)
    assert isinstance(last, LLMStep)
    assert isinstance(broken, ToolStep)
    assert isinstance(denied, ToolStep)
    assert isinstance(found, ToolStep)
    assert trace.mode == "agentic"
    assert (first.purpose, first.input, first.reasoning) == (
        "tool_selection",
        "How many deals has Acme?",
        "Look first.",
    )
    assert first.decision == 'call search({"company":"Broken"}), nope({})'
    assert (broken.status, broken.result) == ("error", None)
    assert broken.error is not None
    assert "the index is broken" in broken.error.message
    assert (denied.status, denied.action, denied.attempts) == ("denied", "nope", 0)
    assert denied.error is not None
    assert denied.error.code is ErrorCode.POLICY_DENIED
    assert (second.purpose, second.input) == ("error_recovery", "results of search, nope")
    assert (found.status, last.input, last.decision) == ("success", "results of search", "There are 3 deals.")


@pytest.mark.requirement("trace.model_calls")
async def test_failed_attempts_of_a_model_call_are_told_and_a_call_that_never_worked_is_an_error() -> None:
    failures = [ModelError("overloaded", "too busy", status=529)] * 2
    house = House([*failures, "done", *failures, *failures])
    async with house.crib:
        tool = house.agentic()
        recovered = (await tool("look")).trace
        failed = (await tool("look")).trace

    [answered] = recovered.steps
    assert isinstance(answered, LLMStep)
    assert (answered.status, answered.attempts) == ("success", 3)
    assert [(failure.attempt, failure.kind, failure.status) for failure in answered.failures] == [
        (1, "overloaded", 529),
        (2, "overloaded", 529),
    ]
    assert all(failure.retry_in_s is not None for failure in answered.failures)
    [gave_up] = failed.steps
    assert isinstance(gave_up, LLMStep)
    assert (gave_up.status, gave_up.decision, gave_up.latency_ms) == ("error", None, None)
    assert gave_up.failures[-1].retry_in_s is None
    assert (failed.status, failed.stop_reason) == ("failed", "error")
    assert failed.error is not None


class Unpriced(ScriptedModel):
    """A model whose price nobody knows."""

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        return Cost(None, "")


@pytest.mark.requirement("trace.header")
async def test_an_unknown_cost_is_null_and_never_nothing() -> None:
    house = House([], models={"scripted:unpriced": Unpriced(["done"], name="unpriced")})
    tool = house.crib.agentic_tool("deals", mode="agentic", model="scripted:unpriced", tools=["search"])
    async with house.crib:
        result = await tool("look")

    for trace in (result.trace, trace_of(result.events[:-1])):
        assert (trace.cost, trace.cost_unknown) == (None, True)
        [step] = trace.steps
        assert isinstance(step, LLMStep)
        assert step.cost is None


@pytest.mark.requirement("trace.steps", "trace.any_moment")
async def test_a_call_that_waits_for_consent_is_a_step_before_and_after_the_decision() -> None:
    house = House([calls(ToolCall("a", "delete", '{"ids":["d1","d2"]}')), "Deleted."])
    async with house.crib:
        waiting = await house.agentic()("Delete d1 and d2")
        before = await house.crib.trace(waiting.run_id)
        await house.crib.decide(
            waiting.run_id, "t1.c1", approve=True, edited_input={"ids": ["d1"]}, reason="d2 is mine"
        )
        house.clock.advance(3600)
        after = (await house.crib.resume(waiting.run_id)).trace

    assert before.status == "awaiting_approval"
    _, asked, suspended = before.steps
    assert isinstance(asked, ApprovalStep)
    assert (asked.action, asked.position, asked.status, asked.parameters) == (
        "delete",
        "t1.c1",
        "waiting",
        {"ids": ["d1", "d2"]},
    )
    assert isinstance(suspended, SuspensionStep)
    assert (suspended.status, suspended.waiting_for) == ("awaiting_approval", ("approval:t1.c1",))
    _, decided, _, resumed, deleted, _ = after.steps
    assert isinstance(decided, ApprovalStep)
    assert (decided.status, decided.edited_parameters, decided.reason) == ("edited", {"ids": ["d1"]}, "d2 is mine")
    assert decided.made_by is not None
    assert isinstance(resumed, ResumptionStep)
    assert resumed.cause == "approval"
    assert isinstance(deleted, ToolStep)
    assert (deleted.approved_parameters, deleted.result, deleted.repeats) == ({"ids": ["d1"]}, {"deleted": 1}, 0)
    assert after.duration_ms == 3_601_100
    assert after.active_ms == 1100


@pytest.mark.requirement("trace.steps")
async def test_a_rejected_call_is_told_with_its_reason() -> None:
    house = House([calls(ToolCall("a", "delete", '{"ids":["d1"]}')), "Nothing was deleted."])
    async with house.crib:
        waiting = await house.agentic()("Delete d1")
        await house.crib.decide(waiting.run_id, "t1.c1", approve=False, reason="not today")
        trace = (await house.crib.resume(waiting.run_id)).trace

    _, decided, _, _, denied, _ = trace.steps
    assert isinstance(decided, ApprovalStep)
    assert (decided.status, decided.reason) == ("rejected", "not today")
    assert isinstance(denied, ToolStep)
    assert denied.status == "denied"


@pytest.mark.requirement("trace.steps", "trace.crash")
async def test_a_client_hand_off_is_a_step_and_its_call_was_not_repeated_by_a_crash() -> None:
    show = calls(ToolCall("a", "show", '{"text":"hello"}'))
    house = House(lambda request: "Shown." if len(request.messages) > 1 else show)
    async with house.crib:
        tool = house.agentic()
        good, bad = await tool("Say hello"), await tool("Say hello")
        before = await house.crib.trace(good.run_id)
        await house.crib.return_client_result(good.run_id, "t1.c1", ClientResult(output={"seen": "yes"}))
        refused = ToolError(code=ErrorCode.UNKNOWN, message="the screen is off")
        await house.crib.return_client_result(bad.run_id, "t1.c1", ClientResult(error=refused))
        shown = (await house.crib.resume(good.run_id)).trace
        failed = (await house.crib.resume(bad.run_id)).trace

    [open_step] = [step for step in before.steps if isinstance(step, HandoffStep)]
    assert (open_step.status, open_step.action) == ("waiting", "show")
    assert (before.status, open_step.payload) == ("awaiting_client", {"text": "hello"})
    [back] = [step for step in shown.steps if isinstance(step, HandoffStep)]
    assert (back.status, back.result) == ("success", {"seen": "yes"})
    assert back.made_by is not None
    [call] = [step for step in shown.steps if isinstance(step, ToolStep)]
    assert (call.status, call.repeats) == ("success", 0)
    [error] = [step for step in failed.steps if isinstance(step, HandoffStep)]
    assert (error.status, error.error) == ("error", refused)


@pytest.mark.requirement("trace.steps")
async def test_a_limit_that_ended_the_run_is_a_step() -> None:
    house = House(lambda request: calls(ToolCall("a", "search", '{"company":"Acme"}')))
    async with house.crib:
        trace = (await house.agentic(limits=Limits(max_iterations=1))("Search for ever")).trace

    *_, limit, last = trace.steps
    assert isinstance(limit, LimitStep)
    assert isinstance(last, LLMStep)
    assert last.purpose == "answer"
    assert (limit.limit, limit.maximum) == ("max_iterations", 1)
    assert trace.stop_reason == "max_iterations"
    assert trace.warnings == (limit.message,)


def answer_of(request: Request) -> Message | str:
    """The outer model calls the inner tool once; the inner one searches once."""
    task, *rest = request.messages
    if rest:
        return "Found 3."
    inner = task.text == "inner task"
    wanted = ToolCall("b", "search", '{"company":"Acme"}') if inner else ToolCall("a", "inner", '{"task":"inner task"}')
    return calls(wanted)


@pytest.mark.requirement("trace.nested")
async def test_a_nested_run_stands_under_its_call() -> None:
    house = House(answer_of)
    house.agentic(name="inner", tools=["search"])
    async with house.crib:
        result = await house.agentic(name="outer", tools=["inner"])("outer task")
        trace = await house.crib.trace(result.run_id)

    [call] = [step for step in trace.steps if isinstance(step, ToolStep)]
    [alone] = [step for step in result.trace.steps if isinstance(step, ToolStep)]
    assert call.child is not None
    assert (call.child.run_id, call.child.tool, call.child.task) == (call.child_run_id, "inner@1.0.0", "inner task")
    assert [step.type for step in call.child.steps] == ["llm_call", "tool_call", "llm_call"]
    assert (alone.child_run_id, alone.child) == (call.child_run_id, None)


@pytest.mark.requirement("trace.any_moment")
async def test_the_trace_can_be_read_after_any_event_and_only_grows() -> None:
    house = House([calls(ToolCall("a", "search", '{"company":"Acme"}'), text="I look."), "There are 3 deals."])
    async with house.crib:
        result = await house.agentic()("How many deals has Acme?")

    traces = [trace_of(result.events[:length]) for length in range(1, len(result.events) + 1)]
    assert [trace.status for trace in traces] == ["queued", *["running"] * (len(traces) - 2), "completed"]
    counts = [len(trace.steps) for trace in traces]
    assert counts == sorted(counts)
    running = traces[3].model_dump(mode="json")["steps"]
    assert [step["status"] for step in running] == ["success", "running"]
    assert traces[-2].tokens == traces[-1].tokens > 0
    assert (traces[0].mode, traces[-1].mode) == (None, "agentic")


@pytest.mark.requirement("trace.header")
async def test_a_run_of_a_plain_tool_has_its_parameters_as_task() -> None:
    house = House([])
    async with house.crib:
        result = await house.crib.invoke("search", {"company": "Acme"})
        with pytest.raises(NotFound):
            await house.crib.trace("run_of_nobody")

    assert (result.trace.kind, result.trace.mode, result.trace.task) == ("tool", None, '{"company":"Acme"}')
    assert result.trace.cost == 0


@pytest.mark.requirement("trace.model_calls")
@pytest.mark.parametrize(
    ("text", "reasoning", "decision"),
    [
        ('{"reasoning": "so", "answer": 4}', "so", '{"answer": 4}'),
        ('{"reasoning": "so"}', "so", '{"reasoning": "so"}'),
        ('{"summary": "short"}', None, "short"),
        ('{"reasoning": 7, "count": 1}', None, '{"count": 1}'),
        ("[1, 2]", None, "[1, 2]"),
        ("  plain  ", None, "plain"),
        ("", None, None),
    ],
)
async def test_reasons_and_decision_are_read_from_whatever_a_model_says(
    text: str, reasoning: str | None, decision: str | None
) -> None:
    response = Response(assistant(text), "end", "end", TokenUsage(input=5, output=1), "m", "1")
    house = House([response])
    async with house.crib:
        step, *_ = (await house.agentic()("say it")).trace.steps

    assert isinstance(step, LLMStep)
    assert (step.reasoning, step.decision) == (reasoning, decision)


@pytest.mark.requirement("trace.header")
async def test_the_trace_of_an_agent_has_the_message_as_its_task_and_no_mode() -> None:
    house = House(["Hello."])
    agent = AgentDefinition(name="greeter", llm=LLMConfig(model=MODEL))
    async with house.crib:
        await house.crib.save(agent.tool())
        trace = (await house.crib.invoke("greeter", {"message": "Hi"})).trace

    assert (trace.kind, trace.mode, trace.task) == ("agent", None, "Hi")
