"""What is said of a call when its run has ended, and what a run that takes that one up makes of it."""

import asyncio
from typing import Any

import pytest

from tests.unit.workflows.shop import Shop, calls, publish, step
from tests.unit.workflows.test_reruns_unknown import cut_off
from toolcrib import Crib, ToolContext, tool
from toolcrib.contracts import Conflict, InvalidInput, JsonObject, NotFound, PermissionDenied, Principal, ToolStep

BEN = Principal(id="ben", grants=("ai://approvals/ship/write",))
SHIPPED = {"item": "x", "by": "hand", "note": ""}


async def in_doubt(crib: Crib, shop: Shop) -> str:
    """An instance that was cancelled while it shipped."""
    shop.add_to(crib)
    await publish(crib, "order", calls("ship", "ship"))
    return await cut_off(crib, shop, "order", "ship x")


@pytest.mark.requirement("effects.settled")
async def test_what_took_effect_is_taken_over_with_the_output_that_was_told():
    shop = Shop()
    async with Crib("memory://") as crib:
        run_id = await in_doubt(crib, shop)
        said = await crib.acting_as(BEN).settlements.settle(
            run_id, "ship", happened=True, output=SHIPPED, reason="the carrier has it"
        )
        done = await crib.instances.resume(run_id)
        traced, before = await crib.trace(done.run_id), await crib.trace(run_id)

    assert (said.happened, said.made_by) == (True, "ben")
    assert (done.status, step(done, "ship").output, shop.done) == ("completed", SHIPPED, [])
    assert [each.reused for each in traced.steps if isinstance(each, ToolStep)] == [run_id]
    assert [each.settled for each in before.steps if isinstance(each, ToolStep)] == [said]


@pytest.mark.requirement("effects.settled", "effects.key")
async def test_what_did_not_is_made_once_more_with_its_key():
    shop = Shop()
    async with Crib("memory://") as crib:
        run_id = await in_doubt(crib, shop)
        await crib.settlements.settle(run_id, "ship", happened=False)
        done = await crib.instances.resume(run_id)

    assert (done.status, shop.done) == ("completed", ["ship x"])
    assert shop.keys["ship x"] == [f"{run_id}/ship"] * 2


@pytest.mark.requirement("effects.settled")
async def test_a_call_of_a_nested_workflow_is_settled_in_its_own_run():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "inner", calls("ship", "ship"))
        await publish(crib, "outer", {"name": "below", "workflow": "inner", "input": {"item": "${input.item}"}})
        run_id = await cut_off(crib, shop, "outer", "ship x")
        [nested] = [each for each in (await crib.instances.page()).items if each.parent_run_id is not None]
        await crib.acting_as(BEN).settlements.settle(nested.run_id, "ship", happened=True, output=SHIPPED)
        shown = await crib.trace(run_id)
        done = await crib.instances.resume(run_id)
        with pytest.raises(Conflict, match=f"was continued by {done.run_id}"):
            await crib.settlements.settle(nested.run_id, "ship", happened=False)

    [below] = [each for each in shown.steps if isinstance(each, ToolStep)]
    assert below.child is not None
    assert [each.settled is not None for each in below.child.steps if isinstance(each, ToolStep)] == [True]
    assert (done.status, shop.done) == ("completed", [])


@pytest.mark.requirement("effects.settled_bound")
async def test_the_first_answer_counts():
    shop = Shop()
    async with Crib("memory://") as crib:
        run_id = await in_doubt(crib, shop)
        await crib.acting_as(BEN).settlements.settle(run_id, "ship", happened=False)
        with pytest.raises(Conflict, match="was settled by 'ben'"):
            await crib.settlements.settle(run_id, "ship", happened=True, output=SHIPPED)


@pytest.mark.requirement("effects.settled_bound")
@pytest.mark.parametrize(
    "who",
    [
        Principal(id="owner", grants=("ai://*",)),
        Principal(id="robot", kind="agent", acts_for="ben", grants=("ai://*",)),
        Principal(id="eve", grants=("ai://approvals/other/write",)),
    ],
)
async def test_nobody_settles_a_call_who_may_not_decide_on_it(who: Principal):
    shop = Shop()
    async with Crib("memory://") as crib:
        run_id = await in_doubt(crib, shop)
        with pytest.raises(PermissionDenied):
            await crib.acting_as(who).settlements.settle(run_id, "ship", happened=False)


