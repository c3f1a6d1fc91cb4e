"""A way to a PostgreSQL server that breaks at the worst moment: around a commit."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal

_COMMIT = b"COMMIT\0"


class Proxy:
    """Passes bytes on, until it is told to break.

    Args:
        target: Port of the server.
    """

    def __init__(self, target: int) -> None:
        self.port = 0
        self.breaks: Literal["before commit", "after commit"] | None = None
        """The next commit never arrives; or it arrives, and its answer does not. Either way the connection ends."""
        self.always: Literal["before commit", "after commit"] | None = None
        """The same for every commit."""
        self.broken = 0
        """How often that has happened."""
        self.refuses = False
        """Whether nobody gets through anew."""
        self._target = target
        self._open: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on one connection."""
        if self.refuses:
            writer.close()
            return
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        self._open += [writer, server_writer]
        back = asyncio.create_task(_pass_on(server_reader, writer))
        while data := await _some(reader):
            breaks = self.always or self.breaks
            if breaks is not None and _COMMIT in data:
                self.breaks = None
                self.broken += 1
                back.cancel()
                await asyncio.gather(back, return_exceptions=True)
                if breaks == "after commit":
                    server_writer.write(data)
                    await _some(server_reader)
                    server_writer.close()
                writer.close()  # towards the server it stays open otherwise, as after a cut of the network
                return
            server_writer.write(data)
        server_writer.close()
        await back

    def close(self) -> None:
        """Cut everything."""
        for writer in self._open:
            writer.close()


@asynccontextmanager
async def proxy_to(port: int) -> AsyncGenerator[Proxy]:
    """A proxy in front of a port of this machine."""
    proxy = Proxy(port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.close()
        await server.wait_closed()


async def _some(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(65536)
    except OSError:
        return b""


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await _some(reader):
        writer.write(data)
    writer.close()
