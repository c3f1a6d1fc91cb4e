"""The deterministic mode from the outside: plan, fixed steps, an answer."""

import asyncio
import re
from typing import Any

import orjson
import pytest

from tests.unit.agents.crm import (
    DONE,
    MODEL,
    Crm,
    asks,
    own_prompt,
    plan,
    positions,
    purposes,
    run_sequence,
    run_tool,
    stopped,
)
from toolcrib import AgenticContext, AgenticStep, Crib, LLMConfig, ScriptedModel, tool
from toolcrib.contracts import ErrorCode, InvalidDefinition, ModelError, ModelStarted, Reason
from toolcrib.llm import Reasoning


@pytest.mark.requirement("agents.sequence", "agents.purposes", "agents.plan_batches")
async def test_a_sequence_is_planned_fanned_out_in_batches_and_reported():
    crm = Crm(7)

    result, model = await run_sequence(crm, plan(), DONE)

    assert result.ok
    assert result.output == DONE
    assert result.summary.stop_reason == "final_answer"
    assert crm.searches == ["Acme"]
    assert crm.updates == [(["d0", "d1", "d2"], "3003"), (["d3", "d4", "d5"], "3003"), (["d6"], "3003")]
    assert positions(result) == ["search_deals", "update_deals[0]", "update_deals[1]", "update_deals[2]"]
    assert purposes(result) == ["planning", "formatting"]
    assert (result.summary.tool_calls, len(model.requests)) == (4, 2)


@pytest.mark.requirement("agents.sequence")
async def test_the_answer_is_made_of_facts_about_every_step():
    _, model = await run_sequence(Crm(2), plan(), DONE)

    question = model.requests[1].messages[0].text
    assert "Move Acme's deals to Negotiation" in question
    assert '"search_deals":{"tool":"search_deals","calls":1' in question
    assert '"output":[{"updated":2}]' in question
    assert "Steps not needed: none" in question
    assert model.requests[1].output_schema is not None
    assert list(model.requests[1].output_schema["properties"]) == ["summary"]


@pytest.mark.requirement("agents.sequence")
async def test_a_sequence_may_use_a_tool_twice_and_steps_see_all_earlier_ones():
    crm = Crm(1)
    model = ScriptedModel(
        [
            orjson.dumps(
                {
                    "reasoning": "",
                    "search_deals": {"input": {"company": "Acme"}},
                    "update_deals": {"input": {"ids": ["${search_deals.results[0].id}"], "stage": "3001"}},
                    "search_deals_2": {"input": {"company": "Acme", "limit": "${update_deals.updated}"}},
                }
            ).decode(),
            orjson.dumps(DONE).decode(),
        ]
    )

    result = await run_tool(crm, model, "deterministic", steps=["search_deals", "update_deals", "search_deals"])

    assert result.ok
    assert positions(result) == ["search_deals", "update_deals", "search_deals_2"]
    assert result.envelopes[2].input == {"company": "Acme", "limit": 1}


@pytest.mark.requirement("agents.sequence")
async def test_each_step_runs_the_version_that_it_names():
    @tool(name="look", version="1.0.0", side_effects="reads")
    async def first() -> str:
        return "one"

    @tool(name="look", version="2.0.0", side_effects="reads")
    async def second() -> str:
        return "two"

    steps = [AgenticStep(id="new", tool="look"), AgenticStep(id="old", tool="look@^1.0")]
    model = ScriptedModel(['{"reasoning": "", "new": {}, "old": {}}', '{"summary": "ok"}'])

    look = {"task": "Look twice"}

    result = await run_tool(Crm(), model, "deterministic", first, second, parameters=look, steps=steps)

    assert [envelope.output for envelope in result.envelopes] == ["two", "one"]


