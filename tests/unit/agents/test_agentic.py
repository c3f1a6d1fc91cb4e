"""The agentic mode from the outside: the model selects tools, reviews, recovers, and answers."""

import asyncio
from typing import Any

import orjson
import pytest

from tests.unit.agents.crm import MODEL, Crm, asks, plan, positions, purposes, run_agent, run_tool, stopped, told
from toolcrib import AgenticStep, AllocatedTool, Crib, ScriptedModel, tool
from toolcrib.contracts import ErrorCode, InvalidDefinition, ModelError, ModelStarted, RateLimit, Reason
from toolcrib.llm import Message, Request

SEARCH = ("search_deals", {"company": "Acme"})
UPDATE = ("update_deals", {"ids": ["d0"], "stage": "3003"})
SCHEMA: Any = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.requirement("agents.loop", "agents.purposes")
async def test_an_agent_selects_tools_looks_at_results_and_answers():
    crm = Crm(1)

    result, model = await run_agent(crm, asks(SEARCH, text="I look."), asks(UPDATE), "d0 is in Negotiation.")

    assert result.ok
    assert result.output == {"summary": "d0 is in Negotiation."}
    assert crm.updates == [(["d0"], "3003")]
    assert positions(result) == ["t1.c1", "t2.c1"]
    assert purposes(result) == ["tool_selection", "result_review", "result_review"]
    assert (result.summary.iterations, result.summary.tool_calls) == (3, 2)
    assert [len(request.messages) for request in model.requests] == [1, 3, 5]
    assert orjson.loads(told(model.requests[1])[0]) == result.envelopes[0].output


@pytest.mark.requirement("agents.loop")
async def test_the_conversation_is_not_written_into_the_journal_again_at_each_turn():
    result, _ = await run_agent(Crm(1), asks(SEARCH), "ok")

    started = [entry.event for entry in result.events if isinstance(entry.event, ModelStarted)]
    assert [event.position for event in started] == ["t1.llm", "t2.llm"]
    assert [event.messages is not None for event in started] == [True, False]
    assert [event.system is not None for event in started] == [True, False]
    assert started[0].tools == started[1].tools


@pytest.mark.requirement("agents.loop")
async def test_calls_of_one_answer_run_at_the_same_time_and_come_back_in_order():
    crm, together = Crm(1), asyncio.Barrier(2)
    order: list[str] = []

    async def second_first(company: str) -> None:
        await together.wait()
        if company == "A":
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        order.append(company)

    crm.on_search = second_first
    _, model = await run_agent(
        crm, asks(("search_deals", {"company": "A"}), ("search_deals", {"company": "nobody"})), "ok"
    )

    assert order == ["nobody", "A"]
    assert ['"d0"' in text for text in told(model.requests[1])] == [True, False]


@pytest.mark.requirement("agents.recovery", "agents.purposes")
async def test_an_error_goes_back_to_the_model_which_corrects_itself():
    crm = Crm(1)

    result, model = await run_agent(crm, asks(("update_deals", {"ids": [], "stage": "3003"})), asks(UPDATE), "Moved.")

    assert result.ok
    assert purposes(result) == ["tool_selection", "error_recovery", "result_review"]
    error = orjson.loads(told(model.requests[1])[0])
    assert error["error"] == "VALIDATION_ERROR"
    assert "/ids" in error["message"]
    assert crm.updates == [(["d0"], "3003")]


@pytest.mark.requirement("agents.recovery")
async def test_a_tool_that_says_when_to_come_back_is_quoted():
    @tool(side_effects="reads", rate_limit=RateLimit(count=1, per_s=60))
    async def quote() -> str:
        return "ok"

    model = ScriptedModel([asks(("quote", {})), asks(("quote", {})), "Later."])
    await run_tool(Crm(), model, "agentic", quote, tools=["quote"])

    refused = orjson.loads(told(model.requests[2])[0])
    assert refused["error"] == "RATE_LIMIT"
    assert 0 < refused["retry_after_s"] <= 60


