"""Minutes of disorder: many runs, processes that are killed or frozen at random, and others that take over."""

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.chaos.journals import are_ended, check_log, journals
from tests.chaos.ledger import Ledger, serve, submit
from tests.chaos.processes import Child
from toolcrib.contracts import CallFinished, Reason, RunEvent, RunResumed

pytestmark = [pytest.mark.chaos, pytest.mark.soak, pytest.mark.requirement("chaos.soak")]

RUNS = 2000
WORKERS = 2
LEASE_S = 1.0


class Workers:
    """Processes that serve, some of which die and some of which freeze until others have taken their runs."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.counts: Counter[str] = Counter()
        self._folder = folder
        self._dice = dice
        self._frozen: list[Child] = []
        self._serving = [self._started() for _ in range(WORKERS)]

    def _started(self) -> Child:
        self.counts["processes"] += 1
        answer = self._folder / f"worker-{self.counts['processes']}"
        return Child(answer, serve, self._folder, LEASE_S, 40.0)

    async def disturb(self) -> None:
        """Kill one, or freeze it for longer than its lease; another one takes its place."""
        await asyncio.sleep(self._dice.uniform(0.05, 0.4))
        place = self._dice.randrange(WORKERS)
        victim, self._serving[place] = self._serving[place], self._started()
        if self._dice.random() < 0.3:
            self.counts["frozen"] += 1
            victim.signal(signal.SIGSTOP)
            await asyncio.sleep(LEASE_S * 1.5)
            victim.signal(signal.SIGCONT)
            self._frozen.append(victim)
        else:
            self.counts["killed"] += 1
            victim.signal(signal.SIGKILL)
            await victim.ended()

    async def dismiss(self) -> None:
        """End those that are left."""
        for child in (*self._serving, *self._frozen):
            child.signal(signal.SIGKILL)
            await child.ended()


@pytest.mark.parametrize("seed", [1, 2])
async def test_every_run_comes_to_its_end_in_disorder(tmp_path: Path, seed: int):
    await Child(tmp_path / "submitted", submit, tmp_path, RUNS).result()
    workers = Workers(tmp_path, random.Random(seed))
    try:
        async with asyncio.timeout(300):
            while not await are_ended(tmp_path):
                await workers.disturb()
    finally:
        await workers.dismiss()

    logs = await journals(tmp_path)
    assert len(logs) == RUNS
    effects = Ledger(tmp_path).counts()
    for events in logs:
        check_log(events)
        check_effects(events, effects)
    assert workers.counts["killed"] >= 5, "too quiet to prove anything"
    assert workers.counts["frozen"] >= 1, "too quiet to prove anything"
    crashes = [entry for events in logs for entry in events if isinstance(entry.event, RunResumed)]
    assert len(crashes) >= 5, "too quiet to prove anything"


def check_effects(events: Sequence[RunEvent], effects: Counter[tuple[str, str]]) -> None:
    """A process that wakes up after it was thought dead may still act; its key tells others what it did twice."""
    envelopes = [entry.event.envelope for entry in events if isinstance(entry.event, CallFinished)]
    assert Counter(found.name for found in envelopes if found.name != "was_paid") == {
        "look": 1,
        "put": 1,
        "post": 2,
        "pay": 1,
    }
    for envelope in envelopes:
        count = effects[envelope.name, f"{envelope.run_id}/{envelope.position}"]
        if envelope.name == "post":
            assert count <= 1
        if envelope.error is not None:
            assert (envelope.name, envelope.error.reason) == ("post", Reason.OUTCOME_UNKNOWN)
        elif envelope.name != "was_paid":
            assert count >= 1
