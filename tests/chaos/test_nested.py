"""Kill -9 at every event of a nested run that waits for a person: parent and child come to the same end."""

import asyncio
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.chaos.crashing import CrashPoint
from tests.chaos.desk import decide, resume, start
from tests.chaos.journals import check_log, journals
from tests.chaos.ledger import Ledger
from tests.chaos.processes import KILLED, Child
from toolcrib.contracts import ApprovalRequested, CallFinished, Reason

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.requirement("chaos.nested")]

COUNTED = ("status", "stop_reason", "output", "error", "iterations", "cost_usd")


async def finish(folder: Path, point: CrashPoint | None = None) -> dict[str, Any]:
    """Resume the outermost run, with a crash if there is to be one, decide, and resume it to its end."""
    outer = (await journals(folder))[0][0].run_id
    await decide_if_asked(folder)
    child = Child(folder / "first.json", resume, folder, "sign", [outer], False, point)
    assert await child.ended() == (KILLED if point else 0)
    await decide_if_asked(folder)
    (summary,) = await Child(folder / "last.json", resume, folder, "sign", [outer]).result()
    return summary


async def decide_if_asked(folder: Path) -> None:
    logs = await journals(folder)
    asked = [entry for events in logs for entry in events if isinstance(entry.event, ApprovalRequested)]
    if asked:
        await Child(folder / "decision", decide, folder, asked[0].run_id, True).ended()


def check(summary: dict[str, Any], usual: dict[str, Any]) -> None:
    """The same end; a model call whose process died may have been billed, so it counts with what it took at most."""
    assert {name: summary[name] for name in COUNTED} == {name: usual[name] for name in COUNTED}
    assert summary["usage"]["output_tokens"] >= usual["usage"]["output_tokens"]


async def check_effect(folder: Path) -> None:
    outer, inner = await journals(folder)
    for events in (outer, inner):
        check_log(events)
    (envelope,) = [entry.event.envelope for entry in inner if isinstance(entry.event, CallFinished)]
    effects = Ledger(folder).counts().total()
    if envelope.ok:
        assert effects == 1
    else:
        assert envelope.error is not None
        assert envelope.error.reason is Reason.OUTCOME_UNKNOWN
        assert effects <= 1


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_nested_run_killed_before_or_after_the_decision_comes_to_the_same_end(
    tmp_path: Path, when: Literal["before", "after"]
):
    usual = tmp_path / "undisturbed"
    usual.mkdir()
    await Child(usual / "start.json", start, usual, "nested", "sign").result()
    waiting = sum(map(len, await journals(usual)))
    summary = await finish(usual)
    ending = sum(map(len, await journals(usual))) - waiting + 1  # the nested run is created again, in vain
    turns = asyncio.Semaphore(2)
    first = 2 if when == "before" else 1

    async def attempt(early: int | None, late: int | None) -> None:
        folder = tmp_path / f"{early}-{late}"
        async with turns:
            await asyncio.to_thread(folder.mkdir)
            point = CrashPoint(when, early) if early else None
            child = Child(folder / "start.json", start, folder, "nested", "sign", point)
            assert await child.ended() == (KILLED if early else 0)
            check(await finish(folder, CrashPoint(when, late) if late else None), summary)
            await check_effect(folder)

    places = [(early, None) for early in range(first, waiting + 1)]
    places += [(None, late) for late in range(1, ending + 1)]
    outcomes = await asyncio.gather(*(attempt(*place) for place in places), return_exceptions=True)
    failures = {place: repr(found) for place, found in zip(places, outcomes, strict=True) if found is not None}
    assert failures == {}
