"""Steps that act as a service account: its rights count, as they are when the call is made."""

import pytest

from tests.unit.workflows.flows import calls_of, error_of, run, save
from toolcrib import Crib, ToolContext, tool
from toolcrib.contracts import JsonObject, Principal, Reason, ServiceAccount

pytestmark = pytest.mark.requirement("workflow_steps.account")

BOT = ServiceAccount(name="bot", grants=("ai://tools/*", "ai://workflows/*"))
ACT: JsonObject = {"name": "act", "tool": "who", "principal_ref": "bot"}
GUEST = Principal(id="guest", grants=("ai://workflows/*",))


@tool(side_effects="reads")
async def who(ctx: ToolContext) -> str:
    """Who acts."""
    return ctx.principal


async def test_the_calls_of_a_step_are_its_account_s_and_those_of_the_others_are_not():
    async with Crib("memory://") as crib:
        crib.add(who)
        await crib.accounts.save(BOT)
        instance = await run(crib, ACT, {"name": "mine", "tool": "who"})

    assert instance.output == {"act": "account:bot", "mine": "owner"}


async def test_who_may_not_call_a_tool_may_run_a_workflow_whose_account_may():
    async with Crib("memory://") as crib:
        crib.add(who)
        await crib.accounts.save(BOT)
        await save(crib, ACT, {"name": "mine", "tool": "who", "on_error": "continue"})
        instance = await crib.acting_as(GUEST).instances.start("flow", {})

    assert instance.output == {"act": "account:bot", "mine": None}
    assert error_of(instance, "mine").reason is Reason.PERMISSION_MISSING


async def test_a_nested_run_acts_as_the_account_too():
    async with Crib("memory://") as crib:
        crib.add(who)
        await crib.accounts.save(BOT)
        await save(crib, {"name": "inside", "tool": "who"}, name="inner")
        instance = await run(crib, {"name": "inner", "workflow": "inner", "principal_ref": "bot"})

    assert instance.output == {"inner": {"inside": "account:bot"}}


async def test_what_was_taken_from_an_account_is_gone_at_once():
    async with Crib("memory://") as crib:
        crib.add(who)
        await crib.accounts.save(BOT)
        await save(crib, ACT)
        await crib.accounts.save(BOT.model_copy(update={"grants": ()}))
        instance = await crib.instances.start("flow", {})

    assert error_of(instance, "act").reason is Reason.PERMISSION_MISSING


@pytest.mark.parametrize("state", ["does not exist", "is disabled"])
async def test_without_its_account_the_step_fails_and_calls_nothing(state: str):
    async with Crib("memory://") as crib:
        crib.add(who)
        if state == "is disabled":
            await crib.accounts.save(BOT.model_copy(update={"enabled": False}))
        instance = await run(crib, ACT)
        assert await calls_of(crib, instance) == {}

    error = error_of(instance, "act")
    assert (error.code, error.reason) == ("POLICY_DENIED", Reason.PERMISSION_MISSING)
    assert f"step 'act' acts as the account 'bot', which {state} in realm 'default'" in error.message


async def test_a_request_of_such_a_step_says_who_acts():
    @tool(requires_confirmation=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    async with Crib("memory://") as crib:
        crib.add(pay)
        await crib.accounts.save(BOT)
        await run(crib, {"name": "pay", "tool": "pay", "principal_ref": "bot"})
        [asked] = (await crib.approvals.page()).items

    assert (asked.acting, asked.requested_by) == ("account:bot", "owner")
