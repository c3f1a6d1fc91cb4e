"""The three ways to an MCP server: streamable HTTP, server-sent events as older servers speak them, and a program."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, assert_never

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from toolcrib.infrastructure.secrets import Redactor
from toolcrib.kinds.mcp.runtime._program import running
from toolcrib.kinds.mcp.runtime.failures import unopened
from toolcrib.kinds.mcp.runtime.reach import Reach
from toolcrib.kinds.mcp.runtime.session import Asking, Session, hold
from toolcrib.kinds.mcp.runtime.transports import SILENCE_S, Guarded

logging.getLogger("mcp").setLevel(logging.CRITICAL)
"""The SDK logs session ids, and messages that it cannot read with all that they hold. What fails is in our errors."""


async def serve(reach: Reach, asking: Asking, opened: Callable[[Session], None], leave: asyncio.Event) -> None:
    """Open a connection, hand its session out, and hold it open until it is left. What prevents it is in the troubles.

    Args:
        reach: The server.
        asking: What the session is opened with.
        opened: Is given the session.
        leave: When to close it.
    """
    match reach.connection.transport:
        case "stdio":
            await _program(reach, asking, opened, leave)
        case "streamable_http":
            async with _client(reach, asking) as client:
                url, limit = reach.provider.address, reach.session.policy.max_bytes
                streams = streamable_http_client(url, http_client=client, max_sse_event_size=limit)
                await hold(streams, asking, legacy=False, opened=opened, leave=leave)
        case "sse":

            def factory(*_: Any, **__: Any) -> httpx2.AsyncClient:
                return _client(reach, asking, failed=leave.set)  # what was not accepted is answered nowhere

            streams = sse_client(reach.provider.address, httpx_client_factory=factory, sse_read_timeout=SILENCE_S)
            await hold(streams, asking, legacy=True, opened=opened, leave=leave)
        case _:
            assert_never(reach.connection.transport)


async def _program(reach: Reach, asking: Asking, opened: Callable[[Session], None], leave: asyncio.Event) -> None:
    redactor = Redactor(reach.secrets)

    def tell(said: str) -> None:
        asking.troubles.said = redactor.text(said)

    streams = running(reach.connection.command, reach.environment, tell)
    try:
        await hold(streams, asking, legacy=False, opened=opened, leave=leave)
    except OSError as problem:
        asking.troubles.last = unopened(reach.provider.name, f"its program does not start: {problem.strerror}")


def _client(reach: Reach, asking: Asking, failed: Callable[[], None] | None = None) -> httpx2.AsyncClient:
    """The SDK's HTTP client, whose only way out is ours; nothing of the environment changes that."""
    guarded = Guarded(
        reach.session, reach.provider, reach.principal, reach.access, asking.troubles, reach.now, failed=failed
    )
    return httpx2.AsyncClient(transport=guarded, timeout=None, trust_env=False)
