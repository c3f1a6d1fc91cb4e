"""Replays of runs of workflows: the same program on the journal alone comes to the same end."""

import asyncio
from collections.abc import Collection, Mapping

import pytest

from tests.twins import ManualClock
from tests.unit.workflows.shop import Shop, calls, publish, statuses
from tests.unit.workflows.waiting import COLLEAGUE, waited_through
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import AgentDefinition, JsonObject, LLMConfig
from toolcrib.contracts.workflows import WorkflowInstance

pytestmark = pytest.mark.requirement("workflow_reruns.replayed")

ITEM: JsonObject = {"item": "x"}
ORDER = (
    calls("reserve", "reserve"),
    calls("charge", "charge", depends_on=["reserve"]),
    calls("ship", "ship", depends_on=["charge"]),
    {"name": "end", "output": "${ship.item}", "condition": "${ship.item == input.item}"},
)


async def same(crib: Crib, shop: Shop, *instances: WorkflowInstance) -> None:
    """Replay instances, and hold them against what they were."""
    done = list(shop.done)
    for instance in instances:
        found = await crib.replay(instance.run_id)
        assert found.divergence is None
        assert (found.status, found.output) == (instance.status, instance.output)
        assert shop.done == done


async def test_a_run_its_resumption_and_its_rerun_are_replayed():
    shop = Shop()
    shop.broken = {"charge"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *ORDER)
        failed = await crib.instances.start("order", ITEM)
        shop.broken = set()
        resumed = await crib.instances.resume(failed.run_id)
        again = await crib.instances.rerun(resumed.run_id, "ship")

        await same(crib, shop, failed, resumed, again)


async def test_lists_nested_workflows_and_what_was_taken_over_of_them_are_replayed():
    shop = Shop()
    shop.broken = {"pay b"}
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        each = {"items": "${input.items}", "on_item_error": "continue"}
        await publish(crib, "inner", calls("reserve", "reserve", "r"), calls("pay", "pay", "${item}", for_each=each))
        below = {"name": "below", "workflow": "inner", "input": {"items": "${input.items}"}}
        await publish(crib, "outer", below, {"name": "sum", "output": "${below.pay[1].paid}"})
        failed = await crib.instances.start("outer", {"items": ["a", "b"]})
        assert failed.status == "failed"
        shop.broken = set()
        resumed = await crib.instances.resume(failed.run_id)

        await same(crib, shop, failed, resumed)
        found = await crib.replay(resumed.run_id)

    assert len(found.nested) == (1 if any(step.child_run_ids for step in resumed.steps) else 0)


async def test_waits_signals_approvals_and_clients_are_replayed():
    shop, clock = Shop(), ManualClock()
    async with Crib("memory://", clock=clock) as crib:
        shop.add_to(crib)
        done = await waited_through(crib, clock)
        assert (done.status, shop.done) == ("completed", ["ship b"])

        await same(crib, shop, done)


async def decide(crib: Crib, run_id: str, edits: Mapping[str, JsonObject], refused: Collection[str] = ()) -> list[str]:
    """Decide on all calls of a run that wait; their positions."""
    asked = (await crib.approvals.page(run_id=run_id)).items
    for one in asked:
        approve = one.position not in refused
        edited = edits.get(one.position)
        await crib.acting_as(COLLEAGUE).approvals.decide(
            one.approval_id, approve=approve, edited_input=edited, allow_self=True
        )
    return sorted(one.position for one in asked)


@pytest.mark.requirement("workflow_reruns.same_call")
async def test_a_call_that_a_person_edited_is_taken_over_however_often_and_replayed():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib, requires_confirmation=True)
        await publish(crib, "all", calls("ship", "ship", "${item}", for_each="${input.items}"))
        first = await crib.instances.start("all", {"items": ["a", "b"]})
        await decide(crib, first.run_id, {"ship[0]": {"item": "z"}}, refused=["ship[1]"])
        runs = [await crib.instances.resume(first.run_id)]
        for refused in (["ship[1]"], []):
            assert (runs[-1].status, shop.done) == ("incomplete", ["ship z"])
            waiting = await crib.instances.resume(first.run_id)
            assert await decide(crib, waiting.run_id, {}, refused) == ["ship[1]"]
            runs.append(await crib.instances.resume(waiting.run_id))

        assert (runs[-1].status, shop.done) == ("completed", ["ship z", "ship b"])
        await same(crib, shop, *runs)


async def test_a_run_whose_branches_went_on_while_one_failed_is_replayed_in_the_order_in_which_they_did():
    shop = Shop()
    shop.hanging, shop.after = {"charge late"}, "reserve 3"
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(
            crib,
            "both",
            calls("late", "charge", "late"),
            calls("one", "reserve", "1"),
            calls("two", "reserve", "2", depends_on=["one"]),
            calls("three", "reserve", "3", depends_on=["two"]),
            calls("four", "reserve", "4", depends_on=["three", "late"]),
        )
        failed = await crib.instances.start("both", {})
        assert failed.status == "failed"
        assert list(statuses(failed).items()) == [
            ("late", "failed"),
            ("one", "succeeded"),
            ("two", "succeeded"),
            ("three", "succeeded"),
            ("four", "cut_off"),
        ]

        await same(crib, shop, failed)


async def test_elements_that_had_begun_before_another_failed_are_begun_again():
    shop = Shop()
    shop.hanging, shop.after = {"charge 0"}, "charge 8"
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        each = {"items": "${input.items}", "max_concurrency": 2}
        charge = calls("charge", "charge", "${item}", for_each=each, on_error="continue")
        await publish(crib, "all", charge, calls("ship", "ship", "end", depends_on=["charge"]))
        done = await crib.instances.start("all", {"items": [str(index) for index in range(12)]})
        assert statuses(done) == {"charge": "failed", "ship": "succeeded"}
        assert "charge 8" in shop.done

        await same(crib, shop, done)


async def test_runs_with_agents_in_them_are_replayed():
    shop = Shop()
    model = ScriptedModel(["Send it by ship."])
    async with Crib("memory://", models={"scripted:m": model}) as crib:
        shop.add_to(crib)
        await crib.save(AgentDefinition(name="adviser", llm=LLMConfig(model="scripted:m")).tool())
        ask = {"name": "ask", "agent": "adviser", "input": {"message": "How to send ${input.item}?"}}
        await publish(
            crib, "order", ask, calls("ship", "ship", depends_on=["ask"]), {"name": "said", "output": "${ask}"}
        )
        done = await crib.instances.start("order", ITEM)
        assert (done.status, shop.done) == ("completed", ["ship x"])

        await same(crib, shop, done)


async def test_cancelled_timed_out_and_dry_runs_are_replayed():
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "order", *ORDER)
        await publish(crib, "slow", *ORDER, limits={"timeout_s": 0.05})
        dry = await crib.instances.start("order", ITEM, dry_run=True)
        shop.hanging = {"charge"}
        late = await crib.instances.start("slow", ITEM)
        shop.reached.clear()
        driving = asyncio.ensure_future(crib.instances.start("order", ITEM))
        await shop.reached.wait()
        await crib.instances.cancel((await crib.instances.page()).items[0].run_id)
        cancelled = await driving

        for instance in (dry, late, cancelled):
            assert (await crib.replay(instance.run_id)).same