@pytest.mark.requirement("agents.allocation", "agents.recovery")
@pytest.mark.parametrize("name", ["list_stages", "drop_all"])
async def test_a_tool_outside_the_allocation_is_denied_and_the_model_told_which_there_are(name: str):
    crm = Crm(1)

    result, model = await run_agent(crm, asks((name, {})), "I cannot do that.")

    assert result.ok
    [envelope] = result.envelopes
    assert (envelope.status, envelope.attempts) == ("denied", 0)
    refused = orjson.loads(told(model.requests[1])[0])
    assert refused["error"] == "POLICY_DENIED"
    assert refused["message"] == f"{name!r} is not among your tools; you may call: search_deals, update_deals"
    assert purposes(result) == ["tool_selection", "error_recovery"]


@pytest.mark.requirement("agents.recovery")
@pytest.mark.parametrize("arguments", ['{"company": "Ac', "Acme", '["Acme"]', "42"])
async def test_arguments_that_are_no_object_are_refused_and_sent_again(arguments: str):
    crm = Crm(1)

    result, model = await run_agent(crm, asks(("search_deals", arguments)), asks(SEARCH), "Found.")

    assert result.ok
    assert result.envelopes[0].error is not None
    assert result.envelopes[0].error.reason is Reason.INVALID_ARGUMENTS_JSON
    assert "must be one JSON object" in told(model.requests[1])[0]
    assert crm.searches == ["Acme"]


@pytest.mark.requirement("agents.loop")
async def test_a_call_without_arguments_has_none():
    result, _ = await run_agent(Crm(), asks(("list_stages", " ")), "ok", tools=["list_stages"])

    assert result.envelopes[0].input == {}
    assert result.envelopes[0].ok


@pytest.mark.requirement("agents.dry_run")
async def test_a_dry_run_tells_the_model_that_nothing_was_written():
    crm = Crm(1)

    result, model = await run_agent(crm, asks(UPDATE), "Would be moved.", dry_run=True)

    assert result.ok
    assert crm.updates == []
    assert orjson.loads(told(model.requests[1])[0]) == {"skipped": True, "reason": "dry run: nothing was written"}
    assert purposes(result) == ["tool_selection", "result_review"]


@pytest.mark.requirement("agents.stops")
@pytest.mark.parametrize("text", ["", "  \n"])
async def test_an_empty_answer_is_no_answer(text: str):
    crm = Crm(1)

    result, model = await run_agent(crm, asks(SEARCH), text, text)

    assert purposes(result) == ["tool_selection", "result_review", "error_recovery"]
    assert model.requests[2].messages[-1].text == "Your answer was empty. Call a tool, or answer the task in words."
    assert (result.summary.status, result.summary.stop_reason) == ("failed", "error")
    assert result.summary.error is not None
    assert (result.summary.error.code, result.summary.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)
    assert result.summary.error.message == "the model 'scripted:script' ended with an empty answer (stop: end)"
    assert [call["tool"] for call in result.partial["calls"]] == ["search_deals"]


@pytest.mark.requirement("agents.stops")
async def test_an_empty_answer_before_any_call_leaves_nothing():
    result, _ = await run_agent(Crm(), "", "")

    assert (result.summary.status, result.output) == ("failed", None)


@pytest.mark.requirement("agents.stops")
@pytest.mark.parametrize(
    ("stop", "ends", "said"),
    [
        ("length", ("incomplete", "max_tokens"), "the answer was cut off at max_tokens; raise max_tokens"),
        ("refusal", ("failed", "policy"), "the model 'scripted:script' did not answer: refusal"),
        ("content_filter", ("failed", "policy"), "the model 'scripted:script' did not answer: content_filter"),
    ],
)
async def test_an_answer_that_is_none_is_no_success(stop: Any, ends: tuple[str, str], said: str):
    result, _ = await run_agent(Crm(), stopped(stop, "I found that"))

    assert (result.status, result.stop_reason, result.output) == (*ends, None)
    assert result.partial == {"summary": "I found that", "calls": []}
    assert result.error is not None
    assert result.error.message == said


