"""Several processes on one store, and processes that are killed."""

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.postgres import PostgresServer
from tests.unit.store.samples import LEASE_S, NOON, claimed, entry, later, opened_at, started
from tests.unit.store.samples import signal as sent
from toolcrib.contracts import Fenced
from toolcrib.infrastructure.store import RunChange

ROOT = Path(__file__).parents[3]

COMPETITOR = """
import asyncio, json, sys
from tests.unit.store.samples import FIRST, NOON, new_run, opened_at

async def main(me, url):
    async with opened_at(url) as store:
        for number in range(10):
            await store.journal.create(new_run(f"{me}-{number}"), FIRST)
        taken = []
        for run_id in await store.journal.claimable(now=NOON, limit=100):
            if await store.journal.claim(run_id, owner=me, now=NOON, lease_s=60):
                taken.append(run_id)
        print(json.dumps(taken))

asyncio.run(main(*sys.argv[1:]))
"""

VICTIM = """
import asyncio, itertools, sys
from tests.unit.store.samples import entry, opened_at, started

async def main(url):
    async with opened_at(url) as store:
        await started(store.journal)
        for number in itertools.count(2):
            pending = store.journal.append("r1", 1, [entry(number, data="x" * 500)])
            if number % 3 == 0:
                await pending
                print(number, flush=True)

asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture(params=["sqlite", "postgres"])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that nobody has opened."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/crib.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.database()


def launch(program: str, *arguments: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True, env=environment
    )


@pytest.mark.requirement("store.processes")
@pytest.mark.slow
async def test_processes_that_start_at_once_make_one_schema_and_never_own_the_same_run(shared_url: str):
    processes = [launch(COMPETITOR, f"p{number}", shared_url) for number in range(3)]
    outputs = [process.communicate()[0] for process in processes]

    assert [process.returncode for process in processes] == [0, 0, 0]
    taken = [run_id for output in outputs for run_id in json.loads(output)]
    assert len(taken) == len(set(taken))
    async with opened_at(shared_url) as store:
        runs = await store.journal.runs("default", limit=100)
        assert {run.run_id for run in runs if run.epoch == 1} == set(taken)
        assert len(runs) == 30


@pytest.mark.requirement("store.durable_prefix")
@pytest.mark.chaos
@pytest.mark.parametrize("lines", [1, 4, 17])
async def test_what_a_killed_process_leaves_is_a_prefix_with_all_that_was_awaited(shared_url: str, lines: int):
    process = launch(VICTIM, shared_url)
    assert process.stdout is not None
    awaited = [int(line) for line in itertools.islice(process.stdout, lines)]
    process.send_signal(signal.SIGKILL)
    awaited += [int(line) for line in process.stdout if line.endswith("\n")]
    process.stdout.close()
    process.wait()

    async with opened_at(shared_url) as store:
        run = await store.journal.run("r1")
        numbers = [event.number for event in await store.journal.events("r1")]
        assert numbers == list(range(1, run.events + 1))
        assert run.events >= awaited[-1]

        claim = await claimed(store.journal, owner="survivor", at=later(1000))
        assert claim.run.epoch == 2
        await store.journal.append("r1", 2, [entry(run.events + 1)])


@pytest.mark.requirement("store.processes", "store.waiting")
async def test_a_signal_that_another_process_sends_during_the_suspension_is_not_missed(shared_url: str):
    wait = RunChange("awaiting_approval", waiting_for=("approval:t1.c1",))
    async with opened_at(shared_url) as worker, opened_at(shared_url) as server:
        for number in range(20):
            run_id = f"r{number}"
            await started(worker.journal, run_id)
            await asyncio.gather(
                worker.journal.append(run_id, 1, [entry(2, run_id)], wait), server.journal.signal(run_id, sent())
            )

            assert list(await worker.journal.claimable(now=NOON, limit=10)) == [run_id]
            assert (await claimed(worker.journal, run_id)).signals == {"approval:t1.c1": sent()}


@pytest.mark.requirement("store.processes", "store.fencing")
async def test_a_process_whose_run_was_taken_over_is_fenced(shared_url: str):
    async with opened_at(shared_url) as frozen, opened_at(shared_url) as survivor:
        await started(frozen.journal)
        await claimed(survivor.journal, owner="survivor", at=later(LEASE_S))

        with pytest.raises(Fenced):
            await frozen.journal.append("r1", 1, [entry(2)])
        assert list(await frozen.journal.renew(["r1"], owner="p1", now=later(LEASE_S), lease_s=LEASE_S)) == []
        await survivor.journal.append("r1", 2, [entry(2)])
