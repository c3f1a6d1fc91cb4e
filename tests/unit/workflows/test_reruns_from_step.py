"""Running an instance anew from a step: that step and what follows, with the outputs that the others had."""

import pytest

from tests.unit.workflows.shop import Shop, calls, publish, reused, statuses, step
from toolcrib import Crib
from toolcrib.contracts import Conflict, JsonObject, NotFound
from toolcrib.contracts.workflows import Rerun

pytestmark = pytest.mark.requirement("workflow_reruns.from_step")

ITEM: JsonObject = {"item": "x"}
DIAMOND = (
    calls("reserve", "reserve"),
    calls("charge", "charge", depends_on=["reserve"]),
    calls("ship", "ship", "${charge.item}"),
    calls("look", "look", depends_on=["reserve"]),
    {"name": "end", "output": "${ship.item} ${look.left}"},
)


async def test_a_step_and_all_that_follow_it_are_done_again_with_new_keys_and_no_effect_of_the_others_is_repeated():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *DIAMOND)
        done = await crib.instances.start("order", ITEM)
        shop.done.clear()

        again = await crib.instances.rerun(done.run_id, "charge")
        third = await crib.instances.rerun(done.run_id, "charge")

        assert (again.status, again.output, reused(again)) == ("completed", {"end": "x 3"}, ["reserve", "look"])
        assert again.rerun == Rerun(run_id=done.run_id, mode="from_step", step="charge")
        assert step(again, "look").output == {"item": "x", "left": 3}
        assert shop.done == ["charge x", "ship x"] * 2
        assert shop.keys["charge x"] == [f"{run.run_id}/charge" for run in (done, again, third)]
        assert (await crib.instances.get(done.run_id)).taken_up_by == (again.run_id, third.run_id)


async def test_of_an_instance_that_has_failed_the_other_steps_go_on_as_if_it_was_resumed():
    shop = Shop()
    shop.broken = {"pay b"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        each = {"items": "${input.items}", "max_concurrency": 1}
        await publish(crib, "order", calls("reserve", "reserve", "r"), calls("pay", "pay", "${item}", for_each=each))
        failed = await crib.instances.start("order", {"items": ["a", "b"]})
        shop.broken = set()

        again = await crib.instances.rerun(failed.run_id, "reserve")

        assert again.status == "completed"
        assert shop.done == ["reserve r", "pay a", "reserve r", "pay b"]
        assert set(shop.keys["pay b"]) == {f"{failed.run_id}/pay[1]"}
        assert len(set(shop.keys["reserve r"])) == 2
        with pytest.raises(Conflict, match=f"continued by {again.run_id}, which is completed"):
            await crib.instances.rerun(failed.run_id, "pay")


async def test_the_failed_step_itself_is_done_anew_with_a_new_key_and_all_of_its_elements():
    shop = Shop()
    shop.broken = {"pay b"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        each = {"items": "${input.items}", "max_concurrency": 1}
        await publish(crib, "all", calls("pay", "pay", "${item}", for_each=each))
        failed = await crib.instances.start("all", {"items": ["a", "b"]})
        shop.broken = set()

        again = await crib.instances.rerun(failed.run_id, "pay")

    assert again.status == "completed"
    assert shop.done == ["pay a", "pay a", "pay b"]
    assert shop.keys["pay b"] == [f"{failed.run_id}/pay[1]", f"{again.run_id}/pay[1]"]


async def test_what_the_others_came_to_stands_as_it_was_also_where_it_was_not_a_success():
    shop = Shop()
    shop.broken = {"pay b", "refund"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        each = {"items": "${input.items}", "on_item_error": "continue"}
        await publish(
            crib,
            "all",
            calls("pay", "pay", "${item}", for_each=each),
            calls("refund", "refund", "r", on_error="continue"),
            calls("skip", "look", "n", condition="${input.items.length == 0}"),
            calls("last", "ship", "l"),
        )
        done = await crib.instances.start("all", {"items": ["a", "b"]})
        assert done.status == "completed"
        shop.broken = set()

        again = await crib.instances.rerun(done.run_id, "last")

    assert statuses(again) == {"pay": "partial", "refund": "failed", "skip": "skipped", "last": "succeeded"}
    assert reused(again) == ["pay", "refund", "skip"]
    assert sorted(shop.done) == ["pay a", "ship l", "ship l"]


@pytest.mark.requirement("workflow_reruns.changed")
async def test_steps_whose_definition_has_changed_are_taken_over_and_named():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *DIAMOND)
        done = await crib.instances.start("order", ITEM)
        assert done.warnings == ()
        changed = calls("look", "look", depends_on=["reserve"], title="Look it up")
        await publish(crib, "order", *DIAMOND[:3], changed, DIAMOND[4], calls("new", "refund"))

        again = await crib.instances.rerun(done.run_id, "ship")

    assert reused(again) == ["reserve", "charge", "look"]
    assert again.warnings == (f"steps were taken over from run {done.run_id} whose definition has changed since: look",)
    assert statuses(again)["new"] == "succeeded"
    assert shop.done.count("refund x") == 1


@pytest.mark.requirement("workflow_reruns.refused")
async def test_a_step_that_is_not_there_and_an_instance_that_has_not_ended_are_refused():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *DIAMOND)
        await publish(crib, "wait", {"name": "news", "wait": {"signal": "paid"}})
        done = await crib.instances.start("order", ITEM)
        waiting = await crib.instances.start("wait", {})

        with pytest.raises(NotFound, match="has no step 'chrge'; did you mean 'charge'"):
            await crib.instances.rerun(done.run_id, "chrge")
        with pytest.raises(Conflict, match="is awaiting_client; wait for its end"):
            await crib.instances.rerun(waiting.run_id, "news")


@pytest.mark.requirement("workflow_reruns.chain")
async def test_a_rerun_that_fails_is_resumed_with_the_keys_that_it_had():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *DIAMOND)
        done = await crib.instances.start("order", ITEM)
        shop.broken = {"ship"}
        failed = await crib.instances.rerun(done.run_id, "charge")
        shop.broken = set()
        shop.done.clear()

        resumed = await crib.instances.resume(failed.run_id)

    assert (resumed.status, shop.done) == ("completed", ["ship x"])
    assert shop.keys["ship x"] == [f"{done.run_id}/ship", f"{failed.run_id}/ship", f"{failed.run_id}/ship"]
    assert step(resumed, "charge").reused == failed.run_id
    assert step(resumed, "reserve").reused == done.run_id
