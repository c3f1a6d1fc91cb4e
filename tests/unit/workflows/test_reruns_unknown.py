"""Calls of which nobody knows whether they took effect, when their instance is resumed."""

import asyncio

import pytest

from tests.twins import ManualClock
from tests.unit.workflows.shop import Shop, calls, publish, statuses, step
from toolcrib import Crib, ToolContext, tool
from toolcrib.contracts import JsonObject, Reason, ToolError
from toolcrib.contracts.workflows import WorkflowInstance

pytestmark = pytest.mark.requirement("workflow_reruns.unknown")

ITEM: JsonObject = {"item": "x"}


async def cut_off(crib: Crib, shop: Shop, name: str, effect: str, arguments: JsonObject | None = None) -> str:
    """Cancel an instance in the middle of an effect; its id."""
    shop.hanging = {effect}
    driving = asyncio.ensure_future(crib.instances.start(name, ITEM if arguments is None else arguments))
    await shop.reached.wait()
    summary = next(each for each in (await crib.instances.page()).items if each.parent_run_id is None)
    await crib.instances.cancel(summary.run_id)
    await driving
    shop.hanging = set()
    return summary.run_id


def error_of(instance: WorkflowInstance, name: str) -> ToolError:
    """Why a step has failed."""
    found = step(instance, name).error
    assert found is not None
    return found


async def test_a_call_that_writes_is_not_made_again_and_its_step_fails_until_the_caller_says_so():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("ship", "ship"))
        run_id = await cut_off(crib, shop, "order", "ship x")

        refused = await crib.instances.resume(run_id)
        again = await crib.instances.resume(run_id)

        for instance in (refused, again):
            assert (instance.status, statuses(instance)) == ("failed", {"ship": "failed"})
            failure = error_of(instance, "ship")
            assert failure.reason == Reason.OUTCOME_UNKNOWN
            assert f"in run {run_id}" in failure.message
            assert "or resume with repeat_unknown" in failure.message
        assert shop.done == []

        done = await crib.instances.resume(run_id, repeat_unknown=True)

    assert (done.status, shop.done) == ("completed", ["ship x"])
    assert shop.keys["ship x"] == [f"{run_id}/ship"] * 2


async def test_a_call_that_is_idempotent_is_made_again():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("pay", "pay"))
        run_id = await cut_off(crib, shop, "order", "pay x")

        done = await crib.instances.resume(run_id)

    assert (done.status, shop.done) == ("completed", ["pay x"])
    assert shop.keys["pay x"] == [f"{run_id}/pay"] * 2


async def test_a_call_that_ran_out_of_time_may_have_taken_effect_too():
    shop = Shop()
    shop.hanging = {"ship"}
    async with Crib("memory://", clock=ManualClock()) as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("ship", "ship", timeout_s=0.01))
        late = await crib.instances.start("order", ITEM)
        assert error_of(late, "ship").reason == Reason.TOOL_TIMEOUT
        shop.hanging = set()

        refused = await crib.instances.resume(late.run_id)
        assert error_of(refused, "ship").reason == Reason.OUTCOME_UNKNOWN
        assert shop.done == []
        done = await crib.instances.resume(refused.run_id, repeat_unknown=True)

    assert (done.status, shop.done) == ("completed", ["ship x"])


@pytest.mark.parametrize("found", [True, False])
async def test_a_tool_that_can_tell_decides_whether_the_call_is_made_again(found: bool):
    shop, asked = Shop(), list[str]()

    @tool(side_effects="reads")
    async def was_sent(idempotency_key: str) -> JsonObject:
        """Whether a letter was sent."""
        asked.append(idempotency_key)
        return {"found": found, "output": {"sent": "before"}}

    @tool(side_effects="writes", reconcile="was_sent", timeout_s=0.5)
    async def send(item: str, ctx: ToolContext) -> JsonObject:
        """Send a letter."""
        await shop.act("send", item, ctx.idempotency_key)
        return {"sent": "now"}

    async with Crib("memory://") as crib:
        crib.add(was_sent, send)
        await publish(crib, "letter", calls("send", "send"))
        run_id = await cut_off(crib, shop, "letter", "send x")

        done = await crib.instances.resume(run_id)

    assert done.status == "completed"
    assert set(asked) == {f"{run_id}/send"}
    assert step(done, "send").output == {"sent": "before" if found else "now"}
    assert shop.done == ([] if found else ["send x"])


async def test_leave_to_repeat_reaches_nested_workflows():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "inner", calls("ship", "ship"))
        await publish(crib, "outer", {"name": "below", "workflow": "inner", "input": {"item": "${input.item}"}})
        run_id = await cut_off(crib, shop, "outer", "ship x")

        refused = await crib.instances.resume(run_id)
        assert (refused.status, shop.done) == ("failed", [])
        done = await crib.instances.resume(run_id, repeat_unknown=True)

    assert (done.status, shop.done) == ("completed", ["ship x"])
    assert len(set(shop.keys["ship x"])) == 1


async def test_with_other_arguments_nothing_is_in_doubt():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("ship", "ship"))
        run_id = await cut_off(crib, shop, "order", "ship x")
        await publish(crib, "order", calls("ship", "ship", "y"))

        done = await crib.instances.resume(run_id)

    assert (done.status, shop.done) == ("completed", ["ship y"])
