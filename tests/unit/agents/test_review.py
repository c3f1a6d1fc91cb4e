"""When the model is asked about one step again: a reference that leads nowhere, or a call refused as invalid."""

from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from tests.unit.agents.crm import DONE, Crm, own_prompt, plan, positions, purposes, run_sequence, run_tool
from toolcrib import ScriptedModel, tool
from toolcrib.contracts import ErrorCode, ModelStarted, Reason

WRONG = {"for_each": "${search_deals.deals}", "input": {"ids": ["${item.id}"], "stage": "3003"}}
RIGHT = {"for_each": "${search_deals.results}", "input": {"ids": ["${item.id}"], "stage": "3003"}}


@pytest.mark.requirement("agents.review", "agents.purposes")
async def test_a_reference_that_leads_nowhere_is_corrected_with_the_results_in_view():
    crm = Crm(4)

    result, model = await run_sequence(crm, plan(update_deals=WRONG), RIGHT, DONE)

    assert result.ok
    assert purposes(result) == ["planning", "result_review", "formatting"]
    assert positions(result) == ["search_deals", "update_deals.again[0]", "update_deals.again[1]"]
    assert [ids for ids, _ in crm.updates] == [["d0", "d1", "d2"], ["d3"]]
    question = model.requests[1].messages[0].text
    assert "Step update_deals could not be carried out: " in question
    assert "deals" in question
    assert '"id":"d0"' in question
    [review] = [
        entry.event.position
        for entry in result.events
        if isinstance(entry.event, ModelStarted) and entry.event.purpose == "result_review"
    ]
    assert review == "update_deals.review"


@pytest.mark.requirement("agents.review", "agents.prompt")
async def test_the_review_sees_what_was_done_as_the_history_of_its_prompt():
    _, model = await run_sequence(
        Crm(1), plan(update_deals=WRONG), RIGHT, DONE, system_prompt="HISTORY[{{execution_history}}]"
    )

    assert own_prompt(model.requests[0]) == "HISTORY[]"
    assert model.requests[1].system.startswith('HISTORY[{"search_deals":{"tool":"search_deals","calls":1')


@pytest.mark.requirement("agents.review")
async def test_calls_that_were_refused_as_invalid_are_planned_anew():
    crm = Crm(2)
    missing = {
        "for_each": "${search_deals.results}",
        "input": {"ids": ["${item.id}"], "stage": "${search_deals.results}"},
    }

    result, model = await run_sequence(crm, plan(update_deals=missing), RIGHT, DONE)

    assert result.ok
    assert positions(result) == ["search_deals", "update_deals[0]", "update_deals.again[0]"]
    assert result.envelopes[1].error is not None
    assert result.envelopes[1].error.code is ErrorCode.VALIDATION_ERROR
    assert "the arguments of 'update_deals' are not valid: /stage" in model.requests[1].messages[0].text
    assert crm.updates == [(["d0", "d1"], "3003")]


@pytest.mark.requirement("agents.review")
async def test_an_input_that_is_missing_is_asked_for():
    crm = Crm(1)

    result, _ = await run_sequence(crm, plan(search_deals={}), {"input": {"company": "Acme"}}, DONE)

    assert result.ok
    assert positions(result) == ["search_deals", "search_deals.again", "update_deals[0]"]


@pytest.mark.requirement("agents.review")
async def test_a_first_step_has_nothing_to_refer_to_when_it_is_corrected_either():
    _, model = await run_sequence(Crm(1), plan(search_deals={}), {"input": {"company": "Acme"}}, DONE)

    schema = model.requests[1].output_schema
    assert schema is not None
    assert "for_each" not in schema["properties"]


@pytest.mark.requirement("agents.review", "agents.skip")
async def test_a_review_may_find_that_the_step_is_not_needed():
    crm = Crm(0)
    first = {"input": {"ids": ["${search_deals.results[0].id}"], "stage": "3003"}}

    result, model = await run_sequence(crm, plan(update_deals=first), {"skip": True}, {"summary": "No deals."})

    assert result.ok
    assert crm.updates == []
    assert "Steps not needed: update_deals" in model.requests[2].messages[0].text


