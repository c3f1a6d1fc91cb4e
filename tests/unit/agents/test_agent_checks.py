"""Saving an agent: what is refused and why, what is derived, and what its author is told."""

from typing import Any

import pytest

from tests.unit.agents.crm import MODEL, Crm
from tests.unit.agents.desk import agent
from toolcrib import AllocatedTool, Crib, DefinitionOptions, Limits, ScriptedModel
from toolcrib.contracts import (
    AgentDefinition,
    AgentImplementation,
    AgentMemory,
    Conflict,
    InvalidDefinition,
    InvalidSettings,
    LLMConfig,
    NotFound,
    Principal,
    PromptFragment,
)
from toolcrib.crib.api.definitions import AgentOptions


async def save(definition: AgentDefinition, *beside: AgentDefinition) -> Any:
    """Save an agent over the CRM's tools, after others."""
    async with Crib("memory://", models={MODEL: ScriptedModel([])}) as crib:
        crib.add(*Crm(1).tools)
        for other in beside:
            await crib.agents.save(other)
        return await crib.agents.save(definition)


SCHEMA: Any = {"type": "object", "properties": {"n": {"type": "integer"}}}


@pytest.mark.requirement("agent.checks")
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"response_format": "structured"},
            "response_format is 'structured' and there is no response_schema; 'structured' needs one",
        ),
        ({"response_schema": SCHEMA}, "response_format is 'text' and there is a response_schema"),
        (
            {"response_format": "structured", "response_schema": {"type": "object", "$ref": "#/$defs/n"}},
            "response_schema is not a JSON Schema 2020-12 that can be used offline",
        ),
        ({"response_format": "structured", "response_schema": {}}, "response_schema has type None"),
        (
            {"response_format": "structured", "response_schema": {"type": "array"}},
            "response_schema has type 'array'; models answer with an object, so use type 'object'",
        ),
        (
            {"realms": ["other"]},
            "it may be saved in other only, and this is realm 'default'; add 'default', or save it there",
        ),
        ({"prompt_fragments": ["tone"]}, "there is no prompt fragment 'tone' in realm 'default'; save it first"),
        ({"delegates": ["help*"]}, "delegate 'help*' is a pattern; name each agent that it may call"),
        ({"delegates": ["search_deals"]}, "'search_deals' is of kind 'python', not an agent; name it in tools"),
        ({"memory": AgentMemory(summary_agent="search_deals")}, "'search_deals' is of kind 'python', not an agent"),
        ({"input_schema": {"type": "object"}}, "input_schema has no property 'message'"),
    ],
)
async def test_what_could_not_run_is_refused_with_what_to_do(fields: Any, said: str):
    with pytest.raises(InvalidDefinition) as refused:
        await save(agent(**fields))

    assert str(refused.value).startswith("agent 'desk': ")
    assert said in str(refused.value)


@pytest.mark.requirement("agent.checks")
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"tools": ["search"]}, "no tool 'search' in realm 'default'"),
        ({"tools": ["nothing_*"]}, "pattern 'nothing_*' means no tool"),
        ({"tool_categories": ["nothing"]}, "group 'group:nothing' means no tool"),
        ({"tool_tags": ["nothing"]}, "tag 'tag:nothing' means no tool"),
        ({"delegates": ["helper"]}, "no tool 'helper'"),
        ({"memory": AgentMemory(summary_agent="helper")}, "no tool 'helper'"),
        ({"principal_ref": "bot"}, "there is no account 'bot'"),
    ],
)
async def test_what_does_not_exist_is_named(fields: Any, said: str):
    with pytest.raises(NotFound) as refused:
        await save(agent(**fields))

    assert said in str(refused.value)


@pytest.mark.requirement("agent.checks")
async def test_an_agent_cannot_come_to_call_itself_and_the_way_is_shown():
    async with Crib("memory://", models={MODEL: ScriptedModel([])}) as crib:
        await crib.agents.save(agent("first"))
        await crib.agents.save(agent("second", delegates=["first"]))
        with pytest.raises(InvalidDefinition, match="first -> second -> first"):
            await crib.agents.save(agent("first", delegates=["second"]))
        with pytest.raises(InvalidDefinition, match="third -> third"):
            await crib.agents.save(agent("third", delegates=["third"]))


@pytest.mark.requirement("agent.checks")
async def test_a_model_that_cannot_be_opened_is_refused():
    with pytest.raises(InvalidSettings):
        await save(agent(llm=LLMConfig(model="nobody:model")))


@pytest.mark.requirement("agent.checks")
async def test_pins_that_are_not_well_formed_are_refused():
    pins = [{"name": "deals", "selector": {"tool": "search_deals", "strategy": "by_call_id"}}]
    with pytest.raises(InvalidDefinition, match="call_id"):
        await save(agent(pins=pins))


