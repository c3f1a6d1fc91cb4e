"""What a server records of models: their reasons beside calls, and the author's prompt in what they are asked."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.command import toolcrib
from tests.unit.server.client import PLAN, Server, http_tool, serving
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import Example, JsonObject
from toolcrib.core.runs.views.trace import reasoning_of
from toolcrib.llm import Message, Part, Request, Response, Text, Thinking, TokenUsage, ToolCall

WHY = "I look for the deal first, because its id is needed."


def saying(request: Request) -> Message | str:
    if request.output_name == "plan":
        return PLAN
    if request.output_schema is not None:
        return '{"summary": "Ein Deal."}'
    if any(message.role == "assistant" for message in request.messages):
        return "One deal."
    return Message("assistant", (Text(WHY), ToolCall("a", "search", '{"company": "Acme"}')))


def recording(store: Any, *, models: Any, **fields: Any) -> Crib:
    return Crib(store, models={**models, "scripted:says": ScriptedModel(saying, name="says")}, **fields)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[Server]:
    async with serving(f"sqlite:///{tmp_path}/crib.db", make_crib=recording) as started:
        yield started


def reasons(steps: list[JsonObject]) -> list[str | None]:
    return [step["reasoning"] for step in steps if step["type"] == "llm_call"]


@pytest.mark.requirement("trace.model_calls")
async def test_finding_8_what_an_agentic_tool_s_model_says_beside_its_calls_is_the_step_s_reasoning(
    server: Server, tmp_path: Path
):
    server.crib.agentic_tool("finder", mode="agentic", model="scripted:says", tools=["search"])
    invoked = await server.post("/ai/tools/finder/invoke", {"params": {"task": "find Acme"}})
    run_id = invoked["meta"]["run_id"]
    detail = await server.get(f"/agentic-tools/finder/executions/{run_id}")
    printed = await asyncio.to_thread(toolcrib, "run", "trace", run_id, store=f"sqlite:///{tmp_path}/crib.db")

    assert reasons(invoked["meta"]["trace"]["steps"]) == [WHY, None]
    assert [call["reasoning"] for call in detail["llm_calls"]] == [WHY, None]
    assert WHY in " ".join(printed.stdout.replace("│", " ").split())


@pytest.mark.requirement("trace.model_calls")
async def test_finding_8_what_an_agent_says_beside_its_calls_is_the_step_s_reasoning(server: Server):
    body = {"name": "desk", "llm": {"model": "scripted:says"}, "tools": ["search"]}
    await server.post("/ai/agents", body, status=201)
    answer = await server.post("/ai/agents/desk/execute", {"message": "find Acme"})
    run = await server.get(f"/executions/{answer['run_id']}")

    assert reasons(run["trace"]["steps"]) == [WHY, None]


@pytest.mark.requirement("agents.prompt")
async def test_finding_8_the_default_prompt_asks_for_a_reason_in_a_sentence(server: Server):
    body = {"name": "finder", "mode": "agentic", "llm": {"model": "scripted:says"}, "tools": [{"tool": "search"}]}
    made = await server.post("/agentic-tools", body, status=201)

    assert "- Whenever you call tools, first say in one sentence why.\n" in made["system_prompt"]


LONG = "x" * 500


@pytest.mark.requirement("agents.native_examples")
@pytest.mark.parametrize("caller", ["agent", "agentic"])
async def test_0_9_examples_and_hints_reach_a_model_that_calls_natively(tmp_path: Path, caller: str):
    asked: list[Request] = []

    def answer(request: Request) -> str:
        asked.append(request)
        return "Done."

    def make(store: Any, *, models: Any, **fields: Any) -> Crib:
        return Crib(store, models={**models, "scripted:says": ScriptedModel(answer, name="says")}, **fields)

    examples = (
        Example(scenario="Deals of Acme", input={"company": "Acme"}, output=[{"name": "Acme"}]),
        Example(scenario="does not fit", input={"firm": "Acme"}),
        Example(scenario="output too long", input={"company": "B"}, output=LONG),
        Example(scenario="too long", input={"company": LONG}),
        *(Example(scenario=f"more {number}", input={"company": "C"}) for number in range(3)),
    )
    async with serving(f"sqlite:///{tmp_path}/crib.db", make_crib=make) as server:
        fields: dict[str, Any] = {"examples": examples, "cost_hint": "2 credits", "estimated_latency_s": 12.5}
        await server.crib.save(http_tool("deals", input_schema=COMPANY, side_effects="reads", **fields))
        body = {"name": "desk", "llm": {"model": "scripted:says"}, "tools": [{"tool": "deals"}]}
        if caller == "agent":
            await server.post("/ai/agents", body, status=201)
            await server.post("/ai/agents/desk/execute", {"message": "go"})
        else:
            await server.post("/agentic-tools", {**body, "mode": "agentic"}, status=201)
            await server.post("/ai/tools/desk/invoke", {"params": {"task": "go"}})

    [offered] = asked[0].tools.tools
    assert offered.description.endswith(
        "Cost: 2 credits\nTakes about 12.5 s.\nExamples:\n"
        '- Deals of Acme: {"company":"Acme"} returns [{"name":"Acme"}]\n'
        '- output too long: {"company":"B"}\n'
        '- more 0: {"company":"C"}'
    )


COMPANY: JsonObject = {
    "type": "object",
    "properties": {"company": {"type": "string"}},
    "required": ["company"],
    "additionalProperties": False,
}
GERMAN = "ANSWER IN GERMAN. Always name every deal.\n{{integration_schema}}\n{{user_task}}"


@pytest.mark.requirement("agents.answer_prompt")
@pytest.mark.parametrize("prompt", [GERMAN, None])
async def test_finding_5_the_author_s_prompt_reaches_the_final_answer(server: Server, prompt: str | None):
    body = {"name": "finder", "mode": "deterministic", "llm": {"model": "scripted:says"}, "system_prompt": prompt}
    await server.post("/agentic-tools", {**body, "steps": [{"id": "search", "tool": "search"}]}, status=201)
    invoked = await server.post("/ai/tools/finder/invoke", {"params": {"task": "find Acme's deals"}})
    detail = await server.get(f"/agentic-tools/finder/executions/{invoked['meta']['run_id']}")
    asked = [call["prompt"] for call in detail["llm_calls"] if call["purpose"] == "formatting"]

    assert len(asked) == 1
    assert ("ANSWER IN GERMAN. Always name every deal.\n(left out here)\nfind Acme's deals" in asked[0]) == bool(prompt)
    assert "You report what was done for a task" in asked[0]
    assert ("fixed sequence of operations" in asked[0]) is False


def answered(*parts: Part) -> Response:
    return Response(Message("assistant", parts), stop="tool_calls", raw_stop="", usage=TokenUsage(), model="m", id="r")


@pytest.mark.requirement("trace.model_calls")
def test_finding_8_thinking_and_words_beside_calls_are_both_reasons():
    call = ToolCall("a", "search", "{}")
    both = answered(Thinking("The id first."), Text(f" {WHY}\n"), call)
    silent = answered(call)

    assert reasoning_of(both) == f"The id first.\n{WHY}"
    assert reasoning_of(silent) is None
