"""The server as a command that a client starts."""

import sys
from pathlib import Path

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.unit.mcp_server.served import REVISIONS
from tests.unit.mcp_server.test_tools import text_of
from toolcrib import Crib

PROGRAM = """
import asyncio
import sys
from toolcrib import Crib, tool
from toolcrib.contracts import Principal
from toolcrib.interfaces.mcp.server import serve_stdio

@tool(side_effects="none")
async def double(n: int) -> int:
    print("a tool that prints")
    return 2 * n

@tool(side_effects="none", category="secret")
async def hidden() -> str:
    return ""

crib = Crib(sys.argv[1])
crib.add(double, hidden)
who = Principal(id="ann", grants=("ai://tools/utility/*/execute",))
asyncio.run(serve_stdio(crib, crib.acting_as(who)))
"""


@pytest.mark.parametrize("mode", REVISIONS)
@pytest.mark.requirement("mcp_server.stdio")
async def test_a_client_starts_the_server_and_acts_as_its_principal(mode: str, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'crib.db'}"
    program = StdioServerParameters(command=sys.executable, args=["-c", PROGRAM, store])
    async with Client(stdio_client(program), mode=mode) as client:
        names = [each.name for each in (await client.list_tools()).tools]
        results = [await client.call_tool("double", {"n": n}) for n in (1, 21)]
    async with Crib(store) as crib:
        runs = [(run.made_by, run.status) for run in await crib.store.journal.runs("default")]

    assert names == ["double"]
    assert [text_of(result) for result in results] == ["2", "42"]
    assert runs == [("ann", "completed")] * 2
