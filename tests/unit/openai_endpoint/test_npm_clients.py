"""Chat clients of the npm registry against the endpoint, over a socket."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.node import installed, node_command
from tests.unit.executions.house import turn
from tests.unit.openai_endpoint.served import Endpoint, endpoint

_SCRIPT = Path(__file__).parents[2] / "node" / "chat_clients.js"

pytestmark = [pytest.mark.slow, pytest.mark.requirement("openai_endpoint.clients")]


async def client_of_npm(served: Endpoint, client: str) -> dict[str, Any]:
    """What a client has made of the agent's answers."""
    process = await asyncio.create_subprocess_exec(
        node_command("openai/package.json")[0],
        str(_SCRIPT),
        str(installed() / "package.json"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    given = {"client": client, "baseURL": served.base_url, "apiKey": "owner", "model": "clerk", "message": "Hello"}
    printed, problems = await process.communicate(json.dumps(given).encode())
    assert process.returncode == 0, problems.decode()[-1500:]
    return json.loads(printed)


async def test_the_openai_client_of_npm_chats_streams_and_reads_responses() -> None:
    async with endpoint(*(["Good day."] * 4)) as served:
        found = await client_of_npm(served, "openai")

    assert found == {
        "whole": "Good day.",
        "streamed": "Good day.",
        "response": "Good day.",
        "last": "response.completed",
        "models": ["clerk"],
    }


async def test_the_ai_sdk_chats_streams_and_executes_a_client_tool() -> None:
    async with endpoint("Good day.", "Good day.", turn(("pick", "hat")), "The red one.") as served:
        found = await client_of_npm(served, "ai")

    assert found == {
        "whole": "Good day.",
        "reason": "stop",
        "streamed": "Good day.",
        "picked": ["hat"],
        "afterTool": "The red one.",
    }
