"""An agent from the outside: what its model is told, what it does, and what becomes of its answer."""

from typing import Any

import orjson
import pytest

from tests.unit.agents.crm import MODEL, Crm, asks, positions, purposes, stopped, told
from tests.unit.agents.desk import agent, ask, noted, partial_of
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import ErrorCode, ModelStarted, PromptFragment, Reason, ServiceAccount
from toolcrib.llm import Message, Response, Text, TokenUsage, ToolCall, assistant

SEARCH = asks(("search_deals", {"company": "Acme"}), text="I look.")
SCHEMA: Any = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def ready(text: str = "") -> Response:
    """A model's answer that says that it is ready for its final one."""
    return Response(
        Message("assistant", (Text(text),) if text else ()), "end", "", TokenUsage(), "m", "1", wants_format=True
    )


def malformed(*problems: str, text: str = "```tool\nreturn x(;\n```") -> Response:
    return Response(assistant(text), "end", "", TokenUsage(), "m", "1", problems=problems)


@pytest.mark.requirement("agent.run")
async def test_an_agent_calls_what_it_needs_and_answers():
    result, model = await ask([SEARCH, "Two."])

    assert result.ok
    assert result.summary.stop_reason == "final_answer"
    assert result.output == "Two."
    assert positions(result) == ["t1.c1"]
    assert purposes(result) == ["tool_selection", "result_review"]
    assert orjson.loads(told(model.requests[1])[0]) == result.envelopes[0].output


@pytest.mark.requirement("agent.run")
async def test_an_agent_without_tools_just_answers():
    result, model = await ask(["Hello."], tools=[])

    assert result.output == "Hello."
    assert len(model.requests[0].tools) == 0


@pytest.mark.requirement("agent.run")
async def test_a_model_is_asked_as_its_configuration_says():
    _, model = await ask(["Hello."], llm={"model": MODEL, "temperature": 0.7, "max_tokens": 77, "top_p": 0.5})

    [request] = model.requests
    assert (request.temperature, request.max_tokens, request.top_p) == (0.7, 77, 0.5)
    _, model = await ask(["Hello."])
    assert (model.requests[0].temperature, model.requests[0].max_tokens) == (None, 4000)


@pytest.mark.requirement("agent.prompt")
async def test_the_prompt_is_the_agents_own_with_its_fragments_and_stays_the_same():
    model = ScriptedModel([SEARCH, SEARCH, "Two."])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*Crm(2).tools)
        await crib.fragments.save(PromptFragment(name="tone", text="Be kind."))
        await crib.fragments.save(PromptFragment(name="house", text="We sell {{things}}."))
        await crib.agents.save(
            agent(system_prompt="You know deals.", prompt_fragments=["house", "tone"], tools=["search_deals"])
        )
        result = await crib.invoke("desk", {"message": "How many?"})

    assert {request.system for request in model.requests} == {"You know deals.\n\nWe sell {{things}}.\n\nBe kind."}
    [fragments] = noted(result, "prompt_fragments")
    assert list(fragments["fragments"]) == ["house", "tone"]
    started = [entry.event for entry in result.events if isinstance(entry.event, ModelStarted)]
    assert [event.system is not None for event in started] == [True, False, False]


@pytest.mark.requirement("agent.prompt")
async def test_a_fragment_that_is_gone_fails_the_run_and_names_it():
    async with Crib("memory://", models={MODEL: ScriptedModel([])}) as crib:
        await crib.fragments.save(PromptFragment(name="tone", text="Be kind."))
        await crib.agents.save(agent(prompt_fragments=["tone"]))
        await crib.fragments.remove("tone")
        result = await crib.invoke("desk", {"message": "How many?"})

    assert result.summary.status == "failed"
    assert result.error is not None
    assert "there is no prompt fragment 'tone' in realm 'default'" in result.error.message


@pytest.mark.requirement("agent.prompt")
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"message": "Hi"}, "Hi"),
        ({"message": "Hi", "context": {"deal": "d1"}}, 'Context:\n{\n  "deal": "d1"\n}\n\nHi'),
    ],
)
async def test_variables_are_told_with_the_message_and_never_in_the_prompt(arguments: Any, text: str):
    _, model = await ask(["ok"], arguments=arguments, system_prompt="P")

    assert model.requests[0].messages[0].text == text
    assert model.requests[0].system == "P"


