"""System prompts: what stands at each place, in which order tools are offered, and what no prompt may hold."""

from typing import Any

import pytest

from tests.unit.agents.crm import Crm, run_agent
from toolcrib import AgenticContext, AllocatedTool, ReferenceSource
from toolcrib.agents import PLACEHOLDERS
from toolcrib.contracts import InvalidDefinition, ProviderData

TOLD = AgenticContext(documentation="Deals close in EUR.", example_queries=("Move Acme", "Find big deals"))


@pytest.mark.requirement("agentic.placeholders", "agents.prompt")
async def test_documentation_and_examples_stand_where_the_prompt_has_a_place_for_them():
    prompt = "Docs: {{documentation}}\nLike:\n{{example_queries}}"

    _, model = await run_agent(Crm(), "Done.", context=TOLD, system_prompt=prompt)

    assert model.requests[0].system == "Docs: Deals close in EUR.\nLike:\n- Move Acme\n- Find big deals"


@pytest.mark.requirement("agentic.placeholders", "agents.prompt")
async def test_what_has_no_place_follows_the_prompt():
    _, model = await run_agent(Crm(), "Done.", context=TOLD, system_prompt="Docs: {{ documentation }}")

    assert model.requests[0].system == (
        "Docs: Deals close in EUR.\n\nExamples of tasks:\n- Move Acme\n- Find big deals"
    )


@pytest.mark.requirement("agentic.placeholders")
def test_the_placeholders_of_the_specification_are_there():
    named = {"integration_schema", "reference_data", "user_task", "available_tools", "execution_history"}

    assert named <= set(PLACEHOLDERS)


@pytest.mark.requirement("agentic.placeholders")
@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("{{users}}", "unknown placeholder '{{users}}'"),
        ("{{reference_data.stags}}", "reference_data.stages"),
        ("{{upper(user_task)}}", "is not a plain name; a prompt computes nothing"),
        ("{{user_task + user_task}}", "is not a plain name"),
        ("{{user_task ? 1 : 2}}", "is not a plain name"),
        ("{{input['task']}}", "is not a plain name"),
        ("{{user_task", "is never closed"),
    ],
)
async def test_a_prompt_with_an_unknown_name_or_with_code_is_refused(prompt: str, said: str):
    stages = AgenticContext(reference_data=(ReferenceSource(name="stages", values=("won",)),))

    with pytest.raises(InvalidDefinition, match="system_prompt") as refused:
        await run_agent(Crm(), system_prompt=prompt, context=stages)

    assert said in str(refused.value)


@pytest.mark.requirement("agentic.placeholders")
async def test_two_lists_of_one_name_are_refused():
    twice = AgenticContext(
        reference_data=(ReferenceSource(name="stages", values=("won",)),),
        provider_data=(ProviderData(provider="crm", data_types=("stages",)),),
    )

    with pytest.raises(InvalidDefinition, match="two lists of reference data have one name"):
        await run_agent(Crm(), context=twice)


@pytest.mark.requirement("agentic.priority")
async def test_tools_are_offered_by_priority_and_the_model_is_told():
    tools = [AllocatedTool(tool="search_deals"), AllocatedTool(tool="list_stages", priority=5)]

    _, model = await run_agent(Crm(), "Done.", tools=tools, system_prompt="{{available_tools}}")

    assert model.requests[0].system == (
        "- list_stages: The stages that a deal can have. (priority 5)\n"
        "- search_deals: Deals whose company name contains the text.\n"
        "Where several tools fit, prefer the one with the higher priority."
    )
    offered: Any = model.requests[0].tools.tools
    assert [tool.name for tool in offered] == ["list_stages", "search_deals"]
    assert offered[0].description.endswith("(priority 5)")
