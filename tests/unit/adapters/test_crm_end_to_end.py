"""Agents of three other frameworks change the CRM by one exported tool, whose model they do not see."""

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from agents import Agent as OpenAIAgent
from agents import Runner
from langchain import agents as langchain_agents
from pydantic_ai import Agent as PydanticAgent

from examples.crm.demo import SCRIPTED, TASK, judge, make_deal_manager, planner, running_crm
from tests.unit.adapters import test_langchain, test_openai, test_pydantic_ai
from toolcrib import Crib, DefinitionOptions, EgressPolicy, Principal
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.adapters import langchain, openai_agents, pydantic_ai

NAME = "deal_manager"
ANN = Principal(id="ann", grants=("ai://tools/*",))


async def by_langchain(crib: ActingCrib, task: str) -> str:
    asks: Any = test_langchain.asks(NAME, task=task)
    create_agent: Any = vars(langchain_agents)["create_agent"]  # its type is not fully known
    model = test_langchain.Scripted(messages=iter([asks, "Done."]))
    agent = create_agent(model, await langchain.load(crib, "deal-manager"))
    state = await agent.ainvoke({"messages": [("user", task)]})
    return state["messages"][-1].content


async def by_openai_agents(crib: ActingCrib, task: str) -> str:
    model = test_openai.Scripted(test_openai.asks(NAME, f'{{"task": "{task}"}}'), test_openai.says("Done."))
    agent = OpenAIAgent("desk", model=model, tools=[*await openai_agents.load(crib, "deal-manager")])
    return (await Runner.run(agent, task, run_config=test_openai.QUIET)).final_output


async def by_pydantic_ai(crib: ActingCrib, task: str) -> str:
    model = test_pydantic_ai.scripted(test_pydantic_ai.asks(NAME, task=task), test_pydantic_ai.says("Done."))
    agent = PydanticAgent(model, toolsets=[pydantic_ai.CribToolset(crib, "deal-manager")])
    return (await agent.run(task)).output


LOOPS: Mapping[str, Callable[[ActingCrib, str], Awaitable[str]]] = {
    "LangChain": by_langchain,
    "OpenAI Agents SDK": by_openai_agents,
    "pydantic-ai": by_pydantic_ai,
}


@pytest.mark.slow
@pytest.mark.requirement("adapters.agents")
@pytest.mark.parametrize("framework", LOOPS)
async def test_an_agent_of_another_framework_changes_all_deals_of_a_company_in_a_running_crm(
    framework: str, tmp_path: Path
) -> None:
    db = tmp_path / "crm.db"
    async with running_crm(db, log=tmp_path / "crm.log", rate="1000/1") as crm:
        crib = Crib(
            f"sqlite:///{tmp_path / 'toolcrib.db'}",
            models={SCRIPTED: planner()},
            egress=EgressPolicy(allow=(urlsplit(crm.url).netloc,)),
            environment={**os.environ, "CRM_TOKEN": crm.token},
            definitions=DefinitionOptions(released=("CRM_TOKEN",)),
        )
        async with crib:
            await make_deal_manager(crib, crm, model=SCRIPTED)
            [described] = await crib.export("deal-manager", form="openai")
            said = await LOOPS[framework](crib.acting_as(ANN), TASK)
            runs = await crib.store.journal.runs("default", made_by="ann")
    verdict, problem = judge(db, TASK)

    assert (said, problem) == ("Done.", None)
    assert verdict is not None
    assert verdict.all_and_only
    assert verdict.changed > 200
    assert described["function"]["name"] == NAME
    assert "scripted" not in str(described)
    assert [run.status for run in runs if run.request.parent_run_id is None] == ["completed"]
