"""A CRM served over gRPC, and a crib that has imported it."""

from collections.abc import AsyncGenerator

import pytest

from tests.unit.grpc.server import Crm, crm_server, local
from toolcrib import Crib


@pytest.fixture
def crm() -> Crm:
    """What the server does."""
    return Crm()


@pytest.fixture
async def port(crm: Crm) -> AsyncGenerator[int]:
    """Of the server."""
    async with crm_server(crm) as port:
        yield port


@pytest.fixture
async def crib(port: int) -> AsyncGenerator[Crib]:
    """With the server's tools."""
    async with Crib("memory://", egress=local(port)) as crib:
        await crib.imports.grpc(f"grpc://127.0.0.1:{port}", name="crm")
        yield crib
