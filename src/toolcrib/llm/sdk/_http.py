"""The HTTP client for SDK clients: an httpx2 client that sends requests through one of our transports.

It is loaded with the first SDK, because it needs httpx2. It follows no redirect and opens no connection itself.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Final

import httpx2

from toolcrib.infrastructure.net import HttpStream, Timeouts
from toolcrib.llm.base.transport import Transport

_OF_THE_CONNECTION: Final = frozenset({"connection", "content-length", "host", "transfer-encoding"})
_OF_THE_ENCODING: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""What no longer holds of a body that has been decoded."""


def http_client(transport: Transport) -> httpx2.AsyncClient:
    """A client over a transport. It asks for encodings that the transport decodes."""
    return httpx2.AsyncClient(
        transport=_Carried(transport),
        headers={"accept-encoding": "gzip, deflate"},
        follow_redirects=False,
        trust_env=False,
    )


def httpx_timeout(timeouts: Timeouts) -> httpx2.Timeout:
    """Our limits in httpx2's words."""
    return httpx2.Timeout(timeouts.read_idle_s, connect=timeouts.connect_s)


class _Carried(httpx2.AsyncBaseTransport):
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        limits: dict[str, float | None] = request.extensions.get("timeout", {})
        timeouts = Timeouts(
            connect_s=limits.get("connect") or Timeouts.connect_s,
            read_idle_s=limits.get("read") or Timeouts.read_idle_s,
            total_s=None,
        )
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _OF_THE_CONNECTION}
        opened = self._transport.stream(str(request.url), await request.aread(), headers, timeouts)
        stream = await opened.__aenter__()
        kept = {name: value for name, value in stream.headers.items() if name not in _OF_THE_ENCODING}
        return httpx2.Response(stream.status, headers=kept, stream=_Body(opened, stream), request=request)


class _Body(httpx2.AsyncByteStream):
    def __init__(self, opened: AbstractAsyncContextManager[HttpStream], stream: HttpStream) -> None:
        self._opened = opened
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream.chunks:
            yield chunk

    async def aclose(self) -> None:
        await self._opened.__aexit__(None, None, None)
