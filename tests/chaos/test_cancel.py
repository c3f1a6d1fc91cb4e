"""Cancelled at random events, and killed as soon as that was accepted: the runs end, and do nothing more."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.chaos.cancelling import recover, work
from tests.chaos.journals import check_log, journals
from tests.chaos.ledger import Ledger
from tests.chaos.processes import KILLED, Child
from toolcrib.contracts import CallFinished, CallStarted, Reason, RunEvent, RunFinished, SignalReceived

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.requirement("chaos.cancel")]

PLACES = 8
"""Events at which a run is cancelled, of its three dozen."""


@pytest.mark.parametrize("dies", [False, True])
async def test_runs_that_are_cancelled_at_any_event_end_and_say_so(tmp_path: Path, dies: bool):
    usual = tmp_path / "undisturbed"
    usual.mkdir()
    assert (await Child(usual / "result.json", work, usual, None, False).result())["status"] == "completed"
    events = sum(map(len, await journals(usual)))
    turns = asyncio.Semaphore(2)

    async def attempt(event: int) -> str:
        async with turns:
            return await cancelled_at(tmp_path / str(event), event, dies=dies)

    places = random.Random(events).sample(range(1, events + 1), PLACES)
    outcomes = await asyncio.gather(*map(attempt, places), return_exceptions=True)
    failures = {place: repr(found) for place, found in zip(places, outcomes, strict=True) if not isinstance(found, str)}
    assert failures == {}
    assert outcomes.count("cancelled") >= PLACES // 2, "too few to prove anything"


async def cancelled_at(folder: Path, event: int, *, dies: bool) -> str:
    """Returns how the outer run ended."""
    await asyncio.to_thread(folder.mkdir)
    child = Child(folder / "result.json", work, folder, event, dies)
    code = await child.ended()
    assert code in {0, KILLED} if dies else code == 0
    outer, *_ = await journals(folder)
    if code == KILLED:
        await Child(folder / "last.json", recover, folder, outer[0].run_id).result()
    logs = await journals(folder)
    for log in logs:
        check_log(log)
        check_calls(folder, log)
    end = logs[0][-1].event
    assert isinstance(end, RunFinished)
    if end.status == "cancelled":
        check_record(logs[0], end)
    return end.status


def check_record(log: Sequence[RunEvent], end: RunFinished) -> None:
    """Who cancelled the run, and why, stands in its journal once."""
    (told,) = [entry.event for entry in log if isinstance(entry.event, SignalReceived)]
    assert (told.made_by, told.payload) == ("owner", {"reason": "chaos"})
    assert end.error is not None
    assert (end.stop_reason, end.error.reason) == ("cancelled", Reason.CANCELLED)


def check_calls(folder: Path, log: Sequence[RunEvent]) -> None:
    """Every call that was begun has its envelope, and what it says is what was done."""
    effects = Ledger(folder).counts()
    envelopes = {entry.event.position: entry.event.envelope for entry in log if isinstance(entry.event, CallFinished)}
    begun = {entry.event.position for entry in log if isinstance(entry.event, CallStarted)}
    assert begun <= envelopes.keys()
    for envelope in envelopes.values():
        count = effects[envelope.name, f"{envelope.run_id}/{envelope.position}"]
        assert count <= 1
        if envelope.ok and envelope.name not in {"clerk", "was_paid"}:
            assert count == 1