@pytest.mark.requirement("agents.stops")
async def test_a_refusal_is_told_in_our_word_and_in_the_provider_s():
    result, _ = await run_agent(Crm(), stopped("refusal", "I cannot", raw="completed"))

    assert result.error is not None
    assert result.error.message == "the model 'scripted:script' did not answer: refusal (completed)"


@pytest.mark.requirement("agents.stops")
async def test_an_answer_that_was_cut_off_before_its_first_word_is_incomplete_and_says_why():
    result, _ = await run_agent(Crm(), stopped("length"))

    assert (result.status, result.stop_reason) == ("incomplete", "max_tokens")
    assert result.summary.warnings == ("the answer was cut off at max_tokens; raise max_tokens",)


@pytest.mark.requirement("agents.model_failure")
@pytest.mark.parametrize("before", [(), (asks(SEARCH),)], ids=["at once", "after a call"])
async def test_a_provider_that_fails_ends_the_run_with_what_was_done(before: tuple[Message, ...]):
    result, _ = await run_agent(Crm(1), *before, ModelError("auth", "no such key", status=401))

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "error")
    assert result.summary.error is not None
    assert result.summary.error.code is ErrorCode.AUTH_REQUIRED
    assert (result.partial is None) is (not before)


@pytest.mark.requirement("agents.loop")
async def test_an_agentic_tool_without_tools_is_refused_when_it_is_saved():
    with pytest.raises(InvalidDefinition, match="mode 'agentic' needs tools"):
        await run_agent(Crm(), tools=[])


@pytest.mark.requirement("agents.result_schema")
@pytest.mark.parametrize("text", ['{"n": 1}', '```json\n{"n": 1}\n```'])
async def test_an_answer_that_meets_the_result_schema_is_the_output(text: str):
    result, model = await run_agent(Crm(1), text, result_schema=SCHEMA)

    assert result.output == {"n": 1}
    assert len(model.requests) == 1


@pytest.mark.requirement("agents.result_schema", "agents.purposes")
@pytest.mark.parametrize("text", ["One deal.", '{"n": "one"}', "[1]"])
async def test_another_answer_is_put_into_the_schema_from_the_facts(text: str):
    result, model = await run_agent(Crm(1), asks(SEARCH), text, '{"n": 1}', result_schema=SCHEMA)

    assert result.output == {"n": 1}
    assert purposes(result) == ["tool_selection", "result_review", "formatting"]
    question = model.requests[2].messages[0].text
    assert f"Answer so far: {text}" in question
    assert '"tool":"search_deals"' in question


@pytest.mark.requirement("agents.result_schema", "agents.effects_kept")
@pytest.mark.parametrize(
    ("failing", "said"),
    [
        (("no", "no", "no"), "no usable answer after 3 answers"),
        ((ModelError("server", "down", retry_after_s=9e9),), "down"),
    ],
    ids=["prose", "provider"],
)
async def test_an_answer_that_cannot_be_put_into_the_schema_is_no_output(failing: tuple[Any, ...], said: str):
    result, _ = await run_agent(Crm(1), "One deal.", *failing, result_schema=SCHEMA)

    assert (result.status, result.output) == ("failed", None)
    assert result.partial == {"summary": "One deal.", "calls": []}
    assert result.error is not None
    assert said in result.error.message
    assert said in result.summary.warnings[0]


@pytest.mark.requirement("agents.aliases")
async def test_names_that_models_do_not_accept_have_aliases_of_their_own():
    ran: list[str] = []

    def named(name: str) -> Any:
        @tool(name=name, side_effects="reads")
        async def look() -> str:
            ran.append(name)
            return name

        return look

    long = "a" * 64
    names = ["crm.look", "crm_look", "crm-look", f"{long}.one", f"{long}.two"]
    model = ScriptedModel(
        [asks(("crm_look", {}), ("crm_look_2", {}), ("crm-look", {}), (long, {}), (f"{long[:62]}_2", {})), "ok"]
    )

    result = await run_tool(Crm(), model, "agentic", *map(named, names), tools=names)

    offered = [item.name for item in model.requests[0].tools.tools]
    assert offered == ["crm_look", "crm_look_2", "crm-look", long, f"{long[:62]}_2"]
    assert ran == names
    assert [envelope.name for envelope in result.envelopes] == names


