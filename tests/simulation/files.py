"""The files that simulations begin with: a store that has its tables and definitions, made once."""

import asyncio
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.simulation.office import Ledger, define, open_office
from tests.simulation.processes import Process
from tests.simulation.schedules import Decisions, Schedule
from tests.simulation.simulated_loop import SimulatedLoop


@contextmanager
def template() -> Generator[Path]:
    """A folder with such a store."""
    with tempfile.TemporaryDirectory() as folder:
        maker = Process("maker", SimulatedLoop(), Decisions(Schedule(0, {})), calm_from=0.0)

        async def make() -> None:
            crib = open_office(Path(folder), maker, Ledger())
            define(crib)
            async with crib:
                pass

        asyncio.run(make())
        yield Path(folder)
