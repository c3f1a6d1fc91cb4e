"""Clients that others have written: each lists the tools, calls one, and is told what is wrong with arguments."""

import asyncio
import json
import os
from datetime import date
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel

from tests.environments import client_command
from tests.node import node_command
from tests.unit.mcp_server.served import mcp_server
from toolcrib import tool
from toolcrib.contracts import McpServerDefinition

pytestmark = [pytest.mark.requirement("mcp_server.foreign_clients"), pytest.mark.slow]

INSPECTOR = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
INSPECTOR_HOME = Path(__file__).parents[2] / "node" / "inspector"
TOOLS = {"search", "update", "pick"}
MOST_SHOWN = 4_000


class Address(BaseModel):
    """A part of an argument."""

    street: str
    zip: str | None = None


class Team(BaseModel):
    """An argument that contains itself."""

    name: str
    teams: list["Team"] = []


@tool(side_effects="none")
async def arrange(
    *,
    stage: Literal["open", "won"],
    deal: int | str,
    due: date | None = None,
    addresses: list[Address] | None = None,
    team: Team | None = None,
    extra: dict[str, float] | None = None,
    span: tuple[int, int] = (0, 1),
) -> Team:
    """Arguments of every shape."""
    return team or Team(name=f"{stage} {deal} {due} {addresses} {extra} {span}")


async def ended(command: list[str], home: Path | None = None) -> tuple[str, str]:
    """What a client writes to standard output and to standard error.

    Args:
        command: Runs it.
        home: Where it keeps its own files; null if it has none.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        env=None if home is None else {"PATH": os.defpath, "HOME": str(home)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, problems = await process.communicate()
    assert process.returncode == 0, (printed + problems).decode(errors="replace")[-MOST_SHOWN:]
    return printed.decode(), problems.decode()


def inspector(url: str, method: str, *arguments: str) -> list[str]:
    """The command that sends one request."""
    target = (url, "--transport", "http", "--header", "Authorization: Bearer owner", "--method", method)
    return node_command(INSPECTOR, "--cli", *target, *arguments, home=INSPECTOR_HOME)


async def test_the_inspector_finds_nothing_to_blame_in_the_schemas_of_tools(tmp_path: Path) -> None:
    async with mcp_server() as (server, url):
        server.crib.add(arrange)
        await server.crib.mcp_servers.save(McpServerDefinition(name="pair", tools=("*",), offer="search"))
        found, blamed = await ended(inspector(url, "tools/list", "--strict"), tmp_path)
        pair, blamed_of_pair = await ended(inspector(f"{url}/servers/pair", "tools/list", "--strict"), tmp_path)

    assert {each["name"] for each in json.loads(found)["tools"]} >= {*TOOLS, "arrange"}
    assert {each["name"] for each in json.loads(pair)["tools"]} == {"search_tools", "call_tool"}
    assert "Issue:" not in blamed + blamed_of_pair, blamed + blamed_of_pair


async def test_the_inspector_calls_a_tool(tmp_path: Path) -> None:
    async with mcp_server() as (_, url):
        called = inspector(url, "tools/call", "--tool-name", "search", "--tool-arg", "company=Acme")
        said, _ = await ended(called, tmp_path)

    result = json.loads(said)
    assert (result["content"][0]["text"], result["isError"]) == ('[{"name":"Acme"}]', False)


@pytest.mark.parametrize(
    ("script", "packages", "arguments"),
    [
        ("fastmcp_client", "mcp-client-fastmcp", ()),
        ("mcp_one_client", "mcp-client-langchain", ("http",)),
        ("mcp_one_client", "mcp-client-langchain", ("sse",)),
        ("langchain_mcp_client", "mcp-client-langchain", ("http",)),
        ("langchain_mcp_client", "mcp-client-langchain", ("sse",)),
    ],
)
async def test_a_client_of_another_package_lists_and_calls(
    script: str, packages: str, arguments: tuple[str, ...]
) -> None:
    command = await asyncio.to_thread(client_command, script, packages)
    async with mcp_server() as (_, url):
        address = f"{url}/sse" if "sse" in arguments else url
        printed, _ = await ended([*command, address, "owner", *arguments])

    said = json.loads(printed)
    assert set(said["tools"]) >= TOOLS
    assert said["found"] == [{"name": "Acme"}]
    assert "VALIDATION_ERROR" in said["wrong"]
