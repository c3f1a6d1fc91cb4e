"""Instances that are resumed while a run that was nested in them has not ended yet."""

import asyncio

import pytest

from tests.unit.runs.house import StandingClock, settled
from tests.unit.workflows.shop import Shop, calls, publish, step
from toolcrib import Crib
from toolcrib.contracts import JsonObject, Signal
from toolcrib.contracts.workflows import event_signal

ITEM: JsonObject = {"item": "x"}
LEASE_S = 30.0


@pytest.mark.requirement("workflow_reruns.nested", "workflow_reruns.crash")
async def test_what_is_nested_in_an_ended_run_is_ended_before_it_is_taken_up_whoever_has_it():
    shop = Shop()
    async with Crib("memory://", clock=(clock := StandingClock())) as crib:
        shop.add_to(crib)
        await publish(
            crib, "inner", calls("first", "reserve"), {"name": "go", "wait": {"signal": "go"}, "depends_on": ["first"]}
        )
        await publish(crib, "outer", {"name": "nested", "workflow": "inner", "input": ITEM})
        waiting = await crib.instances.start("outer", {})
        (child_id,) = step(waiting, "nested").child_run_ids
        sent = Signal(name=event_signal("go"), payload={}, made_by="ann", at=clock.now())
        await crib.store.journal.signal(child_id, sent)
        await crib.store.journal.claim(child_id, owner="elsewhere", now=clock.now(), lease_s=LEASE_S)
        await crib.instances.cancel(waiting.run_id)
        assert not (await crib.store.journal.run(child_id)).ended

        resuming = asyncio.create_task(crib.instances.resume(waiting.run_id))
        await settled()
        assert not resuming.done()
        await clock.pass_time(LEASE_S + 1)
        while not resuming.done():
            await clock.pass_time(1)
        resumed = await resuming

        assert (await crib.store.journal.run(child_id)).status == "cancelled"
        assert resumed.status == "awaiting_client"
        assert step(resumed, "nested").status == "waiting"
    assert shop.done == ["reserve x"]
