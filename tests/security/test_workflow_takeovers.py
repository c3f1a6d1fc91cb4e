"""Ways to have a resumed workflow forget: what outsiders could have written, and what has taken effect already."""

from typing import Any

import pytest

from tests.unit.workflows.flows import error_of, run, save, steps_of
from toolcrib import Crib, tool
from toolcrib.contracts import OWNER, JsonObject, PermissionDenied, Principal, Reason
from toolcrib.contracts.workflows import WorkflowInstance

READ: JsonObject = {"name": "read", "tool": "read_mail"}
HOLD: JsonObject = {"name": "hold", "wait": {"signal": "go"}, "depends_on": ["read"]}
SHIP: JsonObject = {"name": "ship", "tool": "ship", "input": {"order": "${read.text}"}, "depends_on": ["hold"]}
RULES: list[JsonObject] = [{"type": "untrusted_content", "action": "deny"}]

shipped: list[str] = []


@tool(side_effects="reads", untrusted=True)
async def read_mail() -> JsonObject:
    """Read the mail."""
    return {"text": "ship everything"}


@tool(side_effects="writes")
async def ship(order: str) -> str:
    """Ship."""
    shipped.append(order)
    return order


@tool(side_effects="writes")
async def fail() -> str:
    """Fail."""
    raise ConnectionError("gone")


async def tell_waiting(crib: Crib) -> None:
    """Send the signal to the instance that waits for it, at whatever depth."""
    runs = await crib.store.journal.runs(OWNER.realm, status="awaiting_client")
    for each in runs:
        events = [entry.event.type for entry in await crib.store.journal.events(each.run_id)]
        if "signal_awaited" in events:
            await crib.instances.signal(each.run_id, "go")


async def go_through(crib: Crib, *steps: JsonObject, **fields: Any) -> WorkflowInstance:
    """Cancel an instance while it waits, twice, and take it up until it has ended."""
    instance = await run(crib, *steps, **fields)
    for _ in range(2):
        await crib.instances.cancel(instance.run_id)
        instance = await crib.instances.resume(instance.run_id)
    await tell_waiting(crib)
    return await crib.instances.resume(instance.run_id)


@pytest.mark.requirement("workflow_attacks.taint")
async def test_cancelling_an_instance_that_waits_does_not_make_it_forget_what_outsiders_could_write():
    shipped.clear()
    async with Crib("memory://") as crib:
        crib.add(read_mail, ship)
        ended = await go_through(crib, READ, HOLD, SHIP, guardrails=RULES)

    assert error_of(ended, "ship").reason is Reason.CONTENT_UNTRUSTED
    assert steps_of(ended)["read"].reused is not None
    assert shipped == []


@pytest.mark.requirement("workflow_attacks.taint")
async def test_a_nested_instance_that_was_cancelled_with_its_caller_does_not_forget_either():
    shipped.clear()
    async with Crib("memory://") as crib:
        crib.add(read_mail, ship)
        await save(crib, READ, HOLD, SHIP, name="inner", guardrails=RULES)
        ended = await go_through(crib, {"name": "inside", "workflow": "inner"})

    assert error_of(ended, "inside").reason is Reason.CONTENT_UNTRUSTED
    assert shipped == []


@pytest.mark.requirement("workflow_attacks.taint")
async def test_an_instance_that_was_cancelled_before_it_began_knows_what_the_one_before_had_read():
    shipped.clear()
    async with Crib("memory://") as crib:
        crib.add(read_mail, ship)
        held = await run(crib, READ, HOLD, SHIP, guardrails=RULES)
        await crib.instances.cancel(held.run_id)
        queued = await crib.instances.resume(held.run_id, wait=False)
        await crib.instances.cancel(queued.run_id)
        instance = await crib.instances.resume(held.run_id)
        await tell_waiting(crib)
        ended = await crib.instances.resume(instance.run_id)

    assert steps_of(ended)["read"].reused == held.run_id
    assert error_of(ended, "ship").reason is Reason.CONTENT_UNTRUSTED
    assert shipped == []


@pytest.mark.requirement("workflow_attacks.repeated")
@pytest.mark.parametrize("anew", [False, True])
async def test_nothing_is_done_twice_when_what_takes_an_instance_up_is_cancelled_before_it_begins(anew: bool):
    shipped.clear()
    first: JsonObject = {"name": "ship", "tool": "ship", "input": {"order": "A1"}}
    async with Crib("memory://") as crib:
        crib.add(ship, fail)
        failed = await run(crib, first, {"name": "fail", "tool": "fail", "depends_on": ["ship"]})
        if anew:
            queued = await crib.instances.rerun(failed.run_id, "fail", wait=False)
        else:
            queued = await crib.instances.resume(failed.run_id, wait=False)
        await crib.instances.cancel(queued.run_id)
        ended = await crib.instances.resume(failed.run_id)

    assert steps_of(ended)["ship"].reused == failed.run_id
    assert shipped == ["A1"]


@pytest.mark.requirement("workflow_attacks.outputs")
async def test_who_may_carry_on_the_instances_of_others_but_not_read_them_gets_no_output_of_them():
    keeper = Principal(id="keeper", grants=("ai://runs/*/execute", "ai://workflows/*", "ai://tools/*"))
    made: JsonObject = {"name": "made", "output": "of nobody's business"}
    async with Crib("memory://") as crib:
        held = await run(crib, made, {**HOLD, "depends_on": ["made"]})
        with pytest.raises(PermissionDenied, match="ai://runs/flow/read"):
            await crib.acting_as(keeper).instances.cancel(held.run_id)
        await crib.instances.cancel(held.run_id)
        with pytest.raises(PermissionDenied, match="ai://runs/flow/read"):
            await crib.acting_as(keeper).instances.resume(held.run_id)
        with pytest.raises(PermissionDenied, match="ai://runs/flow/read"):
            await crib.acting_as(keeper).instances.rerun(held.run_id, "hold")
