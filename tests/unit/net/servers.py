"""What the tests of the network layer talk to: servers on loopback, and a resolver that answers from a table."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from aiohttp import web

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
RawHandler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class TableResolver:
    """The in-memory twin of `SystemResolver`: each name has a list of answers, the last of which repeats."""

    def __init__(self, table: dict[str, list[list[str]]]) -> None:
        self._table = table
        self.asked: list[tuple[str, int]] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        answers = self._table.get(host)
        if answers is None:
            raise OSError(f"{host} is not in the table")
        return answers.pop(0) if len(answers) > 1 else answers[0]


@asynccontextmanager
async def serving(handler: Handler, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> AsyncGenerator[int]:
    """An HTTP server for all paths; yields its port."""
    runner = web.ServerRunner(
        web.Server(handler), shutdown_timeout=0.1
    )  # a handler that never answers is not waited for
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, 0, ssl_context=tls)
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


@asynccontextmanager
async def serving_raw(handler: RawHandler) -> AsyncGenerator[int]:
    """A TCP server on 127.0.0.1 that may break every rule of HTTP; yields its port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield int(server.sockets[0].getsockname()[1])


def answering(raw: bytes) -> RawHandler:
    """Reads a request's head, writes these bytes, and closes."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        await writer.drain()

    return handle


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Reads until the client gives up, and says nothing."""
    await reader.read()


async def no_answer(request: web.BaseRequest) -> web.StreamResponse:
    """Fails the test: the request should never have arrived."""
    raise AssertionError(f"{request.method} {request.host} arrived at a server that must not be reached")
