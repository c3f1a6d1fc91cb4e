"""Kill -9 at every event of an agentic run: what may be repeated is, what may not is not, and the journal says so."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from tests.chaos.crashing import CrashPoint
from tests.chaos.journals import check_log, crashes, journals
from tests.chaos.ledger import Ledger, resume, work
from tests.chaos.processes import KILLED, Child
from toolcrib.contracts import CallFinished, Reason, RunEvent, ToolEnvelope

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

FINISHED = {"look": 1, "put": 1, "post": 2, "pay": 1}
"""Calls by tool."""


@pytest.mark.requirement("chaos.ledger_every_event", "chaos.at_most_once", "chaos.trace")
@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_agentic_run_killed_at_any_event_does_nothing_twice_that_may_not_be_done_twice(
    tmp_path: Path, when: Literal["before", "after"]
):
    usual = tmp_path / "undisturbed"
    usual.mkdir()
    summary = await Child(usual / "result.json", work, usual).result()
    (events,) = await journals(usual)
    first = 2 if when == "before" else 1
    points = [CrashPoint(when, number) for number in range(first, len(events) + 1)]
    turns = asyncio.Semaphore(2)

    async def attempt(point: CrashPoint) -> int:
        async with turns:
            return await crash_and_resume(tmp_path / str(point.event), point, len(events), summary)

    outcomes = await asyncio.gather(*map(attempt, points), return_exceptions=True)
    failures = {point: repr(found) for point, found in zip(points, outcomes, strict=True) if not isinstance(found, int)}
    assert failures == {}
    assert any(outcomes), "no crash left a call in doubt, so nothing was tested"


async def crash_and_resume(folder: Path, point: CrashPoint, usual: int, summary: dict[str, object]) -> int:
    """Returns how many calls ended with an unknown outcome."""
    await asyncio.to_thread(folder.mkdir)
    assert await Child(folder / "none.json", work, folder, point).ended() == KILLED
    (left,) = await journals(folder)
    assert len(left) == (point.event if point.when == "after" else point.event - 1)

    result = await Child(folder / "result.json", resume, folder, left[0].run_id).result()

    (events,) = await journals(folder)
    check_log(events)
    assert crashes(events) == (1 if len(left) < usual else 0)
    same = ("status", "stop_reason", "output", "error", "iterations", "tool_calls", "cost_usd")
    assert {name: result[name] for name in same} == {name: summary[name] for name in same}
    unknown = check_effects(Ledger(folder), envelopes(events))
    assert (result["warnings"] != summary["warnings"]) is (unknown > 0), (
        "the model went on after a call without a result"
    )
    return unknown


def envelopes(events: Sequence[RunEvent]) -> list[ToolEnvelope]:
    return [entry.event.envelope for entry in events if isinstance(entry.event, CallFinished)]


def check_effects(ledger: Ledger, found: list[ToolEnvelope]) -> int:
    """Compare what was done with what the envelopes say."""
    counts = ledger.counts()
    ended = [envelope.name for envelope in found if envelope.name != "was_paid"]
    assert {name: ended.count(name) for name in set(ended)} == FINISHED
    unknown = 0
    for envelope in found:
        effects = counts[envelope.name, f"{envelope.run_id}/{envelope.position}"]
        match envelope.name, envelope.ok:
            case "post", False:
                assert envelope.error is not None
                assert envelope.error.reason is Reason.OUTCOME_UNKNOWN
                assert effects <= 1
                assert envelope.run_id
                unknown += 1
            case "post" | "pay", True:
                assert effects == 1
            case "look" | "put", True:
                assert effects in {1, 2}
            case name, ok:
                assert (name, ok) == ("was_paid", True)
    return unknown
