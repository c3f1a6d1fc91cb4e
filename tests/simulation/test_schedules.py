"""Schedules of the office: whatever happens to its processes, no invariant is violated."""

from pathlib import Path

import pytest

from tests.simulation import simulate
from tests.simulation.scenarios import scenario

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
