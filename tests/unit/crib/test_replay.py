"""Replays of runs as a crib has them: agents, nested agents, single calls, code, waits and limits."""

import pytest

from tests.unit.agents.crm import Crm, asks
from toolcrib import Crib, Limits, ScriptedModel
from toolcrib.llm import LanguageModel

pytestmark = pytest.mark.requirement("runs.replay")

ASK = asks(("inner", {"task": "find them"}))
SEARCH = asks(("search_deals", {"company": "Acme"}))


async def test_an_agents_run_with_a_nested_one_is_replayed_without_tools_and_models():
    crm = Crm(1)
    outer, inner = ScriptedModel([ASK, "All found."]), ScriptedModel([SEARCH, "One deal."])
    models: dict[str, LanguageModel] = {"scripted:outer": outer, "scripted:inner": inner}
    async with Crib("memory://", models=models) as crib:
        crib.add(*crm.tools)
        crib.agentic_tool("inner", mode="agentic", model="scripted:inner", tools=["search_deals"])
        result = await crib.agentic_tool("outer", mode="agentic", model="scripted:outer", tools=["inner"])("go")
        calls, requests = list(crm.searches), (len(outer.requests), len(inner.requests))
        before = await crib.store.journal.events(result.run_id)

        found = await crib.replay(result.run_id)

        assert found.same
        assert found.divergence is None
        assert (found.output, found.model_calls) == ({"summary": "All found."}, 2)
        assert list(found.envelopes) == result.envelopes
        assert [nested.model_calls for nested in found.nested] == [2]
        assert [envelope.name for envelope in found.nested[0].envelopes] == ["search_deals"]
        assert crm.searches == calls
        assert (len(outer.requests), len(inner.requests)) == requests
        assert await crib.store.journal.events(result.run_id) == before


async def test_a_run_that_a_limit_ended_is_replayed_to_the_same_end():
    async with Crib("memory://", models={"scripted:m": ScriptedModel([SEARCH, SEARCH, "never"])}) as crib:
        crib.add(*Crm(1).tools)
        agent = crib.agentic_tool(
            "a", mode="agentic", model="scripted:m", tools=["search_deals"], limits=Limits(max_iterations=2)
        )
        result = await agent("go")
        assert result.summary.stop_reason == "max_iterations"

        found = await crib.replay(result.run_id)

        assert (found.same, found.stop_reason, len(found.envelopes)) == (True, "max_iterations", 2)


async def test_single_calls_and_refused_runs_are_replayed():
    async with Crib("memory://", models={"scripted:m": ScriptedModel(["never"])}) as crib:
        crib.add(*Crm(1).tools)
        crib.agentic_tool("a", mode="agentic", model="scripted:m", tools=["search_deals"])
        called = await crib.invoke("search_deals", {"company": "Acme"})
        refused = await crib.invoke("a", {"nonsense": 1})
        assert not refused.ok

        assert (await crib.replay(called.run_id)).same
        assert (await crib.replay(refused.run_id)).same
