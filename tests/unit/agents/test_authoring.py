"""Definitions of agentic tools: their defaults, and what is refused where they are written or saved."""

from typing import Any

import pytest

from tests.unit.agents.crm import MODEL, Crm
from toolcrib import (
    AgenticContext,
    AgenticStep,
    Crib,
    Limits,
    LLMConfig,
    ReferenceSource,
    ScriptedModel,
    ToolDefinition,
    tool,
)
from toolcrib.agents import agentic_definition
from toolcrib.contracts import CLOSING_S, AgenticImplementation, InvalidDefinition, InvalidSettings, NotFound

LLM = LLMConfig(model=MODEL)


async def saved(definition: ToolDefinition) -> ToolDefinition:
    """The definition as a crib with the CRM's tools stores it."""
    async with Crib("memory://", models={MODEL: ScriptedModel([])}) as crib:
        crib.add(*Crm().tools)
        return (await crib.save(definition)).definition


def sequence(**changes: Any) -> ToolDefinition:
    """A deterministic tool over the CRM's tools."""
    settings: dict[str, Any] = {"mode": "deterministic", "llm": LLM, "steps": ["search_deals"], **changes}
    return agentic_definition("agent", **settings)


def inside(definition: ToolDefinition) -> AgenticImplementation:
    """What the tool is made of."""
    assert isinstance(definition.implementation, AgenticImplementation)
    return definition.implementation


def altered(**changes: Any) -> ToolDefinition:
    """A definition as it may arrive from elsewhere: nothing was checked where it was written."""
    definition = sequence()
    return definition.model_copy(update={"implementation": definition.implementation.model_copy(update=changes)})


@pytest.mark.requirement("agents.authoring")
def test_a_definition_has_defaults_for_all_that_is_not_said():
    definition = sequence()
    implementation = inside(definition)

    assert definition.input_schema["required"] == ["task"]
    assert "1. search_deals" in implementation.system_prompt
    assert "{{user_task}}" in implementation.system_prompt
    assert implementation.limits == Limits()
    assert implementation.result_schema is None


@pytest.mark.requirement("agents.authoring")
async def test_each_mode_has_a_prompt_of_its_own():
    fixed = inside(sequence())
    free = inside(agentic_definition("agent", mode="agentic", llm=LLM, tools=["search_deals"]))

    assert "fixed sequence" in fixed.system_prompt
    assert "Choose the tools" in free.system_prompt


@pytest.mark.requirement("agents.authoring")
@pytest.mark.parametrize(
    ("steps", "ids"),
    [
        (["search_deals", "update_deals"], ["search_deals", "update_deals"]),
        (["crm.search@^1.0", "crm-update"], ["crm_search", "crm_update"]),
        (["a", "a", "a"], ["a", "a_2", "a_3"]),
        (["search_deals", "search"], ["search_deals", "search"]),
        (["a_2", "a", "a"], ["a_2", "a", "a_3"]),
        ([AgenticStep(id="a", tool="x"), "a"], ["a", "a_2"]),
    ],
    ids=str,
)
def test_steps_are_named_for_their_tools(steps: list[Any], ids: list[str]):
    assert [step.id for step in inside(sequence(steps=steps)).steps] == ids


@pytest.mark.requirement("agents.authoring")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"system_prompt": "{{user_tsk}}"}, r"agentic tool 'agent': system_prompt: unknown placeholder .*user_task"),
        ({"system_prompt": "{{reference_data.stagse}}"}, "reference_data.stages"),
        ({"system_prompt": "{{user_task"}, "never closed"),
        ({"llm": LLMConfig(model=MODEL, max_tokens=999)}, "max_tokens is 999; it must be 1000 to 8000"),
        ({"llm": LLMConfig(model=MODEL, max_tokens=8001)}, "max_tokens is 8001"),
        ({"steps": (AgenticStep(id="a", tool="x"), AgenticStep(id="a", tool="y"))}, "step id 'a' is taken"),
        ({"steps": (AgenticStep(id="plan", tool="x"),)}, "step id 'plan' is taken"),
        ({"steps": (AgenticStep(id="agent", tool="agent"),)}, "allotted to itself"),
        ({"result_schema": {"type": "objekt"}}, "result_schema is not a JSON Schema 2020-12"),
        ({"result_schema": {"$ref": "https://example.com/x"}}, "result_schema"),
    ],
    ids=str,
)
async def test_what_could_not_run_is_refused_where_it_is_written_and_where_it_is_saved(changes: Any, said: str):
    stages = AgenticContext(reference_data=(ReferenceSource(name="stages", values=("won",)),))

    with pytest.raises(InvalidDefinition, match=said):
        sequence(context=stages, **changes)
    with pytest.raises(InvalidDefinition, match=said):
        await saved(altered(context=stages, **changes))


@pytest.mark.requirement("agents.authoring")
@pytest.mark.parametrize("tokens", [1000, 8000])
async def test_the_ends_of_a_range_are_inside(tokens: int):
    await saved(sequence(llm=LLMConfig(model=MODEL, max_tokens=tokens)))


@pytest.mark.requirement("agents.authoring")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"steps": ["serch_deals"]},
            "no tool 'serch_deals' in realm 'default'; did you mean 'search_deals' or 'update_deals'",
        ),
        ({"steps": ["search_deals@^2.0"]}, r"no tool 'search_deals@\^2.0' .*; available: search_deals@1.0.0"),
        (
            {"context": AgenticContext(reference_data=(ReferenceSource(name="s", tool="list_stage"),))},
            "no tool 'list_stage'",
        ),
    ],
    ids=["tool", "version", "reference data"],
)
async def test_a_tool_that_does_not_exist_is_named_with_the_closest(changes: Any, said: str):
    with pytest.raises(NotFound, match=said):
        await saved(sequence(**changes))


@pytest.mark.requirement("agents.derived")
@pytest.mark.parametrize(
    ("steps", "effects"),
    [(["search_deals", "update_deals"], "writes"), (["search_deals"], "reads")],
    ids=str,
)
async def test_side_effects_are_the_most_that_any_of_the_tools_has(steps: list[str], effects: str):
    assert (await saved(sequence(steps=steps))).side_effects == effects


@pytest.mark.requirement("agents.derived")
async def test_a_call_has_some_seconds_more_than_the_run_it_starts():
    assert (await saved(sequence(limits=Limits(timeout_s=7)))).timeout_s == 7 + CLOSING_S


@pytest.mark.requirement("agents.authoring")
async def test_other_tools_are_saved_as_they_are():
    @tool(timeout_s=5)
    async def other() -> None: ...

    assert await saved(other.definition) == other.definition


@pytest.mark.requirement("agents.authoring", "crib.models")
async def test_a_model_that_nobody_knows_is_refused():
    with pytest.raises(InvalidSettings, match="did you mean anthropic:claude-sonnet-4"):
        await saved(altered(llm=LLMConfig(model="claude-sonnet-4")))


@pytest.mark.requirement("agents.authoring")
async def test_a_definition_can_be_checked_without_being_saved():
    async with Crib("memory://", models={MODEL: ScriptedModel([])}) as crib:
        crib.add(*Crm().tools)
        checked = await crib.check(sequence(steps=["update_deals"]))

        assert checked.side_effects == "writes"
        assert "agent" not in crib.registry.names("default")
