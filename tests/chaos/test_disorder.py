"""On every engine: processes and servers are killed and frozen at random, and the judge finds nothing wrong."""

from pathlib import Path

import pytest

from tests.chaos.world.disorder import Disorder, Size, disorder
from tests.chaos.world.judge import Evidence, violations
from tests.chaos.world.place import on_postgres, on_restate, on_sqlite
from tests.chaos.world.servers import Postgres, Restate
from tests.servers.ports import free_port
from tests.servers.postgres import running_postgres
from tests.servers.restate import running_restate
from toolcrib.contracts import CallFinished, ModelFinished, RunResumed

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.requirement("chaos_engines.disorder")]

CALLS = 1280


def check(world: Disorder, found: Evidence, size: Size) -> None:
    """Nothing is wrong, and enough has happened that something could have been."""
    events = [entry.event for log in found.logs.values() for entry in log]
    assert list(violations(found)) == []
    assert sum(isinstance(event, CallFinished | ModelFinished) for event in events) >= CALLS
    assert world.counts["killed"] >= size.kills
    assert world.counts["frozen"] >= size.freezes
    assert world.counts["outages"] >= size.outages
    assert world.counts["cut off"] >= 1
    crashes = sum(isinstance(event, RunResumed) and event.cause == "crash" for event in events)
    assert crashes >= size.kills // 2, "too quiet to prove anything"


async def test_nothing_is_lost_and_nothing_done_twice_in_disorder_on_sqlite(tmp_path: Path):
    size = Size()
    world, found = await disorder(on_sqlite(tmp_path), 1, size)
    check(world, found, size)


async def test_nothing_is_lost_and_nothing_done_twice_in_disorder_on_postgresql(tmp_path: Path):
    size = Size(outages=1)
    with running_postgres() as server:
        world, found = await disorder(on_postgres(tmp_path, server), 1, size, Postgres(server))
    check(world, found, size)


async def test_nothing_is_lost_and_nothing_done_twice_in_disorder_on_restate(tmp_path: Path):
    size = Size(outages=2)
    with running_restate(worker_port=free_port()) as server:
        world, found = await disorder(on_restate(tmp_path, server), 1, size, Restate(server))
    check(world, found, size)
