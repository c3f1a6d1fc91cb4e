"""Instances that go on after the fix, and those that cannot be resumed."""

import asyncio

import pytest

from tests.twins import ManualClock
from tests.unit.workflows.shop import Shop, calls, publish, reused, statuses, step
from toolcrib import Crib
from toolcrib.contracts import Conflict, JsonObject, Reason

ITEM: JsonObject = {"item": "x"}
ORDER = (calls("reserve", "reserve"), calls("ship", "ship", depends_on=["reserve"]))


@pytest.mark.requirement("workflow_reruns.fixed")
async def test_a_reference_that_leads_nowhere_is_corrected_and_the_instance_goes_on():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", ORDER[0], calls("ship", "ship", "${reserve.item.sku}"))
        failed = await crib.instances.start("order", ITEM)
        failure = step(failed, "ship").error
        assert failure is not None
        assert failure.reason == Reason.REFERENCE_UNRESOLVED
        await publish(crib, "order", ORDER[0], calls("ship", "ship", "${reserve.item}"))

        resumed = await crib.instances.resume(failed.run_id)

    assert (resumed.status, reused(resumed), shop.done) == ("completed", ["reserve"], ["reserve x", "ship x"])


@pytest.mark.requirement("workflow_reruns.fixed")
async def test_a_tool_that_was_blocked_is_brought_back_and_the_instance_goes_on():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *ORDER)
        await crib.lifecycle.block("ship@1.0.0", message="broken")
        failed = await crib.instances.start("order", ITEM)
        failure = step(failed, "ship").error
        assert (failed.status, statuses(failed)["ship"]) == ("failed", "failed")
        assert failure is not None
        assert "ship" in failure.message
        await crib.lifecycle.activate("ship@1.0.0")

        resumed = await crib.instances.resume(failed.run_id)

    assert (resumed.status, reused(resumed), shop.done) == ("completed", ["reserve"], ["reserve x", "ship x"])


@pytest.mark.requirement("workflow_reruns.fixed")
async def test_an_output_that_has_no_value_is_corrected_and_nothing_is_done_again():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *ORDER, output={"to": "${input.address}"})
        failed = await crib.instances.start("order", ITEM)
        assert (failed.status, set(statuses(failed).values())) == ("failed", {"succeeded"})
        await publish(crib, "order", *ORDER, output={"to": "${input.item}"})

        resumed = await crib.instances.resume(failed.run_id)

    assert (resumed.status, resumed.output) == ("completed", {"to": "x"})
    assert shop.done == ["reserve x", "ship x"]


@pytest.mark.requirement("workflow_reruns.fixed")
async def test_an_instance_of_a_workflow_that_was_removed_is_resumed_with_what_it_ran():
    shop = Shop()
    shop.broken = {"ship"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *ORDER)
        failed = await crib.instances.start("order", ITEM)
        await crib.workflows.remove("order")
        shop.broken = set()

        resumed = await crib.instances.resume(failed.run_id)

    assert (resumed.status, resumed.content_hash) == ("completed", failed.content_hash)
    assert shop.done == ["reserve x", "ship x"]


@pytest.mark.requirement("workflow_reruns.fixed")
async def test_input_that_the_workflow_does_not_take_any_more_is_refused_and_leaves_the_instance_to_be_resumed():
    shop = Shop()
    shop.broken = {"ship"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *ORDER)
        failed = await crib.instances.start("order", ITEM)
        strict = {"type": "object", "required": ["colour"]}
        await publish(crib, "order", *ORDER, input_schema=strict)
        shop.broken = set()

        refused = await crib.instances.resume(failed.run_id)
        assert refused.status == "failed"
        assert refused.error is not None
        assert "colour" in refused.error.message
        assert (await crib.instances.get(failed.run_id)).taken_up_by == ()

        await publish(crib, "order", *ORDER)
        resumed = await crib.instances.resume(failed.run_id)

    assert (resumed.status, shop.done) == ("completed", ["reserve x", "ship x"])


@pytest.mark.requirement("workflow_reruns.resume")
async def test_an_instance_that_ran_out_of_time_is_resumed():
    shop = Shop()
    shop.hanging = {"pay"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        steps = (ORDER[0], calls("pay", "pay", depends_on=["reserve"]))
        await publish(crib, "order", *steps, limits={"timeout_s": 0.05})
        late = await crib.instances.start("order", ITEM)
        assert (late.status, late.stop_reason) == ("timed_out", "timeout")
        shop.hanging = set()
        await publish(crib, "order", *steps)

        resumed = await crib.instances.resume(late.run_id)

    assert (resumed.status, shop.done) == ("completed", ["reserve x", "pay x"])


@pytest.mark.requirement("workflow_reruns.resume")
async def test_a_resumed_dry_run_is_a_dry_run():
    shop = Shop()
    shop.broken = {"look"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("look", "look"), calls("ship", "ship", depends_on=["look"]))
        failed = await crib.instances.start("order", ITEM, dry_run=True)
        assert failed.status == "failed"
        shop.broken = set()

        resumed = await crib.instances.resume(failed.run_id)

    assert (resumed.status, resumed.dry_run, shop.done) == ("completed", True, ["look x"])


@pytest.mark.requirement("workflow_reruns.refused")
async def test_an_instance_that_has_succeeded_has_nothing_to_resume():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *ORDER)
        done = await crib.instances.start("order", ITEM)

        with pytest.raises(Conflict, match=f"instance {done.run_id} has succeeded; there is nothing to resume"):
            await crib.instances.resume(done.run_id)


