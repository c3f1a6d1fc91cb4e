"""Models in place of others, a model that calls each tool, and what models are asked."""

import json
from typing import Any

import pytest

from tests.unit.testing.conftest import MODEL, Ledger
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import AgentRequest, InvalidInput, LLMConfig, ModelError
from toolcrib.llm import Done, NamedTool, Request, Tool, ToolSet, user
from toolcrib.testing import (
    CallsEachTool,
    assert_called,
    calls,
    capture_messages,
    fails,
    new_crib,
    override_models,
    says,
)


async def ask(crib: Crib, agent: str = "desk", message: str = "Which deals has Acme?"):
    return await crib.executions.execute(agent, AgentRequest(message=message))


@pytest.mark.requirement("testing.override")
async def test_a_model_answers_for_all_references_in_the_block(office: Crib):
    script = [calls("desk", message="Ask"), calls("search_deals", company="Acme"), says("One."), says("It is one.")]
    with override_models(office, ScriptedModel(script)) as model:
        answer = await ask(office, "boss")

    assert (answer.response, len(model.requests)) == ("It is one.", 4)


@pytest.mark.requirement("testing.override")
async def test_a_mapping_replaces_only_what_it_names_and_the_inner_block_wins(office: Crib):
    outer, inner = ScriptedModel(lambda _: says("outer")), ScriptedModel(lambda _: says("inner"))
    with override_models(office, {MODEL: outer}):
        with override_models(office, {"openai:gpt-5": inner}):
            both = (await ask(office)).response, (await ask(office, "boss")).response
        with override_models(office, inner):
            nested = (await ask(office)).response

    assert (both, nested) == (("outer", "inner"), "inner")


@pytest.mark.requirement("testing.override")
async def test_after_the_block_the_models_are_what_they_were():
    async with new_crib(models={MODEL: ScriptedModel(lambda _: says("own"))}) as crib:
        desk = crib.agent("desk", model=MODEL)
        with override_models(crib, ScriptedModel([says("other")])):
            during = await desk("Hello")
        after = await desk("Hello")

    assert (during.output, after.output) == ("other", "own")


@pytest.mark.requirement("testing.override")
async def test_the_models_of_a_crib_that_an_application_made_are_replaced():
    async with Crib("memory://", environment={}) as crib:
        desk = crib.agent("desk", model=MODEL)
        with override_models(crib, ScriptedModel([says("Hello.")])):
            answer = await desk("Hello")
        refused = await desk("Hello")

    assert answer.output == "Hello."
    assert refused.error is not None
    assert "ANTHROPIC_API_KEY is not set" in refused.error.message


@pytest.mark.requirement("testing.override")
async def test_a_model_that_writes_calls_as_text_is_replaced_too(office: Crib):
    config = LLMConfig(model=MODEL, tool_calling="text")
    with override_models(office, ScriptedModel([says("x")])) as model:
        assert office.models.model(config) is not model
        assert office.models.model(LLMConfig(model=MODEL)) is model
        assert office.models.unpriced(config, "default", office.clock.now()) is None


@pytest.mark.requirement("testing.override")
async def test_an_empty_mapping_is_refused(office: Crib):
    none: dict[str, ScriptedModel] = {}
    with pytest.raises(InvalidInput, match="no model is given"), override_models(office, none):
        pass


@pytest.mark.requirement("testing.captured")
async def test_the_messages_of_all_agents_are_captured_in_order(office: Crib):
    script = [calls("desk", message="Ask"), says("One."), says("It is one.")]
    with capture_messages(office) as exchanges, override_models(office, ScriptedModel(script)):
        await ask(office, "boss", "How many?")

    assert [each.request.messages[0].text for each in exchanges] == ["How many?", "Ask", "How many?"]
    assert [message.role for message in exchanges[-1].messages] == ["user", "assistant", "user", "assistant"]
    assert exchanges[-1].messages[-1].text == "It is one."


@pytest.mark.requirement("testing.captured")
async def test_nothing_is_captured_outside_of_the_block(office: Crib):
    with override_models(office, ScriptedModel([says("1"), says("2"), says("3")])):
        await ask(office)
        with capture_messages(office) as exchanges:
            await ask(office)
        await ask(office)

    assert [each.messages[-1].text for each in exchanges] == ["2"]


@pytest.mark.requirement("testing.captured")
async def test_a_failure_is_captured_with_what_was_asked(office: Crib):
    failure = fails("bad_request", "no such model")
    with capture_messages(office) as exchanges, override_models(office, ScriptedModel([failure])):
        await ask(office)

    assert (exchanges[0].error, exchanges[0].response) == (failure, None)
    assert [message.role for message in exchanges[0].messages] == ["user"]


