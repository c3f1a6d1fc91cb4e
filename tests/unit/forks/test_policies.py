"""Forks under another policy: what it forbids is refused or asked for, also where the recording has an outcome."""

from typing import Any

import pytest

from tests.unit.agents.crm import Crm, asks
from tests.unit.forks.forking import made_itself
from toolcrib import Crib, LLMConfig, ScriptedModel
from toolcrib.contracts import AgentDefinition, JsonObject, Limits, Principal, ToolDefinition

pytestmark = pytest.mark.requirement("forks.changes")

SEARCH = asks(("search_deals", {"company": "Acme"}))
UPDATE = asks(("update_deals", {"ids": ["d0"], "stage": "3001"}))
COLLEAGUE = Principal(id="ben", grants=("ai://*",))


def agent(name: str, **fields: Any) -> ToolDefinition:
    """An agent with a scripted model."""
    llm = LLMConfig(model="scripted:m")
    tools = ("search_deals", "update_deals")
    return AgentDefinition.model_validate({"name": name, "llm": llm, "tools": tools, **fields}).tool()


@pytest.mark.requirement("forks.people")
async def test_a_call_that_now_needs_consent_is_asked_for_although_it_was_made_then():
    crm = Crm(1)
    async with Crib("memory://", models={"scripted:m": ScriptedModel([UPDATE, "Ok."])}) as crib:
        crib.add(*crm.tools)
        await crib.save(agent("a"))
        first = await crib.invoke("a", {"message": "go"})
        assert crm.updates == [(["d0"], "3001")]

        fork = await crib.fork(first.run_id, changes={"policy": {"requires_approval": True}}, allow_writes=True)

        assert fork.status == "awaiting_approval"
        [asked] = await crib.pending_approvals(fork.run_id)
        await crib.acting_as(COLLEAGUE).decide(fork.run_id, asked.position, approve=True)
        ended = await crib.resume(fork.run_id)
        assert ended.output == "Ok."
        assert len(crm.updates) == 2


async def test_tools_that_are_taken_away_are_refused_and_what_was_refused_is_judged_anew():
    crm, script = Crm(1), [SEARCH, "Ok.", "Without.", "With."]
    async with Crib("memory://", models={"scripted:m": ScriptedModel(script)}) as crib:
        crib.add(*crm.tools)
        await crib.save(agent("a"))
        first = await crib.invoke("a", {"message": "go"})

        without: JsonObject = {"policy": {"tools": ["update_deals"]}}
        fork = await crib.fork(first.run_id, at=4, changes=without)
        assert fork.output == {"response": "Without."}
        diff = await crib.compare(first.run_id, fork.run_id)
        assert [(each.position, each.change) for each in diff.calls] == [("t1.c1", "outcome")]
        assert [(each.kind, each.before, each.after) for each in diff.decisions] == [
            ("guard", "allow", "deny (allow_list)")
        ]

        again: JsonObject = {"policy": {"tools": ["search_deals", "update_deals"]}}
        back = await crib.fork(fork.run_id, at=4, changes=again)
        assert back.output == {"response": "With."}
        assert len(crm.searches) == 2


@pytest.mark.requirement("forks.limits")
async def test_a_run_that_a_limit_has_ended_goes_on_under_a_higher_one():
    async with Crib("memory://", models={"scripted:m": ScriptedModel([SEARCH, SEARCH, "On."])}) as crib:
        crib.add(*Crm(1).tools)
        await crib.save(agent("a", limits=Limits(max_iterations=1)))
        first = await crib.invoke("a", {"message": "go"})
        assert first.summary.stop_reason == "max_iterations"

        changes: JsonObject = {"policy": {"limits": {"max_iterations": 3}}}
        fork = await crib.fork(first.run_id, at=len(await crib.store.journal.events(first.run_id)), changes=changes)

        assert (fork.stop_reason, fork.output) == ("final_answer", {"response": "On."})
        assert (await crib.replay(fork.run_id)).divergence is None
        assert "t1.llm" not in await made_itself(crib, fork.run_id)
