"""A Redis server for the tests of this folder."""

from collections.abc import AsyncGenerator, Generator

import pytest

from tests.servers.redis import RedisTestServer, running_redis
from toolcrib.infrastructure.redis import RedisServer


@pytest.fixture(scope="module")
def running() -> Generator[RedisTestServer]:
    """The server of a module's tests."""
    with running_redis() as server:
        yield server


@pytest.fixture
async def server(running: RedisTestServer) -> AsyncGenerator[RedisServer]:
    """The way to it, with nothing stored."""
    opened = RedisServer(running.url())
    await opened.ask("FLUSHALL")
    yield opened
    await opened.close()