@pytest.mark.requirement("agents.sequence")
async def test_parameters_are_the_task_and_can_be_referred_to():
    crm = Crm(1)
    schema: dict[str, Any] = {"type": "object", "properties": {"stage": {"type": "string"}}, "required": ["stage"]}
    answers = [plan(update_deals={"input": {"ids": ["d0"], "stage": "${input.stage}"}}), DONE]
    model = ScriptedModel([orjson.dumps(answer).decode() for answer in answers])

    await run_tool(
        crm,
        model,
        "deterministic",
        parameters={"stage": "3002"},
        steps=["search_deals", "update_deals"],
        input_schema=schema,
    )

    assert crm.updates == [(["d0"], "3002")]
    assert 'Task: {"stage":"3002"}' in model.requests[0].messages[0].text


@pytest.mark.requirement("agents.sequence")
async def test_an_answer_has_the_shape_that_the_tool_promises():
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"summary": {"type": "string"}, "deals_affected": {"type": "integer"}},
        "required": ["summary", "deals_affected"],
    }

    result, _ = await run_sequence(
        Crm(), plan(), {"summary": "done"}, {"summary": "done", "deals_affected": 7}, result_schema=schema
    )

    assert result.output == {"summary": "done", "deals_affected": 7}
    assert purposes(result) == ["planning", "formatting", "error_recovery"]


@pytest.mark.requirement("agents.sequence")
async def test_an_empty_list_is_a_step_without_calls():
    crm = Crm(0)

    result, _ = await run_sequence(crm, plan())

    assert result.ok
    assert positions(result) == ["search_deals"]
    assert purposes(result) == ["planning"]
    [warning] = result.summary.warnings
    assert result.unwrap()["summary"] == warning == "Nothing was changed: there were no items to do update_deals for."
    assert result.unwrap()["steps"]["update_deals"] == {"tool": None, "calls": 0, "output": []}


@pytest.mark.requirement("agents.sequence")
async def test_an_empty_list_is_a_step_without_calls_to_a_model_that_must_give_a_shape():
    schema: dict[str, Any] = {"type": "object", "properties": {"moved": {"type": "integer"}}, "required": ["moved"]}

    result, model = await run_sequence(Crm(0), plan(), {"moved": 0}, result_schema=schema)

    assert result.output == {"moved": 0}
    assert '"update_deals":{"tool":null,"calls":0,"output":[]}' in model.requests[1].messages[0].text


@pytest.mark.requirement("agents.sequence")
async def test_a_sequence_without_steps_is_refused_when_it_is_saved():
    with pytest.raises(InvalidDefinition, match="mode 'deterministic' needs steps"):
        await run_sequence(Crm(), steps=[])


@pytest.mark.requirement("agents.skip")
async def test_a_step_that_is_not_needed_is_skipped_and_named_in_the_report():
    crm = Crm()

    answers = [plan(update_deals={"skip": True}), {"summary": "7 deals found."}]

    result, model = await run_sequence(crm, *answers, task="Find Acme's deals")

    assert result.ok
    assert crm.updates == []
    assert positions(result) == ["search_deals"]
    assert "Steps not needed: update_deals" in model.requests[1].messages[0].text


@pytest.mark.requirement("agents.question")
async def test_a_run_waits_with_a_question_and_nothing_is_called():
    crm = Crm()
    asking = plan(question="Which Acme?", search_deals={"skip": True}, update_deals={"skip": True})

    result, model = await run_sequence(crm, asking)

    assert (result.ok, result.summary.status, result.summary.stop_reason) == (False, "awaiting_answer", None)
    assert result.question is not None
    assert (result.question.question, result.question.reason) == ("Which Acme?", "unclear")
    assert (crm.searches, result.envelopes, len(model.requests)) == ([], [], 1)


@pytest.mark.requirement("agents.unusable_answer", "agents.purposes")
async def test_prose_instead_of_a_plan_is_sent_back_with_what_is_wrong():
    crm = Crm(1)

    result, model = await run_sequence(crm, "I will look for the deals.", {"reasoning": ""}, plan(), DONE)

    assert result.ok
    assert purposes(result) == ["planning", "error_recovery", "error_recovery", "formatting"]
    assert "the answer is not one JSON object" in model.requests[1].messages[-1].text
    assert '"search_deals" is a required property' in model.requests[2].messages[-1].text
    started = [entry.event for entry in result.events if isinstance(entry.event, ModelStarted)]
    assert [event.position for event in started] == ["plan", "plan.fix1", "plan.fix2", "format"]


