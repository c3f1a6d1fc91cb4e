"""Any workflow, any failures, resumed until it succeeds: it ends as if nothing had failed, and does nothing twice."""

import asyncio
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.workflows.shop import Shop, calls, publish
from toolcrib import Crib
from toolcrib.contracts import Json, JsonObject
from toolcrib.contracts.workflows import WorkflowInstance

INPUT: Final[JsonObject] = {"items": ["i0", "i1", "i2"]}
INNER: Final = (calls("one", "reserve", "${input.item}-1"), calls("two", "charge", "${one.item}-2"))
EFFECTS: Final = ("", "-1", "-1-2", " i0", " i1", " i2")


@st.composite
def graphs(draw: st.DrawFn) -> list[JsonObject]:
    """Steps with edges to earlier ones: calls, lists, nested workflows, values."""
    made: list[JsonObject] = []
    for number in range(draw(st.integers(1, 7))):
        name = f"s{number}"
        before = (
            draw(st.lists(st.sampled_from([step["name"] for step in made]), unique=True, max_size=2)) if made else []
        )
        each = {"items": "${input.items}", "max_concurrency": draw(st.integers(1, 3))}
        kinds: list[JsonObject] = [
            calls(name, "ship", name),
            calls(name, "ship", f"{name} ${{item}}", for_each=each),
            {"name": name, "workflow": "inner", "input": {"item": name}},
            {"name": name, "output": {"seen": [f"${{{other}}}" for other in before]}},
        ]
        made.append({**draw(st.sampled_from(kinds)), "depends_on": before})
    return made


failures = st.lists(st.sets(st.tuples(st.integers(0, 6), st.sampled_from(EFFECTS)), max_size=6), min_size=1, max_size=4)


@pytest.mark.requirement("workflow_reruns.resume", "workflow_reruns.chain", "workflow_reruns.replayed")
@settings(deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(steps=graphs(), broken=failures)
def test_a_workflow_that_is_resumed_until_it_succeeds_does_nothing_twice(
    steps: list[JsonObject], broken: Sequence[set[tuple[int, str]]]
):
    asyncio.run(check(steps, broken))


async def check(steps: list[JsonObject], broken: Sequence[set[tuple[int, str]]]) -> None:
    undisturbed, expected = await run(steps, [])
    disturbed, output = await run(steps, broken)

    assert output == expected
    assert sorted(disturbed.done) == sorted(undisturbed.done)
    assert disturbed.twice == []
    assert {effect: len(set(keys)) for effect, keys in disturbed.keys.items()} == dict.fromkeys(disturbed.keys, 1)


async def run(steps: list[JsonObject], broken: Sequence[set[tuple[int, str]]]) -> tuple[Shop, Json]:
    """The shop and the output, after a run and as many resumptions as it takes."""
    shop = Shop()
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "inner", *INNER, output="${two.item}")
        await publish(crib, "any_graph", *steps)
        instance: WorkflowInstance | None = None
        for failing in (*broken, set[tuple[int, str]]()):
            shop.broken = {
                f"{tool} s{number}{rest}" for number, rest in failing for tool in ("ship", "reserve", "charge")
            }
            instance = await (
                crib.instances.start("any_graph", INPUT) if instance is None else crib.instances.resume(instance.run_id)
            )
            assert (await crib.replay(instance.run_id)).divergence is None
            if instance.status == "completed":
                break
        assert instance is not None
        assert instance.status == "completed"
        return shop, instance.output