@pytest.mark.requirement("agents.aliases", "agents.allocation")
async def test_a_real_name_is_understood_too():
    @tool(name="crm.look", side_effects="reads")
    async def look() -> str:
        return "seen"

    model = ScriptedModel([asks(("crm.look", {})), "ok"])
    result = await run_tool(Crm(), model, "agentic", look, tools=["crm.look"])

    assert result.envelopes[0].output == "seen"


@pytest.mark.requirement("agents.loop")
async def test_tools_of_higher_priority_are_offered_first():
    allotted = [AllocatedTool(tool="search_deals"), AllocatedTool(tool="list_stages", priority=5), "update_deals"]

    _, model = await run_agent(Crm(), "ok", tools=allotted)

    assert [item.name for item in model.requests[0].tools.tools] == ["list_stages", "search_deals", "update_deals"]


@pytest.mark.requirement("agents.loop")
async def test_a_tool_that_is_allotted_twice_is_offered_once():
    _, model = await run_agent(Crm(), "ok", tools=["search_deals", "search_deals@^1.0"])

    assert [item.name for item in model.requests[0].tools.tools] == ["search_deals"]


@pytest.mark.requirement("agents.loop")
async def test_long_results_are_shortened_for_the_model_and_kept_whole_in_the_journal():
    crm = Crm(2000)

    result, model = await run_agent(crm, asks(SEARCH), "Many.")

    text = told(model.requests[1])[0]
    assert len(text) <= 20_100
    assert "more of 2000" in text
    assert len(result.envelopes[0].output["results"]) == 2000


@pytest.mark.requirement("agents.prompt")
async def test_a_tools_usage_is_part_of_what_the_model_reads():
    @tool(side_effects="reads", usage="Only for emergencies.")
    async def call_help() -> str:
        """Calls for help."""
        return "coming"

    model = ScriptedModel(["ok"])
    await run_tool(Crm(), model, "agentic", call_help, tools=["call_help"])

    assert model.requests[0].tools.tools[0].description == "Calls for help.\nOnly for emergencies."


@pytest.mark.requirement("agents.loop")
async def test_one_place_serves_runs_until_a_tool_changes():
    seen: list[str] = []

    def script(request: Request) -> str:
        seen.append(request.tools.tools[0].description)
        return "ok"

    async with Crib("memory://", models={MODEL: ScriptedModel(script)}) as crib:
        crib.add(*Crm().tools)
        agent = crib.agentic_tool("agent", mode="agentic", model=MODEL, tools=["search_deals"])
        await agent("a")
        await agent("b")
        await crib.save(Crm().tools[0].definition.model_copy(update={"description": "New words."}))
        await agent("c")

    assert seen[0] == seen[1] != seen[2] == "New words."


@pytest.mark.requirement("agents.sequence")
async def test_a_plan_written_by_one_model_is_none_for_an_agent():
    """Both modes are tools of the same crib, side by side."""
    crm = Crm(1)
    planner = ScriptedModel([orjson.dumps(plan()).decode(), '{"summary": "moved"}'])
    chooser = ScriptedModel(["Nothing to do."])
    async with Crib("memory://", models={"scripted:plan": planner, "scripted:choose": chooser}) as crib:
        crib.add(*crm.tools)
        fixed = crib.agentic_tool(
            "fixed",
            mode="deterministic",
            model="scripted:plan",
            steps=["search_deals", AgenticStep(id="update_deals", tool="update_deals")],
            grounding="off",
        )
        free = crib.agentic_tool("free", mode="agentic", model="scripted:choose", tools=["search_deals"])

        assert (await fixed("go")).output == {"summary": "moved"}
        assert (await free("go")).output == {"summary": "Nothing to do."}
