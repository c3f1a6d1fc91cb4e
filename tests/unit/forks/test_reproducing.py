"""Forks without changes: whatever a run is of, and wherever it is cut, its fork ends alike and does nothing."""

from typing import Any

import orjson
import pytest

from tests.unit.agents.crm import Crm, asks
from tests.unit.forks.forking import same_at_every_event
from tests.unit.workflows.shop import Shop, calls, publish
from toolcrib import Crib, Limits, LLMConfig, ScriptedModel, code_tool
from toolcrib.contracts import AgentDefinition, AgentRequest, JsonObject, ToolDefinition
from toolcrib.kinds.composite.shape import CompositeImplementation, CompositeRoute

pytestmark = pytest.mark.requirement("forks.same", "forks.known", "forks.replayed")

SEARCH = asks(("search_deals", {"company": "Acme"}))
UPDATE = asks(("update_deals", {"ids": ["d0"], "stage": "3001"}))


def agent(name: str, **fields: Any) -> ToolDefinition:
    """An agent with a scripted model."""
    llm = LLMConfig(model="scripted:m")
    return AgentDefinition.model_validate({"name": name, "llm": llm, "tools": ("search_deals",), **fields}).tool()


async def test_a_run_of_an_agent():
    script = [asks(("search_deals", {"company": "Acme"}), ("search_deals", {"company": "Beta"})), SEARCH, UPDATE, "Ok."]
    crm = Crm(2)
    async with Crib("memory://", models={"scripted:m": ScriptedModel(script)}) as crib:
        crib.add(*crm.tools)
        await crib.save(agent("a", tools=("search_deals", "update_*")))
        result = await crib.invoke("a", {"message": "go"})
        assert result.output == "Ok."
        assert len(crm.searches) == 3

        await same_at_every_event(crib, result.run_id)

    assert (len(crm.searches), len(crm.updates)) == (3, 1)


async def test_runs_of_agentic_tools_in_both_modes():
    steps = {"search_deals": {"input": {"company": "Acme"}}}
    sequence = [orjson.dumps(said).decode() for said in ({"reasoning": "", **steps}, {"summary": "Two."})]
    crm = Crm(2)
    models = {"scripted:m": ScriptedModel([SEARCH, "One."]), "scripted:d": ScriptedModel(sequence)}
    async with Crib("memory://", models=dict(models)) as crib:
        crib.add(*crm.tools)
        chosen = crib.agentic_tool("chosen", mode="agentic", model="scripted:m", tools=["search_deals"])
        fixed = crib.agentic_tool("fixed", mode="deterministic", model="scripted:d", steps=["search_deals"])
        for tool in (chosen, fixed):
            result = await tool("go")
            assert result.ok, result.error
            await same_at_every_event(crib, result.run_id)

    assert len(crm.searches) == 2


async def test_a_run_with_nested_ones():
    ask = asks(("inner", {"task": "find them"}))
    models = {"scripted:outer": ScriptedModel([ask, ask, "All."]), "scripted:inner": ScriptedModel([SEARCH, "1"] * 2)}
    crm = Crm(1)
    async with Crib("memory://", models=dict(models)) as crib:
        crib.add(*crm.tools)
        crib.agentic_tool("inner", mode="agentic", model="scripted:inner", tools=["search_deals"])
        result = await crib.agentic_tool("outer", mode="agentic", model="scripted:outer", tools=["inner"])("go")
        assert result.ok, result.error

        await same_at_every_event(crib, result.run_id)

    assert len(crm.searches) == 2


async def test_runs_that_a_limit_and_a_failure_have_ended():
    script = [SEARCH, SEARCH, SEARCH, "never"]
    async with Crib("memory://", models={"scripted:m": ScriptedModel(script)}) as crib:
        crib.add(*Crm(1).tools)
        await crib.save(agent("turns", limits=Limits(max_iterations=2)))
        turns = await crib.invoke("turns", {"message": "go"})
        assert turns.summary.stop_reason == "max_iterations"
        await crib.save(agent("failing"))
        failing = await crib.invoke("failing", {"message": "go"})

        await same_at_every_event(crib, turns.run_id)
        await same_at_every_event(crib, failing.run_id)


async def test_a_run_of_a_workflow():
    shop = Shop()
    steps = (
        calls("first", "reserve"),
        calls("each", "ship", "${item}", for_each="${input.items}"),
        {"name": "inner", "workflow": "inner", "input": {"item": "${first.item}"}},
        {"name": "seen", "output": {"all": "${each}", "inner": "${inner}"}},
    )
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "inner", calls("one", "charge"), output="${one.item}")
        await publish(crib, "orders", *steps)
        instance = await crib.instances.start("orders", {"item": "i", "items": ["a", "b"]})
        assert instance.status == "completed", instance.error
        done = list(shop.done)

        await same_at_every_event(crib, instance.run_id)

        shop.broken = {"ship b"}
        failed = await crib.instances.start("orders", {"item": "j", "items": ["a", "b"]})
        assert failed.status == "failed"
        done += shop.done[len(done) :]
        await same_at_every_event(crib, failed.run_id)

    assert shop.done == done


async def test_runs_of_composite_tools_and_of_single_calls():
    crm = Crm(1)
    async with Crib("memory://") as crib:
        crib.add(*crm.tools)
        route = CompositeRoute(id="only", tool="search_deals", input={"company": "${input.name}"})
        name: JsonObject = {"type": "object", "properties": {"name": {"type": "string"}}}
        implementation = CompositeImplementation(routes=(route,))
        await crib.save(ToolDefinition(name="find", input_schema=name, implementation=implementation))
        single = await crib.invoke("update_deals", {"ids": ["d0"], "stage": "3001"})
        refused = await crib.invoke("update_deals", {"ids": []})
        chosen = await crib.invoke("find", {"name": "Acme"})
        assert (single.ok, refused.ok, chosen.ok) == (True, False, True)

        for result in (single, refused, chosen):
            await same_at_every_event(crib, result.run_id)

    assert (len(crm.searches), len(crm.updates)) == (1, 1)


async def test_a_turn_of_a_conversation_remembers_what_was_said_before():
    script = [SEARCH, "One.", "Two."]
    async with Crib("memory://", models={"scripted:m": ScriptedModel(script)}) as crib:
        crib.add(*Crm(1).tools)
        await crib.save(agent("a"))
        first = await crib.executions.execute("a", AgentRequest(message="first"))
        assert first.conversation_id is not None
        second = await crib.executions.continue_(first.conversation_id, "second")
        assert second.output == "Two."

        await same_at_every_event(crib, second.run_id)

        kept = await crib.conversations.get(first.conversation_id)
        assert (kept.turn_count, kept.status) == (2, "active")


async def test_code_gets_the_random_numbers_that_it_had():
    source = "import random\n\ndef main():\n    return [random.random(), search_deals(company='Acme')]\n"
    crm = Crm(1)
    async with Crib("memory://") as crib:
        crib.add(*crm.tools)
        await crib.save(code_tool("draws", source, tools=["search_deals"]))
        result = await crib.invoke("draws", {})
        assert result.ok, result.error

        await same_at_every_event(crib, result.run_id)

    assert crm.searches == ["Acme"]
