"""A GraphQL server, and a crib that has its tools."""

from collections.abc import AsyncGenerator

import pytest

from tests.unit.graphql.server import Api, adopt, api_server, crm_import, local
from toolcrib import Crib


@pytest.fixture
def api() -> Api:
    """What the server does."""
    return Api()


@pytest.fixture
async def port(api: Api) -> AsyncGenerator[int]:
    """Of the server."""
    async with api_server(api) as port:
        yield port


@pytest.fixture
async def crib(port: int) -> AsyncGenerator[Crib]:
    """With the server's tools."""
    async with Crib("memory://", egress=local(port)) as crib:
        await adopt(crib, crm_import(port))
        yield crib
