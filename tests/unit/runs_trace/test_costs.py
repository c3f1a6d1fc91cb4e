"""The cost breakdown: every call with a price, and the total."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.agents.crm import MODEL, PricedModel, asks
from toolcrib import Crib, tool
from toolcrib.contracts import CallFinished, ModelError, RunEvent, RunFinished, RunResult, Trace
from toolcrib.contracts.runs.runs import CostBounds
from toolcrib.core.runs import trace_of

pytestmark = pytest.mark.requirement("agentic.cost_breakdown")


@tool(side_effects="reads", cost_usd_per_call=Decimal("0.02"))
def geocode(place: str) -> str:
    """Where a place is."""
    return f"{place}: 1, 2"


@tool(side_effects="reads")
def look(place: str) -> str:
    """What is there."""
    return "trees"


async def test_the_breakdown_names_model_calls_by_purpose_and_paid_actions_and_adds_up():
    model = PricedModel([asks(("geocode", {"place": "A"}), ("look", {"place": "A"})), "Trees."])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(geocode, look)
        agent = crib.agentic_tool("agent", mode="agentic", model=MODEL, tools=["geocode", "look"])
        trace = (await agent("What is at A?")).trace

    costs = trace.cost_breakdown
    assert [(call.position, call.purpose, call.model, call.cost_usd) for call in costs.llm_calls] == [
        ("t1.llm", "tool_selection", "scripted:script", Decimal("0.10")),
        ("t2.llm", "result_review", "scripted:script", Decimal("0.10")),
    ]
    assert [(call.position, call.action, call.cost_usd) for call in costs.action_calls] == [
        ("t1.c1", "geocode", Decimal("0.02"))
    ]
    assert costs.total_cost_usd == trace.cost == Decimal("0.22")
    assert costs.total_tokens == trace.tokens == sum(call.input_tokens + call.output_tokens for call in costs.llm_calls)
    written = costs.model_dump(mode="json")
    assert (written["total_cost_usd"], written["action_calls"][0]["cost_usd"]) == (0.22, 0.02)


async def test_what_a_nested_run_cost_is_one_action_of_its_caller():
    outer = PricedModel([asks(("inner", {"task": "x"})), "Done."])
    inner = PricedModel(["Inner."])
    async with Crib("memory://", models={MODEL: outer, "scripted:inner": inner}) as crib:
        crib.add(look)
        crib.agentic_tool("inner", mode="agentic", model="scripted:inner", tools=["look"])
        agent = crib.agentic_tool("outer", mode="agentic", model=MODEL, tools=["inner"])
        result = await agent("x")
        trace = await crib.trace(result.run_id)

    costs = trace.cost_breakdown
    assert [(call.action, call.cost_usd) for call in costs.action_calls] == [("inner", Decimal("0.10"))]
    assert costs.total_cost_usd == Decimal("0.30")


async def test_a_model_call_that_was_never_answered_costs_nothing():
    model = PricedModel([ModelError("auth", "no key", status=401)])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(look)
        agent = crib.agentic_tool("agent", mode="agentic", model=MODEL, tools=["look"])
        costs = (await agent("x")).trace.cost_breakdown

    assert (costs.llm_calls, costs.action_calls, costs.total_cost_usd) == ((), (), Decimal(0))


async def _events() -> Sequence[RunEvent]:
    """Of a run that has asked a model once, for 0.10, and made a paid call, for 0.02."""
    model = PricedModel([asks(("geocode", {"place": "A"})), "Trees."])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(geocode)
        agent = crib.agentic_tool("agent", mode="agentic", model=MODEL, tools=["geocode"])
        return (await agent("What is at A?")).events


def _with(events: Sequence[RunEvent], kind: str, **fields: Any) -> list[RunEvent]:
    return [
        entry.model_copy(update={"event": entry.event.model_copy(update=fields)}) if entry.event.type == kind else entry
        for entry in events
    ]


def _nested(events: Sequence[RunEvent], **facts: Any) -> list[RunEvent]:
    """The call as one with a nested run, which says this of itself."""
    envelope = next(entry.event.envelope for entry in events if isinstance(entry.event, CallFinished))
    return _with(
        events, "call_finished", envelope=envelope.model_copy(update={"metadata": {"run_id": "run_n", **facts}})
    )


async def test_what_nested_runs_had_paid_that_were_stopped_is_a_line_of_its_own():
    costs = trace_of(_with(await _events(), "run_finished", cost_usd=Decimal("0.32"))).cost_breakdown

    assert [(line.position, line.cost_usd) for line in costs.action_calls] == [
        ("t1.c1", Decimal("0.02")),
        ("", Decimal("0.10")),
    ]
    assert costs.total_cost_usd == Decimal("0.32")


async def test_the_end_that_an_older_release_has_written_had_the_reservations_in_its_cost():
    events = [entry for entry in await _events() if entry.event.type != "model_finished"]
    end = events[-1].event
    assert isinstance(end, RunFinished)
    old = RunFinished.model_validate(
        {**end.model_dump(mode="json", exclude={"cut_off"}), "cost_usd": "0.42", "type": "run_finished"}
    )
    trace = trace_of([*events[:-1], events[-1].model_copy(update={"event": old})])

    assert trace.cost == trace.cost_breakdown.total_cost_usd == Decimal("0.02") + sum_left(trace, "0.40")
    assert trace.cut_off is not None
    assert trace.cut_off.upper_usd == sum(each.upper_usd or 0 for each in trace.cost_breakdown.cut_off)


def sum_left(trace: Trace, reserved: str) -> Decimal:
    """What of an old end's cost is neither a line nor a reservation."""
    upper = sum((each.upper_usd or Decimal(0) for each in trace.cost_breakdown.cut_off), Decimal(0))
    return max(Decimal(reserved) - upper, Decimal(0))


async def test_what_a_nested_run_does_not_know_is_not_known_of_its_caller():
    trace = trace_of(_nested(await _events(), cost_unknown=True, cut_off_usd="0.30"))

    assert trace.cost_unknown
    assert [(each.name, each.upper_usd) for each in trace.cost_breakdown.cut_off] == [("geocode", Decimal("0.30"))]
    assert trace.cut_off == CostBounds(upper_usd=Decimal("0.30"))


async def test_bounds_of_calls_without_a_price_have_no_upper_end():
    assert trace_of(_nested(await _events(), cut_off_usd="0")).cut_off == CostBounds(upper_usd=None)


async def test_a_call_of_which_nobody_knows_whether_it_has_cost_its_price_is_cut_off():
    events = await _events()
    envelope = next(entry.event.envelope for entry in events if isinstance(entry.event, CallFinished))
    lost = envelope.model_copy(update={"attempts": 0, "cost_usd": None})
    trace = trace_of(_with(events, "call_finished", envelope=lost))

    assert [(each.position, each.upper_usd) for each in trace.cost_breakdown.cut_off] == [("t1.c1", Decimal("0.02"))]


def test_a_result_of_which_nothing_is_known_costs_null_and_counts_what_was_reserved():
    unknown = RunResult(run_id="r", status="completed", cost_usd=Decimal(0), cost_unknown=True)
    stopped = RunResult(run_id="r", status="failed", cost_usd=Decimal(1), cut_off=CostBounds(upper_usd=Decimal(2)))

    assert (unknown.cost_usd, unknown.counted_usd, unknown.cut_off_usd) == (None, 0, None)
    assert (stopped.cost_usd, stopped.counted_usd, stopped.cut_off_usd) == (1, 3, 2)
