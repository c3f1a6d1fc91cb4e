"""Runs a whole system on one seeded scheduler: processes, their clocks, their store and what is outside of them.

A scenario is an async function. It starts processes in a `World`, has them do things, and asserts what must be true.
`simulate` runs it once for each seed. Each seed is another schedule: how long every operation of the store, every tool
and every model takes, and which process dies or stands still at which of them. Time is simulated, so that a schedule
takes milliseconds. The same seed makes the same schedule, and with it the same bytes in the store.

A schedule that fails is shortened to the decisions that matter, and the error shows them:

    async def scenario(world: World) -> None:
        first = world.process("first")
            crib = await first.run(open_crib(first))
        ...

    simulate(scenario, range(2000), store=template)

asyncio runs what is ready in the order in which it became ready, and so does the simulation. Everything random is about
when something becomes ready. So whatever a schedule finds can happen.
"""

from tests.simulation.processes import Died, Process, SimulatedClock
from tests.simulation.schedules import Decisions, Schedule
from tests.simulation.search import Failure, ScheduleFailed, run_schedule, shorten, simulate, sweep
from tests.simulation.simulated_loop import SimulatedLoop, Stuck
from tests.simulation.world import World

__all__ = [
    "Decisions",
    "Died",
    "Failure",
    "Process",
    "Schedule",
    "ScheduleFailed",
    "SimulatedClock",
    "SimulatedLoop",
    "Stuck",
    "World",
    "run_schedule",
    "shorten",
    "simulate",
    "sweep",
]
