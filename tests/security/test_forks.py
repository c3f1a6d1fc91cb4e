"""Ways to have a fork do what one may not do oneself: with old decisions, with another's account, or by oneself."""

import pytest

from tests.unit.agents.crm import MODEL, Crm, asks
from tests.unit.agents.desk import agent
from tests.unit.workflows.flows import save
from tests.unit.workflows.shop import Shop, calls, publish
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import JsonObject, PermissionDenied, Principal, ServiceAccount

EVE = Principal(id="eve", grants=("ai://runs/*/read", "ai://workflows/*", "ai://tools/*", "ai://agents/*"))
BOSS = Principal(id="boss", grants=("ai://approvals/*",))


async def approved(crib: Crib, run_id: str) -> str:
    """Have the boss approve the one thing that a run asks, and carry it on."""
    (asked,) = (await crib.approvals.page(run_id=run_id)).items
    await crib.acting_as(BOSS).approvals.decide(asked.approval_id, approve=True)
    return (await crib.instances.resume(run_id)).run_id


@pytest.mark.requirement("forks.people")
@pytest.mark.parametrize("anew", [True, False])
async def test_a_decision_lets_through_once_what_a_step_asked_for_and_no_fork_that_writes(anew: bool):
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        ship = {**calls("ship", "ship", "a"), "depends_on": ["ask"]}
        await publish(crib, "pay", {"name": "ask", "approval": {"message": "Go?"}}, ship)
        run_id = await approved(crib, (await crib.acting_as(EVE).instances.start("pay", {})).run_id)
        forks = [
            await crib.acting_as(EVE).fork(run_id, at=at, anew=anew, allow_writes=True)
            for at in range(1, len(await crib.store.journal.events(run_id)) + 1)
        ]
        assert {fork.status for fork in forks} == {"awaiting_approval"}
        assert shop.done == ["ship a"]

        dry = await crib.acting_as(EVE).fork(run_id, at="step:ship", anew=True)
        again = await crib.acting_as(EVE).fork(dry.run_id, at="step:ship", anew=True, allow_writes=True)

    assert (dry.status, again.status) == ("completed", "awaiting_approval")
    assert shop.done == ["ship a"]


@pytest.mark.requirement("forks.rights")
@pytest.mark.parametrize("changes", [{"prompt": "Obey."}, {"policy": {"requires_approval": False}}, {"model": MODEL}])
async def test_who_may_write_an_agent_and_not_act_as_its_account_forks_its_runs_unchanged_only(changes: JsonObject):
    crm = Crm(1)
    async with Crib("memory://", models={MODEL: ScriptedModel(["Ok.", asks(("search_deals", {})), "Ok."])}) as crib:
        crib.add(*crm.tools)
        await crib.accounts.save(ServiceAccount(name="bot", grants=("ai://tools/*",)))
        await crib.agents.save(agent(tools=["search_deals"], principal_ref="bot"))
        first = await crib.acting_as(EVE).invoke("desk", {"message": "Hello"})

        with pytest.raises(PermissionDenied, match="ai://accounts/bot/execute"):
            await crib.acting_as(EVE).fork(first.run_id, changes=changes, allow_writes=True)

        assert (await crib.acting_as(EVE).fork(first.run_id)).status == "completed"


@pytest.mark.requirement("forks.people")
async def test_who_had_a_part_in_a_run_decides_on_nothing_in_a_fork_of_it():
    ann, bob, cem, dan = (Principal(id=name) for name in ("ann", "bob", "cem", "dan"))
    async with Crib("memory://") as crib:
        await save(
            crib,
            {"name": "news", "wait": {"signal": "news"}},
            {"name": "ask", "approval": {"message": "Pay ${news.amount}?"}, "depends_on": ["news"]},
        )
        began = await crib.acting_as(ann).instances.start("flow", {})
        await crib.acting_as(bob).instances.signal(began.run_id, "news", {"amount": 1_000_000})
        await crib.instances.resume(began.run_id)
        fork = await crib.acting_as(cem).fork(began.run_id, allow_writes=True)
        (asked,) = (await crib.approvals.page(run_id=fork.run_id)).items

        for who in (ann, bob, cem):
            with pytest.raises(PermissionDenied, match="takes part in the run"):
                await crib.acting_as(who).approvals.decide(asked.approval_id, approve=True)
        answered = await crib.acting_as(dan).approvals.decide(asked.approval_id, approve=True)

    assert answered.status == "approved"
