"""An MCP server from the command line and over REST, as an operator and a client see it."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.command import toolcrib
from tests.unit.mcp_client.server import Server, running, tool
from tests.unit.mcp_client.test_programs import command
from tests.unit.server.client import checked, serving
from toolcrib import Crib

pytestmark = pytest.mark.requirement("mcp_client.surfaces")


def test_the_command_line_imports_a_program_that_is_allowed_and_calls_and_syncs_it(tmp_path: Path):
    store, line = f"sqlite:///{tmp_path / 'crib.db'}", shlex.join(command("plain"))
    allowed = {"TOOLCRIB_MCP_COMMANDS": f"TOKEN= {line}", "TOOLCRIB_SECRET_T": "a-secret-0123"}
    arguments = ("tool", "import-mcp", line, "--name", "there", "--env", "TOKEN=${env:TOOLCRIB_SECRET_T}")

    told = toolcrib(*arguments, store=store, **allowed)
    report = json.loads(toolcrib(*arguments, "--json", store=store, **allowed).stdout)
    synced = toolcrib("provider", "sync", "there", store=store, **allowed)

    assert told.exit_code == 0, told.stderr
    assert "look (reads)" in told.stdout
    assert "imported 1 tool of provider 'there'" in told.stdout
    assert report["format"] == "MCP"
    assert synced.exit_code == 0, synced.stderr


@pytest.mark.parametrize(
    ("source", "more", "said"),
    [
        ("bash -c id", (), "TOOLCRIB_MCP_COMMANDS"),
        ("'unclosed", (), "neither"),
        ("bash", ("--env", "TOKEN"), "NAME=REF"),
        ("http://127.0.0.1:9/mcp", (), "egress"),
    ],
)
def test_the_command_line_says_why_a_server_is_not_imported(
    source: str, more: tuple[str, ...], said: str, tmp_path: Path
):
    store = f"sqlite:///{tmp_path / 'crib.db'}"
    told = toolcrib("tool", "import-mcp", source, "--name", "there", *more, store=store)
    assert told.exit_code != 0
    assert said in told.stderr.replace("\n", " ")


def reaching(there: Server) -> Callable[..., Crib]:
    """Makes cribs that may reach a server."""

    def make(*arguments: Any, **options: Any) -> Crib:
        return Crib(*arguments, **{**options, "egress": there.egress})

    return make


async def test_a_client_imports_a_server_calls_a_tool_of_it_and_syncs_it():
    async with running() as there, serving(make_crib=reaching(there)) as server:
        made = await server.post("/ai/tools/import-mcp", {"name": "there", "url": there.url}, 201)
        there.tools.append(tool("more"))
        synced = await server.post("/providers/there/sync", {}, 200)
    assert made["tools"] == ["look@1.0.0"]
    assert made["report"]["format"] == "MCP"
    assert synced["tools"] == ["look@1.0.0", "more@1.0.0"]


async def test_a_client_may_not_start_a_program_and_a_stranger_to_providers_may_nothing():
    async with running() as there, serving(make_crib=reaching(there)) as server:
        body = {"name": "there", "command": ["bash", "-c", "id"]}
        refused = await server.post("/ai/tools/import-mcp", body, 403)
        async with server.client_of("reader") as reader:
            answer = await reader.post("/api/v1/ai/tools/import-mcp", json={"name": "there", "url": there.url})
        denied = checked(answer, 403)
    assert "TOOLCRIB_MCP_COMMANDS" in refused["detail"]
    assert "grant" in denied["detail"]
    assert there.asked == []


async def test_a_name_that_no_provider_can_have_is_refused_by_every_route():
    async with running() as there, serving(make_crib=reaching(there)) as server:
        bodies: list[dict[str, object]] = [{"name": "\u00f3", "url": there.url}, {"name": "\u00f3", "command": []}]
        for body in bodies:
            refused = await server.post("/ai/tools/import-mcp", body, 422)
            assert "is not a valid provider name" in refused["detail"]
        await server.post("/ai/tools/generate", {"name": "\u00f3", "url": "${env:X}"}, 422)
        await server.post("/ai/tools/import", {"name": "\u00f3", "url": "grpc://127.0.0.1:1"}, 422)
