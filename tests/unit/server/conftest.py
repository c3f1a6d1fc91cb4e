"""A server for each test that asks for one."""

from collections.abc import AsyncGenerator

import pytest

from tests.unit.server.client import Server, serving


@pytest.fixture
async def server() -> AsyncGenerator[Server]:
    """A server whose runs are driven."""
    async with serving() as started:
        yield started
