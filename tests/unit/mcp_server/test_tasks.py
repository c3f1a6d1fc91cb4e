"""Calls as tasks: the extension of protocol revision 2026-07-28."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.unit.mcp_server.served import mcp_server
from toolcrib import Crib, ToolContext, tool

pytestmark = pytest.mark.requirement("mcp_server.tasks")

ABOUT = "io.modelcontextprotocol"
EXTENSION = f"{ABOUT}/tasks"


class Kiln:
    """A tool that is done when it is told to, and one that asks before."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    def add_to(self, crib: Crib) -> None:
        @tool(side_effects="none")
        async def fire(pieces: int) -> str:
            """Fire pieces."""
            await self.go_on.wait()
            return f"{pieces} fired"

        @tool(side_effects="none")
        async def glaze(context: ToolContext) -> str:
            """Glaze."""
            await self.go_on.wait()
            return f"glazed {await context.ask('Which colour?', name='colour')}"

        @tool(side_effects="none")
        async def crack() -> str:
            """Fail."""
            await self.go_on.wait()
            raise ValueError("cracked")

        crib.add(fire, glaze, crack)


class Caller:
    """A client that sends requests by hand."""

    def __init__(self, http: httpx2.AsyncClient, url: str) -> None:
        self.http = http
        self.url = url

    async def ask(self, method: str, *, key: str = "owner", declared: bool = True, **params: Any) -> dict[str, Any]:
        """The response to a request."""
        capabilities: dict[str, Any] = {"elicitation": {}, **({"extensions": {EXTENSION: {}}} if declared else {})}
        about: dict[str, Any] = {
            f"{ABOUT}/protocolVersion": "2026-07-28",
            f"{ABOUT}/clientInfo": {"name": "test", "version": "1"},
            f"{ABOUT}/clientCapabilities": capabilities,
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": about}}
        headers = {
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {key}",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            "Mcp-Name": str(params.get("taskId") or params.get("name") or ""),
        }
        answer = await self.http.post(self.url, json=body, headers=headers)
        return answer.json()

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The result of a call."""
        return (await self.ask("tools/call", name=name, arguments=arguments))["result"]

    async def until(self, task_id: str, status: str) -> dict[str, Any]:
        """The task once it has a status."""
        async with asyncio.timeout(20):
            while True:
                task = (await self.ask("tasks/get", taskId=task_id))["result"]
                if task["status"] == status:
                    return task
                await asyncio.sleep(0)


async def test_a_long_call_is_a_task_whose_result_can_be_had_later() -> None:
    kiln = Kiln()
    async with mcp_server() as (server, url), httpx2.AsyncClient(trust_env=False) as http:
        kiln.add_to(server.crib)
        client = Caller(http, url)
        found = await client.ask("server/discover")
        begun = await client.call("fire", pieces=3)
        working = (await client.ask("tasks/get", taskId=begun["taskId"]))["result"]
        kiln.go_on.set()
        done = await client.until(begun["taskId"], "completed")
        at_once = await client.ask("tools/call", declared=False, name="fire", arguments={"pieces": 1})
    assert found["result"]["capabilities"]["extensions"] == {EXTENSION: {}}
    assert (begun["resultType"], begun["status"], begun["ttlMs"]) == ("task", "working", None)
    assert working["status"] == "working"
    assert done["result"]["content"][0]["text"] == "3 fired"
    assert done["result"]["_meta"]["toolcrib/run_id"] == begun["taskId"]
    assert at_once["result"]["resultType"] == "complete"


async def test_a_task_that_asks_gets_its_answer_and_one_that_fails_has_an_error_as_its_result() -> None:
    kiln = Kiln()
    async with mcp_server() as (server, url), httpx2.AsyncClient(trust_env=False) as http:
        kiln.add_to(server.crib)
        client = Caller(http, url)
        glaze, crack = (await client.call("glaze"))["taskId"], (await client.call("crack"))["taskId"]
        kiln.go_on.set()
        asking = await client.until(glaze, "input_required")
        answer = {"colour": {"action": "accept", "content": {"answer": "blue"}}}
        updated = await client.ask("tasks/update", taskId=glaze, inputResponses=answer)
        done = await client.until(glaze, "completed")
        late = await client.ask("tasks/update", taskId=glaze, inputResponses=answer)
        failed = await client.until(crack, "completed")
    assert asking["inputRequests"]["colour"]["params"]["message"] == "Which colour?"
    assert updated["result"]["resultType"] == late["result"]["resultType"] == "complete"
    assert done["result"]["content"][0]["text"] == "glazed blue"
    assert failed["result"]["isError"]


async def test_a_task_is_cancelled_once_and_seen_by_who_may_read_its_run_only() -> None:
    kiln = Kiln()
    async with mcp_server() as (server, url), httpx2.AsyncClient(trust_env=False) as http:
        kiln.add_to(server.crib)
        client = Caller(http, url)
        task_id = (await client.call("fire", pieces=1))["taskId"]
        strangers = [
            await client.ask(method, key=key, taskId=task_id)
            for method in ("tasks/get", "tasks/update", "tasks/cancel")
            for key in ("reader", "stranger")
        ]
        undeclared = await client.ask("tasks/get", declared=False, taskId=task_id)
        cancelled = [await client.ask("tasks/cancel", taskId=task_id) for _ in range(2)]
        task = await client.until(task_id, "cancelled")
        unknown = await client.ask("tasks/get", taskId="run_0")
    assert {each["error"]["code"] for each in strangers} == {-32602}
    assert undeclared["error"]["code"] == -32021
    assert undeclared["error"]["data"] == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    assert [each["result"]["resultType"] for each in cancelled] == ["complete", "complete"]
    assert "result" not in task
    assert unknown["error"]["code"] == -32602


async def test_a_task_goes_on_after_its_server_has_ended(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/crib.db"
    first, second = Kiln(), Kiln()
    async with mcp_server(store) as (server, url), httpx2.AsyncClient(trust_env=False) as http:
        first.add_to(server.crib)
        task_id = (await Caller(http, url).call("fire", pieces=2))["taskId"]
    second.go_on.set()
    async with mcp_server(store) as (server, url), httpx2.AsyncClient(trust_env=False) as http:
        second.add_to(server.crib)
        done = await Caller(http, url).until(task_id, "completed")
    assert done["result"]["content"][0]["text"] == "2 fired"
