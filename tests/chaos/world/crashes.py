"""Crash points: for each kind of run, a process dies at points of it, one run for each; then others end them all."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random
from typing import Final

from tests.chaos.processes import KILLED, Child
from tests.chaos.world.crew import SPREAD, SPREAD_INPUT, crib_at
from tests.chaos.world.evidence import gather
from tests.chaos.world.jobs import moment, perish, serve
from tests.chaos.world.judge import Evidence
from tests.chaos.world.place import Place
from tests.chaos.world.points import Point
from tests.chaos.world.public import Public
from toolcrib import Crib
from toolcrib.contracts import JsonObject

KINDS: Final[Mapping[str, JsonObject]] = {
    **{name: {} for name in ("look", "put", "charge", "post", "pay", "sign", "label")},
    "helper": {"task": "help"},
    "boss": {"task": "lead"},
    "spread": SPREAD_INPUT,
}
"""Runs of every kind, by tool: single calls, model calls, nested runs, waits, lists."""
_LANES = 3
_PATIENCE_S = 180.0


class Crashes:
    """A world in which processes die at chosen points.

    Args:
        place: Where it is.
        crib: Through which people begin runs and answer.
        dice: Chooses the points.
    """

    def __init__(self, place: Place, crib: Crib, dice: Random) -> None:
        self.points: list[tuple[str, Point]] = []
        """Where processes were to die, with the kinds of their runs."""
        self.survived: list[tuple[str, Point, int]] = []
        """Where they did not, with what became of them."""
        self._place = place
        self._crib = crib
        self._dice = dice
        self._public = Public(crib, dice)
        self._submitted: list[str] = []
        self._lanes = asyncio.Semaphore(1 if place.restate else _LANES)  # Restate sends a run to whoever is there

    async def carry_through(self, most: int | None) -> None:
        """Have a process die at points of each kind, and others end what they leave.

        Args:
            most: Points of a kind; all if null.
        """
        async with asyncio.timeout(_PATIENCE_S), self._answers():
            writes = dict(zip(KINDS, await asyncio.gather(*map(self._undisturbed, KINDS)), strict=True))
            async with asyncio.TaskGroup() as group:
                for kind, count in writes.items():
                    for when, write in self._chosen(count, most):
                        group.create_task(self._die(kind, when, write))
            last = Child(self._place.folder / "last", serve, self._place, patience_s=_PATIENCE_S)
            try:
                while await self._public.open_runs():
                    await moment()
            finally:
                last.signal(signal.SIGKILL)
                await last.ended()

    async def evidence(self) -> Evidence:
        """What the judge needs."""
        return await gather(self._crib, self._place, submitted=self._submitted, told=self._public.told)

    def _chosen(self, writes: int, most: int | None) -> Sequence[tuple[str, int]]:
        points = [(when, write) for write in range(1, writes + 1) for when in ("before", "after")]
        return points if most is None else self._dice.sample(points, min(most, len(points)))

    async def _undisturbed(self, kind: str) -> int:
        """How often a run of a kind is written to, whoever says who drives it."""
        run_id = await self._begin(kind)
        alone = replace(self._place, restate=None)
        return await Child(self._place.folder / run_id, perish, alone, Point(run_id)).result()

    async def _die(self, kind: str, when: str, write: int) -> None:
        """Have a process die at a write, or at the last one before it: a busy machine may write to a run less often."""
        async with self._lanes:
            point, code = await self._perish(kind, when, write)
            while code == 0 and point.write > 1:
                point, code = await self._perish(kind, when, point.write - 1)
        self.points.append((kind, point))
        if code != KILLED:
            self.survived.append((kind, point, code))

    async def _perish(self, kind: str, when: str, write: int) -> tuple[Point, int]:
        """Begin a run and have a process drive it that dies there; with its exit code."""
        run_id = await self._begin(kind)
        point = Point(run_id, "after" if when == "after" else "before", write)
        return point, await Child(self._place.folder / run_id, perish, self._place, point).ended()

    async def _begin(self, kind: str) -> str:
        run_id = await self._crib.submit(kind, KINDS[kind])
        self._submitted.append(run_id)
        return run_id

    @asynccontextmanager
    async def _answers(self) -> AsyncGenerator[None]:
        """Meanwhile people answer whatever is asked."""
        task = asyncio.create_task(self._answer())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _answer(self) -> None:
        while True:
            for run in await self._public.open_runs():
                await self._public.speak(run, eager=True)
            await moment()


async def crashes(place: Place, seed: int, most: int | None) -> tuple[Crashes, Evidence]:
    """A world from its beginning to its end, and what the judge needs of it.

    Args:
        place: Where it is.
        seed: Of the dice.
        most: Points of a kind; all if null.
    """
    async with crib_at(place) as crib:
        await crib.workflows.publish(SPREAD)
        world = Crashes(place, crib, Random(seed))
        await world.carry_through(most)
        return world, await world.evidence()
