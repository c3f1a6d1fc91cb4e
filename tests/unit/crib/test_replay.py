"""Replays of runs as a crib has them: agents, nested agents, single calls, code, waits and limits."""

from typing import Any

import pytest

from tests.unit.agents.crm import Crm, asks
from toolcrib import Crib, Limits, LLMConfig, ScriptedModel
from toolcrib.contracts import AgentDefinition, ContentFilter, Principal, PromptFragment, ToolDefinition
from toolcrib.llm import LanguageModel

pytestmark = pytest.mark.requirement("runs.replay")


def agent(name: str, **fields: Any) -> ToolDefinition:
    """An agent with a scripted model."""
    llm = LLMConfig(model="scripted:m")
    return AgentDefinition.model_validate({"name": name, "llm": llm, "tools": ("search_deals",), **fields}).tool()


ASK = asks(("inner", {"task": "find them"}))
COLLEAGUE = Principal(id="ben", grants=("ai://*",))
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


async def test_what_a_content_filter_forbids_and_changes_is_met_again():
    async with Crib("memory://", models={"scripted:m": ScriptedModel([SEARCH, "The magic word is xyzzy."])}) as crib:
        crib.add(*Crm(1).tools)
        for name, filters in (
            ("withheld", ContentFilter(words=("xyzzy",), applies_to=("model_output",))),
            ("refused", ContentFilter(words=("magic",), applies_to=("model_input",))),
        ):
            await crib.save(agent(name, guardrails=(filters,)))
        withheld = await crib.invoke("withheld", {"message": "go"})
        refused = await crib.invoke("refused", {"message": "Say the magic word."})
        assert (withheld.summary.stop_reason, refused.summary.stop_reason) == ("policy", "policy")

        found = [await crib.replay(result.run_id) for result in (withheld, refused)]

    assert [(one.same, one.stop_reason) for one in found] == [(True, "policy")] * 2
    assert [one.model_calls for one in found] == [2, 0]


async def test_a_last_answer_that_could_not_be_paid_is_not_asked_for_again():
    async with Crib("memory://", models={"scripted:m": ScriptedModel([SEARCH, "never"])}) as crib:
        crib.add(*Crm(1).tools)
        limits = Limits(max_iterations=1, max_total_tokens=200, max_tokens_per_call=20)
        await crib.save(agent("a", limits=limits))
        result = await crib.invoke("a", {"message": "go"})

        found = await crib.replay(result.run_id)

    assert (found.same, found.stop_reason, found.model_calls) == (True, "max_iterations", 1)


async def test_arguments_that_a_person_has_edited_are_those_that_were_asked_for():
    crm = Crm(1)
    script = [asks(("update_deals", {"ids": ["d0"], "stage": "3001"})), "Moved."]
    async with Crib("memory://", models={"scripted:m": ScriptedModel(script)}) as crib:
        crib.add(*crm.tools)
        await crib.save(agent("a", tools=("update_deals",), requires_approval=True))
        waiting = await crib.invoke("a", {"message": "go"})
        [asked] = await crib.pending_approvals(waiting.run_id)
        edited = {"ids": ["d0"], "stage": "3003"}
        await crib.acting_as(COLLEAGUE).decide(waiting.run_id, asked.position, approve=True, edited_input=edited)
        result = await crib.resume(waiting.run_id)
        assert result.output == "Moved."

        found = await crib.replay(result.run_id)

    assert found.same
    assert found.envelopes[0].approved_input == edited
    assert crm.updates == [(["d0"], "3003")]


async def test_a_run_that_failed_to_find_something_out_is_the_same_as_far_as_it_came():
    async with Crib("memory://", models={"scripted:m": ScriptedModel(["never"])}) as crib:
        crib.add(*Crm(1).tools)
        await crib.fragments.save(PromptFragment(name="tone", text="Be brief."))
        await crib.save(agent("a", prompt_fragments=("tone",)))
        await crib.fragments.remove("tone")
        failed = await crib.invoke("a", {"message": "go"})
        assert failed.summary.status == "failed"

        assert (await crib.replay(failed.run_id)).same