@pytest.mark.requirement("agent.prompt")
async def test_other_parameters_are_variables_too():
    schema = {"type": "object", "properties": {"message": {"type": "string"}, "deal": {"type": "string"}}}
    _, model = await ask(["ok"], arguments={"message": "Hi", "deal": "d1"}, input_schema=schema)

    assert model.requests[0].messages[0].text == 'Context:\n{\n  "deal": "d1"\n}\n\nHi'


@pytest.mark.requirement("agent.formats")
@pytest.mark.parametrize("text", ['{"n": 2}', '```json\n{"n": 2}\n```'])
@pytest.mark.parametrize("fields", [{"response_format": "json"}, {"response_schema": SCHEMA}])
async def test_an_answer_that_is_an_object_already_costs_nothing_more(text: str, fields: Any):
    form: Any = {"response_format": "structured", **fields}
    result, model = await ask([SEARCH, text], **form)

    assert result.summary.output == {"response": text, "output": {"n": 2}}
    assert len(model.requests) == 2
    assert "answer with one JSON object" in model.requests[0].system
    assert model.requests[0].output_schema is None


@pytest.mark.requirement("agent.formats")
async def test_without_tools_the_request_itself_asks_for_the_schema():
    result, model = await ask(['{"n": 2}'], tools=[], response_format="structured", response_schema=SCHEMA)

    assert result.output == {"n": 2}
    [request] = model.requests
    assert (request.output_schema, request.system) == (SCHEMA, "")


@pytest.mark.requirement("agent.formats")
async def test_another_answer_is_asked_for_once_more_where_the_conversation_stands():
    result, model = await ask([SEARCH, "Two.", '{"n": 2}'], response_format="structured", response_schema=SCHEMA)

    assert result.summary.output == {"response": "Two.", "output": {"n": 2}}
    assert purposes(result) == ["tool_selection", "result_review", "formatting"]
    last = model.requests[2]
    assert last.system == model.requests[0].system
    assert last.tools == model.requests[0].tools
    assert (last.tool_choice, last.output_schema) == ("none", SCHEMA)
    assert last.messages[:-1] == (*model.requests[1].messages, assistant("Two."))


@pytest.mark.requirement("agent.formats")
async def test_an_object_that_had_to_be_put_right_is_nobodys_answer():
    result, _ = await ask([SEARCH, '{"n": "two"}', '{"n": 2}'], response_format="structured", response_schema=SCHEMA)

    assert result.summary.output == {"response": '{"n":2}', "output": {"n": 2}}


@pytest.mark.requirement("agent.formats")
async def test_an_answer_that_cannot_be_had_in_its_schema_fails_with_the_words():
    result, model = await ask([SEARCH, "Two.", "two", '{"n": "two"}', "[2]"], response_format="structured",
                              response_schema=SCHEMA)  # fmt: skip

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "error")
    assert result.error is not None
    assert (result.error.code, result.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)
    assert partial_of(result)["response"] == "Two."
    assert [call["tool"] for call in partial_of(result)["calls"]] == ["search_deals"]
    assert len(model.requests) == 5


@pytest.mark.requirement("agent.ready")
async def test_a_model_that_is_ready_is_asked_for_its_answer_in_words():
    result, model = await ask([SEARCH, ready(), "Two."])

    assert result.output == "Two."
    assert purposes(result) == ["tool_selection", "result_review", "formatting"]
    assert model.requests[2].tool_choice == "none"
    assert model.requests[2].system == model.requests[0].system


@pytest.mark.requirement("agent.ready")
async def test_a_model_without_tools_that_is_ready_says_it_too():
    result, model = await ask([ready("Well:"), "Two."], tools=[])

    assert result.output == "Two."
    assert model.requests[1].messages[1] == assistant("Well:")
    assert model.requests[1].tool_choice == "auto"


@pytest.mark.requirement("agent.ready")
async def test_a_model_that_is_ready_has_nothing_to_say_and_fails():
    result, _ = await ask([ready(), " "])

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "error")


@pytest.mark.requirement("agent.ready", "agent.formats")
async def test_a_model_that_is_ready_is_asked_for_its_answer_in_the_schema_at_once():
    result, model = await ask(
        [SEARCH, ready("Fine."), '{"n": 2}'], response_format="structured", response_schema=SCHEMA
    )

    assert result.summary.output == {"response": "Fine.", "output": {"n": 2}}
    assert len(model.requests) == 3


