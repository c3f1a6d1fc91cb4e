"""Resuming instances: what has succeeded is not done again, and what is done again is known to the other side."""

from typing import Any

import pytest
from rich.console import Console

from tests.unit.workflows.shop import Shop, calls, outputs, publish, reused, statuses, step
from toolcrib import Crib
from toolcrib.contracts import (
    CallFinished,
    Conflict,
    JsonObject,
    ProgressMade,
    ProgressStep,
    Reason,
    ToolEnvelope,
    ToolStep,
)
from toolcrib.contracts.workflows import TAKEN_UP, Rerun
from toolcrib.interfaces.cli.render.tree import draw

ITEM: JsonObject = {"item": "x"}
ORDER = (
    calls("reserve", "reserve"),
    calls("charge", "charge", depends_on=["reserve"]),
    calls("ship", "ship", depends_on=["charge"]),
)


async def envelopes(crib: Crib, run_id: str) -> dict[str, ToolEnvelope]:
    """Of a run's calls, by position."""
    found = await crib.store.journal.events(run_id)
    return {entry.event.position: entry.event.envelope for entry in found if isinstance(entry.event, CallFinished)}


@pytest.mark.requirement("workflow_reruns.resume", "workflow_reruns.keys", "workflow_reruns.free")
async def test_what_has_succeeded_is_taken_over_and_what_has_failed_is_called_again_with_its_first_key():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *ORDER)
        shop.broken = {"charge"}
        failed = await crib.instances.start("order", ITEM)
        shop.broken = set()

        resumed = await crib.instances.resume(failed.run_id)

        assert (resumed.status, reused(resumed)) == ("completed", ["reserve"])
        assert resumed.run_id != failed.run_id
        assert step(resumed, "reserve").reused == failed.run_id
        assert step(resumed, "reserve").output == step(failed, "reserve").output
        assert resumed.output == {"ship": {"item": "x", "by": "ship", "note": ""}}
        assert resumed.rerun == Rerun(run_id=failed.run_id)
        assert (await crib.instances.get(failed.run_id)).taken_up_by == (resumed.run_id,)
        assert shop.done == ["reserve x", "charge x", "ship x"]
        assert shop.keys["charge x"] == [f"{failed.run_id}/charge"] * 2
        assert shop.keys["ship x"] == [f"{resumed.run_id}/ship"]
        row = await crib.store.journal.run(resumed.run_id)
        assert list(await envelopes(crib, resumed.run_id)) == ["charge", "ship"]
        assert (await crib.invoke("look", ITEM)).ok
    assert row.usage.total_tokens == 0


