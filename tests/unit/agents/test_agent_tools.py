"""Which tools an agent has: by every way to name them, without those that it may not have, and no more than fit."""

from typing import Any

import orjson
import pytest

from tests.unit.agents.crm import MODEL, Crm, asks, told
from tests.unit.agents.desk import agent, ask, noted
from toolcrib import AllocatedTool, Crib, FunctionTool, Principal, ScriptedModel, tool
from toolcrib.contracts import (
    AgentDefinition,
    AgenticStep,
    NotFound,
    PermissionDenied,
    ResolvedTool,
    ServiceAccount,
    ToolDefinition,
)


def made(name: str, **fields: Any) -> FunctionTool[..., Any]:
    """A tool that does nothing."""
    options: Any = {"name": name, "description": f"Does {name}.", "side_effects": "reads", **fields}

    @tool(**options)
    async def nothing() -> str:
        return name

    return nothing


async def resolved(
    definition: AgentDefinition, *tools: FunctionTool[..., Any] | ToolDefinition, message: str | None = None,
    principal: Principal | None = None,
) -> list[ResolvedTool]:  # fmt: skip
    """What an agent would have."""
    async with Crib("memory://", models={MODEL: ScriptedModel([])}) as crib:
        crib.add(*tools)
        await crib.agents.save(definition)
        asker = crib if principal is None else crib.acting_as(principal)
        return list(await asker.agents.tools(definition.name, message=message))


def by_availability(found: list[ResolvedTool]) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {"shown": [], "findable": [], "left_out": []}
    for item in found:
        result[item.availability].append(item.tool.partition("@")[0])
    return result


SIX = (
    made("crm_find", category="crm"),
    made("crm_move", category="crm", tags=("deals",)),
    made("mail_send", tags=("deals",)),
    made("mail_read"),
    made("other"),
    made("billing_pay", category="billing", tags=("money",)),
)


@pytest.mark.requirement("agent.tools", "agent.tools_told")
async def test_tools_come_by_name_pattern_category_and_tag_each_once_in_this_order():
    desk = agent(tools=["mail_*", "other"], tool_categories=["crm"], tool_tags=["deals", "money"])
    found = await resolved(desk, *SIX)

    assert [(item.tool, item.reference) for item in found] == [
        ("other@1.0.0", "other"),
        ("mail_read@1.0.0", "mail_*"),
        ("mail_send@1.0.0", "mail_*"),
        ("crm_find@1.0.0", "group:crm"),
        ("crm_move@1.0.0", "group:crm"),
        ("billing_pay@1.0.0", "tag:money"),
    ]
    assert {item.availability for item in found} == {"shown"}


@pytest.mark.requirement("agent.tools")
async def test_excluded_tools_are_taken_out_also_if_they_are_named():
    desk = agent(tools=["mail_read"], tool_categories=["crm"], excluded_tools=["mail_*", "crm_move"])
    found = await resolved(desk, *SIX)

    assert by_availability(found) == {"shown": ["crm_find"], "findable": [], "left_out": ["mail_read", "crm_move"]}
    assert found[1].reason == "the agent excludes 'mail_*'"


@pytest.mark.requirement("agent.tools")
async def test_a_delegate_is_not_excluded_by_a_pattern_for_tools():
    async with Crib("memory://", models={MODEL: ScriptedModel([])}) as crib:
        await crib.agents.save(agent("helper"))
        await crib.agents.save(agent(delegates=["helper"], excluded_tools=["*"]))
        [found] = await crib.agents.tools("desk")

    assert (found.tool, found.availability) == ("helper@1.0.0", "shown")


@pytest.mark.requirement("agent.tools")
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"enabled": False}, "it is out of service"),
        ({"available_as": ("workflow_step",)}, "it is available as workflow_step, not as a tool"),
        ({"available_as": ()}, "it is available as nothing, not as a tool"),
        ({"side_effects": "writes"}, "it writes, and the agent's calls may do 'reads' at most"),
    ],
)
async def test_what_could_only_be_denied_is_not_offered(fields: Any, said: str):
    found = await resolved(agent(tools=["one", "two"], side_effects="reads"), made("one", **fields), made("two"))

    assert by_availability(found) == {"shown": ["two"], "findable": [], "left_out": ["one"]}
    assert found[1].reason == said


