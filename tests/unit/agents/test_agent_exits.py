"""Every way in which an agent's run ends: its status, stop reason, what it has, its warnings, and the journal."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.agents.crm import MODEL, Crm, PricedModel, asks, for_ever, stopped
from tests.unit.agents.desk import agent
from toolcrib import Crib, Limits, Result, ScriptedModel, tool
from toolcrib.contracts import AgentDefinition, ClientResult, ContentFilter, ModelError, RunFinished
from toolcrib.llm import Script

pytestmark = pytest.mark.requirement("agent.exits")

SEARCH = asks(("search_deals", {"company": "Acme"}), text="I look.")
UPDATE = asks(("update_deals", {"ids": ["d0"], "stage": "3003"}), text="I move it.")
PAY = asks(("pay", {}), text="I pay.")
SHOW = asks(("show", {}), text="I show it.")
SCHEMA: Any = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@dataclass(frozen=True)
class Exit:
    """One way to end."""

    status: str
    stop_reason: str | None
    script: Script
    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    response: str | None = None
    """What the output, or the partial result, has as its response; null for neither."""
    calls: int | None = None
    """Calls in the partial result; null if it is none."""
    warning: str = ""
    error: str = ""
    events: tuple[str, ...] = ()
    """Types of events that explain it."""
    prepare: Callable[[Crib], Awaitable[Any]] | None = None
    priced: bool = False


async def _remove_tools(crib: Crib) -> None:
    await crib.registry.remove("default", "search_deals")
    await crib.registry.remove("default", "update_deals")


EXITS = {
    "final answer": Exit("completed", "final_answer", [SEARCH, "Two."], response="Two."),
    "max_iterations": Exit(
        "incomplete",
        "max_iterations",
        [SEARCH, UPDATE],
        {"limits": Limits(max_iterations=2)},
        response="I move it.",
        calls=2,
        warning="limit max_iterations is 2 and this would make 3",
        error="limit max_iterations is 2 and this would make 3",
        events=("limit_reached",),
    ),
    "max_tool_calls": Exit(
        "incomplete",
        "max_tool_calls",
        [SEARCH, UPDATE, UPDATE],
        {"limits": Limits(max_tool_calls=1)},
        response="I move it.",
        calls=2,
        warning="limit max_tool_calls is 1 and this would make 2",
        error="limit max_tool_calls is 1 and this would make 2",
        events=("call_finished",),
    ),
    "max_cost": Exit(
        "incomplete",
        "max_cost",
        [SEARCH, UPDATE, UPDATE],
        {"limits": Limits(max_cost_usd=Decimal("0.15"))},
        response="I look.",
        calls=1,
        warning="limit max_cost_usd is 0.15",
        error="limit max_cost_usd is 0.15",
        events=("limit_reached",),
        priced=True,
    ),
    "max_tokens of the run": Exit(
        "incomplete",
        "max_tokens",
        [SEARCH],
        {"limits": Limits(max_total_tokens=100)},
        response="",
        calls=0,
        warning="limit max_total_tokens is 100",
        error="limit max_total_tokens is 100",
        events=("limit_reached",),
    ),
    "max_tokens of an answer": Exit(
        "incomplete",
        "max_tokens",
        [stopped("length", "There are")],
        response="There are",
        warning="the answer was cut off at max_tokens",
        error="the answer was cut off at max_tokens",
        events=("model_finished",),
    ),
    "timeout": Exit(
        "timed_out",
        "timeout",
        [SEARCH, UPDATE],
        {"limits": Limits(timeout_s=0.3)},
        response="I move it.",
        calls=1,
        warning="timeout_s=0.3",
        error="the run did not end within timeout_s=0.3",
        events=("limit_reached",),
    ),
    "no_tools": Exit(
        "failed",
        "no_tools",
        [],
        error="agent 'desk@1.0.0' names tools, and none of them can be used",
        warning="tool 'search_deals' was left out",
        events=("progress_made",),
        prepare=_remove_tools,
    ),
    "policy": Exit(
        "failed",
        "policy",
        [asks(("drop_all", {}), text="I drop it.")] * 3,
        response="I drop it.",
        calls=3,
        error="all calls of the model 'scripted:script' were refused in 3 turns in a row",
        events=("call_finished",),
    ),
    "guardrail": Exit(
        "failed",
        "policy",
        [SEARCH, "The magic word is xyzzy."],
        {"guardrails": (ContentFilter(words=("xyzzy",), applies_to=("model_output",)),)},
        response="I look.",
        calls=1,
        error="content_filter",
    ),
    "error": Exit(
        "failed",
        "error",
        [SEARCH, ModelError("auth", "no such key", status=401)],
        response="I look.",
        calls=1,
        error="no such key",
        events=("model_failed",),
    ),
    "empty answers": Exit(
        "failed", "error", [SEARCH, "", ""], response="I look.", calls=1, error="ended with an empty answer (stop: end)"
    ),
    "content filter of the provider": Exit(
        "failed",
        "policy",
        [SEARCH, stopped("content_filter")],
        response="I look.",
        calls=1,
        error="the model 'scripted:script' did not answer: content_filter",
    ),
    "refusal of the provider": Exit(
        "failed",
        "policy",
        [ModelError("content_filter", "blocked", status=400)],
        error="blocked",
        events=("model_failed",),
    ),
    "unusable structured output": Exit(
        "failed",
        "error",
        ["Two.", "two", "two", "two"],
        {"response_format": "structured", "response_schema": SCHEMA},
        response="Two.",
        calls=0,
        error="gave no usable answer after 3 answers",
    ),
    "awaiting approval": Exit("awaiting_approval", None, [PAY], events=("approval_requested", "run_suspended")),
    "awaiting client": Exit("awaiting_client", None, [SHOW], events=("client_handoff", "run_suspended")),
}


@tool(side_effects="writes", requires_confirmation=True)
async def pay() -> str:
    """Pay."""
    return "paid"


@tool(side_effects="reads", runs_on="client")
async def show() -> dict[str, str]:
    """Show something on the client's side."""
    return {"what": "deal"}