@pytest.mark.requirement("workflow_reruns.elements", "workflow_reruns.free")
async def test_of_a_step_over_a_list_only_what_has_failed_is_done_again():
    shop, count = Shop(), 300
    items = [str(index) for index in range(count)]
    shop.broken = {"pay 7", "pay 70", "pay 299"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        each = {"items": "${input.items}", "max_concurrency": 50, "on_item_error": "continue"}
        bad = {"name": "check", "output": "${pay[7].paid}", "depends_on": ["pay"]}
        await publish(crib, "all", calls("pay", "pay", "${item}", for_each=each), bad)
        partial = await crib.instances.start("all", {"items": items})
        assert (partial.status, statuses(partial)) == ("failed", {"pay": "partial", "check": "failed"})
        assert len(shop.done) == count - 3
        shop.broken = {"pay 70"}

        again = await crib.instances.resume(partial.run_id)
        events = await crib.store.journal.events(again.run_id)
        found = await envelopes(crib, again.run_id)
        ended = events[-1].event

    assert (step(again, "pay").status, step(again, "pay").failed) == ("partial", 1)
    assert again.status == "completed"
    assert shop.twice == []
    assert len(shop.done) == count - 1
    assert len(found) == count
    assert sum(envelope.reused == partial.run_id for envelope in found.values()) == count - 3
    assert {envelope.attempts for envelope in found.values() if envelope.reused} == {0}
    assert getattr(ended, "tool_calls", None) == 3
    assert {key for effect in ("pay 7", "pay 299") for key in shop.keys[effect]} == {
        f"{partial.run_id}/pay[7]",
        f"{partial.run_id}/pay[299]",
    }


@pytest.mark.requirement("workflow_reruns.standing")
async def test_what_ended_in_part_stands_once_something_was_done_on_its_ground():
    shop = Shop()
    shop.broken = {"pay b", "ship"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        each = {"items": "${input.items}", "on_item_error": "continue"}
        await publish(
            crib,
            "all",
            calls("pay", "pay", "${item}", for_each=each),
            calls("look", "look", "${string(pay.length)}"),
            calls("ship", "ship", "all", depends_on=["look"]),
        )
        failed = await crib.instances.start("all", {"items": ["a", "b"]})
        shop.broken = set()

        resumed = await crib.instances.resume(failed.run_id)

    assert (resumed.status, reused(resumed)) == ("completed", ["pay", "look"])
    assert (step(resumed, "pay").status, step(resumed, "pay").failed) == ("partial", 1)
    assert step(resumed, "pay").output == [{"paid": "a"}, None]
    assert shop.done == ["pay a", "look 2", "ship all"]


@pytest.mark.requirement("workflow_reruns.standing")
async def test_a_failure_that_was_dealt_with_stands_and_one_that_was_not_is_tried_again():
    shop = Shop()
    shop.broken = {"charge", "refund b"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(
            crib,
            "order",
            calls("charge", "charge", "a", on_error={"go_to": "refund"}),
            calls("refund", "refund", "a"),
            calls("second", "charge", "b", on_error={"go_to": "undo"}, depends_on=["refund"]),
            calls("undo", "refund", "b"),
        )
        failed = await crib.instances.start("order", {})
        assert statuses(failed) == {"charge": "failed", "refund": "succeeded", "second": "failed", "undo": "failed"}
        shop.broken = set()

        resumed = await crib.instances.resume(failed.run_id)

    assert statuses(resumed)["charge"] == "failed"
    assert statuses(resumed)["second"] == "succeeded"
    assert reused(resumed) == ["charge", "refund"]
    assert (resumed.status, statuses(resumed)["undo"]) == ("completed", "cut_off")
    assert shop.done == ["refund a", "charge b"]


@pytest.mark.requirement("workflow_reruns.standing")
async def test_a_step_that_was_left_out_is_decided_anew():
    shop = Shop()
    shop.broken = {"ship"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        steps = [calls("look", "look", condition="${input.item == 'y'}"), calls("ship", "ship", depends_on=["look"])]
        await publish(crib, "order", *steps)
        failed = await crib.instances.start("order", ITEM)
        shop.broken = set()
        await publish(crib, "order", {**steps[0], "condition": "${input.item == 'x'}"}, steps[1])

        resumed = await crib.instances.resume(failed.run_id)

    assert (statuses(failed)["look"], statuses(resumed)["look"]) == ("skipped", "succeeded")
    assert shop.done == ["look x", "ship x"]


@pytest.mark.requirement("workflow_reruns.keys", "workflow_reruns.same_call")
async def test_a_call_with_other_arguments_is_another_call_with_a_key_of_its_own():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("pay", "pay", "wrong"))
        shop.broken = {"pay wrong"}
        failed = await crib.instances.start("order", {})
        await publish(crib, "order", calls("pay", "pay", "right"))

        resumed = await crib.instances.resume(failed.run_id)

    assert resumed.status == "completed"
    assert shop.keys == {"pay wrong": [f"{failed.run_id}/pay"], "pay right": [f"{resumed.run_id}/pay"]}


@pytest.mark.requirement("workflow_reruns.same_call")
async def test_a_default_that_is_written_out_makes_no_other_call_and_an_argument_that_is_left_out_does():
    shop = Shop()
    shop.broken = {"ship c"}
    items = [{"item": "a"}, {"item": "b", "note": "n"}, {"item": "c"}]

    def ship(note: str) -> JsonObject:
        given = {"item": "${item.item}", "note": note}
        return {"name": "ship", "tool": "ship", "input": given, "for_each": "${input.items}"}

    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "all", ship("${item.note ?? ''}"))
        failed = await crib.instances.start("all", {"items": items})
        assert failed.status == "failed"
        shop.broken = set()
        bare = {"name": "ship", "tool": "ship", "input": {"item": "${item.item}"}, "for_each": "${input.items}"}
        await publish(crib, "all", bare)

        resumed = await crib.instances.resume(failed.run_id)

    assert resumed.status == "completed"
    assert sorted(shop.done) == ["ship a", "ship b", "ship b", "ship c"]


@pytest.mark.requirement("workflow_reruns.same_call", "workflow_reruns.fixed")
async def test_mending_a_tool_does_not_repeat_what_its_older_version_has_done():
    shop, mended = Shop(), Shop()
    shop.broken = {"ship b"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "all", calls("ship", "ship", "${item}", for_each="${input.items}"))
        failed = await crib.instances.start("all", {"items": ["a", "b", "c"]})
        mended.add_to(crib, version="1.0.1")
        await publish(crib, "all", calls("ship", "ship", "${item}", for_each="${input.items}"))

        resumed = await crib.instances.resume(failed.run_id)
        found = await envelopes(crib, resumed.run_id)

    assert resumed.status == "completed"
    assert mended.done == [effect for effect in ("ship b", "ship c") if effect not in shop.done]
    assert {envelope.version for envelope in found.values() if envelope.reused is None} == {"1.0.1"}


@pytest.mark.requirement("workflow_reruns.same_call")
async def test_the_success_of_a_further_try_is_not_done_again_when_the_step_failed_after_it():
    shop = Shop()
    shop.once = {"pay x"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        retry = {"count": 2, "backoff": "none"}
        await publish(crib, "order", calls("pay", "pay", retry=retry, output="${output.paid.price}"))
        failed = await crib.instances.start("order", ITEM)
        assert (failed.status, shop.done) == ("failed", ["pay x"])
        await publish(crib, "order", calls("pay", "pay", retry=retry, output="${output.paid}"))

        resumed = await crib.instances.resume(failed.run_id)
        found = await envelopes(crib, resumed.run_id)

    assert (resumed.status, outputs(resumed)) == ("completed", {"pay": "x"})
    assert shop.done == ["pay x"]
    assert (found["pay"].reused, found["pay"].position) == (failed.run_id, "pay")


@pytest.mark.requirement("workflow_reruns.keys")
async def test_a_further_try_in_a_run_that_takes_up_another_has_the_first_key_too():
    shop = Shop()
    shop.broken = {"pay x"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", calls("pay", "pay"))
        failed = await crib.instances.start("order", ITEM)
        shop.broken, shop.once = set(), {"pay x"}
        await publish(crib, "order", calls("pay", "pay", retry={"count": 1, "backoff": "none"}))

        resumed = await crib.instances.resume(failed.run_id)

    assert (resumed.status, step(resumed, "pay").tries) == ("completed", 2)
    assert shop.keys["pay x"] == [f"{failed.run_id}/pay"] * 3


@pytest.mark.requirement("workflow_reruns.nested")
async def test_nested_workflows_are_taken_up_at_any_depth():
    shop = Shop()
    shop.broken = {"ship"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "inner", calls("charge", "charge"), calls("ship", "ship", depends_on=["charge"]))
        below = {"workflow": "inner", "input": {"item": "${input.item}"}, "depends_on": ["reserve"]}
        await publish(crib, "middle", calls("reserve", "reserve"), {"name": "below", **below})
        await publish(crib, "outer", {"name": "all", "workflow": "middle", "input": {"item": "${input.item}"}})
        failed = await crib.instances.start("outer", ITEM)
        assert shop.done == ["reserve x", "charge x"]
        shop.broken = set()

        resumed = await crib.instances.resume(failed.run_id)
        [middle_id] = step(resumed, "all").child_run_ids
        middle = await crib.instances.get(middle_id)
        [old_middle_id] = step(failed, "all").child_run_ids
        with pytest.raises(Conflict, match="resume that, which continues this one too"):
            await crib.instances.resume(old_middle_id)

    assert resumed.status == "completed"
    assert shop.done == ["reserve x", "charge x", "ship x"]
    assert len(set(shop.keys["ship x"])) == 1
    assert middle.rerun == Rerun(run_id=old_middle_id)
    assert reused(middle) == ["reserve"]


@pytest.mark.requirement("workflow_reruns.chain", "workflow_reruns.keys")
async def test_a_run_that_takes_up_another_and_fails_hands_on_all_that_both_have():
    shop = Shop()
    shop.broken = {"pay b", "pay c"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        each = {"items": "${input.items}", "max_concurrency": 1}
        await publish(crib, "all", calls("reserve", "reserve", "r"), calls("pay", "pay", "${item}", for_each=each))
        first = await crib.instances.start("all", {"items": ["a", "b", "c"]})
        shop.broken = {"pay c"}
        second = await crib.instances.resume(first.run_id)
        assert second.status == "failed"
        shop.broken = set()

        third = await crib.instances.resume(first.run_id)

        assert (third.status, third.rerun) == ("completed", Rerun(run_id=second.run_id))
        assert shop.done == ["reserve r", "pay a", "pay b", "pay c"]
        assert step(third, "reserve").reused == first.run_id
        found = await envelopes(crib, third.run_id)
        assert [found[f"pay[{index}]"].reused for index in range(3)] == [first.run_id, second.run_id, None]
        assert set(shop.keys["pay b"]) == {f"{first.run_id}/pay[1]"}
        for run_id in (first.run_id, second.run_id, third.run_id):
            with pytest.raises(Conflict, match="has succeeded; there is nothing to resume"):
                await crib.instances.resume(run_id)


@pytest.mark.requirement("workflow_reruns.chain")
async def test_what_a_cancelled_successor_never_came_to_is_not_lost():
    shop = Shop()
    shop.broken = {"ship"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        first_step = {"name": "go", "wait": {"signal": "go"}}
        steps = (calls("reserve", "reserve"), calls("ship", "ship", depends_on=["reserve"]))
        await publish(crib, "order", *steps)
        first = await crib.instances.start("order", ITEM)
        await publish(crib, "order", first_step, {**steps[0], "depends_on": ["go"]}, steps[1])
        second = await crib.instances.resume(first.run_id)
        assert statuses(second) == {"go": "waiting", "reserve": "pending", "ship": "pending"}
        await crib.instances.cancel(second.run_id)
        shop.broken = set()
        await publish(crib, "order", *steps)

        third = await crib.instances.resume(second.run_id)

    assert (third.status, reused(third)) == ("completed", ["reserve"])
    assert shop.done == ["reserve x", "ship x"]
    assert shop.keys["ship x"] == [f"{first.run_id}/ship"] * 2


@pytest.mark.requirement("workflow_reruns.free")
async def test_a_run_that_takes_over_what_outsiders_wrote_is_tainted_too():
    shop = Shop()
    shop.broken = {"ship"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", {"name": "mail", "tool": "read_mail"}, calls("ship", "ship", depends_on=["mail"]))
        failed = await crib.instances.start("order", ITEM)
        shop.broken = set()

        resumed = await crib.instances.resume(failed.run_id)
        ended: Any = (await crib.store.journal.events(resumed.run_id))[-1].event

    assert reused(resumed) == ["mail"]
    assert ended.tainted


@pytest.mark.requirement("workflow_reruns.resume")
async def test_what_was_taken_up_is_told_in_the_new_runs_journal():
    shop = Shop()
    shop.broken = {"charge"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *ORDER)
        failed = await crib.instances.start("order", ITEM)
        resumed = await crib.instances.resume(failed.run_id)
        events = [entry.event for entry in await crib.store.journal.events(resumed.run_id)]
        told = [event.data for event in events if isinstance(event, ProgressMade) and event.kind == TAKEN_UP]

    assert [(data["run_id"], data["steps"]) for data in told] == [(failed.run_id, ["reserve"])]
    assert resumed.error is not None
    assert resumed.error.reason == Reason.TOOL_FAILED


@pytest.mark.requirement("workflow_reruns.traced")
async def test_the_trace_and_its_drawing_show_what_was_taken_over():
    shop = Shop()
    shop.broken = {"pay b"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        pay = calls("pay", "pay", "${item}", for_each="${input.items}", depends_on=["reserve"])
        await publish(crib, "all", calls("reserve", "reserve", "r"), pay)
        failed = await crib.instances.start("all", {"items": ["a", "b"]})
        shop.broken = set()
        resumed = await crib.instances.resume(failed.run_id)

        trace = await crib.trace(resumed.run_id)

    told = [(step.kind, step.data.get("step")) for step in trace.steps if isinstance(step, ProgressStep)]
    assert told == [("taken_up", None), ("step_settled", "reserve"), ("step_settled", "pay")]
    made = [(step.position, step.reused) for step in trace.steps if isinstance(step, ToolStep)]
    assert made == [("pay[0]", failed.run_id), ("pay[1]", None)]
    console = Console(width=200, record=True)
    console.print(draw(trace))
    drawn = console.export_text()
    assert drawn.count(f"Taken over from: {failed.run_id}") == 2
    assert "Step: reserve succeeded" in drawn
