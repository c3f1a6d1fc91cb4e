"""Each interface as its users call it: makes the call of a case, and returns what was seen of its outcome and cost."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import httpx2
from a2a.client import AgentCardResolutionError, ClientConfig, create_client
from a2a.helpers import new_text_message
from a2a.types import Role, SendMessageRequest, TaskState
from agents.tool_context import ToolContext
from google.protobuf.json_format import MessageToDict
from mcp.shared.exceptions import MCPError
from openai import APIStatusError, AsyncOpenAI
from pydantic_ai import ModelRetry, RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage

from tests.doors.world import Case, World
from tests.unit.cli.command import toolcrib
from tests.unit.mcp_server.served import client_of
from toolcrib.contracts import NotFound
from toolcrib.interfaces.adapters import langchain, openai_agents, pydantic_ai


@dataclass(frozen=True, slots=True)
class Seen:
    """What a caller sees."""

    outcome: str
    """As a cell of docs/outcomes.md says it."""
    cost: Any = None
    """Of the run, as the interface gives it; null if it gives none."""


Interface = Callable[[World, Case], Awaitable[Seen]]


async def in_python(world: World, case: Case) -> Seen:
    """`crib.invoke`."""
    try:
        result = await world.acting(case).invoke(case.tool, case.arguments)
    except NotFound:
        return Seen("NotFound")
    return Seen("ok" if result.ok else "not ok", result.cost_usd)


def _code_of(body: dict[str, Any]) -> str:
    """The code of a problem document, of a failed run, or the status of one that waits."""
    if "code" in body:
        return str(body["code"])
    return str(body["error"]["code"] if body.get("error") else body["meta"]["status"])


async def over_rest(world: World, case: Case) -> Seen:
    """`POST /ai/tools/{name}/invoke`."""
    headers = {"Authorization": f"Bearer {case.key}"}
    async with httpx2.AsyncClient(base_url=world.url, headers=headers, timeout=30, trust_env=False) as client:
        response = await client.post(f"/api/v1/ai/tools/{case.tool}/invoke", json={"params": case.arguments})
    body = response.json()
    cost = body["meta"]["total_cost"] if "meta" in body else None
    if body.get("success"):
        return Seen(f"{response.status_code}, success", cost)
    return Seen(f"{response.status_code}, {_code_of(body)}")


def over_mcp(revision: str) -> Interface:
    """`tools/call`."""

    async def call(world: World, case: Case) -> Seen:
        async with client_of(f"{world.url}/mcp", revision, key=case.key) as client:
            try:
                result = await client.call_tool(case.tool, case.arguments)
            except MCPError as refusal:
                return Seen(f"error {refusal.error.code}")
        meta = result.meta or {}
        [text] = result.content
        if result.is_error:
            return Seen(f"isError, {_code(getattr(text, 'text', ''), meta['toolcrib/status'])}")
        return Seen("result", meta.get("toolcrib/cost_usd"))

    return call


async def on_the_command_line(world: World, case: Case) -> Seen:
    """`toolcrib tool call`."""
    if case.key != "owner":
        return Seen("as the owner")
    arguments = ("tool", "call", case.tool, "--input", json.dumps(case.arguments), "--json", "--store", world.store)
    done = await asyncio.to_thread(toolcrib, *arguments)
    return Seen(f"exit {done.exit_code}", json.loads(done.stdout).get("cost_usd") if done.exit_code == 0 else None)


async def in_langchain(world: World, case: Case) -> Seen:
    """A `StructuredTool`."""
    try:
        [loaded] = await langchain.load(world.acting(case), case.tool, raise_errors=True)
    except NotFound:
        return Seen("NotFound")
    try:
        message = await loaded.ainvoke({"name": case.tool, "args": case.arguments, "id": "c1", "type": "tool_call"})
    except langchain.ToolCallFailed as failure:
        return Seen(f"ToolCallFailed, {_code(str(failure))}")
    return Seen("text", message.artifact["cost_usd"])


async def in_pydantic_ai(world: World, case: Case) -> Seen:
    """A tool of a `CribToolset`."""
    context = RunContext[Any](deps=None, model=TestModel(), usage=RunUsage())
    toolset = pydantic_ai.CribToolset(world.acting(case), case.tool)
    try:
        [(name, found)] = (await toolset.get_tools(context)).items()
    except NotFound:
        return Seen("NotFound")
    try:
        returned = await toolset.call_tool(name, case.arguments, context, found)
    except (ModelRetry, ToolFailed) as failure:
        return Seen(f"{type(failure).__name__}, {_code(failure.message)}")
    return Seen("value", returned.metadata["cost_usd"])


async def in_openai_agents(world: World, case: Case) -> Seen:
    """A `FunctionTool`."""
    try:
        [loaded] = await openai_agents.load(world.acting(case), case.tool)
    except NotFound:
        return Seen("NotFound")
    arguments = json.dumps(case.arguments)
    context = ToolContext[Any](context=None, tool_name=loaded.name, tool_call_id="c1", tool_arguments=arguments)
    code = _code(await loaded.on_invoke_tool(context, arguments))
    return Seen(f"text, {code}" if code else "text")


async def at_the_openai_endpoint(world: World, case: Case) -> Seen:
    """A chat completion, with OpenAI's SDK."""
    message: Any = {"role": "user", "content": case.arguments.get("message", "Hello")}
    async with AsyncOpenAI(base_url=f"{world.url}/v1", api_key=case.key, max_retries=0) as client:
        try:
            answer: Any = await client.chat.completions.create(model=case.tool, messages=[message])
        except APIStatusError as refusal:
            return Seen(f"{refusal.status_code}, {refusal.code}")
    facts = answer.model_extra["toolcrib"]
    [choice] = answer.choices
    waits = f", {facts['status']}" if choice.finish_reason == "stop" and facts["status"] != "completed" else ""
    return Seen(f"200, {choice.finish_reason}{waits}", facts["cost_usd"])


