"""`toolcrib mcp` and `toolcrib guard`, as the configuration of a client starts them."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.unit.cli.command import toolcrib
from tests.unit.cli.test_commands import PROGRAM
from tests.unit.mcp_server.test_guard import PROGRAM as FILES
from tests.unit.mcp_server.test_waiting import Person, decides
from toolcrib import Crib, code_tool

STYLE = "def main(n: int) -> int:\n    return 2 * n\n"


def client_for(*arguments: str, folder: Path, answer: Person | None = None, **variables: str) -> Client:
    """A client that starts a command in a folder."""
    environment = {**os.environ, "XDG_DATA_HOME": str(folder / "data"), **variables}
    parameters = StdioServerParameters(command=str(PROGRAM), args=list(arguments), env=environment, cwd=folder)
    return Client(stdio_client(parameters), elicitation_callback=answer)


@pytest.mark.requirement("mcp_server.stdio")
async def test_the_tools_of_a_store_are_served_to_a_client_that_starts_the_command(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'crib.db'}"
    async with Crib(store) as crib:
        await crib.save(code_tool("double", STYLE))
        await crib.save(code_tool("triple", STYLE.replace("2", "3")))
    async with client_for(
        "mcp", "--store", store, "--scope", "ai://tools/utility/double/execute", folder=tmp_path
    ) as client:
        names = [each.name for each in (await client.list_tools()).tools]
    assert names == ["double"]


@pytest.mark.requirement("mcp_server.guard")
async def test_a_guarded_server_needs_no_definition_and_no_store(tmp_path: Path) -> None:
    person = Person(decides("approve"))
    rules = ("--approve", "write_*", "--deny", "delete_*", "--env", "FILES_TOKEN")
    command = ("guard", *rules, "--", sys.executable, str(FILES), str(tmp_path / "changed"))
    token = {"FILES_TOKEN": "a-secret-0123456789"}
    async with client_for(*command, folder=tmp_path, answer=person, **token) as client:
        names = [each.name for each in (await client.list_tools()).tools]
        wrote = await client.call_tool("write_file", {"path": "a", "text": "b"})
    async with Crib(f"sqlite:///{tmp_path / 'data' / 'toolcrib' / 'guard.db'}") as crib:
        [run] = await crib.store.journal.runs("default")
    left, mode = await asyncio.to_thread(
        lambda: ([each.name for each in tmp_path.iterdir()], (tmp_path / "data" / "toolcrib").stat().st_mode)
    )

    assert names == ["readFile", "write_file"]
    assert wrote.structured_content == {"path": "a", "text": "b", "token": "[secret]"}
    assert len(person.forms) == 1
    assert (run.request.tool_name, run.status) == ("write_file", "completed")
    assert left == ["data"]
    assert mode & 0o777 == 0o700


@pytest.mark.requirement("mcp_server.guard")
def test_a_server_that_cannot_be_started_is_one_line(tmp_path: Path) -> None:
    failed = toolcrib("guard", "--", str(tmp_path / "no-such-server"), store=f"sqlite:///{tmp_path / 'crib.db'}")
    assert failed.exit_code == 1
    assert "no-such-server" in failed.stderr
    assert len(failed.stderr.splitlines()) == 1
