"""Many runs wait for a person: nobody holds them, everything is killed, and all of them go on when decided."""

import asyncio
import signal
from pathlib import Path
from statistics import median
from time import monotonic

import pytest

from tests.chaos.processes import Child
from tests.chaos.world.crew import crib_at
from tests.chaos.world.jobs import approve_all, ask_many, moment, serve
from tests.chaos.world.place import Place, on_postgres, on_restate, on_sqlite
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.restate import running_restate
from toolcrib.contracts import RunStatus
from toolcrib.infrastructure.store import Journal

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.requirement("chaos_engines.waiting")]

MANY, RUNS = 1000, 5000
MOST_BYTES = 150 * 1024 * 1024
MOST_CPU = 0.05
"""Seconds of processor time in a second in which nothing is to be done."""
WINDOWS = 7
PATIENCE_S = 240.0


async def until_none(journal: Journal, *statuses: RunStatus) -> None:
    """Wait until no run stands so."""
    async with asyncio.timeout(PATIENCE_S):
        for status in statuses:
            while await journal.runs("default", status=status, limit=1):
                await moment()


def memory(pid: int, what: str) -> int:
    """Bytes of memory that a process has (`VmRSS`), or had at the most (`VmHWM`)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith(what))


def processor_s(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def idling(pid: int) -> float:
    """The share of a processor that a process takes while it has nothing to do: of several windows, the middle one."""
    return median([await window(pid) for _ in range(WINDOWS)])


async def window(pid: int) -> float:
    """The share of a processor that a process takes in a second."""
    begun, used = monotonic(), processor_s(pid)
    await asyncio.sleep(1)
    return (processor_s(pid) - used) / (monotonic() - begun)


async def check(place: Place, runs: int) -> None:
    """They wait, cost next to nothing while they do, and all come to their ends."""
    submitted = await Child(place.folder / "asked", ask_many, place, runs, patience_s=PATIENCE_S).result()
    async with crib_at(place) as crib:
        journal = crib.store.journal
        first = Child(place.folder / "first", serve, place, patience_s=PATIENCE_S)
        await until_none(journal, "queued", "running")
        first.signal(signal.SIGKILL)
        await first.ended()
        second = Child(place.folder / "second", serve, place, patience_s=2 * PATIENCE_S)
        try:
            for _ in range(WINDOWS):  # it begins
                if await window(second.pid) < MOST_CPU:
                    break
            assert await idling(second.pid) < MOST_CPU
            assert memory(second.pid, "VmRSS") < MOST_BYTES
            decided = await Child(place.folder / "decided", approve_all, place, patience_s=PATIENCE_S).result()
            await until_none(journal, "awaiting_approval", "queued", "running")
            assert memory(second.pid, "VmHWM") < MOST_BYTES
        finally:
            second.signal(signal.SIGKILL)
            await second.ended()
    assert decided == runs
    signed = [line.key.partition("/")[0] for line in place.book.lines() if line.mark == "effect"]
    assert sorted(signed) == sorted(submitted)


@pytest.mark.parametrize("runs", [MANY, pytest.param(RUNS, marks=pytest.mark.soak)])
async def test_many_runs_wait_through_the_death_of_all_processes_and_cost_next_to_nothing(runs: int, tmp_path: Path):
    await check(on_sqlite(tmp_path, lease_s=10), runs)


@pytest.mark.soak
async def test_they_do_so_on_postgresql(tmp_path: Path, postgres: PostgresServer):
    await check(on_postgres(tmp_path, postgres, lease_s=10), RUNS)


@pytest.mark.soak
async def test_they_do_so_on_restate(tmp_path: Path):
    with running_restate(worker_port=free_port()) as server:
        await check(on_restate(tmp_path, server, lease_s=10), RUNS)