@pytest.mark.requirement("agents.unusable_answer")
async def test_a_model_that_never_plans_fails_the_run_and_nothing_is_called():
    crm = Crm()

    result, model = await run_sequence(crm, "Sure!", "Right away!", "Done!")

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "error")
    assert result.summary.error is not None
    assert result.summary.error.code is ErrorCode.PROVIDER_ERROR
    assert result.summary.error.reason is Reason.BAD_RESPONSE
    assert "'scripted:script' gave no usable plan after 3 answers" in result.summary.error.message
    assert (crm.searches, result.output, len(model.requests)) == ([], None, 3)


@pytest.mark.requirement("agents.unusable_answer")
async def test_an_answer_that_was_cut_off_is_said_to_be():
    _, model = await run_sequence(Crm(1), stopped("length", '{"reasoning": "Fi'), plan(), DONE)

    assert "the answer was cut off at max_tokens" in model.requests[1].messages[-1].text


@pytest.mark.requirement("agents.unusable_answer")
@pytest.mark.parametrize(
    "answer",
    [
        "Here it is:\n```json\n{PLAN}\n```\nShall I go on?",
        "```\n{PLAN}\n```",
        "```{PLAN}```",
        "  {PLAN}\n",
    ],
)
async def test_a_plan_may_stand_in_a_fence(answer: str):
    text = answer.replace("{PLAN}", orjson.dumps(plan()).decode())

    result, model = await run_sequence(Crm(1), text, DONE)

    assert result.ok
    assert len(model.requests) == 2


@pytest.mark.requirement("agents.unusable_answer")
async def test_an_answer_that_speaks_of_a_fence_is_still_json():
    result, _ = await run_sequence(Crm(1), plan(reasoning="use ```sql``` here"), {"summary": "see ```x```"})

    assert result.output == {"summary": "see ```x```"}


@pytest.mark.requirement("agents.failures")
async def test_calls_that_failed_among_others_that_succeed_are_the_end():
    crm = Crm(7)

    async def locked(ids: list[str]) -> None:
        if "d3" in ids:
            raise RuntimeError("d3 is locked")

    crm.on_update = locked
    result, model = await run_sequence(crm, plan(), {"summary": "4 of 7 moved."})

    assert (result.status, result.stop_reason, result.output) == ("failed", "error", None)
    assert result.partial == {"summary": "4 of 7 moved."}
    assert result.error is not None
    assert result.error.message.startswith("step 'update_deals': 1 of 3 calls failed; the first: ")
    assert result.error.details is not None
    assert (result.error.details["calls"], result.error.details["failed"]) == (3, 1)
    assert [ids for ids, _ in crm.updates] == [["d0", "d1", "d2"], ["d6"]]
    [warning] = result.summary.warnings
    assert warning.startswith("step 'update_deals': 1 of 3 calls failed: ")
    assert "d3 is locked" in warning
    facts = model.requests[1].messages[0].text
    assert '"failed":1,"first_error":' in facts
    assert "Problems: step 'update_deals'" in facts


@pytest.mark.requirement("agents.failures")
async def test_a_step_whose_calls_all_failed_fails_the_run_and_no_later_step_runs():
    crm = Crm()

    async def down(_: str) -> None:
        raise RuntimeError("the CRM is down")

    crm.on_search = down
    result, _ = await run_sequence(crm, plan(), {"summary": "The CRM is down; nothing was changed."})

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "error")
    assert result.summary.error is not None
    assert "the CRM is down" in result.summary.error.message
    assert result.partial == {"summary": "The CRM is down; nothing was changed."}
    assert crm.updates == []
    assert purposes(result) == ["planning", "formatting"]


