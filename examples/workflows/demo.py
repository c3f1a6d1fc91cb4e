"""Runs the gallery: one line for each scenario, with what became of its steps and what was really done.

python -m examples.workflows.demo [NAME...]
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from examples.workflows.gallery import open_crib, publish
from examples.workflows.scenarios import SCENARIOS
from examples.workflows.world import World
from toolcrib.contracts.workflows import WorkflowInstance


class FastClock:
    """A clock on which days pass at once when somebody sleeps."""

    def __init__(self) -> None:
        self._slept = 0.0

    def now(self) -> datetime:
        """The moment, with all the time that was slept."""
        return datetime.now(UTC) + timedelta(seconds=self._slept)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return asyncio.get_running_loop().time() + self._slept

    async def sleep(self, seconds: float) -> None:
        """Let the time pass without waiting for it."""
        self._slept += seconds
        await asyncio.sleep(0)


async def play(name: str) -> tuple[WorkflowInstance, World]:
    """Run one scenario in a crib of its own; returns how it ended, and the world after it."""
    world = World()
    async with open_crib(world, clock=FastClock()) as crib:
        await publish(crib)
        return await SCENARIOS[name](crib, world), world


async def main(names: Sequence[str] = ()) -> None:
    """Run the scenarios of these names, or all of them."""
    for name in names or SCENARIOS:
        instance, world = await play(name)
        steps = Counter(step.status for step in instance.steps)
        told = ", ".join(f"{count} {status}" for status, count in steps.items())
        print(f"{name:22} {instance.status:10} {told}; effects: {len(world.done)}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