@pytest.mark.requirement("testing.captured")
async def test_streams_are_captured_like_whole_answers(office: Crib):
    request = Request(messages=(user("Hello"),))
    failure, config = fails("bad_request"), LLMConfig(model=MODEL)
    script = [says("Hello there."), says("Hello there."), failure, failure]
    with capture_messages(office) as exchanges, override_models(office, ScriptedModel(script)):
        model = office.models.model(config)
        streamed = [event async for event in model.stream(request)]
        await model.request(request)
        with pytest.raises(ModelError):
            [event async for event in model.stream(request)]
        with pytest.raises(ModelError):
            await model.request(request)

    assert isinstance(streamed[-1], Done)
    assert [each.messages[-1].text for each in exchanges] == ["Hello there.", "Hello there.", "Hello", "Hello"]
    assert [each.error for each in exchanges] == [None, None, failure, failure]


@pytest.mark.requirement("testing.every_tool")
async def test_each_tool_is_called_once_with_valid_arguments(office: Crib, ledger: Ledger):
    office.agent("clerk", model=MODEL, tools=["search_deals", "charge", "send_mail"])
    with override_models(office, CallsEachTool("All tried.", arguments={"send_mail": {"to": "ann"}})) as model:
        answer = await ask(office, "clerk")

    assert (answer.response, answer.status, len(model.requests)) == ("All tried.", "completed", 2)
    assert sorted(entry.split()[0] for entry in ledger.entries) == ["charged", "searched", "sent"]
    assert (await assert_called(office, answer, "send_mail", times=1)).input == {"to": "ann"}


@pytest.mark.requirement("testing.every_tool")
async def test_a_structured_answer_meets_its_schema(office: Crib):
    schema = {"type": "object", "properties": {"total": {"type": "integer", "minimum": 3}}, "required": ["total"]}
    sums = office.agent(
        "sums", model=MODEL, tools=["search_deals"], response_format="structured", response_schema=schema
    )
    with override_models(office, CallsEachTool()):
        answer = await sums("Add")

    assert answer.status == "completed"
    assert answer.unwrap()["total"] >= 3


def offering(*names: str, **settings: Any) -> Request:
    tools = ToolSet([Tool(name, "", {"type": "object", "properties": {}}) for name in names])
    return Request(messages=(user("Try"),), tools=tools, **settings)


@pytest.mark.requirement("testing.every_tool")
@pytest.mark.parametrize(
    ("request_", "options", "called"),
    [
        (offering("a", "b"), {}, ["a", "b"]),
        (offering("a", "b"), {"only": {"b"}}, ["b"]),
        (offering("a", "b", parallel_tool_calls=False), {}, ["a"]),
        (offering("a", "b", tool_choice=NamedTool("b")), {}, ["b"]),
        (offering("a", "b", tool_choice="none"), {}, []),
    ],
)
async def test_what_is_called_follows_the_request(request_: Request, options: dict[str, Any], called: list[str]):
    response = await CallsEachTool(**options).request(request_)

    assert [call.name for call in response.message.calls] == called


@pytest.mark.requirement("testing.every_tool")
async def test_the_seed_decides_the_arguments():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    request = Request(messages=(user("Try"),), tools=ToolSet([Tool("a", "", schema)]))
    answers = [
        json.loads((await CallsEachTool(seed=seed).request(request)).message.calls[0].args) for seed in (0, 0, 1, 2)
    ]

    assert answers[0] == answers[1]
    assert len({answer["n"] for answer in answers}) > 1


@pytest.mark.requirement("testing.every_tool")
async def test_a_schema_without_an_example_names_the_tool_and_the_way_out():
    tools = ToolSet([Tool("hard", "", {"type": "object", "properties": {"a": {"not": {}}}, "required": ["a"]})])

    with pytest.raises(InvalidInput, match=r"the arguments of 'hard' cannot be made: .*CallsEachTool\(arguments="):
        await CallsEachTool().request(Request(messages=(user("Try"),), tools=tools))


@pytest.mark.requirement("testing.crib")
async def test_a_model_without_a_script_fails_and_names_the_way(office: Crib):
    answer = await ask(office)

    assert answer.error is not None
    assert "model 'anthropic:claude-sonnet-4' has no script, and this crib has no network" in answer.error.message
    assert "override_models(crib" in answer.error.message
