"""An agent's calls that its client performs, over HTTP: each request stands for itself (002)."""

from typing import Any

import pytest

from tests.unit.server.client import Server, checked, serving
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import JsonObject
from toolcrib.llm import Message, ToolCall

CHOOSER: JsonObject = {"name": "chooser", "llm": {"model": "scripted:chooser"}, "tools": ["search", "pick"]}
ASKS = Message(
    "assistant",
    (
        ToolCall("a", "pick", '{"question": "which?"}'),
        ToolCall("b", "search", '{"company": "Acme"}'),
        ToolCall("c", "pick", '{"question": "when?"}'),
    ),
)


def choosing(store: Any, *, models: Any, **fields: Any) -> Crib:
    """A crib with a model that lets its client choose."""
    chooser = ScriptedModel([ASKS, "The red one, today."], name="chooser")
    return Crib(store, models={**models, "scripted:chooser": chooser}, **fields)


async def asked(server: Server) -> JsonObject:
    """The agent, saved, and its first answer."""
    checked(await server.client.post("/api/v1/ai/agents", json=CHOOSER), 201)
    return await server.post("/ai/agents/chooser/execute", {"message": "choose"}, status=202)


def brought(waiting: JsonObject, *outputs: str) -> JsonObject:
    """A request with results for the calls that wait."""
    calls = zip(waiting["tool_calls"], outputs, strict=True)
    results = [{"call_id": call["call_id"], "output": {"answer": output}} for call, output in calls]
    return {"conversation_id": waiting["conversation_id"], "tool_results": results}


@pytest.mark.requirement("handoff.mixed", "handoff.stateless", "handoff.compliance")
async def test_prepared_calls_are_answered_in_one_request_and_the_run_goes_on() -> None:
    async with serving(make_crib=choosing) as server:
        waiting = await asked(server)
        answer = await server.post("/ai/agents/chooser/execute", brought(waiting, "red", "today"))
        again = await server.post("/ai/agents/chooser/execute", brought(waiting, "red", "today"))

    prepared = [(call["output"], call["requires_client_execution"]) for call in waiting["tool_calls"]]
    assert prepared == [({"question": "which?"}, True), ({"question": "when?"}, True)]
    assert all(call["is_server_tool"] and call["was_executed"] for call in waiting["tool_calls"])
    assert waiting["status"] == "awaiting_client"
    assert waiting["last_tool"]["was_executed"]
    assert (answer["status"], answer["response"]) == ("completed", "The red one, today.")
    outputs = [answer["tools_by_id"][call["call_id"]]["output"] for call in waiting["tool_calls"]]
    assert outputs == [{"answer": "red"}, {"answer": "today"}]
    assert answer["traces_url"] == f"http://crib/api/v1/executions/{answer['run_id']}"
    assert again == answer


@pytest.mark.requirement("handoff.atomic", "handoff.over", "executions.access")
async def test_results_that_do_not_fit_are_refused_as_a_whole() -> None:
    async with serving(make_crib=choosing) as server:
        waiting = await asked(server)
        path, run_id = "/ai/agents/chooser/execute", waiting["run_id"]
        wrong = brought(waiting, "red", "today")
        wrong["tool_results"][1]["call_id"] = "t9.c9"
        refused = await server.post(path, wrong, status=409)
        await server.post(path, {**brought(waiting, "red", "today"), "message": "and?"}, status=422)
        still = await server.get(f"/ai/agents/chooser/executions/{run_id}")
        await server.post(f"/executions/{run_id}/cancel", status=202)
        await server.finished(run_id)
        by_run = {**brought(waiting, "red", "today"), "conversation_id": None, "run_id": run_id}
        late = await server.post(path, by_run, status=409)

    assert "'t9.c9' is not a call that a client was given" in refused["detail"]
    assert still["tool_calls"] == waiting["tool_calls"]
    assert "no longer waits: run" in late["detail"]


@pytest.mark.requirement("handoff.stateless", "executions.queued")
async def test_results_can_be_brought_for_the_server_to_go_on_by_itself() -> None:
    async with serving(make_crib=choosing) as server:
        waiting = await asked(server)
        await server.post("/ai/agents/chooser/execute/durable", brought(waiting, "red", "today"), status=202)
        await server.finished(waiting["run_id"])
        answer = await server.get(f"/ai/agents/chooser/executions/{waiting['run_id']}")

    assert answer["response"] == "The red one, today."
