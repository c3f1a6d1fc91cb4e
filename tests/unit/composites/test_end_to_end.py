"""Composites and fallbacks through a whole crib: pinned operations, surfaces, and a fallback that waits."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.client import serving
from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import ChildStarted, ErrorRule, Limits, Reason, ToolDefinition
from toolcrib.kinds.composite.shape import CompositeImplementation, CompositeRoute
from toolcrib.llm import Message, ToolCall

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TASK = {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]}
searches: list[str] = []


@tool
async def note(text: str) -> str:
    """Note a text."""
    return text


@tool(side_effects="reads", error_handling=(ErrorRule(when="TIMEOUT", action="fallback", tool="ask"),))
async def search(text: str) -> Any:
    """Search, in vain."""
    searches.append(text)
    raise TimeoutError


@tool(side_effects="reads", requires_confirmation=True)
async def ask(text: str) -> Any:
    """Ask instead, if a person agrees."""
    return f"asked {text}"


@tool(name="ask", version="1.1.0", side_effects="reads")
async def newer(text: str) -> Any:
    """The next version."""
    return f"newer {text}"


@pytest.mark.requirement("fallbacks.resumed", "fallbacks.called", "fallbacks.accounting")
async def test_a_fallback_that_waits_for_a_person_goes_on_without_the_failed_call():
    searches.clear()
    async with Crib("memory://") as crib:
        crib.add(ask, search)
        waiting = await crib.invoke("search", {"text": "x"})
        [started] = [entry.event for entry in waiting.log if isinstance(entry.event, ChildStarted)]
        [asked] = await crib.pending_approvals(started.child_run_id)
        await crib.decide(started.child_run_id, asked.position, approve=True)
        result = await crib.resume(waiting.run_id)
        trace = (await crib.trace(waiting.run_id)).model_dump(mode="json")

    assert (waiting.summary.status, result.output) == ("awaiting_approval", "asked x")
    assert searches == ["x"]
    assert started.instead_of is not None
    assert started.instead_of.error.reason is Reason.TOOL_TIMEOUT
    assert result.envelopes[-1].metadata["fallback"]["tool"] == "ask@1.0.0"
    assert result.summary.tool_calls == 2
    [step] = [step for step in trace["steps"] if step["type"] == "tool_call"]
    assert step["fallback_run_id"] == started.child_run_id
    assert step["fallback"]["status"] == "completed"


@pytest.mark.requirement("composites.pinned")
async def test_a_run_that_waits_calls_the_operation_that_it_began_with():
    routes = (CompositeRoute(id="only", tool="ask"),)
    find = ToolDefinition.model_validate(
        {"name": "find", "input_schema": TEXT, "implementation": CompositeImplementation(routes=routes)}
    )
    async with Crib("memory://") as crib:
        crib.add(ask, find)
        waiting = await crib.invoke("find", {"text": "x"})
        [child] = [entry.event.child_run_id for entry in waiting.log if isinstance(entry.event, ChildStarted)]
        [asked] = await crib.pending_approvals(child)
        crib.add(newer)
        await crib.decide(child, asked.position, approve=True)

        assert (await crib.resume(waiting.run_id)).output == "asked x"
        assert (await crib.invoke("find", {"text": "x"})).output == "newer x"


@pytest.mark.requirement("ends.nested")
async def test_a_composite_whose_agentic_tool_reaches_a_limit_ends_as_that_does(tmp_path: Path):
    model = ScriptedModel([Message("assistant", (ToolCall("1", "note", '{"text": "x"}'),)), "never asked"])
    routes = (CompositeRoute(id="only", tool="writer"),)
    shape = CompositeImplementation(routes=routes)
    find = ToolDefinition.model_validate({"name": "find", "input_schema": TASK, "implementation": shape})
    async with Crib(f"sqlite:///{tmp_path}/crib.db", models={"scripted:one": model}) as crib:
        crib.add(note)
        once = Limits(max_iterations=1)
        crib.agentic_tool("writer", mode="agentic", model="scripted:one", tools=["note"], limits=once, grounding="off")
        crib.add(find)
        result = await crib.invoke("find", {"task": "note it"})

    assert (result.status, result.stop_reason) == ("incomplete", "max_iterations")
    assert result.output is None
    assert result.error is not None
    assert result.error.reason is Reason.MAX_ITERATIONS_EXCEEDED


@pytest.mark.requirement("composites.surfaces")
async def test_a_composite_is_made_called_and_listed_over_rest():
    body = {
        "name": "find",
        "input_schema": {"type": "object", "properties": {"company": {"type": "string"}}, "required": ["company"]},
        "implementation": {"kind": "composite", "routes": [{"id": "only", "tool": "search"}]},
    }
    async with serving() as server:
        await server.post("/ai/tools", body, status=201)
        envelope = await server.post("/ai/tools/find/execute", {"params": {"company": "Acme"}})
        listed = await server.get("/ai-tools", {"type": "composite"})

    assert (envelope["status"], envelope["is_server_tool"], envelope["was_executed"]) == ("success", True, True)
    assert [item["name"] for item in listed["items"]] == ["find"]