@pytest.mark.requirement("agents.effects_kept")
@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (("Moved.", "All moved.", "Really, all moved."), "no usable answer after 3 answers"),
        ((ModelError("bad_request", "too long"),), "too long"),
    ],
    ids=["prose", "provider"],
)
async def test_when_no_answer_can_be_formatted_the_facts_are_the_answer(answers: tuple[Any, ...], said: str):
    crm = Crm(1)

    result, _ = await run_sequence(crm, plan(), *answers)

    assert result.ok
    assert result.unwrap()["steps"]["update_deals"]["output"] == [{"updated": 1}]
    [warning] = result.summary.warnings
    assert warning.startswith("the answer could not be formatted: ")
    assert said in warning
    assert len(crm.updates) == 1


@pytest.mark.requirement("agents.model_failure")
@pytest.mark.parametrize(
    ("kind", "code", "reason"),
    [
        ("auth", ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED),
        ("quota", ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED),
        ("bad_request", ErrorCode.PROVIDER_ERROR, Reason.REQUEST_REFUSED),
        ("bad_response", ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE),
    ],
)
async def test_a_provider_that_fails_at_the_plan_fails_the_run(kind: Any, code: ErrorCode, reason: Reason):
    crm = Crm()

    result, _ = await run_sequence(crm, ModelError(kind, "no", status=400))

    error = result.summary.error
    assert (result.summary.status, result.summary.stop_reason, result.output) == ("failed", "error", None)
    assert error is not None
    assert (error.code, error.message) == (code, "no")
    assert error.details is not None
    assert (error.details["kind"], error.details["status"]) == (kind, 400)
    assert error.reason is reason
    assert crm.searches == []


@pytest.mark.requirement("agents.model_failure")
async def test_a_provider_that_was_busy_is_asked_again():
    busy = ModelError("rate_limit", "slow down", status=429, retry_after_s=0.0)

    result, model = await run_sequence(Crm(1), busy, plan(), busy, DONE)

    assert result.ok
    assert len(model.requests) == 4


@pytest.mark.requirement("agents.model_failure")
async def test_a_provider_that_stays_busy_tells_when_to_come_back():
    busy = ModelError("rate_limit", "slow down", status=429, retry_after_s=3600.0)

    result, _ = await run_sequence(Crm(1), busy)

    assert result.summary.error is not None
    assert (result.summary.error.code, result.summary.error.retry_after_s) == (ErrorCode.RATE_LIMIT, 3600.0)


@pytest.mark.requirement("agents.dry_run")
async def test_a_dry_run_reads_and_writes_nothing():
    crm = Crm(7)

    result, _ = await run_sequence(crm, plan(), {"summary": "7 deals would be moved."}, dry_run=True)

    assert result.ok
    assert (crm.searches, crm.updates) == (["Acme"], [])
    assert [envelope.status for envelope in result.envelopes] == ["success", "skipped", "skipped", "skipped"]


@pytest.mark.requirement("agents.sequence")
async def test_calls_of_a_step_run_at_the_same_time_and_stay_in_order():
    crm, together = Crm(6), asyncio.Barrier(2)

    async def wait(_: list[str]) -> None:
        await together.wait()

    crm.on_update = wait
    result, _ = await run_sequence(crm, plan(), DONE)

    facts = [envelope.position for envelope in result.envelopes]
    assert sorted(facts) == ["search_deals", "update_deals[0]", "update_deals[1]"]


@pytest.mark.requirement("agents.prompt")
async def test_the_prompt_has_everything_that_its_placeholders_name():
    prompt = (
        "TASK {{user_task}} TOOLS {{available_tools}} SCHEMA {{integration_schema}} "
        "INPUT {{input.task}} HISTORY[{{execution_history}}]"
    )
    context = AgenticContext(documentation="Stages are {{final}}.", example_queries=("Move all", "Close all"))

    _, model = await run_sequence(Crm(1), plan(), DONE, system_prompt=prompt, context=context)

    system = own_prompt(model.requests[0])
    assert "TASK Move Acme's deals to Negotiation " in system
    assert "TOOLS - search_deals: Deals whose company name contains the text.\n- update_deals: Move deals" in system
    assert "SCHEMA search_deals: {company: string, limit?: integer | null}\n" in system
    assert "INPUT Move Acme's deals to Negotiation HISTORY[]" in system
    assert system.endswith("\n\nStages are {{final}}.\n\nExamples of tasks:\n- Move all\n- Close all")


