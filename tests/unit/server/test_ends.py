"""A run that did not do what it was asked for, looked at through every door: none of them shows a success."""

import asyncio
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import pytest

from tests.unit.agents.crm import PricedModel, asks
from tests.unit.cli.command import toolcrib
from tests.unit.server.client import Server, checked, serving
from toolcrib import Crib, Limits, ScriptedModel, tool
from toolcrib.contracts import JsonObject
from toolcrib.llm import LanguageModel

Case: TypeAlias = Literal["nothing was paid", "half was denied", "a question"]
ENDS: dict[Case, tuple[str, str, str]] = {
    "nothing was paid": ("max_cost", "POLICY_DENIED", "max_cost_exceeded"),
    "half was denied": ("max_tool_calls", "POLICY_DENIED", "max_tool_calls_exceeded"),
    "a question": ("question", "VALIDATION_ERROR", "question"),
}
"""Stop reason, code and reason of the error."""
SCHEMA: Any = {"type": "object", "properties": {"moved": {"type": "integer"}}, "required": ["moved"]}
MOVES: JsonObject = {
    "reasoning": "",
    "find": {"input": {}},
    "move": {"for_each": "${find}", "input": {"deal": "${item}"}},
}
ASKS: JsonObject = {
    "reading": [],
    "reasoning": "",
    "question": "Which deals?",
    "find": {"skip": True},
    "move": {"skip": True},
}


@tool(side_effects="reads")
async def move(deal: str) -> str:
    """Move a deal."""
    return deal


@tool(side_effects="reads")
async def find() -> list[str]:
    """Find deals."""
    return ["a", "b", "c"]


def making(model: LanguageModel) -> Callable[..., Crib]:
    """Makes cribs that have a model besides."""

    def make(store: Any, models: Any, **more: Any) -> Crib:
        return Crib(store, models={**models, "scripted:mover": model}, **more)

    return make


def model_for(case: Case) -> LanguageModel:
    """What the model says."""
    plan = json.dumps(ASKS if case == "a question" else MOVES)

    def reply(request: Any) -> str:
        return {"plan": plan, "answer": '{"moved": 2}'}.get(request.output_name, '{"question": "Which deals?"}')

    return PricedModel(["never asked"]) if case == "nothing was paid" else ScriptedModel(reply)


def add(crib: Crib, case: Case) -> None:
    """The tool `mover`, whose runs end so, and a workflow that calls it."""
    limits = Limits(max_cost_usd=Decimal("0.05")) if case == "nothing was paid" else Limits(max_tool_calls=2)
    crib.add(find, move)
    crib.agentic_tool(
        "mover",
        mode="deterministic",
        model="scripted:mover",
        grounding="evidence" if case == "a question" else "off",
        steps=["find", "move"],
        result_schema=SCHEMA,
        limits=limits,
    )
    crib.workflow("around", steps=[{"name": "moved", "tool": "mover", "input": {"task": "${input.task}"}}])


def told(found: JsonObject) -> tuple[Any, ...]:
    """What an answer says of the end, whichever door it came through."""
    error = cast("JsonObject", found["error"])
    return found["status"], found["stop_reason"], found["output"], error["code"], error["details"]["reason"]


