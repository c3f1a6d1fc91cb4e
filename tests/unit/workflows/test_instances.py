"""Instances of workflows: how they stand, at any time and for every end."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.twins import ManualClock
from tests.unit.workflows.shop import Shop, calls, outputs, publish, statuses, step
from toolcrib import Crib
from toolcrib.contracts import (
    ClientResult,
    Conflict,
    InvalidInput,
    JsonObject,
    NotFound,
    PermissionDenied,
    Principal,
    ProgressMade,
    RunEvent,
)
from toolcrib.contracts.workflows import StepWait, WorkflowInstance

ITEM: JsonObject = {"item": "x"}
ANN = Principal(id="ann", grants=("ai://workflows/*", "ai://tools/*"))
BEN = Principal(id="ben", grants=("ai://workflows/*", "ai://tools/*"))
CHEF = Principal(id="chef", grants=("ai://*",))
STRANGER = Principal(id="eve", realm="elsewhere", grants=("ai://*",))


@pytest.mark.requirement("workflow_instances.started")
async def test_what_an_instance_was_not_given_has_the_default_of_the_input_schema():
    days: JsonObject = {"type": "object", "properties": {"days": {"type": "integer", "default": 7}}}
    async with Crib("memory://") as crib:
        await publish(crib, "in_a_week", {"name": "told", "output": "${input.days}"}, input_schema=days)

        started = [await crib.instances.start("in_a_week", given) for given in ({}, {"days": 3})]
        asked = await crib.invoke("in_a_week", {})

    assert [instance.input for instance in started] == [{"days": 7}, {"days": 3}]
    assert asked.summary.output == {"told": 7}


@pytest.mark.requirement("workflow_instances.steps")
async def test_a_completed_instance_tells_each_step_with_its_output_in_the_order_of_the_definition():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(
            crib,
            "order",
            calls("ship", "ship", depends_on=["reserve"], title="Send it"),
            calls("reserve", "reserve"),
            {"name": "summary", "output": {"sent": "${ship.item}"}},
            calls("never", "refund", condition="${input.item == 'y'}"),
            output={"sent": "${summary.sent}"},
        )

        instance = await crib.instances.start("order", ITEM)

    assert (instance.status, instance.stop_reason) == ("completed", "final_answer")
    assert (instance.workflow, instance.input, instance.output) == ("order@1.0.0", ITEM, {"sent": "x"})
    assert list(statuses(instance).items()) == [
        ("ship", "succeeded"),
        ("reserve", "succeeded"),
        ("summary", "succeeded"),
        ("never", "skipped"),
    ]
    assert step(instance, "ship").output == {"item": "x", "by": "ship", "note": ""}
    assert step(instance, "summary").output == {"sent": "x"}
    assert step(instance, "ship").title == "Send it"
    assert step(instance, "never").reason is not None
    started, ended = step(instance, "ship").started_at, step(instance, "ship").ended_at
    assert started is not None
    assert ended is not None
    assert step(instance, "reserve").ended_at is not None
    assert instance.created_at <= started <= ended <= instance.updated_at


@pytest.mark.requirement("workflow_instances.steps")
async def test_outputs_and_errors_of_a_step_over_a_list_are_those_of_its_elements():
    shop = Shop()
    shop.broken = {"ship b"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        each = {"items": "${input.items}", "on_item_error": "continue"}
        await publish(crib, "all", calls("ship", "ship", "${item}", for_each=each))

        instance = await crib.instances.start("all", {"items": ["a", "b", "c"]})
        lean = await crib.instances.get(instance.run_id, outputs=False)

    shipped = step(instance, "ship")
    assert (shipped.status, shipped.items, shipped.failed) == ("partial", 3, 1)
    assert [output and output["item"] for output in shipped.output] == ["a", None, "c"]
    assert shipped.error is not None
    assert outputs(lean) == {"ship": None}
    assert step(lean, "ship").error == shipped.error


@pytest.mark.requirement("workflow_instances.steps")
async def test_the_output_of_an_element_is_that_of_its_last_try():
    shop = Shop()
    shop.once = {"pay b"}
    async with Crib("memory://", clock=ManualClock()) as crib:
        shop.add_to(crib)
        retry = {"count": 3, "base_s": 0.1, "codes": ["UNKNOWN"]}
        await publish(crib, "all", calls("pay", "pay", "${item}", for_each="${input.items}", retry=retry))
        instance = await crib.instances.start("all", {"items": ["a", "b"]})

    assert step(instance, "pay").output == [{"paid": "a"}, {"paid": "b"}]
    assert step(instance, "pay").tries == 2


@pytest.mark.requirement("workflow_instances.steps")
async def test_an_instance_that_has_failed_tells_which_steps_it_never_came_to():
    shop = Shop()
    shop.broken = {"charge"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("charge", "charge"), calls("ship", "ship", depends_on=["charge"]))

        instance = await crib.instances.start("order", ITEM)

    assert (instance.status, instance.stop_reason) == ("failed", "error")
    assert instance.error is not None
    assert statuses(instance) == {"charge": "failed", "ship": "cut_off"}
    assert step(instance, "ship").reason == "the run has ended before it began"
    assert step(instance, "ship").started_at is None


@pytest.mark.requirement("workflow_instances.steps", "workflow_instances.cancelled")
async def test_steps_that_are_under_way_are_running_and_after_a_cancellation_cut_off():
    shop = Shop()
    shop.hanging = {"charge"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("charge", "charge"), calls("ship", "ship", depends_on=["charge"]))
        driving = asyncio.ensure_future(crib.instances.start("order", ITEM))
        await shop.reached.wait()
        [summary] = (await crib.instances.page()).items

        assert statuses(await crib.instances.get(summary.run_id)) == {"charge": "running", "ship": "pending"}

        await crib.instances.cancel(summary.run_id, reason="no more")
        ended = await driving

        assert (ended.status, ended.stop_reason) == ("cancelled", "cancelled")
        assert statuses(ended) == {"charge": "cut_off", "ship": "cut_off"}
        assert step(ended, "charge").reason == "the run has ended while it was under way"
        with pytest.raises(Conflict, match="cancelled"):
            await crib.instances.cancel(summary.run_id)


@pytest.mark.requirement("workflow_instances.waits", "workflow_instances.signal")
async def test_a_step_tells_which_signal_or_moment_it_waits_for_and_goes_on_with_what_it_is_told():
    clock = ManualClock()
    async with Crib("memory://", clock=clock) as crib:
        await publish(
            crib,
            "wait",
            {"name": "news", "wait": {"signal": "paid", "timeout_s": 600}},
            {"name": "rest", "wait": {"seconds": 3600}},
            {"name": "told", "output": "${news.by}"},
        )

        began = clock.now()
        waiting = await crib.instances.start("wait", {})

        assert waiting.status == "awaiting_client"
        assert statuses(waiting) == {"news": "waiting", "rest": "waiting", "told": "pending"}
        [news], [rest] = step(waiting, "news").waits_for, step(waiting, "rest").waits_for
        assert (news.whom, news.name, news.run_id) == ("signal", "paid", waiting.run_id)
        assert (rest.whom, rest.name) == ("time", "rest")
        assert news.until is not None
        assert (news.until - began).total_seconds() == 600
        assert rest.until is not None
        assert (rest.until - began).total_seconds() == 3600

        with pytest.raises(NotFound, match="did you mean 'paid'"):
            await crib.instances.signal(waiting.run_id, "payed")
        assert await crib.instances.signal(waiting.run_id, "paid", {"by": "ann"})
        assert not await crib.instances.signal(waiting.run_id, "paid", {"by": "ben"})
        clock.advance(3601)
        done = await crib.instances.resume(waiting.run_id)

        assert (done.run_id, done.status) == (waiting.run_id, "completed")
        assert done.output == {"rest": None, "told": "ann"}
        with pytest.raises(Conflict, match="waits for nothing"):
            await crib.instances.signal(waiting.run_id, "paid")


@pytest.mark.requirement("workflow_instances.waits", "workflow_reruns.refused")
async def test_a_step_tells_which_person_and_which_client_it_waits_for_also_inside_a_nested_workflow():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "inner", {"name": "ask", "approval": {"message": "Ship it?", "expires_s": 60}})
        await publish(crib, "middle", {"name": "deeper", "workflow": "inner"})
        show: JsonObject = {"name": "show", "tool": "show"}
        await publish(crib, "outer", {"name": "below", "workflow": "middle"}, show)

        waiting = await crib.instances.start("outer", {})
        [asked] = (await crib.approvals.page()).items

        [approval], [client] = step(waiting, "below").waits_for, step(waiting, "show").waits_for
        assert statuses(waiting) == {"below": "waiting", "show": "waiting"}
        assert (approval.whom, approval.name, approval.run_id) == ("approval", asked.approval_id, asked.run_id)
        assert approval.until == asked.expires_at
        assert client == StepWait(whom="client", name="show", run_id=waiting.run_id)
        assert len(step(waiting, "below").child_run_ids) == 1

        with pytest.raises(Conflict, match=f"for approval '{asked.approval_id}'"):
            await crib.instances.resume(waiting.run_id)
        await crib.approvals.decide(asked.approval_id, approve=True)
        await crib.return_client_result(waiting.run_id, "show", ClientResult(output={"seen": True}))
        done = await crib.instances.resume(waiting.run_id)

        assert done.status == "completed"
        assert step(done, "show").output == {"seen": True}
        assert step(done, "below").waits_for == ()


@pytest.mark.requirement("workflow_instances.waits")
async def test_a_signal_that_is_there_is_waited_for_no_more():
    async with Crib("memory://") as crib:
        await publish(crib, "wait", {"name": "news", "wait": {"signal": "paid"}})
        waiting = await crib.instances.start("wait", {})
        await crib.instances.signal(waiting.run_id, "paid")

        assert statuses(await crib.instances.get(waiting.run_id)) == {"news": "running"}


@pytest.mark.requirement("workflow_instances.started")
async def test_an_instance_that_nobody_waits_for_is_queued_and_carried_out_by_who_serves():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("ship", "ship"))

        queued = await crib.instances.start("order", ITEM, wait=False)

        assert (queued.status, statuses(queued)) == ("queued", {"ship": "pending"})
        assert shop.done == []
        await crib.recover()
        assert (await crib.instances.get(queued.run_id)).status == "completed"
        assert shop.done == ["ship x"]


@pytest.mark.requirement("workflow_instances.started")
async def test_what_is_no_workflow_cannot_be_started_and_input_that_is_not_valid_is_told_by_the_instance():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        schema = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
        await publish(crib, "order", calls("ship", "ship"), input_schema=schema)

        with pytest.raises(InvalidInput, match="not a workflow; call it as a tool"):
            await crib.instances.start("ship", ITEM)
        with pytest.raises(NotFound, match="order"):
            await crib.instances.start("ordr", ITEM)
        refused = await crib.instances.start("order", {})

        assert refused.status == "failed"
        assert refused.error is not None
        assert "item" in refused.error.message
        called = await crib.invoke("ship", ITEM)
        with pytest.raises(InvalidInput, match="no run of a workflow"):
            await crib.instances.get(called.run_id)


@pytest.mark.requirement("workflow_instances.started")
async def test_a_dry_run_is_an_instance_without_effects():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("look", "look"), calls("ship", "ship"))

        instance = await crib.instances.start("order", ITEM, dry_run=True)

    assert instance.dry_run
    assert shop.done == ["look x"]
    assert statuses(instance) == {"look": "succeeded", "ship": "skipped"}


@pytest.mark.requirement("workflow_instances.started")
async def test_invoking_a_workflow_makes_an_instance_too():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("ship", "ship"))
        result = await crib.invoke("order", ITEM)

        assert statuses(await crib.instances.get(result.run_id)) == {"ship": "succeeded"}


@pytest.mark.requirement("workflow_instances.pages")
async def test_pages_are_of_workflows_only_newest_first_and_hold_no_outputs():
    shop = Shop()
    shop.broken = {"ship b"}
    clock = ManualClock()
    async with Crib("memory://", clock=clock) as crib:
        shop.add_to(crib)
        await publish(crib, "one", calls("ship", "ship"))
        await publish(crib, "two", calls("look", "look"))
        runs: list[WorkflowInstance] = []
        for workflow, item in (("one", "a"), ("two", "b"), ("one", "b"), ("two", "c"), ("one", "d")):
            clock.advance(1)
            await crib.invoke("look", {"item": "between"})
            runs.append(await crib.instances.start(workflow, {"item": item}))
        newest = [run.run_id for run in reversed(runs)]

        page = await crib.instances.page(limit=3)
        rest = await crib.instances.page(limit=3, before=page.next)
        ones = await crib.instances.page(workflow="one", limit=3)
        failed = await crib.instances.page(status="failed")

        assert [item.run_id for item in page.items] == newest[:3]
        assert [item.run_id for item in rest.items] == newest[3:]
        assert (rest.next, ones.next) == (None, None)
        assert [item.run_id for item in ones.items] == [newest[0], newest[2], newest[4]]
        assert [item.run_id for item in failed.items] == [newest[2]]
        assert "output" not in page.items[0].model_dump()


@pytest.mark.requirement("workflow_instances.pages")
async def test_a_page_is_filled_however_many_other_runs_lie_between():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("look", "look"))
        first = await crib.instances.start("order", ITEM)
        for _ in range(45):
            await crib.invoke("look", ITEM)

        page = await crib.instances.page(limit=1)

    assert [item.run_id for item in page.items] == [first.run_id]


@pytest.mark.requirement("workflow_instances.access")
async def test_an_instance_is_its_makers_and_of_who_has_the_grant():
    shop = Shop()
    shop.broken = {"ship"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("ship", "ship"), {"name": "news", "wait": {"signal": "paid"}})
        mine = await crib.acting_as(ANN).instances.start("order", ITEM)

        for who in (ANN, CHEF):
            assert (await crib.acting_as(who).instances.get(mine.run_id)).made_by == "ann"
            assert len((await crib.acting_as(who).instances.page()).items) == 1
        assert (await crib.acting_as(BEN).instances.page()).items == ()
        attempts: list[Callable[[Principal], Awaitable[object]]] = [
            lambda who: crib.acting_as(who).instances.get(mine.run_id),
            lambda who: crib.acting_as(who).instances.resume(mine.run_id),
            lambda who: crib.acting_as(who).instances.rerun(mine.run_id, "ship"),
            lambda who: crib.acting_as(who).instances.cancel(mine.run_id),
            lambda who: crib.acting_as(who).instances.signal(mine.run_id, "paid"),
        ]
        for attempt in attempts:
            with pytest.raises(PermissionDenied):
                await attempt(BEN)
            with pytest.raises(NotFound):
                await attempt(STRANGER)

        shop.broken = set()
        taken = await crib.acting_as(CHEF).instances.resume(mine.run_id)
        assert (taken.made_by, statuses(taken)["ship"]) == ("chef", "succeeded")


@pytest.mark.requirement("workflow_instances.tolerant")
async def test_what_other_releases_have_written_is_read_as_far_as_it_is_understood():
    async with Crib("memory://") as crib:
        await publish(crib, "wait", {"name": "news", "wait": {"signal": "paid"}})
        waiting = await crib.instances.start("wait", {}, wait=False)
        journal = crib.store.journal
        claim = await journal.claim(waiting.run_id, owner="other", now=crib.clock.now(), lease_s=60)
        assert claim is not None
        told: list[tuple[str, str, Any]] = [
            ("step:old", "step_settled", {"status": "succeeded", "output": 1, "colour": "blue"}),
            ("step:odd", "step_settled", {"status": "flying"}),
            ("step:text", "step_settled", "done"),
            ("else", "something", {"status": "succeeded"}),
        ]
        await _append(crib, claim.run.run_id, told)

        found = await crib.instances.get(waiting.run_id)

        assert statuses(found) == {"news": "pending", "old": "succeeded"}
        assert step(found, "old").output == 1


@pytest.mark.requirement("workflow_instances.tolerant")
async def test_an_instance_whose_definition_cannot_be_read_any_more_is_read_without_it(monkeypatch: pytest.MonkeyPatch):
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("ship", "ship"))
        done = await crib.instances.start("order", ITEM)

        async def gone(realm: str, content_hash: str) -> None:
            raise NotFound(f"{realm} has no {content_hash}")

        monkeypatch.setattr(crib.registry, "get_revision", gone)

        assert statuses(await crib.instances.get(done.run_id)) == {"ship": "succeeded"}


async def _append(crib: Crib, run_id: str, told: list[tuple[str, str, Any]]) -> None:
    run = await crib.store.journal.run(run_id)
    events = [ProgressMade(key=key, kind=kind, data=data) for key, kind, data in told]
    at, whose = crib.clock.now(), (run.realm, run.made_by)
    entries = [RunEvent(run_id, run.events + place, at, *whose, event) for place, event in enumerate(events, 1)]
    await crib.store.journal.append(run_id, run.epoch, entries)
