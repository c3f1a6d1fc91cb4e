"""Schedules of the office: whatever happens to its processes, no invariant is violated."""

from pathlib import Path

import pytest

from tests.simulation import simulate, sweep
from tests.simulation.scenarios import KINDS, one, scenario

pytestmark = [
    pytest.mark.slow,
    pytest.mark.requirement("runs.simulation"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # of what processes left that died
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
]

MANY = 300
SOAK = 100_000
CHUNK = 50


@pytest.mark.parametrize("first", range(0, MANY, CHUNK))
def test_no_schedule_violates_an_invariant(office: Path, first: int):
    assert simulate(scenario, range(first, first + CHUNK), files=office) == CHUNK


@pytest.mark.soak
@pytest.mark.parametrize("first", range(MANY, MANY + SOAK, CHUNK))
def test_none_of_many_schedules_does(office: Path, first: int):
    assert simulate(scenario, range(first, first + CHUNK), files=office) == CHUNK


@pytest.mark.soak
@pytest.mark.parametrize("submits", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_survives_whatever_happens_to_any_one_of_its_operations(office: Path, kind: str, submits: bool):
    assert sweep(scenario, one(kind, submits=submits), files=office) > 300
