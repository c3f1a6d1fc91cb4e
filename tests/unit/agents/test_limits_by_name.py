"""The safety limits of the specification (000, section 4.8), each by its name and in both modes."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import msgspec
import orjson
import pytest

from tests.unit.agents.crm import MODEL, Crm, PricedModel, asks, for_ever, plan, run_tool
from tests.unit.runs_trace.house import StillClock
from toolcrib import Crib, Limits, ScriptedModel, tool
from toolcrib.contracts import LimitReached, LLMConfig, ModelError, ModelFailed
from toolcrib.core.runs import Result
from toolcrib.llm import Cost, Message, Request, Response, Script, TokenUsage

pytestmark = pytest.mark.requirement("agentic.limits")

Mode: TypeAlias = Literal["deterministic", "agentic"]
both_modes = pytest.mark.parametrize("mode", ["deterministic", "agentic"])

SEARCH = asks(("search_deals", {"company": "Acme"}))
UPDATE = asks(("update_deals", {"ids": ["d0"], "stage": "3003"}))
WRONG: Any = plan(update_deals={"input": {"ids": ["${search_deals.nothing}"], "stage": "3003"}})
TOOLS = ["search_deals", "update_deals"]


def turns(mode: Mode) -> list[Message | str]:
    """Answers that call both tools, one after the other; in a sequence the second step has to be reviewed."""
    if mode == "agentic":
        return [SEARCH, UPDATE, "Done."]
    corrected = plan()["update_deals"]
    return [orjson.dumps(answer).decode() for answer in (WRONG, corrected, {"summary": "Done."})]


async def run(mode: Mode, crm: Crm, model: ScriptedModel, limits: Limits, llm: LLMConfig | None = None) -> Result:
    allotted: Any = {"steps": TOOLS} if mode == "deterministic" else {"tools": TOOLS}
    return await run_tool(crm, model, mode, limits=limits, model=llm or MODEL, **allotted)


def reached(result: Result) -> list[str]:
    return [entry.event.limit for entry in result.events if isinstance(entry.event, LimitReached)]


@both_modes
@pytest.mark.requirement("agentic.iterations")
async def test_max_steps_is_max_iterations_and_ends_a_run_with_what_was_reached(mode: Mode):
    crm, model = Crm(1), ScriptedModel(turns(mode))

    result = await run(mode, crm, model, Limits(max_iterations=1))

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_iterations")
    assert "limit max_iterations is 1 and this would make 2" in result.summary.warnings[0]
    assert reached(result) == ["max_iterations"]
    assert result.summary.iterations == 1
    assert len(model.requests) == (2 if mode == "agentic" else 1), "an agent is asked for a last answer"
    assert "d0" in orjson.dumps(result.partial).decode()
    assert (crm.searches, crm.updates) == (["Acme"], [])


@both_modes
@pytest.mark.requirement("agentic.iterations")
async def test_iterations_are_the_answers_of_the_model(mode: Mode):
    result = await run(mode, Crm(1), ScriptedModel(turns(mode)), Limits())

    assert result.ok
    assert result.summary.iterations == 3


@pytest.mark.requirement("agentic.iterations")
async def test_the_answer_of_a_sequence_is_formatted_beyond_max_iterations():
    answers = [orjson.dumps(plan()).decode(), '{"summary": "Done."}']

    result = await run("deterministic", Crm(1), ScriptedModel(answers), Limits(max_iterations=1))

    assert (result.output, result.summary.stop_reason) == ({"summary": "Done."}, "final_answer")
    assert result.summary.iterations == 2


@both_modes
async def test_max_duration_is_timeout_s_and_ends_a_run_with_what_was_reached(mode: Mode):
    crm = Crm(1)
    crm.on_update = for_ever

    result = await run(mode, crm, ScriptedModel(turns(mode)), Limits(timeout_s=0.3))

    assert (result.summary.status, result.summary.stop_reason) == ("timed_out", "timeout")
    assert "timeout_s=0.3" in result.summary.warnings[0]
    assert reached(result) == ["timeout_s"]
    assert "d0" in orjson.dumps(result.partial).decode()


@both_modes
@pytest.mark.parametrize(("configured", "asked"), [(None, 1234), (2000, 2000)])
async def test_max_tokens_per_call_is_what_a_model_may_answer_unless_it_is_configured_to_more(
    mode: Mode, configured: int | None, asked: int
):
    model = ScriptedModel(turns(mode))
    llm = LLMConfig(model=MODEL, max_tokens=configured)

    result = await run(mode, Crm(1), model, Limits(max_tokens_per_call=1234), llm=llm)

    assert result.ok
    assert {request.max_tokens for request in model.requests} == {asked}


@both_modes
async def test_max_total_tokens_ends_a_run_with_what_was_reached(mode: Mode):
    crm = Crm(1)
    spends = SpendingModel(turns(mode), tokens=50_000)

    result = await run(mode, crm, spends, Limits(max_total_tokens=60_000, max_tokens_per_call=10_000))

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_tokens")
    assert "limit max_total_tokens is 60000" in result.summary.warnings[0]
    assert reached(result) == ["max_total_tokens"]
    assert (crm.searches, crm.updates) == (["Acme"], [])
    assert "d0" in orjson.dumps(result.partial).decode()


@both_modes
async def test_max_total_cost_is_max_cost_usd_and_ends_a_run_with_what_was_reached(mode: Mode):
    crm = Crm(1)

    result = await run(mode, crm, PricedModel(turns(mode)), Limits(max_cost_usd=Decimal("0.15")))

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_cost")
    assert "limit max_cost_usd is 0.15" in result.summary.warnings[0]
    assert reached(result) == ["max_cost_usd"]
    assert result.cost_usd == Decimal("0.10")
    assert "d0" in orjson.dumps(result.partial).decode()


async def test_an_agent_all_of_whose_calls_cost_too_much_ends_with_what_was_reached():
    @tool(side_effects="reads", cost_usd_per_call=Decimal("0.40"))
    def locate(place: str) -> str:
        return place

    call = asks(("locate", {"place": "A"}))
    model = ScriptedModel([call, call])

    result = await run_tool(
        Crm(), model, "agentic", locate, tools=["locate"], limits=Limits(max_cost_usd=Decimal("0.50"))
    )

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_cost")
    assert "limit max_cost_usd is 0.5 and this would make 0.8" in result.summary.warnings[0]
    assert [found["status"] for found in result.partial["calls"]] == ["success", "denied"]


@both_modes
async def test_max_tool_calls_ends_a_run_with_what_was_reached(mode: Mode):
    crm = Crm(1)
    answers = turns(mode) if mode == "agentic" else [orjson.dumps(plan()).decode(), '{"summary": "Found one."}']

    result = await run(mode, crm, ScriptedModel(answers), Limits(max_tool_calls=1))

    assert (result.summary.status, result.summary.stop_reason) == ("incomplete", "max_tool_calls")
    assert "limit max_tool_calls is 1" in result.summary.warnings[0]
    assert (crm.searches, crm.updates) == (["Acme"], [])


def test_the_limits_of_the_specification_are_the_defaults():
    limits = Limits()

    assert (limits.max_iterations, limits.timeout_s) == (10, 300.0)
    assert (limits.max_tokens_per_call, limits.max_cost_usd) == (4000, Decimal("1.00"))


@both_modes
async def test_a_model_that_fails_for_a_while_is_asked_up_to_three_times_more_with_growing_waits(mode: Mode):
    failures = [ModelError("overloaded", "busy", status=529)] * 3
    result, waits = await _failing(mode, [*failures, *turns(mode)])

    assert result.ok
    assert [round(wait / waits[0]) for wait in waits] == [1, 2, 4]


@both_modes
async def test_a_model_that_goes_on_failing_ends_the_run_with_a_clear_message(mode: Mode):
    result, waits = await _failing(mode, [ModelError("overloaded", "busy", status=529)] * 4)

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "error")
    assert result.summary.error is not None
    assert "busy" in result.summary.error.message
    assert len(waits) == 3


class SpendingModel(ScriptedModel):
    """A scripted model each of whose answers took so many tokens."""

    def __init__(self, script: Script, *, tokens: int) -> None:
        super().__init__(script)
        self._tokens = tokens

    async def request(self, request: Request) -> Response:
        return msgspec.structs.replace(await super().request(request), usage=TokenUsage(input=self._tokens))

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        return Cost(Decimal(0), "test")


async def _failing(mode: Mode, script: list[Any]) -> tuple[Result, list[float]]:
    allotted: Any = {"steps": TOOLS} if mode == "deterministic" else {"tools": TOOLS}
    async with Crib("memory://", models={MODEL: ScriptedModel(script)}, clock=StillClock()) as crib:
        crib.add(*Crm(1).tools)
        result = await crib.agentic_tool("agent", mode=mode, model=MODEL, grounding="off", **allotted)("x")
    failed = [entry.event for entry in result.events if isinstance(entry.event, ModelFailed)]
    return result, [event.retry_in_s for event in failed if event.retry_in_s is not None]