@pytest.mark.requirement("agent.tools")
async def test_of_the_many_nobody_hears_what_they_may_not_execute():
    who = Principal(id="ann", grants=("ai://tools/*/mail_read/execute", "ai://agents/*"))
    found = await resolved(agent(tools=["mail_read", "other", "mail_*"]), *SIX, principal=who)

    assert by_availability(found) == {"shown": ["mail_read"], "findable": [], "left_out": ["other"]}
    assert found[1].reason is not None
    assert "'ann' has no grant for 'ai://tools/utility/other/execute'" in found[1].reason


@pytest.mark.requirement("agent.tools", "agent.tools_told")
async def test_the_account_of_an_agent_decides_what_it_may_execute():
    async with Crib("memory://", models={MODEL: ScriptedModel([])}) as crib:
        crib.add(*SIX)
        bot = ServiceAccount(name="bot", grants=("ai://tools/crm/*",))
        await crib.accounts.save(bot)
        await crib.agents.save(agent(tools=["crm_find", "other"], principal_ref="bot"))
        found = list(await crib.agents.tools("desk"))
        await crib.accounts.save(bot.model_copy(update={"enabled": False}))
        with pytest.raises(PermissionDenied, match="'bot', which is disabled"):
            await crib.agents.tools("desk")

    assert by_availability(found) == {"shown": ["crm_find"], "findable": [], "left_out": ["other"]}


@pytest.mark.requirement("agent.tools")
async def test_agents_are_meant_by_their_names_only():
    async with Crib("memory://", models={MODEL: ScriptedModel([])}) as crib:
        crib.add(*SIX)
        await crib.agents.save(agent("helper", category="crm", tags=["deals"]))
        await crib.agents.save(agent(tools=["*"], tool_categories=["crm"], tool_tags=["deals"]))
        await crib.agents.save(agent("boss", tools=["helper"]))
        crib.agentic_tool("flow", mode="deterministic", model=MODEL, steps=[AgenticStep(id="a", tool="other")])
        many = await crib.agents.tools("desk")
        named = await crib.agents.tools("boss")

    assert [item.tool.partition("@")[0] for item in many] == sorted([*(each.definition.name for each in SIX), "flow"])
    assert [item.tool for item in named] == ["helper@1.0.0"]


@pytest.mark.requirement("agent.tools")
async def test_a_tool_that_is_gone_is_left_out_with_a_warning():
    model = ScriptedModel(["ok"])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*SIX)
        await crib.agents.save(agent(tools=["other", "mail_read"]))
        await crib.registry.remove("default", "other")
        result = await crib.invoke("desk", {"message": "hi"})

    assert result.ok
    assert [each.name for each in model.requests[0].tools.tools] == ["mail_read"]
    [warning] = result.summary.warnings
    assert warning.startswith("tool 'other' was left out: no tool 'other' in realm 'default'")


@pytest.mark.requirement("agent.trimming", "agent.tools_told")
async def test_too_many_tools_are_shown_by_priority_and_then_by_what_was_asked():
    tools: list[str | AllocatedTool] = [
        "other",
        "mail_send",
        "mail_read",
        AllocatedTool(tool="billing_pay", priority=1),
    ]
    desk = agent(tools=tools, max_tools_in_context=3)

    asked = await resolved(desk, *SIX, message="Please read my mail")
    unasked = await resolved(desk, *SIX)

    assert by_availability(asked)["shown"] == ["mail_read", "billing_pay"]
    assert by_availability(asked)["findable"] == ["other", "mail_send"]
    assert by_availability(unasked)["shown"] == ["other", "billing_pay"]
    assert [item.priority for item in asked] == [0, 0, 0, 1]


