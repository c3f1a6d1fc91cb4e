"""Over REST: calls of agents that become steps, and agentic tools as the workflows that they are."""

import json
from typing import Any

import pytest
import yaml

from tests.unit.server.client import PRINCIPALS, Server, checked, serving
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import JsonObject, Principal
from toolcrib.llm import Message, Request, ToolCall

DESK: JsonObject = {
    "name": "desk",
    "llm": {"model": "scripted:desk"},
    "system_prompt": "You look deals up.",
    "tools": ["search"],
}
FLOW: JsonObject = {
    "name": "follow",
    "steps": [
        {
            "name": "ask",
            "agent": "desk",
            "input": {"message": "Find Acme."},
            "pins": [{"name": "deals", "selector": {"tool": "search"}}],
        },
        {"name": "count", "output": "${ask.handles.deals.length}"},
    ],
}


def desk(request: Request) -> Message | str:
    """Looks once, then answers."""
    if len(request.messages) == 1:
        return Message("assistant", (ToolCall("a", "search", '{"company": "Acme"}'),))
    return "One deal."


def with_desk(*given: Any, models: Any, **more: Any) -> Crib:
    """A crib that has the model of the desk."""
    return Crib(*given, models={**models, "scripted:desk": ScriptedModel(desk)}, **more)


async def asked(server: Server) -> JsonObject:
    """An instance in which the agent has made its call."""
    await server.post("/ai/agents", DESK, 201)
    await server.post("/ai/workflows/follow/publish", {"definition": FLOW})
    return await server.post("/ai/workflows/follow/run")


@pytest.mark.requirement("views.materialize_preview")
async def test_what_a_call_would_become_is_shown_before_anything_is_written() -> None:
    async with serving(make_crib=with_desk) as server:
        run_id = (await asked(server))["run_id"]
        body = {"run_id": run_id, "node": "ask", "pin": "deals", "step": "find"}
        found = await server.post("/ai/workflows/follow/materialize/preview", body)
        await server.get("/ai/drafts/follow", status=404)
        made = await server.post("/ai/workflows/follow/materialize", body)
        drafted = await server.get("/ai/drafts/follow")
        again = await server.post("/ai/workflows/follow/materialize/preview", {**body, "step": "find_again"})
        async with server.client_of("colleague") as colleague:
            refused = await colleague.post("/api/v1/ai/workflows/follow/materialize/preview", json=body)

    same = ("step", "node", "tool", "call_id", "run_id", "rewired", "left", "warnings", "note", "before_revision")
    assert {name: found[name] for name in same} == {name: made[name] for name in same}
    assert [step["name"] for step in found["definition"]["steps"]] == ["ask", "count", "find"]
    assert "+  name: find" in found["diff"]
    assert not any(problem["is_error"] for problem in found["problems"])
    assert again["before_revision"] == drafted["revision"]
    assert refused.status_code == 403


@pytest.mark.requirement("workflow_server.materials")
async def test_a_call_becomes_a_step_of_the_draft_and_the_change_is_taken_back() -> None:
    async with serving(make_crib=with_desk) as server:
        run_id = (await asked(server))["run_id"]
        body = {"run_id": run_id, "node": "ask", "pin": "deals", "step": "find"}
        made = await server.post("/ai/workflows/follow/materialize", body)
        drafted = (await server.get("/ai/drafts/follow"))["definition"]["steps"]
        await server.post("/ai/workflows/follow/publish")
        again = await server.post("/ai/workflows/follow/run")

        assert (made["step"], made["tool"], made["rewired"]) == ("find", "search@1.0.0", ["/steps/1/output"])
        assert {step["name"]: step["input"] for step in drafted}["find"] == {"company": "Acme"}
        assert again["output"]["count"] == 1
        await server.post("/ai/workflows/follow/materialize", body, 409)


@pytest.mark.requirement("workflow_server.materials")
async def test_the_last_change_of_a_draft_is_taken_back() -> None:
    async with serving(make_crib=with_desk) as server:
        run_id = (await asked(server))["run_id"]
        path = "/api/v1/ai/drafts/follow"
        checked(await server.client.put(path, json={"definition": {**FLOW, "title": "mine"}}), 200)
        await server.post("/ai/workflows/follow/materialize", {"run_id": run_id, "pin": "deals", "step": "find"})

        undone = await server.post("/ai/drafts/follow/undo")
        assert (undone["draft"]["definition"]["title"], len(undone["draft"]["definition"]["steps"])) == ("mine", 2)


@pytest.mark.requirement("workflow_server.materials", "workflow_server.grants")
async def test_only_who_may_read_the_run_and_write_the_workflow_materializes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRINCIPALS, "reader", Principal(id="reader", grants=("ai://workflows/*/read",)))
    monkeypatch.setitem(PRINCIPALS, "writer", Principal(id="writer", grants=("ai://workflows/*/write",)))
    async with serving(make_crib=with_desk) as server:
        body = {"run_id": (await asked(server))["run_id"], "pin": "deals", "step": "find"}
        for who in ("reader", "writer"):
            client = server.client_of(who)
            refused = await client.post("/api/v1/ai/workflows/follow/materialize", json=body)
            assert (refused.status_code, "Acme" in refused.text) == (403, False)
        await server.get("/ai/drafts/follow", status=404)


@pytest.mark.requirement("workflow_server.materials")
@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
async def test_a_deterministic_tool_is_shown_as_a_workflow_that_can_be_published(form: str, read: Any) -> None:
    async with serving() as server:
        answer = await server.client.get("/api/v1/agentic-tools/deals/workflow", params={"format": form})
        document = {**read(answer.text), "name": "deals-flow"}

        assert (await server.post("/ai/workflows/validate", document))["problems"] == []
        await server.get("/agentic-tools/assistant/workflow", status=422)
        await server.get("/agentic-tools/search/workflow", status=404)
