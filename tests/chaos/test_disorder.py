"""On every engine: processes and servers are killed and frozen at random, and the judge finds nothing wrong."""

from pathlib import Path

import pytest

from tests.chaos.world.disorder import Disorder, Size, crashes_in, disorder
from tests.chaos.world.judge import Evidence, violations
from tests.chaos.world.place import on_postgres, on_restate, on_sqlite
from tests.chaos.world.servers import Postgres, Restate
from tests.servers.ports import free_port
from tests.servers.postgres import running_postgres
from tests.servers.restate import running_restate
from toolcrib.contracts import CallFinished, ModelFinished

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.requirement("chaos_engines.disorder")]

CALLS = 1280
"""Of forty clerks."""


LONG = Size(clerks=500, spreads=50, kills=150, freezes=20, at_a_time=1, patience_s=1800)
SEED = 1


def check(world: Disorder, found: Evidence, size: Size) -> None:
    """Nothing is wrong, and enough has happened that something could have been."""
    events = [entry.event for log in found.logs.values() for entry in log]
    assert list(violations(found)) == []
    assert sum(isinstance(event, CallFinished | ModelFinished) for event in events) >= CALLS * size.clerks // 40
    assert world.counts["killed"] >= size.kills
    assert world.counts["frozen"] >= size.freezes
    assert world.counts["outages"] >= size.outages
    assert world.counts["stepped"] >= size.steps
    assert world.counts["cut off"] >= 1
    assert sum(map(crashes_in, found.logs.values())) >= size.crashes, "too quiet to prove anything"


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(Size(), id="short"),
        pytest.param(LONG, id="long", marks=pytest.mark.soak),
        pytest.param(LONG._replace(steps=20), id="clock", marks=pytest.mark.soak),
    ],
)
async def test_nothing_is_lost_and_nothing_done_twice_in_disorder_on_sqlite(tmp_path: Path, size: Size):
    world, found = await disorder(on_sqlite(tmp_path), SEED, size)
    check(world, found, size)


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(Size(outages=1), id="short"),
        pytest.param(LONG._replace(outages=20), id="long", marks=pytest.mark.soak),
    ],
)
async def test_nothing_is_lost_and_nothing_done_twice_in_disorder_on_postgresql(tmp_path: Path, size: Size):
    with running_postgres() as server:
        world, found = await disorder(on_postgres(tmp_path, server), SEED, size, Postgres(server))
    check(world, found, size)


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(Size(outages=2, patience_s=300.0), id="short"),
        pytest.param(LONG._replace(outages=20), id="long", marks=pytest.mark.soak),
    ],
)
async def test_nothing_is_lost_and_nothing_done_twice_in_disorder_on_restate(tmp_path: Path, size: Size):
    with running_restate(worker_port=free_port()) as server:
        world, found = await disorder(on_restate(tmp_path, server), SEED, size, Restate(server))
    check(world, found, size)