@pytest.mark.requirement("effects.settled_bound")
async def test_the_operator_may_let_those_settle_who_have_a_part_in_the_run():
    shop = Shop()
    async with Crib("memory://") as crib:
        run_id = await in_doubt(crib, shop)
        owner = Principal(id=crib.principal.id, grants=("ai://*",))
        said = await crib.acting_as(owner).settlements.settle(run_id, "ship", happened=False, allow_self=True)

    assert said.made_by == owner.id


@pytest.mark.requirement("effects.settled_bound")
async def test_a_run_of_another_realm_is_none_and_who_may_not_decide_is_not_told_what_was_called():
    shop = Shop()
    async with Crib("memory://") as crib:
        run_id = await in_doubt(crib, shop)
        stranger = Principal(id="ann", realm="elsewhere", grants=("ai://*",))
        with pytest.raises(NotFound, match="there is no run"):
            await crib.acting_as(stranger).settlements.settle(run_id, "ship", happened=False)
        with pytest.raises(NotFound, match="there is no run"):
            await crib.settlements.settle("run_none", "ship", happened=False)
        with pytest.raises(NotFound, match="no outcome of a call at 'pay'"):
            await crib.settlements.settle(run_id, "pay", happened=False)
        with pytest.raises(PermissionDenied):
            await crib.acting_as(BEN).settlements.settle(run_id, "pay", happened=False)


@pytest.mark.requirement("effects.settled_bound")
@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"happened": True, "output": {"sent": 7}}, "not what 'send' brings"),
        ({"happened": True, "output": object()}, "is not JSON"),
        ({"happened": False, "output": {"sent": "x"}}, "has no output"),
    ],
)
async def test_an_output_must_be_what_the_tool_promises(said: dict[str, Any], problem: str):
    @tool(side_effects="writes")
    async def send() -> dict[str, str]:
        """Send a letter, and hear nothing of it."""
        raise TimeoutError

    async with Crib("memory://") as crib:
        crib.add(send)
        await publish(crib, "letter", {"name": "send", "tool": "send"})
        late = await crib.instances.start("letter", {})
        with pytest.raises(InvalidInput, match=problem):
            await crib.settlements.settle(late.run_id, "send", **said)
        [sent] = [each for each in (await crib.trace(late.run_id)).steps if isinstance(each, ToolStep)]

    assert sent.settled is None


@pytest.mark.requirement("effects.settled_bound")
async def test_only_what_is_unknown_of_a_run_that_has_ended_can_be_settled():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("reserve", "reserve"), calls("ship", "ship", depends_on=["reserve"]))
        shop.hanging = {"ship x"}
        driving = asyncio.ensure_future(crib.instances.start("order", {"item": "x"}))
        await shop.reached.wait()
        [open_] = (await crib.instances.page()).items
        with pytest.raises(Conflict, match="while the run is running"):
            await crib.settlements.settle(open_.run_id, "reserve", happened=False)
        await crib.instances.cancel(open_.run_id)
        await driving
        with pytest.raises(Conflict, match="its outcome is known, and is 'success'"):
            await crib.settlements.settle(open_.run_id, "reserve", happened=False)


@pytest.mark.requirement("effects.not_again", "effects.settled")
async def test_a_further_try_in_doubt_is_not_made_again_either():
    tries, hangs, done = list[str](), asyncio.Event(), list[str]()

    @tool(side_effects="writes")
    async def send(ctx: ToolContext) -> JsonObject:
        """Send a letter: refused at first, then cut off."""
        tries.append(ctx.idempotency_key)
        if len(tries) == 1:
            raise RuntimeError
        if len(tries) == 2:
            hangs.set()
            await asyncio.Event().wait()
        done.append("sent")
        return {"sent": "now"}

    async with Crib("memory://") as crib:
        crib.add(send)
        retry: JsonObject = {"count": 1, "base_s": 0, "codes": ["UNKNOWN"]}
        await publish(crib, "letter", {"name": "send", "tool": "send", "retry": retry})
        driving = asyncio.ensure_future(crib.instances.start("letter", {}))
        await hangs.wait()
        [letter] = (await crib.instances.page()).items
        await crib.instances.cancel(letter.run_id)
        await driving

        refused = await crib.instances.resume(letter.run_id)
        assert (refused.status, done) == ("failed", [])
        await crib.settlements.settle(refused.run_id, "send", happened=False)
        assert (await crib.instances.resume(letter.run_id)).status == "completed"

    assert (done, set(tries)) == (["sent"], {f"{letter.run_id}/send"})
