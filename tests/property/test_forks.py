"""Any workflow, whatever fails in it, forked at any event: without changes it ends alike, and does nothing."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.property.test_workflow_reruns import INNER, INPUT, failures, graphs
from tests.unit.forks.forking import ended, made_itself
from tests.unit.workflows.shop import Shop, publish
from toolcrib import Crib
from toolcrib.contracts import JsonObject


@pytest.mark.requirement("forks.same", "forks.replayed", "forks.nested")
@settings(deadline=None, max_examples=25, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(steps=graphs(), broken=failures, place=st.floats(0, 1))
def test_a_fork_of_any_workflow_at_any_event_goes_the_same_way(
    steps: list[JsonObject], broken: list[set[tuple[int, str]]], place: float
):
    asyncio.run(check(steps, broken[0], place))


async def check(steps: list[JsonObject], broken: set[tuple[int, str]], place: float) -> None:
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "inner", *INNER, output="${two.item}")
        await publish(crib, "any_graph", *steps)
        shop.broken = {f"{tool} s{number}{rest}" for number, rest in broken for tool in ("ship", "reserve", "charge")}
        first = await crib.instances.start("any_graph", INPUT)
        original = await crib.store.journal.run(first.run_id)
        done, shop.broken = list(shop.done), set()
        last = original.events
        for at in {1, round(1 + place * (last - 1)), last}:
            fork = await crib.fork(first.run_id, at=at)

            assert ended(fork) == ended(original)
            assert await made_itself(crib, fork.run_id) == []
            assert (await crib.replay(fork.run_id)).divergence is None
        assert shop.done == done
