"""A server on a real port, and the SDK's client with a key."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import uvicorn
from mcp.client.client import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from tests.unit.server.client import Server, serving

REVISIONS = ("legacy", "2026-07-28")
"""A session of the older revisions, and the stateless one."""
SSE = "sse"
"""A session over the transport of revision 2024-11-05."""


@asynccontextmanager
async def on_a_port(app: Any) -> AsyncGenerator[str]:
    """The address of the endpoint of an ASGI application while it is served."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # so that who connects before the server runs is not refused
    config = uvicorn.Config(app, log_level="warning", lifespan="off")
    running = uvicorn.Server(config)
    task = asyncio.create_task(running.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    finally:
        running.should_exit = True
        await task
        listener.close()


@asynccontextmanager
async def mcp_server(store: str = "memory://") -> AsyncGenerator[tuple[Server, str]]:
    """A server and the address of its MCP endpoint."""
    async with serving(store) as server, on_a_port(server.app) as url:
        yield server, url


@asynccontextmanager
async def client_of(
    url: str,
    mode: str = "2026-07-28",
    *,
    key: str = "owner",
    answer: Callable[..., Any] | None = None,
    **callbacks: Any,
) -> AsyncGenerator[Client]:
    """A client that is connected.

    Args:
        url: Of the endpoint.
        mode: One of `REVISIONS`, or `SSE`.
        key: A bearer token.
        answer: Fills in the forms that the client shows; null for a client that shows none.
        **callbacks: What else the client offers and hears, by the SDK's names.
    """
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http:
        transport = sse_client(f"{url}/sse", headers) if mode == SSE else streamable_http_client(url, http_client=http)
        revision = "legacy" if mode == SSE else mode
        async with Client(transport, mode=revision, elicitation_callback=answer, **callbacks) as client:
            yield client
