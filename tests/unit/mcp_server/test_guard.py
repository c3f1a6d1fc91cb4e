"""A foreign MCP server behind a crib: the same names, and the rules of a crib."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from tests.unit.mcp_server.served import REVISIONS
from tests.unit.mcp_server.test_surfaces import text_of
from tests.unit.mcp_server.test_waiting import Person, decides
from toolcrib import Crib, DefinitionOptions
from toolcrib.interfaces.mcp.guard import GuardedServer, guard

PROGRAM = Path(__file__).parent / "guarded.py"

pytestmark = pytest.mark.requirement("mcp_server.guard")


def files(folder: Path, **rules: Any) -> GuardedServer:
    command = (sys.executable, str(PROGRAM), str(folder / "changed"))
    return GuardedServer("files", command, variables=("FILES_TOKEN",), **rules)


@asynccontextmanager
async def guarded(store: str, server: GuardedServer, mode: str, answer: Any = None) -> AsyncGenerator[Client]:
    """A client of the guarded server."""
    environment = {"FILES_TOKEN": "a-secret-0123456789"}
    options = DefinitionOptions(mcp_commands=(server.program_line,), released=server.variables)
    crib = Crib(store, environment=environment, definitions=options)
    async with guard(crib, server) as (served, _), Client(served, mode=mode, elicitation_callback=answer) as client:
        yield client


@pytest.mark.parametrize("mode", REVISIONS)
async def test_a_client_finds_what_the_server_has_and_each_call_is_a_run(mode: str, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'guard.db'}"
    async with guarded(store, files(tmp_path), mode) as client:
        names = [each.name for each in (await client.list_tools()).tools]
        read = await client.call_tool("readFile", {"path": "a.txt"})
        wrote = await client.call_tool("write_file", {"path": "a.txt", "text": "hello"})
        missing = await client.call_tool("readFile", {"path": "missing"})
        [resource] = (await client.list_resources()).resources[:1]
        [content] = (await client.read_resource("files://readme")).contents
        prompts = [each.name for each in (await client.list_prompts()).prompts]
        prompt = await client.get_prompt("summarize", {"path": "a.txt"})
    async with Crib(store) as crib:
        runs = [run.request.tool_name for run in await crib.store.journal.runs("default")]

    assert names == ["delete_file", "readFile", "write_file"]
    assert "content of a.txt" in text_of(read.content[0])
    assert wrote.structured_content == {"path": "a.txt", "text": "hello", "token": "[secret]"}
    assert missing.is_error
    assert "Error executing tool readFile" in text_of(missing.content[0])
    assert resource.uri == "files://readme"
    assert text_of(content) == "Read me."
    assert prompts == ["summarize"]
    assert "Summarize a.txt." in text_of(prompt.messages[0].content)
    assert len(runs) == 5


async def test_calls_are_approved_at_the_client_or_not_offered_at_all(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'guard.db'}"
    rules = files(tmp_path, approve=("write_*",), deny=("delete_*",))
    person = Person(decides("approve"), decides("reject"))
    for _ in range(2):
        async with guarded(store, rules, "2026-07-28", person) as client:
            names = [each.name for each in (await client.list_tools()).tools]
            results = [await client.call_tool("write_file", {"path": "a", "text": "b"}) for _ in tuple(person.answers)]
            with pytest.raises(MCPError, match="there is no tool"):
                await client.call_tool("delete_file", {"path": "a"})
        assert names == ["readFile", "write_file"]
        if results:
            assert [result.is_error for result in results] == [False, True]
    assert len(person.forms) == 2


async def test_a_tool_that_the_server_has_changed_is_blocked_until_it_is_accepted(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'guard.db'}"
    async with guarded(store, files(tmp_path), "2026-07-28") as client:
        before = [each.name for each in (await client.list_tools()).tools]
    (tmp_path / "changed").touch()
    async with guarded(store, files(tmp_path), "2026-07-28") as client:
        after = [each.name for each in (await client.list_tools()).tools]
        with pytest.raises(MCPError, match="there is no tool"):
            await client.call_tool("write_file", {"path": "a", "text": "b"})
    assert "write_file" in before
    assert after == ["delete_file", "readFile"]
