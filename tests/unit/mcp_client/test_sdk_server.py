"""A server of the official SDK in this process, which speaks the protocol of 2026-07-28 without sessions."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator

import pytest
import uvicorn
from mcp.server import MCPServer

from toolcrib import Crib, EgressPolicy

pytestmark = pytest.mark.requirement("mcp_client.real_servers")


class _Started(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's."""
        await super().startup(sockets)
        self.listening.set()


def calculator() -> MCPServer:
    """A server with one of each thing."""
    server = MCPServer("calculator", log_level="ERROR")

    @server.tool()
    def add(a: int, b: int) -> int:  # pyright: ignore[reportUnusedFunction] - the decorator keeps it
        """Add two numbers."""
        return a + b

    @server.resource("notes://{name}")
    def note(name: str) -> str:  # pyright: ignore[reportUnusedFunction] - as above
        """Read a note."""
        return f"note {name}"

    return server


@contextlib.asynccontextmanager
async def running(server: MCPServer) -> AsyncGenerator[int]:
    """The server at a port."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        http = _Started(uvicorn.Config(server.streamable_http_app(), log_config=None))
        task = asyncio.create_task(http.serve(sockets=[listening]))
        await http.listening.wait()
        try:
            yield int(listening.getsockname()[1])
        finally:
            http.should_exit = True
            await task


async def test_a_server_of_the_newest_protocol_is_imported_and_called():
    async with running(calculator()) as port:
        egress = EgressPolicy(allow=(f"127.0.0.1:{port}",))
        async with Crib("memory://", environment={}, egress=egress) as crib:
            found = await crib.imports.mcp(f"http://127.0.0.1:{port}/mcp", name="calculator")
            added = await crib.call("add", a=1, b=2)
            note = await crib.call("read_note", name="first")
            wrong = await crib.call("add", a="one")
    assert [tool.name for tool in found.tools] == ["add", "read_note"]
    assert added.output == {"result": 3}
    assert note.output["content"] == "note first"
    assert wrong.error is not None
