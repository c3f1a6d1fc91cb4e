"""Workflows with everything that waits, whose processes are killed at random while people answer and cancel."""

import asyncio
import contextlib
import random
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.chaos.flows import EFFECTS, OUTPUT, crib_at, serve, submit
from tests.chaos.journals import check_log
from tests.chaos.ledger import Ledger
from tests.chaos.processes import Child
from toolcrib import Crib
from toolcrib.contracts import Conflict, NotFound, Run
from toolcrib.contracts.workflows import WorkflowInstance

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.requirement("chaos.workflows")]

WORKERS = 2
PATIENCE_S = 240


class Outside:
    """Those who serve, some of whom are killed, and the people who answer, cancel, and resume what was cancelled.

    Args:
        crib: Of the people.
        folder: Of the store.
        begun: Ids of the instances.
        dice: Tells what happens next.
    """

    def __init__(self, crib: Crib, folder: Path, begun: Sequence[str], dice: random.Random) -> None:
        self.counts: Counter[str] = Counter()
        self._crib = crib
        self._folder = folder
        self._begun = begun
        self._dice = dice
        self._serving = [self._started() for _ in range(WORKERS)]

    async def carry_through(self, kills: int, cancels: int) -> None:
        """Disturb so often, until all have come to their ends."""
        while not await self._are_done():
            await asyncio.sleep(self._dice.uniform(0.05, 0.3))
            if self.counts["killed"] < kills and self._dice.random() < 0.5:
                await self._kill()
            for run in await self._crib.store.journal.runs("default", limit=1000):
                await self._answer(run)
            if self.counts["cancelled"] < cancels and self._dice.random() < 0.3:
                await self._cancel()

    async def dismiss(self) -> None:
        """End those that serve."""
        for child in self._serving:
            child.signal(signal.SIGKILL)
            await child.ended()

    async def last(self) -> Sequence[WorkflowInstance]:
        """The instances; of those that were taken up, those that did so."""
        found: list[WorkflowInstance] = []
        for run_id in self._begun:
            instance = await self._crib.instances.get(run_id)
            while instance.taken_up_by:
                instance = await self._crib.instances.get(instance.taken_up_by[-1])
            found.append(instance)
        return found

    async def _are_done(self) -> bool:
        """Whether nothing is left to be done; what was cancelled is resumed."""
        last = await self.last()
        for instance in last:
            if instance.status == "cancelled":
                with contextlib.suppress(Conflict):  # another process still has it
                    await self._crib.instances.resume(instance.run_id, wait=False)
        runs = await self._crib.store.journal.runs("default", limit=1000)
        return all(instance.status == "completed" for instance in last) and all(run.ended for run in runs)

    def _started(self) -> Child:
        self.counts["processes"] += 1
        return Child(self._folder / f"worker-{self.counts['processes']}", serve, self._folder, 300.0)

    async def _kill(self) -> None:
        self.counts["killed"] += 1
        place = self._dice.randrange(WORKERS)
        victim, self._serving[place] = self._serving[place], self._started()
        victim.signal(signal.SIGKILL)
        await victim.ended()

    async def _answer(self, run: Run) -> None:
        if run.ended or self._dice.random() < 0.7:
            return
        with contextlib.suppress(Conflict, NotFound):  # it has just ended, or somebody was quicker
            for request in await self._crib.pending_approvals(run.run_id):
                await self._crib.decide(run.run_id, request.position, approve=True)
            if run.request.tool_name == "outer":
                await self._crib.instances.signal(run.run_id, "news", {})

    async def _cancel(self) -> None:
        instance = self._dice.choice(await self.last())
        with contextlib.suppress(Conflict):  # it has ended
            await self._crib.instances.cancel(instance.run_id)
            self.counts["cancelled"] += 1


async def check(folder: Path, seed: int, *, instances: int, kills: int, cancels: int) -> None:
    begun = await Child(folder / "submitted", submit, folder, instances).result()
    async with crib_at(folder) as crib:
        await crib.open()
        outside = Outside(crib, folder, begun, random.Random(seed))
        try:
            async with asyncio.timeout(PATIENCE_S):
                await outside.carry_through(kills, cancels)
        finally:
            await outside.dismiss()
        last = await outside.last()
        for run in await crib.store.journal.runs("default", limit=1000):
            check_log(await crib.store.journal.events(run.run_id))
    assert [instance.output for instance in last] == [OUTPUT] * instances
    assert outside.counts["killed"] >= kills // 4, "too quiet to prove anything"
    effects = Ledger(folder).counts()
    done = Counter(name for name, _ in effects)
    assert {name: done[name] for name in EFFECTS} == {name: count * instances for name, count in EFFECTS.items()}
    assert [effect for effect, times in effects.items() if times > 1 and effect[0] in {"pay", "post"}] == []
    assert done["post"] <= instances


async def test_workflows_whose_processes_die_do_everything_once_and_end_as_undisturbed(tmp_path: Path):
    await check(tmp_path, 1, instances=2, kills=3, cancels=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
async def test_many_of_them_do_so(tmp_path: Path, seed: int):
    await check(tmp_path, seed, instances=8, kills=20, cancels=6)
