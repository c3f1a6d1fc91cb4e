"""The cost breakdown: every call with a price, and the total."""

from decimal import Decimal

import pytest

from tests.unit.agents.crm import MODEL, PricedModel, asks
from toolcrib import Crib, tool
from toolcrib.contracts import ModelError

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
