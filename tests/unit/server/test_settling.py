"""Over REST: what a person says of calls of which nobody knows whether they took effect."""

from collections.abc import AsyncIterator

import pytest

from tests.unit.server.client import Server, checked, serving
from toolcrib import tool
from toolcrib.contracts import Json, JsonObject

SENT = {"sent": "hello"}


@tool(side_effects="writes", on_unknown="ask")
async def ask_first(text: str) -> dict[str, str]:
    """Send a letter, and hear nothing of it; a person is asked."""
    raise TimeoutError(text)


@tool(side_effects="writes")
async def send(text: str) -> dict[str, str]:
    """Send a letter, and hear nothing of it."""
    raise TimeoutError(text)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as server:
        server.crib.add(ask_first, send)
        server.crib.agentic_tool("clerk", mode="deterministic", model="scripted:plan", steps=["search"])
        yield server


async def told(server: Server, who: str, path: str, body: Json, status: int) -> JsonObject:
    return checked(await server.client_of(who).post(f"/api/v1{path}", json=body), status)


@pytest.mark.requirement("effects.ask", "effects.ask_bound")
@pytest.mark.parametrize("by_position", [True, False])
async def test_whether_a_call_took_effect_is_answered_in_the_inbox_or_at_its_run(server: Server, by_position: bool):
    await server.post("/ai/tools/ask_first/invoke", {"params": {"text": "hello"}}, status=202)
    [found] = (await server.get("/approvals", {"status": "waiting"}))["items"]
    run_id = found["run_id"]
    path = f"/approvals/{found['approval_id']}/decide"
    if by_position:
        path = f"/executions/{run_id}/approvals/{found['position']}"

    await told(server, "boss", path, {"approved": True}, 422)
    await told(server, "boss", path, {"approved": True, "happened": True, "output": {"sent": 7}}, 422)
    await told(server, "owner", path, {"approved": True, "happened": True, "output": SENT}, 403)
    said: JsonObject = {"approved": True, "happened": True, "output": SENT}
    await told(server, "boss", path, said, 202 if by_position else 200)
    trace = (await server.finished(run_id))["trace"]

    assert (found["question"], trace["status"], trace["output"]) == ("outcome", "completed", SENT)


@pytest.mark.requirement("effects.settled", "effects.settled_bound")
async def test_a_call_of_a_run_that_has_ended_is_settled_once_and_shown_with_it(server: Server):
    await server.post("/ai/tools/send/invoke", {"params": {"text": "hello"}})
    [run] = (await server.get("/executions", {"tool": "send"}))["items"]
    run_id = run["run_id"]
    [step] = (await server.get(f"/executions/{run_id}"))["trace"]["steps"]
    path = f"/executions/{run_id}/calls/{step['position']}/settle"

    assert (step["error"]["details"]["effect"], step["settled"]) == ("unknown", None)
    await told(server, "owner", path, {"happened": False}, 403)
    await told(server, "boss", path, {"happened": True, "output": {"sent": 7}}, 422)
    await told(server, "boss", f"/executions/{run_id}/calls/other/settle", {"happened": False}, 404)
    await told(server, "stranger", path, {"happened": False}, 404)
    said = await told(server, "boss", path, {"happened": True, "output": SENT, "reason": "it is here"}, 200)
    await told(server, "boss", path, {"happened": False}, 409)
    [shown] = (await server.get(f"/executions/{run_id}"))["trace"]["steps"]

    assert (said["happened"], said["output"], said["reason"], said["made_by"]) == (True, SENT, "it is here", "boss")
    assert shown["settled"] == said
