"""Forks of runs with people, clients, signals and time in them."""

from typing import Any

import pytest

from tests.twins import ManualClock
from tests.unit.agents.crm import Crm, asks
from tests.unit.forks.forking import ended, made_itself, same_at_every_event
from tests.unit.workflows.shop import Shop, calls, publish
from tests.unit.workflows.waiting import COLLEAGUE, waited_through
from toolcrib import Crib, LLMConfig, ScriptedModel
from toolcrib.contracts import AgentDefinition, Json, ToolDefinition

UPDATE = asks(("update_deals", {"ids": ["d0"], "stage": "3001"}))


def agent(name: str, **fields: Any) -> ToolDefinition:
    """An agent with a scripted model."""
    llm = LLMConfig(model="scripted:m")
    return AgentDefinition.model_validate({"name": name, "llm": llm, "tools": ("update_deals",), **fields}).tool()


async def approve(crib: Crib, run_id: str, edited: Json = None) -> None:
    """Have a colleague approve the one call of a run that waits."""
    [asked] = await crib.pending_approvals(run_id)
    await crib.acting_as(COLLEAGUE).decide(run_id, asked.position, approve=True, edited_input=edited)


@pytest.mark.requirement("forks.people", "forks.known", "forks.same")
async def test_an_approved_call_is_known_and_one_that_waited_is_asked_for_anew():
    crm = Crm(1)
    async with Crib("memory://", models={"scripted:m": ScriptedModel([UPDATE, "Ok."])}) as crib:
        crib.add(*crm.tools)
        await crib.save(agent("a", requires_approval=True))
        first = await crib.invoke("a", {"message": "go"})
        waits = len(await crib.store.journal.events(first.run_id))
        await approve(crib, first.run_id, {"ids": ["d0"], "stage": "3003"})
        assert (await crib.resume(first.run_id)).output == "Ok."
        assert crm.updates == [(["d0"], "3003")]

        await same_at_every_event(crib, first.run_id)

        fork = await crib.fork(first.run_id, at=waits + 3, anew=True, allow_writes=True)
        assert fork.status == "awaiting_approval", (
            "what was decided counts for the call that was made, and it is another"
        )
        assert crm.updates == [(["d0"], "3003")]


@pytest.mark.requirement("forks.known")
async def test_a_run_that_waits_is_forked_beside_it():
    crm = Crm(1)
    models = {"scripted:m": ScriptedModel([UPDATE, "Ok.", "No."])}
    async with Crib("memory://", models=dict(models)) as crib:
        crib.add(*crm.tools)
        await crib.save(agent("a", requires_approval=True))
        first = await crib.invoke("a", {"message": "go"})
        assert first.summary.status == "awaiting_approval"

        fork = await crib.fork(first.run_id, at="turn:1")

        assert (fork.status, fork.output) == ("completed", {"response": "Ok."})
        assert crm.updates == []
        assert (await crib.store.journal.run(first.run_id)).status == "awaiting_approval"
        await approve(crib, first.run_id)
        assert (await crib.resume(first.run_id)).output == "No."


@pytest.mark.requirement("forks.known", "forks.taken", "forks.people")
async def test_signals_clients_and_waits_are_taken_and_steps_that_ask_people_ask_anew_after_the_cut():
    shop, clock = Shop(), ManualClock()
    async with Crib("memory://", clock=clock) as crib:
        shop.add_to(crib)
        done = await waited_through(crib, clock)
        assert done.status == "completed"
        events = await crib.store.journal.events(done.run_id)
        decided = next(entry.number for entry in events if entry.event.type == "approval_decided")
        for at in range(1, len(events) + 1):
            fork = await crib.fork(done.run_id, at=at)
            if at < decided:
                assert fork.status == "awaiting_approval", at
                [asked] = (await crib.approvals.page(run_id=fork.run_id)).items
                await crib.acting_as(COLLEAGUE).approvals.decide(
                    asked.approval_id, approve=True, edited_input={"item": "b"}, allow_self=True
                )
                await crib.resume(fork.run_id)
                fork = await crib.store.journal.run(fork.run_id)
            assert ended(fork) == ended(await crib.store.journal.run(done.run_id)), at
            assert await made_itself(crib, fork.run_id) == [], at
            assert (await crib.replay(fork.run_id)).divergence is None, at
        assert shop.done == ["ship b"]


@pytest.mark.requirement("forks.same", "forks.people")
async def test_a_run_that_a_person_confirmed_as_a_whole_keeps_what_they_made_of_its_input():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("ship", "ship"), requires_confirmation=True)
        waiting = await crib.instances.start("order", {"item": "a"})
        [asked] = (await crib.approvals.page()).items
        await crib.acting_as(COLLEAGUE).approvals.decide(
            asked.approval_id, approve=True, edited_input={"item": "b"}, allow_self=True
        )
        done = await crib.instances.resume(waiting.run_id)
        assert (done.status, shop.done) == ("completed", ["ship b"])

        await same_at_every_event(crib, done.run_id)

        writing = await crib.fork(done.run_id, allow_writes=True)
        assert writing.status == "awaiting_approval"