async def by_a2a(world: World, case: Case) -> Seen:
    """A message of A2A, with the SDK's client."""
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {case.key}"}, trust_env=False) as http:
        config = ClientConfig(httpx_client=http, streaming=False)
        try:
            client = await create_client(f"{world.url}/a2a/{case.tool}", config)
        except AgentCardResolutionError as refusal:
            return Seen(f"{refusal.status_code}, not_found")
        message = new_text_message(case.arguments.get("message", "Hello"), role=Role.ROLE_USER)
        [told] = [event async for event in client.send_message(SendMessageRequest(message=message))]
    state = TaskState.Name(told.task.status.state).removeprefix("TASK_STATE_").lower()
    data = [MessageToDict(part.data) for part in told.task.status.message.parts if part.HasField("data")]
    told_of = [each["error"]["code"] if "error" in each else next(iter(each)) for each in data]
    return Seen(", ".join([state, *told_of]), MessageToDict(told.task.metadata)["toolcrib"]["costUsd"])


async def by_ag_ui(world: World, case: Case) -> Seen:
    """A run of AG-UI."""
    message = {"id": "m1", "role": "user", "content": case.arguments.get("message", "Hello")}
    body = {"threadId": "t", "runId": "r", "messages": [message]}
    headers = {"Authorization": f"Bearer {case.key}"}
    async with httpx2.AsyncClient(base_url=world.url, headers=headers, timeout=30, trust_env=False) as client:
        response = await client.post(f"/ag-ui/{case.tool}", json=body)
    if response.status_code != 200:
        return Seen(f"{response.status_code}, {response.json()['code']}")
    last = json.loads(response.text.strip().rpartition("data: ")[2])
    facts = last["metadata"]["toolcrib"]
    if last["type"] == "RUN_ERROR":
        return Seen(f"RUN_ERROR, {last['code']}")
    outcome = last["outcome"]["type"]
    return Seen(f"{outcome}, {facts['status']}", facts["cost_usd"])


def _code(text: str, waits: str = "") -> str:
    """The code at the beginning of what a model reads; of a run that waits, its status."""
    code, colon, _ = text.partition(":")
    return (
        waits
        if waits == "queued" or waits.startswith("awaiting")
        else code
        if colon and code.replace("_", "").isalpha()
        else ""
    )


INTERFACES: Mapping[str, tuple[str, Interface]] = {
    "Python": ("Python", in_python),
    "REST": ("REST", over_rest),
    "MCP 2026-07-28": ("MCP", over_mcp("2026-07-28")),
    "MCP with sessions": ("MCP", over_mcp("legacy")),
    "command line": ("command line", on_the_command_line),
    "LangChain": ("LangChain", in_langchain),
    "pydantic-ai": ("pydantic-ai", in_pydantic_ai),
    "OpenAI Agents": ("OpenAI Agents", in_openai_agents),
    "OpenAI endpoint": ("OpenAI endpoint", at_the_openai_endpoint),
    "A2A": ("A2A", by_a2a),
    "AG-UI": ("AG-UI", by_ag_ui),
}
"""Each interface and its column in docs/outcomes.md."""
