"""Drafts, disabled tools, and tools that are out of service."""

from typing import Any

import pytest

from tests.unit.agents.crm import MODEL, Crm, asks, run_agent
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import Principal, Reason, ToolDefinition


def with_status(definition: ToolDefinition, status: Any) -> ToolDefinition:
    implementation = definition.implementation
    return definition.model_copy(update={"implementation": implementation.model_copy(update={"status": status})})


async def saved(crib: Crib, status: Any) -> None:
    """An agent of this status."""
    crib.add(*Crm(1).tools)
    agent = crib.agentic_tool("agent", mode="agentic", model=MODEL, tools=["search_deals"])
    await crib.save(with_status(agent.definition, status))


@pytest.mark.requirement("agentic.status")
@pytest.mark.parametrize("as_call", [False, True])
@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("disabled", "tool 'agent@1.0.0' is disabled; set its status to 'active' to call it"),
        ("draft", "tool 'agent@1.0.0' is a draft, which 'user:owner' may test; set its status to 'active' to call it"),
    ],
)
async def test_neither_a_draft_nor_a_disabled_tool_can_be_called(status: str, said: str, as_call: bool):
    model = ScriptedModel([])
    async with Crib("memory://", models={MODEL: model}) as crib:
        await saved(crib, status)

        result = await crib.invoke("agent", {"task": "x"}, as_call=as_call)

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "policy")
    assert result.summary.error is not None
    assert result.summary.error.reason is Reason.TOOL_DISABLED
    assert result.summary.error.message == said.replace("user:owner", crib.principal.id)
    assert model.requests == []


@pytest.mark.requirement("agentic.status")
async def test_an_author_tests_a_draft_and_nobody_else_does():
    async with Crib("memory://", models={MODEL: ScriptedModel(["Fine."])}) as crib:
        await saved(crib, "draft")
        other = Principal(id="user:other", grants=("ai://*",))

        mine = await crib.invoke("agent", {"task": "x"}, test=True)
        theirs = await crib.acting_as(other).invoke("agent", {"task": "x"}, test=True)

    assert mine.output == {"summary": "Fine."}
    assert theirs.summary.error is not None
    assert theirs.summary.error.reason is Reason.TOOL_DISABLED


@pytest.mark.requirement("agentic.status")
async def test_a_disabled_tool_cannot_be_tested_either():
    async with Crib("memory://", models={MODEL: ScriptedModel([])}) as crib:
        await saved(crib, "disabled")

        result = await crib.invoke("agent", {"task": "x"}, test=True)

    assert result.summary.error is not None
    assert result.summary.error.reason is Reason.TOOL_DISABLED


@pytest.mark.requirement("agentic.out_of_service")
async def test_a_tool_that_is_out_of_service_is_not_offered_and_the_run_says_so():
    model = ScriptedModel([asks(("search_deals", {"company": "Acme"})), "One."])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*Crm(1).tools)
        agent = crib.agentic_tool("agent", mode="agentic", model=MODEL, tools=["search_deals", "update_deals"])
        await crib.open()
        await crib.registry.set_status(crib.principal.realm, "update_deals", "blocked", message="it is broken")

        result = await agent("x")

    assert result.ok
    assert [tool.name for tool in model.requests[0].tools.tools] == ["search_deals"]
    assert result.summary.warnings == ("tool 'update_deals@1.0.0' is out of service, so the model was not offered it",)


@pytest.mark.requirement("agentic.out_of_service")
async def test_an_agent_of_whose_tools_none_is_in_service_ends_and_says_so():
    model = ScriptedModel([])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*Crm(1).tools)
        agent = crib.agentic_tool("agent", mode="agentic", model=MODEL, tools=["search_deals"])
        await crib.open()
        await crib.registry.set_status(crib.principal.realm, "search_deals", "blocked")

        result = await agent("x")

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "no_tools")
    assert result.summary.error is not None
    assert "allot at least one that is in service" in result.summary.error.message
    assert model.requests == []


@pytest.mark.requirement("agentic.status")
async def test_an_active_tool_runs():
    result, _ = await run_agent(Crm(1), "Fine.")

    assert result.ok
