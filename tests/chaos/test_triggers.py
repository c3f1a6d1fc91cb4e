"""Two processes share the triggers of a store, at once and under load, and are killed at the writes of the runs."""

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos.crashing import CrashPoint
from tests.chaos.processes import KILLED, Child
from tests.chaos.triggering import BEGIN, STEP, define, open_crib, work

_ROUNDS = 5
_HOOKS = 6


@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.requirement("triggers.once", "triggers.kills")
@pytest.mark.parametrize("seed", range(3))
async def test_each_occurrence_starts_one_run_that_completes_whichever_process_is_killed(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    await define(tmp_path)
    hooks: list[str] = []
    kills = 0
    for number in range(1, _ROUNDS + 1):
        hooks += [f"msg_{number}_{place}" for place in range(_HOOKS)]
        points = [CrashPoint(chance.choice(["before", "after"]), chance.randrange(1, 20)), None]
        chance.shuffle(points)
        children = [
            Child(tmp_path / f"answer-{number}-{place}", work, tmp_path, number, hooks[-_HOOKS:], point)
            for place, point in enumerate(points)
        ]
        kills += [await child.ended() for child in children].count(KILLED)
    for number in (_ROUNDS + 1, _ROUNDS + 2):  # who sent a webhook and got no answer sends it again
        await Child(tmp_path / f"answer-{number}", work, tmp_path, number, hooks, None).result()

    async with open_crib(tmp_path, BEGIN + STEP * (_ROUNDS + 3)) as crib:
        await crib.recover()
        runs = await crib.store.journal.runs("default", made_by="account:robot", limit=1000)
        state = await crib.triggers.state("times")
    roots = [run for run in runs if run.request.parent_run_id is None]
    by_tool = {
        name: Counter(str(next(iter(run.request.input.values()))) for run in roots if run.request.tool_name == name)
        for name in ("clerk", "flow", "report")
    }
    times = [(BEGIN + STEP * number).isoformat() for number in range(1, _ROUNDS + 3)]
    agents = [run.run_id for run in roots if run.request.tool_name == "clerk"]
    assert kills > 0
    assert by_tool["clerk"] == Counter(times)
    assert by_tool["flow"] == Counter(hooks)
    assert set(by_tool["report"]) <= set(agents)
    assert set(by_tool["report"].values()) == {1}
    assert len(by_tool["report"]) >= _ROUNDS
    assert {run.status for run in runs} == {"completed"}
    assert state.started <= len(times)
