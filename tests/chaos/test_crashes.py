"""On every engine: a process dies right before or after writes of each kind of run, and nothing is lost or repeated."""

from pathlib import Path

import pytest

from tests.chaos.world.crashes import KINDS, Crashes, crashes
from tests.chaos.world.judge import Evidence, violations
from tests.chaos.world.place import on_postgres, on_restate, on_sqlite
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.restate import running_restate

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.requirement("chaos_engines.crash_points")]

LEASE_S = 0.5
SEED = 1
WHOLE = pytest.param(None, marks=pytest.mark.soak)
"""All points of each kind of run, in place of a few."""


def check(world: Crashes, found: Evidence, most: int | None) -> None:
    """Nothing is wrong, and every process has died where it was to die."""
    assert list(violations(found)) == []
    assert world.survived == []
    assert {kind for kind, _ in world.points} == KINDS.keys()
    assert len(world.points) >= len(KINDS) * (most or 8)


@pytest.mark.parametrize("most", [2, WHOLE])
async def test_a_process_that_dies_at_any_write_of_any_run_does_no_harm_on_sqlite(tmp_path: Path, most: int | None):
    world, found = await crashes(on_sqlite(tmp_path, lease_s=LEASE_S), SEED, most)
    check(world, found, most)


@pytest.mark.parametrize("most", [2, WHOLE])
async def test_a_process_that_dies_at_any_write_of_any_run_does_no_harm_on_postgresql(
    tmp_path: Path, most: int | None, postgres: PostgresServer
):
    world, found = await crashes(on_postgres(tmp_path, postgres, lease_s=LEASE_S), SEED, most)
    check(world, found, most)


@pytest.mark.parametrize("most", [1, WHOLE])
async def test_a_process_that_dies_at_any_write_of_any_run_does_no_harm_on_restate(tmp_path: Path, most: int | None):
    with running_restate(worker_port=free_port()) as server:
        world, found = await crashes(on_restate(tmp_path, server, lease_s=LEASE_S), SEED, most)
    check(world, found, most)