@pytest.mark.requirement("agents.prompt")
async def test_schemas_can_be_left_out_of_the_prompt():
    context = AgenticContext(include_schemas=False)

    _, model = await run_sequence(Crm(1), plan(), DONE, system_prompt="[{{integration_schema}}]", context=context)

    assert own_prompt(model.requests[0]) == "[]"


@pytest.mark.requirement("agents.prompt")
async def test_the_model_is_asked_as_the_tool_is_configured():
    llm = LLMConfig(model=MODEL, temperature=0.7, max_tokens=2000, top_p=0.5, reasoning_effort="low", extra={"seed": 1})

    _, model = await run_sequence(Crm(1), plan(), DONE, model=llm)

    request = model.requests[0]
    assert (request.temperature, request.max_tokens, request.top_p, request.extra) == (0.7, 2000, 0.5, {"seed": 1})
    assert request.reasoning == Reasoning("low")


@pytest.mark.requirement("agents.prompt")
async def test_temperature_is_low_and_answers_are_bounded_unless_said_otherwise():
    _, model = await run_sequence(Crm(1), plan(), DONE)

    assert (model.requests[0].temperature, model.requests[0].max_tokens) == (0.2, 4000)


@pytest.mark.requirement("agents.prompt")
async def test_the_planning_question_says_what_the_steps_are_and_what_they_return():
    steps = [
        AgenticStep(id="find", tool="search_deals", purpose="Find them"),
        AgenticStep(id="move", tool="update_deals"),
    ]
    answers = {"reasoning": "", "find": {"input": {"company": "A"}}, "move": {"skip": True}}

    _, model = await run_sequence(Crm(), answers, DONE, steps=steps, task="Find A")

    question = model.requests[0].system
    assert "1. find: Find them\n   returns {results: {id: string, name: string, amount: integer}[]" in question
    assert "\n2. move (changes data): Move deals to a stage.\n" in question
    assert '"move":{"for_each":"${find.results}","input":{"ids":["${item.id}"],"stage":…}}' in question
    asked = model.requests[0].messages[0].text
    today = r"\w+day, \d{4}-\d\d-\d\d"
    assert re.fullmatch(rf"Task: Find A\n\nToday is {today}\. Fill in the input of every step\.", asked)
    assert "${STEP.field}" in question
    assert question.count("   returns ") == 1


@pytest.mark.requirement("agents.sequence")
async def test_a_run_that_was_cut_off_by_a_crash_goes_on_where_it_stopped():
    """The journal's answers are used again, so neither the plan nor the search is repeated."""
    crm = Crm(3)
    model = ScriptedModel([orjson.dumps(plan()).decode(), orjson.dumps(DONE).decode()])

    @tool(side_effects="writes", requires_confirmation=True)
    async def confirmed(ids: list[str], stage: str) -> str:
        crm.updates.append((ids, stage))
        return "ok"

    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*crm.tools, confirmed)
        steps = ["search_deals", AgenticStep(id="update_deals", tool="confirmed")]
        agent = crib.agentic_tool("agent", mode="deterministic", model=MODEL, steps=steps, grounding="off")
        waiting = await agent("go")
        assert waiting.summary.status == "awaiting_approval"
        assert (len(model.requests), crm.updates) == (1, [])
        [request] = await crib.pending_approvals(waiting.run_id)
        await crib.decide(waiting.run_id, request.position, approve=True)
        result = await crib.resume(waiting.run_id)

    assert result.output == DONE
    assert (crm.searches, crm.updates) == (["Acme"], [(["d0", "d1", "d2"], "3003")])
    assert len(model.requests) == 2


@pytest.mark.requirement("agents.unusable_answer")
async def test_a_model_that_calls_tools_instead_of_planning_is_told_so():
    result, model = await run_sequence(Crm(1), asks(("search_deals", {"company": "Acme"})), plan(), DONE)

    assert result.ok
    assert "not one JSON object" in model.requests[1].messages[-1].text
