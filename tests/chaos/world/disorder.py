"""Disorder: a world whose processes are killed and frozen at random while runs are begun, answered and listened to.

What is done to it is counted, because a test that was too quiet has proved nothing.
"""

import asyncio
import signal
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from random import Random
from typing import NamedTuple

from tests.chaos.processes import Child
from tests.chaos.world.crew import SPREAD, SPREAD_INPUT, crib_at
from tests.chaos.world.evidence import gather
from tests.chaos.world.jobs import listen, serve
from tests.chaos.world.judge import Evidence
from tests.chaos.world.place import Place
from tests.chaos.world.public import Public
from tests.chaos.world.servers import Servers
from toolcrib import Crib
from toolcrib.contracts import NotFound, RunEvent, RunResumed, Unavailable

_LIFE_S = 3600.0
_STEP_S = 2.0  # twice a lease: longer steps back only make recovery take as much longer
_LOOKS = 100
_LOOK_S = 0.2
_SOON_S = 0.02
_FOLLOWED = 4
"""Subscribers listen to every so-many-th run."""


class Size(NamedTuple):
    """How much happens, and how much of it must have happened at the least."""

    clerks: int = 40
    """Runs of eight turns of a model call and three tool calls."""
    spreads: int = 6
    """Runs of the workflow."""
    kills: int = 8
    """Processes that serve and are killed."""
    freezes: int = 1
    """Processes that serve and stand still until others have taken their runs."""
    outages: int = 0
    """Kills of the servers that the world needs."""
    steps: int = 0
    """Times that the clock is set, forward or back."""
    at_a_time: int = 2
    """Runs that are begun between two disturbances."""
    patience_s: float = 120.0

    @property
    def crashes(self) -> int:
        """Runs that a killed process was driving; not every kill interrupts one."""
        return self.kills // 2


def crashes_in(log: Iterable[RunEvent]) -> int:
    """How often a run was taken from a process that had died."""
    return sum(isinstance(entry.event, RunResumed) and entry.event.cause == "crash" for entry in log)


