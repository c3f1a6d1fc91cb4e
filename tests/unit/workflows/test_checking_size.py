"""The largest definitions, sound and not: the work grows with their size and no faster."""

from collections.abc import Callable

import pytest

from tests.unit.workflows.checked import problems
from toolcrib.contracts import JsonObject

pytestmark = pytest.mark.requirement("workflow_checks.size")

MANY = 5000


def chain(place: int) -> JsonObject:
    before = f"${{s{place - 1}.a}}" if place else "x"
    return {"name": f"s{place}", "output": {"a": before}, "depends_on": [f"s{place - 2}"] if place > 1 else []}


def states(place: int) -> JsonObject:
    return {"name": f"s{place}", "output": "${steps.s0.status}" if place else 1}


def pairs(place: int) -> JsonObject:
    return {"name": f"s{place}", "output": 1, "depends_on": [f"s{place ^ 1}"]}


def lost(place: int) -> JsonObject:
    return {"name": f"s{place}", "tool": f"t{place}", "input": {"a": f"${{x{place}}}"}, "depends_on": [f"y{place}"]}


def same(place: int) -> JsonObject:
    return {"name": f"s{place}", "output": "${input.a.b}", "save_as": "same", "condition": f"${{input.a == {place}}}"}


@pytest.mark.parametrize(("step", "errors"), [(chain, 0), (states, 0), (pairs, MANY // 2), (lost, 3 * MANY), (same, 0)])
async def test_five_thousand_steps_are_checked(step: Callable[[int], JsonObject], errors: int):
    found = await problems(*map(step, range(MANY)))

    assert sum(problem.is_error for problem in found) == errors
    assert sum(problem.suggestion is not None for problem in found) <= MANY // 2