@pytest.mark.requirement("agents.review", "agents.failures")
async def test_a_reference_that_leads_nowhere_twice_fails_the_run():
    crm = Crm()

    result, _ = await run_sequence(crm, plan(update_deals=WRONG), WRONG, {"summary": "Nothing was moved."})

    error = result.summary.error
    assert (result.summary.status, result.summary.stop_reason) == ("failed", "error")
    assert error is not None
    assert (error.code, error.reason) == (ErrorCode.VALIDATION_ERROR, Reason.REFERENCE_UNRESOLVED)
    assert error.message.startswith("step 'update_deals' could not be carried out: ")
    assert purposes(result) == ["planning", "result_review", "formatting"]
    assert crm.updates == []
    assert result.partial == {"summary": "Nothing was moved."}


@pytest.mark.requirement("agents.review", "agents.failures")
async def test_calls_that_were_refused_twice_fail_the_run_with_the_refusal():
    crm = Crm(1)
    wrong = {"input": {"ids": "${search_deals.results[0].id}", "stage": "3003"}}

    result, _ = await run_sequence(crm, plan(update_deals=wrong), wrong, {"summary": "Nothing was moved."})

    assert result.summary.error is not None
    assert result.summary.error.reason is Reason.INPUT_SCHEMA_MISMATCH
    assert positions(result) == ["search_deals", "update_deals", "update_deals.again"]
    assert crm.updates == []


@pytest.mark.requirement("agents.review", "agents.unusable_answer")
async def test_a_review_without_an_answer_fails_the_run_and_keeps_what_was_found():
    crm = Crm(1)

    result, _ = await run_sequence(crm, plan(update_deals=WRONG), "Hm.", "Well.", "No idea.")

    assert result.summary.status == "failed"
    assert result.partial["steps"]["search_deals"]["output"]["results"][0]["id"] == "d0"
    assert crm.updates == []


@pytest.mark.requirement("agents.no_double_effect")
async def test_a_function_that_fails_its_own_validation_has_run_and_is_not_run_again():
    moved: list[str] = []

    class Answer(BaseModel):
        moved: int

    @tool(side_effects="writes")
    async def move(deal: str) -> str:
        moved.append(deal)
        return str(Answer.model_validate({"moved": "not a number"}))

    model = ScriptedModel(['{"reasoning": "", "move": {"input": {"deal": "d0"}}}', '{"summary": "failed"}'])
    result = await run_tool(Crm(), model, "deterministic", move, steps=["move"])

    assert moved == ["d0"]
    assert result.summary.error is not None
    assert result.summary.error.reason is Reason.TOOL_FAILED
    assert purposes(result) == ["planning", "formatting"]


@pytest.mark.requirement("agents.review")
async def test_arguments_that_only_the_function_can_refuse_are_planned_anew():
    moved: list[str] = []

    def known(deal: str) -> str:
        if not deal.startswith("d"):
            raise ValueError("a deal's id starts with d")
        return deal

    @tool(side_effects="writes")
    async def move(deal: Annotated[str, AfterValidator(known)]) -> str:
        moved.append(deal)
        return "ok"

    answers: list[Any] = [
        '{"reasoning": "", "move": {"input": {"deal": "0"}}}',
        '{"input": {"deal": "d0"}}',
        '{"summary": "moved"}',
    ]
    model = ScriptedModel(answers)
    result = await run_tool(Crm(), model, "deterministic", move, steps=["move"])

    assert result.ok
    assert moved == ["d0"]
    assert "deal: Value error, a deal's id starts with d" in model.requests[1].messages[0].text


@pytest.mark.requirement("agents.failures", "agents.review")
async def test_some_refusals_among_successes_are_not_reviewed():
    @tool(side_effects="reads")
    async def numbers() -> list[Any]:
        return [2, "two"]

    @tool(side_effects="reads")
    async def halve(number: int) -> int:
        return number // 2

    answers: list[Any] = [
        '{"reasoning": "", "numbers": {}, "halve": {"for_each": "${numbers}", "input": {"number": "${item}"}}}',
        '{"summary": "one of two"}',
    ]
    halves = {"task": "Halve all numbers"}
    steps = ["numbers", "halve"]
    result = await run_tool(
        Crm(), ScriptedModel(answers), "deterministic", numbers, halve, parameters=halves, steps=steps
    )

    assert (result.status, result.partial) == ("failed", {"summary": "one of two"})
    assert purposes(result) == ["planning", "formatting"]
    assert sorted(envelope.status for envelope in result.envelopes) == ["error", "success", "success"]
    assert result.summary.warnings[0].startswith("step 'halve': 1 of 2 calls failed: ")
