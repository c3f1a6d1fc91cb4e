"""Service accounts under attack: taken away while runs go on or wait, and named like somebody else."""

from pathlib import Path

import pytest

from tests.unit.agents.crm import MODEL, Crm, asks
from tests.unit.agents.desk import agent
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import LLMConfig, Principal, RequireConfirmation, ServiceAccount, account_of

pytestmark = pytest.mark.requirement("policy.accounts")

INNER = "scripted:inner"
BOT = ServiceAccount(name="bot", grants=("ai://tools/*", "ai://agents/*"))
SEARCH = asks(("search_deals", {"company": "Acme"}))
UPDATE = asks(("update_deals", {"ids": ["d0"], "stage": "3003"}))


@pytest.mark.parametrize("after", [BOT.model_copy(update={"enabled": False}), BOT.model_copy(update={"grants": ()})])
async def test_an_account_that_loses_its_grants_while_its_agent_runs_calls_nothing_more(after: ServiceAccount):
    crm = Crm(1)
    async with Crib("memory://", models={MODEL: ScriptedModel([SEARCH, UPDATE, "I may not."])}) as crib:

        async def change(_: str) -> None:
            await crib.accounts.save(after)

        crm.on_search = change
        crib.add(*crm.tools)
        await crib.accounts.save(BOT)
        await crib.agents.save(agent(tools=["search_deals", "update_deals"], principal_ref="bot"))
        result = await crib.invoke("desk", {"message": "Move it"})

    assert [envelope.status for envelope in result.envelopes] == ["success", "denied"]
    assert crm.updates == []


async def test_what_was_approved_inside_a_run_of_an_account_that_is_gone_does_not_happen(tmp_path: Path):
    models = {
        MODEL: ScriptedModel([asks(("mover", {"message": "Move it"})), "ok"]),
        INNER: ScriptedModel([UPDATE, "I may not."]),
    }
    crm, store = Crm(1), f"sqlite:///{tmp_path}/crib.db"
    mover = agent("mover", llm=LLMConfig(model=INNER), tools=["update_deals"], guardrails=[RequireConfirmation()])
    async with Crib(store, models=models) as crib:
        crib.add(*crm.tools)
        await crib.accounts.save(BOT)
        await crib.agents.save(mover)
        await crib.agents.save(agent(delegates=["mover"], principal_ref="bot"))
        waiting = await crib.invoke("desk", {"message": "Move it"})
        [approval] = (await crib.approvals.page()).items
    async with Crib(store) as elsewhere:
        await elsewhere.accounts.remove("bot")
        await elsewhere.approvals.decide(approval.approval_id, approve=True)
    async with Crib(store, models=models) as crib:
        crib.add(*crm.tools)
        result = await crib.resume(waiting.run_id)

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "policy")
    assert approval.acting == "account:bot"
    assert crm.updates == []


def test_an_account_is_nobody_who_is_named_like_it():
    ann = ServiceAccount(name="ann", grants=("ai://tools/*",)).principal("default")

    assert ann.user != Principal(id="ann").user
    assert account_of(ann) == "ann"
    assert account_of(Principal(id=ann.id)) is None
    assert account_of(Principal(id="ann", kind="service")) is None
