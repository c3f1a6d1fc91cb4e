"""Forks of runs with nested ones: taken as a whole, or forked with their caller."""

from typing import Any

import pytest

from tests.unit.agents.crm import Crm, asks
from tests.unit.forks.forking import made_itself
from tests.unit.workflows.shop import Shop, calls, publish
from toolcrib import Crib, LLMConfig, ScriptedModel, tool
from toolcrib.contracts import AgentDefinition, ChildStarted, Principal, ToolDefinition

pytestmark = pytest.mark.requirement("forks.nested")

COLLEAGUE = Principal(id="ben", grants=("ai://*",))


def agent(name: str, **fields: Any) -> ToolDefinition:
    """An agent with a scripted model."""
    llm = LLMConfig(model=f"scripted:{name}")
    return AgentDefinition.model_validate({"name": name, "llm": llm, **fields}).tool()


async def children(crib: Crib, run_id: str) -> list[str]:
    """Ids of the runs that are nested in a run."""
    events = await crib.store.journal.events(run_id)
    return [entry.event.child_run_id for entry in events if isinstance(entry.event, ChildStarted)]


async def test_a_nested_run_that_called_what_is_another_one_now_is_forked_and_another_one_is_taken():
    called: list[str] = []

    def look(version: str) -> Any:
        @tool(side_effects="reads", version=version)
        async def look(item: str) -> str:
            """Look at an item."""
            called.append(f"{version} {item}")
            return version

        return look

    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        crib.add(look("1.0.0"))
        see = {"name": "see", "tool": "look@^1", "input": {"item": "${input.item}"}}
        await publish(crib, "looking", calls("one", "reserve"), see, output="${see}")
        await publish(crib, "other", calls("two", "charge"))
        steps = ({"name": name, "workflow": name, "input": {"item": "a"}} for name in ("looking", "other"))
        await publish(crib, "outer", *steps, output="${looking}")
        first = await crib.instances.start("outer", {})
        assert (first.output, called) == ("1.0.0", ["1.0.0 a"])
        crib.add(look("1.1.0"))

        fork = await crib.fork(first.run_id, changes={"tool:look": "1.1.0"})

        assert (fork.status, fork.output) == ("completed", "1.1.0"), fork.error
        assert called == ["1.0.0 a", "1.1.0 a"]
        assert shop.done == ["reserve a", "charge a"]
        [inner] = await children(crib, fork.run_id)
        assert await made_itself(crib, inner) == ["see", "see"]
        assert (await crib.replay(fork.run_id)).divergence is None


async def test_a_nested_run_that_was_open_at_the_cut_goes_on_from_where_it_was():
    crm = Crm(1)
    update = asks(("search_deals", {"company": "Acme"})), asks(("update_deals", {"ids": ["d0"], "stage": "3001"}))
    models = {
        "scripted:outer": ScriptedModel([asks(("inner", {"message": "do"})), "All."]),
        "scripted:inner": ScriptedModel([*update, "Skipped."]),
    }
    async with Crib("memory://", models=dict(models)) as crib:
        crib.add(*crm.tools)
        await crib.save(agent("inner", tools=("search_deals", "update_deals"), requires_approval=True))
        await crib.save(agent("outer", delegates=("inner",)))
        first = await crib.invoke("outer", {"message": "go"})
        assert first.summary.status == "awaiting_approval"
        last = len(await crib.store.journal.events(first.run_id))

        fork = await crib.fork(first.run_id, at=last)

        assert (fork.status, fork.output) == ("completed", {"response": "All."}), fork.error
        assert (crm.searches, crm.updates) == (["Acme"], [])
        [inner] = await children(crib, fork.run_id)
        assert await made_itself(crib, inner) == ["t2.c1", "t3.llm"]
        assert (await crib.replay(fork.run_id)).divergence is None


async def test_a_nested_run_can_be_forked_by_itself():
    models = {
        "scripted:outer": ScriptedModel([asks(("inner", {"message": "do"})), "All."]),
        "scripted:inner": ScriptedModel(["Inner.", "Again."]),
    }
    async with Crib("memory://", models=dict(models)) as crib:
        await crib.save(agent("inner"))
        await crib.save(agent("outer", delegates=("inner",)))
        first = await crib.invoke("outer", {"message": "go"})
        [inner] = await children(crib, first.run_id)

        fork = await crib.fork(inner, changes={"prompt": "Be brief."})

        assert fork.output == {"response": "Again."}
        assert (fork.request.parent_run_id, fork.request.depth, fork.request.callers) == (None, 0, {})