class Disorder:
    """One world, from its first run to the end of its last.

    Args:
        place: Where it is.
        crib: Through which people begin runs and answer.
        dice: Tells what happens.
        size: How much.
        servers: Behind it, which are killed too; null if there are none.
    """

    def __init__(self, place: Place, crib: Crib, dice: Random, size: Size, servers: Servers | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self.public = Public(crib, dice)
        self.submitted: list[str] = []
        self._place = place
        self._crib = crib
        self._dice = dice
        self._size = size
        self._servers = servers
        self._asks = [("clerk", {"task": str(number)}) for number in range(size.clerks)]
        self._asks += [("spread", SPREAD_INPUT)] * size.spreads
        dice.shuffle(self._asks)
        self._begun = 0
        self._open: Collection[str] = ()
        """Runs that servers still mean to drive."""
        self._serving = [self._server(), self._server()]
        self._awake: list[Child] = []
        """Those that were frozen."""
        self._listener = self._subscriber()

    async def carry_through(self) -> None:
        """Begin everything, disturb as much as is wanted, and answer until all has ended."""
        async with asyncio.timeout(self._size.patience_s):
            while self._begun < len(self._asks) or not await self._is_enough():
                await self._begin()
                await asyncio.sleep(self._dice.uniform(0.05, 0.4))
                await self._disturb()
                await self._answer(eager=False)
            self._place.clock.step(0.0)
            while not await self._is_over():
                await asyncio.sleep(0.1)
                await self._answer(eager=True)
            await self._settle()
            assert all(child.is_alive for child in self._serving), "a process that serves has ended by itself"
            await self._cut_off()
            code = await self._listener.ended()
            assert code == 0, f"who listens to the end has ended with {code}"

    async def dismiss(self) -> None:
        """End all processes that are left."""
        for child in (*self._serving, *self._awake, self._listener):
            await _kill(child)

    async def evidence(self) -> Evidence:
        """What the judge needs."""
        followed = self.submitted[::_FOLLOWED]
        return await gather(self._crib, self._place, submitted=self.submitted, told=self.public.told, followed=followed)

    async def _settle(self) -> None:
        """Give the servers time to see that there is nothing to be done any more."""
        if self._servers is None:
            return
        for _ in range(_LOOKS):
            self._open = await self._servers.open_runs()
            if not self._open:
                return
            await asyncio.sleep(_LOOK_S)

    async def _is_enough(self) -> bool:
        """Whether so much has happened that something could have gone wrong."""
        size, counts = self._size, self.counts
        wanted = {"killed": size.kills, "frozen": size.freezes, "outages": size.outages, "stepped": size.steps}
        if any(counts[what] < least for what, least in wanted.items()):
            return False
        with suppress(Unavailable, NotFound):
            logs = [await self._crib.store.journal.events(run_id) for run_id in self.submitted]
            return sum(map(crashes_in, logs)) >= size.crashes
        return False

    async def _begin(self) -> None:
        """Begin a few runs; while the store is away, none."""
        if self._begun == len(self._asks):  # too little has happened to those that were meant to be all
            self._asks.append(("clerk", {"task": str(self._begun)}))
        for name, arguments in self._asks[self._begun : self._begun + self._size.at_a_time]:
            try:
                self.submitted.append(await self._crib.submit(name, arguments))
            except Unavailable:
                return
            self._begun += 1

    async def _disturb(self) -> None:
        """Kill a process that serves or listens, or have one stand still, or take a server away."""
        fate = self._dice.random()
        if self._servers is not None and fate < 0.15:
            self.counts["outages"] += 1
            await self._servers.outage()
        elif fate < 0.3:
            await self._cut_off()
        elif fate < 0.4:
            await self._freeze()
        elif fate < 0.8:
            self.counts["killed"] += 1
            victim = self._replaced()
            await self._begins_to_work(victim)
            await _kill(victim)
        elif fate < 0.85 and self._size.steps:
            self.counts["stepped"] += 1
            self._place.clock.step(self._dice.choice((-_STEP_S, 0.0, _STEP_S)))

    async def _cut_off(self) -> None:
        """Kill who listens; another one goes on, and listens to what was begun since too."""
        self.counts["cut off"] += 1
        await _kill(self._listener)
        self._listener = self._subscriber()

    async def _freeze(self) -> None:
        victim = self._replaced()
        self.counts["frozen"] += 1
        self._place.book.write("frozen", pid=victim.pid)
        victim.signal(signal.SIGSTOP)
        await asyncio.sleep(self._place.lease_s * 1.5)
        self._place.book.write("thawed", pid=victim.pid)
        victim.signal(signal.SIGCONT)
        self._awake.append(victim)

    def _replaced(self) -> Child:
        """The process that has served longest, as a new one has nothing to lose yet; another one takes its place."""
        self._serving.append(self._server())
        return self._serving.pop(0)

    async def _begins_to_work(self, child: Child) -> None:
        """Wait until a process has called a tool, so that its end interrupts something."""
        for _ in range(_LOOKS):
            if any(line.pid == child.pid for line in self._place.book.lines()):
                return
            await asyncio.sleep(_SOON_S)

    def _server(self) -> Child:
        self.counts["processes"] += 1
        return Child(self._place.folder / f"serves-{self.counts['processes']}", serve, self._place, patience_s=_LIFE_S)

    def _subscriber(self) -> Child:
        self.counts["listeners"] += 1
        answer = self._place.folder / f"listens-{self.counts['listeners']}"
        return Child(answer, listen, self._place, self.submitted[::_FOLLOWED], patience_s=_LIFE_S)

    async def _answer(self, *, eager: bool) -> None:
        with suppress(Unavailable):
            for run in await self.public.open_runs():
                if eager or self._dice.random() < 0.3:
                    await self.public.speak(run, eager=eager)

    async def _is_over(self) -> bool:
        try:
            return not await self.public.open_runs()
        except (Unavailable, NotFound):
            return False


async def _kill(child: Child) -> None:
    child.signal(signal.SIGKILL)
    await child.ended()


async def disorder(place: Place, seed: int, size: Size, servers: Servers | None = None) -> tuple[Disorder, Evidence]:
    """A world from its beginning to its end, and what the judge needs of it.

    Args:
        place: Where it is.
        seed: Of the dice.
        size: How much happens.
        servers: Behind it.
    """
    async with crib_at(place) as crib:
        await crib.workflows.publish(SPREAD)
        world = Disorder(place, crib, Random(seed), size, servers)
        try:
            await world.carry_through()
        finally:
            await world.dismiss()
        return world, await world.evidence()