@pytest.mark.requirement("ends.everywhere", "ends.promised_output")
@pytest.mark.parametrize("case", ENDS)
async def test_a_run_that_did_not_do_everything_is_no_success_through_any_door(case: Case, tmp_path: Path):
    stop_reason, code, reason = ENDS[case]
    expected = ("incomplete", stop_reason, None, code, reason)
    store = f"sqlite:///{tmp_path}/crib.db"
    task = {"task": "Move a, b and c"}
    async with serving(store, make_crib=making(model_for(case))) as server:
        add(server.crib, case)
        flow = await server.post("/ai/tools/around/invoke", {"params": task})
        assert (flow["success"], flow["data"], flow["error"]["code"]) == (False, None, code), flow["error"]
        outer = await server.crib.resume(flow["meta"]["run_id"])
        [call] = outer.envelopes
        assert (call.status, call.output, call.metadata["status"]) == ("error", None, "incomplete")
        run_id = call.metadata["run_id"]
        assert (outer.ok, outer.status, outer.stop_reason) == (False, "incomplete", stop_reason)
        assert case == "nothing was paid" or call.partial is not None

        await _through_rest(server, run_id, expected)
        result = await server.crib.resume(run_id)
        assert (result.ok, result.output) == (False, None)
        assert told(result.summary.model_dump(mode="json")) == expected
        trace = await server.crib.trace(run_id)
        assert told(trace.model_dump(mode="json")) == expected

        status = 202 if case == "a question" else 200
        direct = await server.post("/agentic-tools/invoke", {"tool": "mover", "params": task}, status)
        assert direct["success"] is False
        if case != "a question":  # which waits for its answer, since nobody else calls
            meta = direct["meta"]
            assert told({**direct, **meta, "output": direct["data"]}) == expected
            assert direct["partial"] is not None

    shown = await asyncio.to_thread(toolcrib, "run", "trace", run_id, store=store)
    assert f"Status: incomplete ✗ ({stop_reason})" in shown.stdout
    assert "Final Response" not in shown.stdout
    assert "Error:" in shown.stdout
    as_json = await asyncio.to_thread(toolcrib, "run", "trace", run_id, "--json", store=store)
    assert told(json.loads(as_json.stdout)) == expected
    listed = await asyncio.to_thread(toolcrib, "run", "list", "--json", store=store)
    assert {run["run_id"]: run["status"] for run in json.loads(listed.stdout)}[run_id] == "incomplete"


async def _through_rest(server: Server, run_id: str, expected: tuple[Any, ...]) -> None:
    view = await server.get(f"/executions/{run_id}")
    assert told(view["run"]) == told(view["trace"]) == expected
    listed = {run["run_id"]: run for run in (await server.get("/executions", {"status": "incomplete"}))["items"]}
    assert told(listed[run_id]) == expected
    response = checked(await server.client.get(f"/api/v1/agentic-tools/mover/executions/{run_id}"), 200)
    assert told({**response, "output": response.get("output", response.get("data"))})[:2] == expected[:2]
    stream = await server.client.get(f"/api/v1/executions/{run_id}/stream")
    *_, last = [line.split(": ", 1)[1] for line in stream.text.splitlines() if line.startswith("data: ")]
    assert "event: error" in stream.text
    assert "event: done" not in stream.text
    assert told(json.loads(last)["result"]) == expected


@pytest.mark.requirement("ends.everywhere")
async def test_a_turn_of_a_conversation_that_a_limit_ended_is_told_as_such(tmp_path: Path):
    call = asks(("move", {"deal": "a"}), text="I move it.")
    model = ScriptedModel([call, "Only a was moved.", "Hello again."])
    async with serving(f"sqlite:///{tmp_path}/crib.db", make_crib=making(model)) as server:
        server.crib.add(move)
        limits = Limits(max_iterations=1)
        server.crib.agent("clerk", model="scripted:mover", tools=["move"], limits=limits)

        first = await server.post("/ai/agents/clerk/execute", {"message": "Move a and b"})
        second = await server.post(f"/ai/conversations/{first['conversation_id']}/continue", {"message": "and now?"})
        detail = await server.get(f"/ai/conversations/{first['conversation_id']}")

    assert told(first) == ("incomplete", "max_iterations", None, "POLICY_DENIED", "max_iterations_exceeded")
    assert (first["response"], first["partial"]["calls"][0]["tool"]) == ("Only a was moved.", "move")
    assert second["status"] == "completed"
    assert [(turn["status"], turn["response"]) for turn in detail["turns"]] == [
        ("incomplete", "Only a was moved."),
        ("completed", "Hello again."),
    ]
    remembered = model.requests[-1].messages[-2].text
    assert "Only a was moved." in remembered
    assert "(This turn ended before its answer, incomplete, max iterations: limit max_iterations is 1" in remembered