@pytest.mark.requirement("agent.ready")
@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["words", "schema"])
async def test_an_agentic_tool_whose_model_is_ready_ends_likewise(schema: Any):
    model = ScriptedModel([SEARCH, ready(), '{"n": 2}'])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*Crm(2).tools)
        counting = crib.agentic_tool(
            "counting", mode="agentic", model=MODEL, tools=["search_deals"], result_schema=schema
        )
        result = await counting("How many?")

    assert result.output == ({"n": 2} if schema else {"summary": '{"n": 2}'})


@pytest.mark.requirement("agent.problems")
async def test_a_model_hears_what_is_wrong_with_its_calls():
    result, model = await ask([malformed("line 2: expected an argument"), SEARCH, "Two."])

    assert result.output == "Two."
    assert model.requests[1].messages[-1].text.endswith("\nline 2: expected an argument")
    assert model.requests[1].messages[-2].text == "```tool\nreturn x(;\n```"
    assert purposes(result) == ["tool_selection", "error_recovery", "result_review"]


@pytest.mark.requirement("agent.problems")
async def test_a_model_that_writes_no_call_right_is_given_up():
    result, model = await ask([malformed("line 1: no")] * 5)

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "error")
    assert result.error is not None
    assert "line 1: no" in result.error.message
    assert len(model.requests) == 3


@pytest.mark.requirement("agent.problems")
async def test_calls_that_are_right_are_made_beside_those_that_are_not():
    both = Response(SEARCH, "tool_calls", "", TokenUsage(), "m", "1", problems=("line 9: no",))
    result, model = await ask([both, "Two."])

    assert positions(result) == ["t1.c1"]
    assert model.requests[1].messages[-1].text.endswith("\nline 9: no")


@pytest.mark.requirement("agent.one_at_a_time")
async def test_an_agent_that_calls_one_tool_at_a_time_has_the_others_refused():
    crm = Crm(2)
    both = asks(("search_deals", {"company": "A"}), ("search_deals", {"company": "B"}))
    result, model = await ask([both, SEARCH, "Two."], crm=crm, parallel_tool_calls=False)

    assert result.ok
    assert crm.searches == ["A", "Acme"]
    first, second = told(model.requests[1])
    assert "results" in first
    assert "one call at a time" in orjson.loads(second)["message"]
    assert not model.requests[0].parallel_tool_calls
    [refused] = noted(result, "call_refused")
    assert "one call at a time" in refused["message"]


@pytest.mark.requirement("agent.run")
async def test_a_pause_of_the_provider_goes_on_with_what_was_said():
    result, model = await ask([stopped("pause", "Thinking"), "Two."])

    assert result.output == "Two."
    assert model.requests[1].messages[-1] == assistant("Thinking")


@pytest.mark.requirement("agent.run")
async def test_an_agent_acts_as_its_account_and_fails_without_it():
    model = ScriptedModel([SEARCH, "Two."])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*Crm(2).tools)
        account = ServiceAccount(name="bot", grants=("ai://tools/*/search_deals/execute",))
        await crib.accounts.save(account)
        await crib.agents.save(agent(principal_ref="bot", tools=["search_deals", "update_deals"]))
        result = await crib.invoke("desk", {"message": "How many?"})
        await crib.accounts.save(account.model_copy(update={"enabled": False}))
        refused = await crib.invoke("desk", {"message": "How many?"})

    assert result.ok
    assert [tool.name for tool in model.requests[0].tools.tools] == ["search_deals"]
    assert (refused.summary.status, refused.summary.stop_reason) == ("failed", "policy")
    assert refused.error is not None
    assert "'bot', which is disabled" in refused.error.message


@pytest.mark.requirement("agent.run")
async def test_calls_with_equal_ids_are_told_apart():
    twice = Message("assistant", (ToolCall("x", "search_deals", '{"company": "A"}'),) * 2)
    result, model = await ask([twice, "Two."])

    assert result.ok
    assert [part.id for part in model.requests[1].messages[-2].calls] == ["x", "x_2"]
    assert [getattr(part, "id", None) for part in model.requests[1].messages[-1].parts] == ["x", "x_2"]
