"""Prompt fragments and service accounts: kept by name, found by every process, given away by nobody who lacks them."""

from pathlib import Path

import pytest

from toolcrib import Crib
from toolcrib.contracts import (
    AgentImplementation,
    JsonSchema,
    LLMConfig,
    NotFound,
    PermissionDenied,
    Principal,
    PromptFragment,
    ServiceAccount,
    ToolDefinition,
)
from toolcrib.llm import ScriptedModel

TONE = PromptFragment(name="tone", text="Answer briefly.")
BOT = ServiceAccount(name="bot", grants=("ai://tools/crm/*/execute",))
ASKED: JsonSchema = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
ANN = Principal(id="ann", grants=("ai://tools/crm/*", "ai://agents/*"))


@pytest.mark.requirement("registry.fragments")
async def test_a_fragment_is_kept_renewed_listed_and_removed(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/crib.db"
    async with Crib(url) as crib, Crib(url) as other:
        await crib.fragments.save(TONE)
        newer = TONE.model_copy(update={"text": "Answer kindly."})
        await other.fragments.save(newer)

        assert await crib.fragments.get("tone") == newer
        assert newer.content_hash != TONE.content_hash
        await crib.fragments.save(PromptFragment(name="facts", text="We sell tools."))
        assert [item.name for item in await other.fragments.list()] == ["facts", "tone"]

        await crib.fragments.remove("tone")
        with pytest.raises(NotFound, match="tone"):
            await other.fragments.get("tone")
        await other.fragments.save(TONE)
        assert await crib.fragments.get("tone") == TONE


@pytest.mark.requirement("registry.fragments")
async def test_what_is_not_there_is_named_with_the_closest_and_realms_are_apart():
    async with Crib("memory://") as crib:
        await crib.fragments.save(TONE)
        with pytest.raises(NotFound, match="the closest: tone"):
            await crib.fragments.remove("tones")
        assert await crib.acting_as(Principal(id="eve", realm="elsewhere")).fragments.list() == []


@pytest.mark.requirement("registry.accounts")
async def test_nobody_makes_an_account_that_may_do_more_than_they():
    async with Crib("memory://") as crib:
        await crib.acting_as(ANN).accounts.save(BOT)
        with pytest.raises(PermissionDenied, match=r"ai://secrets/\*"):
            await crib.acting_as(ANN).accounts.save(ServiceAccount(name="root", grants=("ai://secrets/*",)))
        assert [account.name for account in await crib.accounts.list()] == ["bot"]
        assert BOT.principal("default") == Principal(id="account:bot", kind="service", grants=BOT.grants)
        assert BOT.model_copy(update={"enabled": False}).principal("default").grants == ()


@pytest.mark.requirement("registry.accounts")
async def test_an_agent_acts_as_an_account_only_if_its_author_may_lend_it():
    agent = ToolDefinition(
        name="helper",
        input_schema=ASKED,
        implementation=AgentImplementation(llm=LLMConfig(model="m:x"), principal_ref="bot"),
    )
    async with Crib("memory://", models={"m:x": ScriptedModel([])}) as crib:
        with pytest.raises(NotFound, match="there is no account 'bot'"):
            await crib.save(agent)
        await crib.accounts.save(BOT)
        with pytest.raises(PermissionDenied, match="ai://accounts/bot/execute"):
            await crib.acting_as(ANN).save(agent)
        lender = ANN.model_copy(update={"grants": (*ANN.grants, "ai://accounts/bot/execute")})
        assert (await crib.acting_as(lender).save(agent)).name == "helper"
