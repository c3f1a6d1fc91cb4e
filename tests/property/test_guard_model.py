"""The guard against a simple model of it: whatever runs, fails, dies and goes on, nothing is overspent or ungated.

Each schedule is a world of its own, made of a seed; a failure names it, and `World(seed)` is that schedule again.
"""

import asyncio
from collections.abc import Iterable

import pytest

from tests.property.guard_world import World

SAMPLE = 250
SOAK = 100_000
ONCE_FAILED = (501160, 501905, 511936)
"""Schedules beyond both that have found faults."""

pytestmark = pytest.mark.requirement("policy.never_overspends", "policy.gated", "policy.last_answer")


def live_through(seeds: Iterable[int]) -> tuple[int, int, int]:
    """Live through these schedules: how many runs there were, how many a limit has ended, and how many last answers."""

    async def schedules() -> tuple[int, int, int]:
        runs = limited = answers = 0
        for seed in seeds:
            world = World(seed)
            await world.live()
            runs, limited, answers = runs + len(world.truth), limited + world.limited, answers + world.answers
        return runs, limited, answers

    return asyncio.run(schedules())


def test_no_schedule_overspends_or_goes_ungated():
    runs, limited, answers = live_through(range(SAMPLE))

    assert runs > SAMPLE
    assert limited > SAMPLE / 20
    assert answers > SAMPLE / 10


def test_schedules_that_have_found_faults_hold():
    runs, _, _ = live_through(ONCE_FAILED)

    assert runs > len(ONCE_FAILED)


@pytest.mark.soak
def test_a_hundred_thousand_schedules_neither_overspend_nor_go_ungated():
    runs, limited, answers = live_through(range(SAMPLE, SAMPLE + SOAK))

    assert runs > SOAK
    assert limited > SOAK / 20
    assert answers > SOAK / 10
