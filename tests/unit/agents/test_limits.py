"""Limits end a run with what it has: its status, its stop reason, its output and a warning."""

from decimal import Decimal
from typing import Any

import orjson
import pytest

from tests.unit.agents.crm import (
    DONE,
    Crm,
    PricedModel,
    asks,
    for_ever,
    plan,
    positions,
    purposes,
    run_agent,
    run_sequence,
    run_tool,
    told,
)
from toolcrib import AgenticStep, Limits, ScriptedModel, tool
from toolcrib.contracts import ErrorCode, LimitReached, Reason

pytestmark = pytest.mark.requirement("agents.limits")

SEARCH = asks(("search_deals", {"company": "Acme"}))


async def test_a_sequence_stops_at_max_tool_calls_and_reports_what_it_did():
    crm = Crm(7)

    result, _ = await run_sequence(crm, plan(), {"summary": "3 of 7 moved."}, limits=Limits(max_tool_calls=2))

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_tool_calls")
    assert result.partial == {"summary": "3 of 7 moved."}
    assert len(crm.updates) == 1
    [warning] = result.summary.warnings
    assert "2 of 3 calls failed" in warning
    assert "limit max_tool_calls is 2" in warning


async def test_a_limit_among_other_failures_is_still_a_limit():
    crm = Crm(7)

    async def locked(ids: list[str]) -> None:
        raise RuntimeError("locked")

    crm.on_update = locked
    result, _ = await run_sequence(crm, plan(), DONE, limits=Limits(max_tool_calls=2))

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_tool_calls")


async def test_a_sequence_that_may_not_pay_for_its_plan_does_nothing():
    crm = Crm()
    model = PricedModel([])

    result = await run_tool(crm, model, "deterministic", steps=["search_deals"], limits=_usd("0.05"))

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_cost")
    assert result.partial == {"steps": {}}
    assert result.summary.warnings == (
        "limit max_cost_usd is 0.05 and this would make 0.1; raise max_cost_usd to go on",
    )
    assert (model.requests, crm.searches) == ([], [])
    [reached] = [entry.event for entry in result.events if isinstance(entry.event, LimitReached)]
    assert (reached.limit, reached.maximum) == ("max_cost_usd", 0.05)


async def test_a_sequence_that_cannot_pay_for_its_answer_reports_the_facts():
    crm = Crm(1)
    model = PricedModel([orjson.dumps(plan()).decode()])

    result = await run_tool(crm, model, "deterministic", steps=["search_deals", "update_deals"], limits=_usd("0.15"))

    assert result.ok
    assert result.cost_usd == Decimal("0.10")
    assert len(crm.updates) == 1
    assert result.unwrap()["steps"]["update_deals"]["calls"] == 1
    assert "the answer could not be formatted: limit max_cost_usd" in result.summary.warnings[0]


async def test_a_sequence_that_cannot_pay_for_a_review_stops_there():
    crm = Crm(1)
    wrong = plan(update_deals={"input": {"ids": ["${search_deals.x}"], "stage": "3003"}})
    model = PricedModel([orjson.dumps(wrong).decode()])

    result = await run_tool(crm, model, "deterministic", steps=["search_deals", "update_deals"], limits=_usd("0.15"))

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_cost")
    assert result.partial["steps"]["search_deals"]["calls"] == 1
    assert crm.updates == []


async def test_a_paid_call_that_would_cross_the_cost_limit_is_not_made():
    paid: list[str] = []

    @tool(side_effects="writes", cost_usd_per_call=Decimal("0.40"))
    async def send(to: str) -> str:
        paid.append(to)
        return "sent"

    sends: Any = {"reasoning": "", "first": {"input": {"to": "a"}}, "second": {"input": {"to": "b"}}, "third": {}}
    model = ScriptedModel([orjson.dumps(sends).decode(), '{"summary": "one sent"}'])
    steps = [AgenticStep(id=name, tool="send") for name in ("first", "second", "third")]
    task = {"task": "Send to a and b"}
    result = await run_tool(Crm(), model, "deterministic", send, parameters=task, steps=steps, limits=_usd("0.50"))

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_cost")
    assert paid == ["a"]
    assert positions(result) == ["first", "second"]


async def test_a_sequence_stops_at_max_total_tokens():
    crm = Crm()

    result, model = await run_sequence(crm, plan(), limits=Limits(max_total_tokens=100, max_tokens_per_call=200))

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_tokens")
    assert "limit max_total_tokens is 100" in result.summary.warnings[0]
    assert (model.requests, crm.searches) == ([], [])


