"""Results of a client reach an agent once, wherever the processes die that take them."""

from itertools import count
from pathlib import Path
from shutil import copytree
from typing import Literal

import pytest

from tests.chaos.clients import ask, bring
from tests.chaos.crashing import CrashPoint
from tests.chaos.processes import KILLED, Child

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


@pytest.mark.requirement("handoff.restart", "handoff.idempotent", "handoff.nested")
@pytest.mark.parametrize("when", ["before", "after"])
async def test_results_count_once_if_the_process_that_takes_them_is_killed_at_any_event(
    tmp_path: Path, when: Literal["before", "after"]
):
    waiting = tmp_path / "waiting"
    waiting.mkdir()
    request = await Child(tmp_path / "asked", ask, waiting).result()
    ended = KILLED
    for event in count(1):
        if ended != KILLED:
            break
        folder = tmp_path / str(event)
        copytree(waiting, folder)
        ended = await Child(folder / "first", bring, folder, request, CrashPoint(when, event)).ended()
        told = await Child(folder / "second", bring, folder, request).result()

        assert told == {
            "ended": [["completed", "Done."], ["completed", "Done."]],
            "brought": ["the red coat", "the red hat"],
            "times": [2, 2, 2],
        }
