"""Instances that go on after the fix, and those that cannot be resumed."""

import asyncio
from decimal import Decimal

import pytest

from tests.twins import ManualClock
from tests.unit.agents.crm import asks
from tests.unit.workflows.shop import Shop, calls, publish, reused, statuses, step
from toolcrib import Crib, LLMConfig, ScriptedModel
from toolcrib.contracts import AgentDefinition, Conflict, JsonObject, NotFound, Reason, Run
from toolcrib.contracts.workflows import Rerun
from toolcrib.crib.runs.rerun_links import Successors

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
        assert (failed.status, statuses(failed)["ship"]) == ("incomplete", "failed")
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


@pytest.mark.parametrize(
    ("limits", "stop_reason"), [({"max_tool_calls": 1}, "max_tool_calls"), ({"max_cost_usd": "0.01"}, "max_cost")]
)
@pytest.mark.requirement("workflow_running.limits", "workflow_reruns.resume")
async def test_an_instance_that_came_to_a_limit_says_which_keeps_what_it_has_and_is_resumed_under_a_higher_one(
    limits: JsonObject, stop_reason: str
):
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib, cost_usd_per_call=Decimal("0.01"))
        await publish(crib, "order", *ORDER, limits=limits)
        short = await crib.instances.start("order", ITEM)
        assert (short.status, short.stop_reason) == ("incomplete", stop_reason)
        assert statuses(short) == {"reserve": "succeeded", "ship": "failed"}
        assert short.error is not None
        assert next(iter(limits)) in short.error.message
        await publish(crib, "order", *ORDER)

        resumed = await crib.instances.resume(short.run_id)

    assert (resumed.status, shop.done) == ("completed", ["reserve x", "ship x"])


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

        with pytest.raises(Conflict, match=f"is continued by {successor}, which is running"):
            await crib.instances.resume(failed.run_id)
        with pytest.raises(Conflict, match=f"continued by {successor}, which is running"):
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


@pytest.mark.requirement("workflow_reruns.chain")
async def test_a_link_that_somebody_else_was_faster_to_leave_counts():
    shop = Shop()
    shop.broken = {"ship"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *ORDER)
        failed = await crib.instances.start("order", ITEM)
        resumed = await crib.instances.resume(failed.run_id)
        links = Successors(crib.store.journal, crib.clock)

        with pytest.raises(Conflict, match=f"is continued by {resumed.run_id}, which is failed"):
            await links.announce(Rerun(run_id=failed.run_id), "run_new", crib.principal)


@pytest.mark.requirement("workflow_reruns.refused")
async def test_a_run_that_has_not_ended_is_taken_up_by_nobody():
    async with Crib("memory://") as crib:
        tool = await publish(crib, "wait", {"name": "news", "wait": {"signal": "paid"}})
        waiting = await crib.instances.start("wait", {})
        request = (await crib.store.journal.run(waiting.run_id)).request
        taking = request.model_copy(update={"rerun": Rerun(run_id=waiting.run_id)})
        run_id = await crib.engine.create(taking)
        await crib.resume(run_id)

        refused = await crib.instances.get(run_id)

    assert refused.content_hash == tool.content_hash
    assert refused.error is not None
    assert "there is nothing to take up" in refused.error.message


@pytest.mark.requirement("workflow_reruns.refused")
async def test_an_instance_that_waits_is_handed_back_as_it_is_to_who_does_not_wait():
    async with Crib("memory://") as crib:
        await publish(crib, "wait", {"name": "news", "wait": {"signal": "paid"}})
        waiting = await crib.instances.start("wait", {})

        assert await crib.instances.resume(waiting.run_id, wait=False) == waiting


@pytest.mark.requirement("workflow_reruns.nested")
async def test_a_workflow_that_failed_under_an_agent_is_resumed_by_itself():
    shop = Shop()
    shop.broken = {"ship"}
    model = ScriptedModel([asks(("order", ITEM)), "It failed."])
    async with Crib("memory://", models={"scripted:m": model}) as crib:
        shop.add_to(crib)
        await publish(crib, "order", *ORDER)
        clerk = {"name": "clerk", "llm": LLMConfig(model="scripted:m"), "tools": ("order",)}
        await crib.save(AgentDefinition.model_validate(clerk).tool())
        await crib.invoke("clerk", {"message": "Order x."})
        [nested] = (await crib.instances.page()).items
        assert nested.parent_run_id is not None
        shop.broken = set()

        resumed = await crib.instances.resume(nested.run_id)

    assert (resumed.status, resumed.parent_run_id) == ("completed", None)
    assert shop.done == ["reserve x", "ship x"]


@pytest.mark.requirement("workflow_reruns.nested")
async def test_a_nested_run_that_was_announced_and_never_made_is_begun_at_the_beginning(
    monkeypatch: pytest.MonkeyPatch,
):
    shop = Shop()
    shop.broken = {"ship"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "inner", calls("ship", "ship"))
        await publish(crib, "outer", {"name": "below", "workflow": "inner", "input": {"item": "${input.item}"}})
        failed = await crib.instances.start("outer", ITEM)
        [child_id] = step(failed, "below").child_run_ids
        shop.broken = set()
        run = crib.store.journal.run

        async def without(run_id: str) -> Run:
            if run_id == child_id:
                raise NotFound(run_id)
            return await run(run_id)

        monkeypatch.setattr(crib.store.journal, "run", without)
        resumed = await crib.instances.resume(failed.run_id)
        [new_child] = step(resumed, "below").child_run_ids

        assert (resumed.status, shop.done) == ("completed", ["ship x"])
        assert (await crib.instances.get(new_child)).rerun is None


@pytest.mark.requirement("workflow_reruns.keys", "workflow_reruns.chain")
async def test_a_call_whose_arguments_change_on_the_way_is_known_as_it_was_last():
    shop = Shop()
    shop.broken = {"pay"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("pay", "pay", "wrong"))
        first = await crib.instances.start("order", ITEM)
        await publish(crib, "order", calls("pay", "pay", "right"))
        second = await crib.instances.resume(first.run_id)
        shop.broken = set()

        third = await crib.instances.resume(second.run_id)

    assert third.status == "completed"
    assert shop.keys == {"pay wrong": [f"{first.run_id}/pay"], "pay right": [f"{second.run_id}/pay"] * 2}


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