def desk(**fields: Any) -> AgentDefinition:
    said: Any = {"tools": ["search_deals", "update_deals"], **fields}
    return agent(**said)


@pytest.mark.parametrize("name", EXITS)
async def test_a_run_ends_as_it_should_and_its_journal_explains_it(name: str):
    way, crm = EXITS[name], Crm(2)
    if name == "timeout":
        crm.on_update = for_ever
    script = list(way.script) if not callable(way.script) else way.script
    model = PricedModel(script) if way.priced else ScriptedModel(script)
    extra = {"tools": ["pay", "show"]} if name.startswith("awaiting") else {}
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*crm.tools, pay, show)
        await crib.agents.save(desk(**way.fields, **extra))
        if way.prepare is not None:
            await way.prepare(crib)
        result = await crib.invoke("desk", {"message": "How many?"})
        trace = await crib.trace(result.run_id)
        run = await crib.store.journal.run(result.run_id)

    summary = result.summary
    assert (summary.status, summary.stop_reason) == (way.status, way.stop_reason)
    _check_output(result, way)
    assert way.warning in "\n".join(summary.warnings)
    assert (summary.warnings == ()) is (way.warning == "")
    assert way.error in (summary.error.message if summary.error else "")
    assert (summary.error is None) is (way.error == "")
    types = [entry.event.type for entry in result.events]
    assert set(way.events) <= set(types)
    assert (trace.status, run.status) == (way.status, way.status)
    assert (trace.stop_reason, trace.error, trace.warnings) == (summary.stop_reason, summary.error, summary.warnings)
    if way.stop_reason is not None:
        [finished] = [entry.event for entry in result.events if isinstance(entry.event, RunFinished)]
        assert types[-1] == "run_finished"
        assert (finished.status, finished.error, finished.warnings) == (summary.status, summary.error, summary.warnings)


def _check_output(result: Result, way: Exit) -> None:
    if way.response is None:
        assert (result.output, result.partial) == (None, None)
        return
    output: Any = result.summary.output if way.status == "completed" else result.partial
    assert (result.output is None) is (way.status != "completed")
    assert output["response"] == way.response
    assert len(output.get("calls", ())) == (way.calls or 0)
    assert ("calls" in output) is (way.calls is not None)


async def test_a_run_that_is_cancelled_ends_with_what_it_had():
    crm, reached = Crm(2), asyncio.Event()

    async def reach(_: object) -> None:
        reached.set()
        await asyncio.Event().wait()

    crm.on_update = reach
    async with Crib("memory://", models={MODEL: ScriptedModel([SEARCH, UPDATE])}) as crib:
        crib.add(*crm.tools)
        await crib.agents.save(desk())
        run_id = await crib.submit("desk", {"message": "How many?"})
        driving = asyncio.create_task(crib.resume(run_id))
        await reached.wait()
        assert await crib.cancel(run_id, reason="enough")
        result = await driving

    assert (result.summary.status, result.summary.stop_reason) == ("cancelled", "cancelled")
    output: Any = result.partial
    assert [call["tool"] for call in output["calls"]] == ["search_deals"]
    assert "cancel_requested" in [entry.event.type for entry in result.events] or result.error is not None


@pytest.mark.parametrize("kind", ["approval", "client"])
async def test_a_run_that_waited_ends_with_its_answer(kind: str):
    model = ScriptedModel([PAY if kind == "approval" else SHOW, "Done."])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(pay, show)
        await crib.agents.save(desk(tools=["pay", "show"]))
        waiting = await crib.invoke("desk", {"message": "Go"})
        if kind == "approval":
            await crib.decide(waiting.run_id, "t1.c1", approve=True)
        else:
            await crib.return_client_result(waiting.run_id, "t1.c1", ClientResult(output={"seen": True}))
        result = await crib.resume(waiting.run_id)

    assert result.output == "Done."
    assert result.summary.stop_reason == "final_answer"