@pytest.mark.requirement("agent.trimming", "agent.stable_tools")
async def test_what_is_not_shown_can_be_found_and_follows_in_the_order_in_which_it_was():
    looks = [
        asks(("find_tools", {"query": "pay a bill"})),
        asks(("find_tools", {"query": "read mail"})),
        asks(("billing_pay", {}), ("mail_read", {})),
        "Done.",
    ]
    many = ["mail_read", "crm_find", "billing_pay", "other"]
    result, model = await ask(looks, *SIX, tools=many, max_tools_in_context=2, arguments={"message": "find crm"})

    offered = [[each.name for each in request.tools.tools] for request in model.requests]
    assert offered[0] == ["crm_find", "find_tools"]
    assert offered[1] == ["crm_find", "find_tools", "billing_pay"]
    assert offered[2][:3] == offered[1]
    assert offered[2][3:] == ["mail_read"]
    assert [envelope.status for envelope in result.envelopes] == ["success", "success"]
    assert orjson.loads(told(model.requests[1])[0])["tools"][0]["name"] == "billing_pay"


@pytest.mark.requirement("agent.trimming")
async def test_an_agent_that_is_shown_one_tool_sees_the_one_that_finds_the_others():
    _, model = await ask(["ok"], *SIX, tools=["other", "mail_*"], max_tools_in_context=1)

    assert [each.name for each in model.requests[0].tools.tools] == ["find_tools"]


@pytest.mark.requirement("agent.stable_tools")
async def test_the_journal_says_what_was_resolved_and_what_was_left_out():
    result, _ = await ask(["ok"], *SIX, tools=["other", "mail_*"], excluded_tools=["mail_send"], max_tools_in_context=1)

    [note] = noted(result, "tools_resolved")
    assert (note["shown"], note["findable"]) == (0, 2)
    assert note["left_out"] == [
        {"tool": "mail_send@1.0.0", "reference": "mail_*", "reason": "the agent excludes 'mail_send'"}
    ]


@pytest.mark.requirement("agent.stable_tools")
async def test_a_run_that_goes_on_after_a_wait_has_the_tools_that_it_began_with():
    @tool(side_effects="writes", requires_confirmation=True)
    async def pay() -> str:
        return "paid"

    model = ScriptedModel([asks(("pay", {})), "Paid."])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*SIX, pay)
        await crib.agents.save(agent(tools=["pay", "mail_*"]))
        waiting = await crib.invoke("desk", {"message": "pay"})
        crib.add(made("mail_all"))
        await crib.registry.remove("default", "mail_read")
        await crib.decide(waiting.run_id, "t1.c1", approve=True)
        result = await crib.resume(waiting.run_id)

    assert result.output == "Paid."
    offered = [[each.name for each in request.tools.tools] for request in model.requests]
    assert offered == [["pay", "mail_read", "mail_send"]] * 2


@pytest.mark.requirement("agent.tools_told")
async def test_tools_of_what_is_no_agent_are_not_told():
    async with Crib("memory://", models={MODEL: ScriptedModel([])}) as crib:
        crib.add(*Crm(1).tools)
        with pytest.raises(NotFound, match="no agent 'search_deals' in realm 'default'; save it first"):
            await crib.agents.tools("search_deals")
        await crib.agents.save(agent())
        with pytest.raises(NotFound, match="no agent 'dask' in realm 'default'; available: desk"):
            await crib.agents.tools("dask")


@pytest.mark.requirement("agent.tools", "crib.impact")
@pytest.mark.parametrize(
    ("fields", "reference"),
    [
        ({"tool_categories": ["crm"]}, "group:crm"),
        ({"tool_tags": ["deals"]}, "tag:deals"),
        ({"tools": ["tag:deals"]}, "tag:deals"),
        ({"tools": ["crm_*"]}, "crm_*"),
    ],
)
async def test_the_agents_that_mean_a_tool_are_among_what_its_change_affects(fields: Any, reference: str):
    async with Crib("memory://", models={MODEL: ScriptedModel([])}) as crib:
        crib.add(*SIX)
        await crib.agents.save(agent(**fields))
        await crib.agents.save(agent("crm_helper", category="crm", tags=["deals"]))
        tool_report = await crib.lifecycle.impact("crm_move")
        agent_report = await crib.lifecycle.impact("crm_helper")

    assert [(each.name, each.reference) for each in tool_report.dependents] == [("desk@1.0.0", reference)]
    assert agent_report.dependents == ()
