"""What becomes of a model that is refused: it is told what it may do, and it has a few chances."""

from typing import Any

import orjson
import pytest

from tests.unit.agents.crm import Crm, asks, purposes, run_agent, run_tool, stopped, told
from toolcrib import AgenticContext, Crib, ReferenceSource, ScriptedModel, tool
from toolcrib.contracts import ErrorCode, Reason

SEARCH = asks(("search_deals", {"company": "Acme"}))
LIVE = AgenticContext(reference_data=(ReferenceSource(name="stages", tool="list_stages", applies_to=("stage",)),))

REFUSED: list[Any] = [
    (("drop_all", {}), "policy", ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_FOUND),
    (("list_stages", {}), "policy", ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_ALLOWED),
    (("update_deals", {"ids": []}), "error", ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH),
]


def message(request: Any) -> str:
    return orjson.loads(told(request)[0])["message"]


@pytest.mark.requirement("agentic.refusals")
async def test_a_tool_of_a_similar_name_is_suggested_first():
    crm = Crm(1)

    result, model = await run_agent(crm, asks(("search_deal", {})), SEARCH, "Found.")

    assert result.ok
    assert message(model.requests[1]) == (
        "'search_deal' is not among your tools; the closest: search_deals; you may call: search_deals, update_deals"
    )
    assert purposes(result) == ["tool_selection", "error_recovery", "result_review"]
    assert result.envelopes[0].status == "denied"


@pytest.mark.requirement("agentic.refusals")
async def test_a_model_without_tools_is_told_that_it_has_none():
    model = ScriptedModel([asks(("search_deals", {})), "Then not."])
    async with Crib("memory://", models={"scripted:m": model}) as crib:
        await crib.agent("desk", model="scripted:m")("Search.")

    assert message(model.requests[1]) == "'search_deals' is not among your tools; you have none"


@pytest.mark.requirement("agentic.refusals", "agents.aliases")
async def test_the_names_that_a_model_is_told_are_those_that_it_can_call():
    @tool(name="crm.find", side_effects="reads")
    async def find() -> str:
        return "one"

    model = ScriptedModel([asks(("search", {})), asks(("crm_find", {})), "One."])
    result = await run_tool(Crm(), model, "agentic", find, tools=["crm.find"])

    assert "you may call: crm_find" in message(model.requests[1])
    assert [envelope.status for envelope in result.envelopes] == ["denied", "success"]


@pytest.mark.requirement("agentic.refusals")
@pytest.mark.parametrize(("call", "stop", "code", "reason"), REFUSED, ids=["unknown", "not allotted", "invalid"])
async def test_three_turns_of_refusals_end_the_run_with_the_last(call: Any, stop: str, code: Any, reason: Any):
    crm = Crm(1)

    result, model = await run_agent(crm, SEARCH, *[asks(call)] * 5)

    assert (result.summary.status, result.summary.stop_reason) == ("failed", stop)
    assert len(model.requests) == 4
    assert result.summary.error is not None
    assert (result.summary.error.code, result.summary.error.reason) == (code, reason)
    assert result.summary.error.message.startswith(
        "all calls of the model 'scripted:script' were refused in 3 turns in a row; the last: "
    )
    assert result.partial["calls"][0]["status"] == "success"
    assert crm.updates == []


@pytest.mark.requirement("agentic.refusals")
async def test_a_call_that_runs_gives_the_model_its_chances_back():
    wrong = asks(("drop_all", {}))

    result, _ = await run_agent(Crm(1), wrong, wrong, SEARCH, wrong, wrong, "I cannot drop them.")

    assert result.ok


@pytest.mark.requirement("agentic.refusals")
async def test_a_turn_with_one_call_that_runs_is_no_turn_of_refusals():
    both = asks(("drop_all", {}), ("search_deals", {"company": "Acme"}))

    result, _ = await run_agent(Crm(1), both, both, both, both, "Done.")

    assert result.ok


@pytest.mark.requirement("agentic.closest", "agentic.refusals", "agents.live_enums")
@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ("negotiations", "nearest: '3003' (Negotiation)"),
        ("posal", "nearest: '3002' (Proposal)"),
        ("Won", "valid: '3001' (Qualified), '3002' (Proposal), '3003' (Negotiation)"),
    ],
)
async def test_a_stage_that_does_not_exist_is_refused_with_the_closest_and_can_be_asked_about(wrong: str, nearest: str):
    crm = Crm(1)

    result, model = await run_agent(
        crm, asks(("update_deals", {"ids": ["d0"], "stage": wrong})), f"Which stage is {wrong!r}?", context=LIVE
    )

    assert result.output == {"summary": f"Which stage is {wrong!r}?"}
    assert crm.updates == []
    refused = orjson.loads(told(model.requests[1])[0])
    assert nearest in refused["message"]
    assert "answer with a question" in refused["hint"]
    assert purposes(result) == ["tool_selection", "error_recovery"]


@pytest.mark.requirement("agentic.closest")
async def test_an_unknown_field_is_refused_with_the_closest_field():
    crm = Crm(1)

    _, model = await run_agent(crm, asks(("search_deals", {"company": "Acme", "limits": 2})), SEARCH, "Found.")

    assert "'limits' is not a property here; known: limit" in message(model.requests[1])


@pytest.mark.requirement("agentic.empty_answer")
async def test_a_model_that_said_nothing_and_then_answers_has_answered():
    crm = Crm(1)

    result, model = await run_agent(crm, SEARCH, " ", "One deal.")

    assert result.output == {"summary": "One deal."}
    assert purposes(result) == ["tool_selection", "result_review", "error_recovery"]
    assert [len(request.messages) for request in model.requests] == [1, 3, 4]


@pytest.mark.requirement("agentic.pause")
async def test_a_paused_answer_is_sent_back_and_goes_on():
    result, model = await run_agent(Crm(1), stopped("pause", "Let me think."), "Done.")

    assert result.output == {"summary": "Done."}
    assert [part.text for part in model.requests[1].messages] == ["Move Acme's deals to Negotiation", "Let me think."]


@pytest.mark.requirement("agentic.history")
async def test_a_prompt_that_asks_for_the_history_has_it_in_every_turn():
    crm = Crm(1)
    wrong = asks(("update_deals", {"ids": [], "stage": "3003"}))

    _, model = await run_agent(crm, SEARCH, wrong, "Done.", system_prompt="So far:\n{{execution_history}}")

    first, second, third = (request.system for request in model.requests)
    assert first == "So far:\n"
    assert second.startswith('So far:\n1. search_deals({"company":"Acme","limit":null}): {"results":[{"id":"d0"')
    assert third.startswith(second)
    assert "\n2. update_deals(" in third
    assert "are not valid: /ids" in third
