"""The CRM in this process, over a fresh copy of one seeded database."""

import shutil
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

from examples.crm.app import create_app
from examples.crm.clock import Clock
from examples.crm.ratelimit import Rate
from examples.crm.store import Store
from tests.unit.examples_crm.crm_client import TOKEN, Crm, ManualClock

SEED = 7


@pytest.fixture(scope="session")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("crm") / "seeded.db"
    with closing(Store(path, seed=SEED)) as store:
        store.admit_token(TOKEN, "2026-03-03T00:00:00.000Z")
    return path


@pytest.fixture
def rate() -> Rate:
    """Enough for any test; the tests of the rate override it."""
    return Rate(100_000, 1)


@pytest.fixture
def db(seeded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(seeded, tmp_path / "crm.db"))


@pytest.fixture
async def crm(db: Path, rate: Rate) -> AsyncGenerator[Crm]:
    clock = ManualClock()
    with closing(Store(db, seed=SEED)) as store:
        app = create_app(store, rate=rate, clock=Clock(utc=clock.utc, monotonic=clock.monotonic))
        async with TestClient(TestServer(app)) as client:
            yield Crm(client, db, clock)
