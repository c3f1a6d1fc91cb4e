"""The reference servers of the protocol, from the npm registry: as programs, and over HTTP."""

import asyncio
import contextlib
import os
import shlex
import socket
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.node import node_command
from toolcrib import Crib, DefinitionOptions, EgressPolicy
from toolcrib.contracts import ErrorCode, LossReport, McpTransport

pytestmark = [pytest.mark.requirement("mcp_client.real_servers"), pytest.mark.slow]

TASKS_ONLY = ["tool simulate-research-query"]
"""What the server executes only as a task."""
EVERYTHING = "@modelcontextprotocol/server-everything/dist/index.js"
FILESYSTEM = "@modelcontextprotocol/server-filesystem/dist/index.js"


@contextlib.asynccontextmanager
async def everything(mode: str) -> AsyncGenerator[int]:
    """The server that has everything, listening on a port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *node_command(EVERYTHING, mode),
        env={"PATH": os.defpath, "PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        async for line in process.stderr:
            if str(port).encode() in line:
                break
        yield port
    finally:
        process.kill()
        await process.communicate()


def left_out(report: LossReport) -> list[str]:
    """The tools that were not imported."""
    return [found.operation for found in report.operations if found.tool is None]


async def use(crib: Crib) -> None:
    """Call what the server that has everything offers."""
    echo = await crib.call("echo", message="hello")
    total = await crib.call("get-sum", a=2, b=3)
    shaped = await crib.call("get-structured-content", location="Chicago")
    picture = await crib.call("get-tiny-image")
    prompt = await crib.call("prompt_args-prompt", city="Bern")
    resource = await crib.call("read_Dynamic_Text_Resource", resourceId="1")
    wrong = await crib.call("prompt_resource-prompt", resourceType="None", resourceId="1")
    assert echo.output == "Echo: hello"
    assert "5" in total.output
    assert set(shaped.output) == {"temperature", "conditions", "humidity"}
    assert [kept.content_type for kept in picture.attachments] == ["image/png"]
    assert "Bern" in prompt.output["messages"][0]["content"]
    assert resource.output["uri"] == "demo://resource/dynamic/text/1"
    assert wrong.error is not None
    assert wrong.error.code in {ErrorCode.PROVIDER_ERROR, ErrorCode.VALIDATION_ERROR}


async def test_the_server_that_has_everything_is_used_as_a_program():
    command = node_command(EVERYTHING, "stdio")
    async with Crib(
        "memory://", environment={}, definitions=DefinitionOptions(mcp_commands=(shlex.join(command),))
    ) as crib:
        found = await crib.imports.mcp(name="everything", command=command)
        assert left_out(found.report) == TASKS_ONLY
        await use(crib)


@pytest.mark.parametrize(
    ("mode", "path", "transport"), [("streamableHttp", "/mcp", "streamable_http"), ("sse", "/sse", "sse")]
)
async def test_the_server_that_has_everything_is_used_over_http(mode: str, path: str, transport: McpTransport):
    async with everything(mode) as port:
        egress = EgressPolicy(allow=(f"127.0.0.1:{port}",))
        async with Crib("memory://", environment={}, egress=egress) as crib:
            await crib.imports.mcp(f"http://127.0.0.1:{port}{path}", name="everything", transport=transport)
            await use(crib)
            again = await crib.imports.sync("everything")
    assert left_out(again.report) == TASKS_ONLY


async def test_the_server_of_files_reads_and_writes_in_its_folder_and_nowhere_else(tmp_path: Path):
    (tmp_path / "a.txt").write_text("first")
    command = node_command(FILESYSTEM, str(tmp_path))
    async with Crib(
        "memory://", environment={}, definitions=DefinitionOptions(mcp_commands=(shlex.join(command),))
    ) as crib:
        found = {tool.name: tool for tool in (await crib.imports.mcp(name="files", command=command)).tools}
        assert (found["read_text_file"].side_effects, found["write_file"].side_effects) == ("reads", "writes")
        read = await crib.call("read_text_file", path=str(tmp_path / "a.txt"))
        written = await crib.call("write_file", path=str(tmp_path / "b.txt"), content="second")
        outside = await crib.call("read_text_file", path="/etc/passwd")
    assert read.output == {"content": "first"}
    assert written.ok
    assert (tmp_path / "b.txt").read_text() == "second"
    assert outside.error is not None
    assert "denied" in outside.error.message.lower()