@pytest.mark.requirement("workflow_reruns.chain", "workflow_reruns.refused")
async def test_of_two_that_resume_at_once_one_is_refused():
    shop = Shop()
    shop.broken = {"ship"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *ORDER)
        failed = await crib.instances.start("order", ITEM)
        shop.broken, shop.hanging = set(), {"ship"}
        first = asyncio.ensure_future(crib.instances.resume(failed.run_id))
        await shop.reached.wait()
        [successor] = (await crib.instances.get(failed.run_id)).taken_up_by

        with pytest.raises(Conflict, match=f"is taken up by {successor}, which is running"):
            await crib.instances.resume(failed.run_id)
        with pytest.raises(Conflict, match=f"taken up by {successor}, which is running"):
            await crib.instances.rerun(failed.run_id, "ship")
        await crib.instances.cancel(successor)
        assert (await first).run_id == successor


@pytest.mark.requirement("workflow_reruns.chain")
async def test_of_two_that_come_at_the_same_moment_only_one_makes_a_run():
    shop = Shop()
    shop.broken = {"ship"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *ORDER)
        failed = await crib.instances.start("order", ITEM)
        shop.broken = set()

        both = await asyncio.gather(
            *(crib.instances.resume(failed.run_id, wait=False) for _ in range(2)), return_exceptions=True
        )
        await crib.recover()

        assert sum(isinstance(each, Conflict) for each in both) == 1
        assert len((await crib.instances.page()).items) == 2
    assert shop.done == ["reserve x", "ship x"]


@pytest.mark.requirement("workflow_reruns.chain")
async def test_a_successor_that_a_crash_kept_from_being_made_is_made_later(monkeypatch: pytest.MonkeyPatch):
    shop = Shop()
    shop.broken = {"ship"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *ORDER)
        failed = await crib.instances.start("order", ITEM)
        shop.broken = set()

        async def crash(*_: object, **__: object) -> str:
            raise ConnectionError

        with monkeypatch.context() as patched:
            patched.setattr(crib.engine, "create", crash)
            with pytest.raises(ConnectionError):
                await crib.instances.resume(failed.run_id)
        [announced] = (await crib.instances.get(failed.run_id)).taken_up_by

        resumed = await crib.instances.resume(failed.run_id)

    assert (resumed.run_id, resumed.status) == (announced, "completed")


@pytest.mark.requirement("workflow_reruns.crash")
async def test_an_instance_whose_process_died_is_carried_on_itself():
    shop, clock = Shop(), ManualClock()
    shop.hanging = {"pay"}
    async with Crib("memory://", clock=clock) as crib:
        shop.add_to(crib)
        await publish(crib, "order", ORDER[0], calls("pay", "pay", depends_on=["reserve"]))
        await _die(crib.instances.start("order", ITEM), shop)
        [left] = (await crib.instances.page()).items
        assert left.status == "running"
        clock.advance(60)
        shop.hanging = set()

        done = await crib.instances.resume(left.run_id)

    assert (done.run_id, done.status, shop.done) == (left.run_id, "completed", ["reserve x", "pay x"])


@pytest.mark.requirement("workflow_reruns.crash")
async def test_a_run_that_takes_up_another_and_dies_needs_that_no_more(monkeypatch: pytest.MonkeyPatch):
    shop, clock = Shop(), ManualClock()
    items = {"items": ["a", "b", "c"]}
    shop.broken = {"pay b"}
    async with Crib("memory://", clock=clock) as crib:
        shop.add_to(crib)
        each = {"items": "${input.items}", "max_concurrency": 1}
        pay = calls("pay", "pay", "${item}", for_each=each, depends_on=["reserve"])
        await publish(crib, "all", calls("reserve", "reserve", "r"), pay)
        failed = await crib.instances.start("all", items)
        shop.broken, shop.hanging = set(), {"pay b"}
        await _die(crib.instances.resume(failed.run_id), shop)
        shop.hanging = set()
        clock.advance(60)
        [successor] = (await crib.instances.get(failed.run_id)).taken_up_by
        events = crib.store.journal.events

        async def pruned(run_id: str, *, after: int = 0, limit: int | None = None) -> object:
            return [] if run_id == failed.run_id else await events(run_id, after=after, limit=limit)

        monkeypatch.setattr(crib.store.journal, "events", pruned)
        done = await crib.instances.resume(successor)

    assert (done.run_id, done.status) == (successor, "completed")
    assert shop.done == ["reserve r", "pay a", "pay b", "pay c"]
    assert set(shop.keys["pay b"]) == {f"{failed.run_id}/pay[1]"}


async def _die(work: object, shop: Shop) -> None:
    """Let a process die in the middle of what hangs."""
    assert asyncio.iscoroutine(work)
    driving = asyncio.ensure_future(work)
    await shop.reached.wait()
    shop.reached.clear()
    driving.cancel()
    await asyncio.wait([driving])
