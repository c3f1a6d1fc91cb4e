"""What a scenario is given: it makes processes, decides, and has a folder and a store that all processes share."""

import asyncio
from pathlib import Path
from random import Random
from typing import Final

from tests.simulation.processes import Process
from tests.simulation.schedules import Decisions
from tests.simulation.simulated_loop import SimulatedLoop

_CALM: Final = 0.0


class World:
    """One simulation.

    Args:
        loop: What all runs on.
        decisions: What is decided.
        folder: Empty, or with what the simulation begins with.
        stormy_s: The simulated second from which on nothing happens to any process, so that all must come to an end.
    """

    def __init__(self, loop: SimulatedLoop, decisions: Decisions, folder: Path, stormy_s: float) -> None:
        self.folder = folder
        self.random: Random = decisions.random
        """Chance that does not depend on decisions."""
        self.processes: list[Process] = []
        self._loop = loop
        self._decisions = decisions
        self._stormy_s = stormy_s

    @property
    def time(self) -> float:
        """Simulated seconds since the beginning."""
        return self._loop.time()

    def process(self, name: str, *, calm: bool = False) -> Process:
        """A new process.

        Args:
            name: Its name; no two should have the same.
            calm: Nothing ever happens to it: it observes, or stands for people.
        """
        made = Process(name, self._loop, self._decisions, calm_from=_CALM if calm else self._stormy_s)
        self.processes.append(made)
        return made

    def pick(self, what: str, options: int) -> int:
        """A number below `options`; 0 is what a shortened schedule prefers."""
        return self._decisions.choose(what, "pick", options)

    async def end(self) -> None:
        """Let all processes come to an end, without any effect."""
        others = [task for task in self._loop.tasks if task is not asyncio.current_task() and not task.done()]
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=1)
        for process in self.processes:
            if not process.dead:
                process.crash()
        await asyncio.sleep(0)
        for process in self.processes:
            await process.bury()