async def test_a_sequence_that_runs_out_of_time_has_what_was_done_until_then():
    crm = Crm(1)
    crm.on_update = for_ever

    result, _ = await run_sequence(crm, plan(), limits=Limits(timeout_s=0.3))

    assert (result.summary.status, result.summary.stop_reason) == ("timed_out", "timeout")
    assert result.summary.error is not None
    assert (result.summary.error.code, result.summary.error.reason) == (ErrorCode.TIMEOUT, Reason.RUN_TIMEOUT)
    assert result.partial["steps"]["search_deals"]["calls"] == 1
    assert "timeout_s=0.3" in result.summary.warnings[0]
    assert result.envelopes[-1].error is not None
    assert result.envelopes[-1].error.reason is Reason.OUTCOME_UNKNOWN


async def test_an_agent_stops_after_max_iterations():
    crm = Crm(1)

    result, model = await run_agent(crm, SEARCH, SEARCH, limits=Limits(max_iterations=2))

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_iterations")
    assert result.summary.iterations == 2
    assert [len(request.tools) > 0 for request in model.requests] == [True, True, False]
    assert result.partial["summary"] is None, "it was asked for a last answer, and gave none"
    assert [call["status"] for call in result.partial["calls"]] == ["success", "success"]
    assert '"id":"d0"' in result.partial["calls"][0]["output"]
    assert result.summary.warnings == (
        "limit max_iterations is 2 and this would make 3; raise max_iterations to go on",
    )
    assert [entry.event.limit for entry in result.events if isinstance(entry.event, LimitReached)] == ["max_iterations"]


async def test_an_agent_stops_when_no_call_of_a_turn_is_left():
    crm = Crm(1)

    result, _ = await run_agent(crm, SEARCH, SEARCH, limits=Limits(max_tool_calls=1))

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_tool_calls")
    assert crm.searches == ["Acme"]
    assert [call["status"] for call in result.partial["calls"]] == ["success", "denied"]
    assert "limit max_tool_calls is 1" in result.partial["calls"][1]["error"]
    assert "limit max_tool_calls is 1" in result.summary.warnings[0]


async def test_an_agent_is_told_which_of_its_calls_were_beyond_the_limit():
    crm = Crm(1)
    both = asks(("search_deals", {"company": "Acme"}), ("search_deals", {"company": "A"}))

    result, model = await run_agent(crm, both, "One search was enough.", limits=Limits(max_tool_calls=1))

    assert result.ok
    assert result.summary.stop_reason == "final_answer"
    assert result.warnings[0].startswith(
        "1 call was without a result (1 denied), and the model went on; search_deals: "
    )
    assert "limit max_tool_calls is 1" in told(model.requests[1])[1]


async def test_an_agent_that_may_not_pay_for_its_next_turn_has_what_was_done():
    crm = Crm(1)
    model = PricedModel([SEARCH])

    result = await run_tool(crm, model, "agentic", tools=["search_deals"], limits=_usd("0.15"))

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_cost")
    assert result.cost_usd == Decimal("0.10")
    assert [call["tool"] for call in result.partial["calls"]] == ["search_deals"]
    assert "limit max_cost_usd is 0.15" in result.summary.warnings[0]


async def test_an_agent_that_runs_out_of_time_has_what_was_done_until_then():
    crm = Crm(1)
    crm.on_update = for_ever
    update = asks(("update_deals", {"ids": ["d0"], "stage": "3003"}))

    result, _ = await run_agent(crm, SEARCH, update, limits=Limits(timeout_s=0.3))

    assert (result.summary.status, result.summary.stop_reason) == ("timed_out", "timeout")
    assert [call["tool"] for call in result.partial["calls"]] == ["search_deals"]


@pytest.mark.requirement("agents.effects_kept", "agents.result_schema")
async def test_an_agent_that_cannot_pay_for_formatting_has_no_output_but_its_own_words():
    model = PricedModel([SEARCH, "One deal."])
    schema: Any = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    result = await run_tool(Crm(1), model, "agentic", tools=["search_deals"], limits=_usd("0.25"), result_schema=schema)

    assert (result.status, result.stop_reason, result.output) == ("incomplete", "max_cost", None)
    partial: Any = result.partial
    assert partial["summary"] == "One deal."
    assert "the answer could not be formatted: limit max_cost_usd" in result.summary.warnings[0]
    assert purposes(result) == ["tool_selection", "result_review"]


def _usd(most: str) -> Limits:
    return Limits(max_cost_usd=Decimal(most))
