"""A server on a real port, and the client for it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tests.unit.mcp_server.served import on_a_port
from tests.unit.server.client import Server, serving
from toolcrib.client import AsyncClient


@asynccontextmanager
async def served(store: str = "memory://") -> AsyncGenerator[tuple[Server, str]]:
    """A server and its address."""
    async with serving(store) as server, on_a_port(server.app) as url:
        yield server, url.removesuffix("/mcp")


@asynccontextmanager
async def client_of(store: str = "memory://", *, key: str = "owner") -> AsyncGenerator[AsyncClient]:
    """A client of a new server."""
    async with served(store) as (_, url), AsyncClient(url, api_key=key) as client:
        yield client