@pytest.mark.requirement("agents.derived")
@pytest.mark.parametrize(
    ("fields", "effects"),
    [
        ({}, "none"),
        ({"tools": ["search_deals"]}, "reads"),
        ({"tools": ["search_deals", "update_deals"]}, "writes"),
        ({"tools": ["search_deals", "update_deals"], "side_effects": "reads"}, "reads"),
        ({"tools": ["search_deals", "update_deals"], "excluded_tools": ["update_*"]}, "reads"),
        ({"tools": ["search_*"]}, "writes"),
        ({"tools": ["search_*"], "side_effects": "reads"}, "reads"),
        ({"delegates": ["helper"]}, "writes"),
        ({"delegates": ["helper"], "excluded_tools": ["*"]}, "writes"),
    ],
)
async def test_an_agent_does_what_its_tools_do_and_no_more_than_it_says(fields: Any, effects: str):
    saved = await save(agent(limits=Limits(timeout_s=20), **fields), agent("helper", tools=["update_deals"]))

    assert saved.definition.side_effects == effects
    assert saved.definition.timeout_s == 30
    assert AgentDefinition.of(saved.definition).side_effects == fields.get("side_effects", "writes")


@pytest.mark.requirement("agent.facade")
async def test_an_agent_is_saved_read_listed_and_removed():
    async with Crib("memory://", models={MODEL: ScriptedModel([])}) as crib:
        crib.add(*Crm(1).tools)
        first = await crib.agents.save(agent("first", title="The first"))
        await crib.agents.save(agent("second"), after=0)
        with pytest.raises(Conflict):
            await crib.agents.save(agent("first"), after=0)
        again = await crib.agents.save(agent("first", version="1.1.0"), after=first.revision)

        assert (await crib.agents.get("first")).version == again.version
        assert (await crib.agents.get("first@1.0.0")).definition.title == "The first"
        assert [each.name for each in (await crib.agents.page()).items] == ["first", "second"]
        page = await crib.agents.page(limit=1)
        assert ([each.name for each in page.items], page.more) == (["first"], True)
        assert [each.name for each in (await crib.agents.page(after="first")).items] == ["second"]
        assert [each.name for each in (await crib.agents.page(text="SECOND")).items] == ["second"]
        await crib.agents.remove("first")
        with pytest.raises(NotFound, match="no agent 'first'"):
            await crib.agents.get("first")
        with pytest.raises(NotFound, match="no agent 'search_deals'"):
            await crib.agents.remove("search_deals")


@pytest.mark.requirement("agent.facade")
@pytest.mark.parametrize(
    ("grants", "seen"),
    [
        (("ai://*",), ["first", "second"]),
        (("ai://agents/*",), ["first", "second"]),
        (("ai://agents/*/read",), ["first", "second"]),
        (("ai://agents/first/execute",), ["first"]),
        (("ai://agents/nobody/execute",), []),
        (("ai://tools/*",), []),
        (("ai://tools/agent/first/execute",), []),
    ],
)
async def test_nobody_sees_agents_that_no_grant_of_theirs_names(grants: tuple[str, ...], seen: list[str]):
    async with Crib("memory://", models={MODEL: ScriptedModel([])}) as crib:
        crib.add(*Crm(1).tools)
        await crib.agents.save(agent("first"))
        await crib.agents.save(agent("second"))
        page = await crib.acting_as(Principal(id="ann", grants=grants)).agents.page()

    assert [each.name for each in page.items] == seen


@pytest.mark.requirement("agent.facade")
async def test_an_agent_is_defined_and_asked_in_code():
    model = ScriptedModel(['{"n": 1}', "Fine.", "Two."])
    async with Crib(
        "memory://", models={MODEL: model}, definitions=DefinitionOptions(default_limits=Limits(max_iterations=3))
    ) as crib:
        crib.add(*Crm(1).tools)
        await crib.fragments.save(PromptFragment(name="tone", text="Be kind."))
        counting = crib.agent(
            "counting", model=MODEL, response_schema=SCHEMA, prompt_fragments=["tone"], description="Counts."
        )
        desk = crib.agent("desk", model=MODEL, tools=[AllocatedTool(tool="search_deals"), "update_deals"])
        first = await counting("How many?")
        second = await desk("How are you?", context={"deal": "d1"})
        third = await desk("And now?", conversation_id=second.conversation_id)

    assert (first.outputs.response, first.output) == ('{"n": 1}', {"n": 1})
    assert counting.definition.response_format == "structured"
    assert counting.definition.limits.max_iterations == 3
    assert second.output == "Fine."
    assert third.conversation_id == second.conversation_id
    assert [message.text for message in model.requests[2].messages][-1] == "And now?"
    assert "d1" in model.requests[1].messages[0].text


@pytest.mark.requirement("agent.facade")
async def test_an_agent_needs_a_model():
    crib = Crib("memory://")
    with pytest.raises(InvalidSettings, match="'desk' has no model"):
        crib.agent("desk")


@pytest.mark.requirement("agent.facade")
def test_whatever_makes_an_agent_can_be_said_in_code():
    apart = {"kind", "llm", "tools", "limits", "response_format", "response_schema"}  # parameters of their own

    assert AgentImplementation.model_fields.keys() - apart <= AgentOptions.__annotations__.keys()
