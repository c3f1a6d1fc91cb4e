"""Each interface as its users call it: makes the call of a case, and says what was seen of its outcome."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
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

Interface = Callable[[World, Case], Awaitable[str]]


async def in_python(world: World, case: Case) -> str:
    """`crib.invoke`."""
    try:
        result = await world.acting(case).invoke(case.tool, case.arguments)
    except NotFound:
        return "NotFound"
    return "ok" if result.ok else "not ok"


async def over_rest(world: World, case: Case) -> str:
    """`POST /ai/tools/{name}/invoke`."""
    headers = {"Authorization": f"Bearer {case.key}"}
    async with httpx2.AsyncClient(base_url=world.url, headers=headers, timeout=30, trust_env=False) as client:
        response = await client.post(f"/api/v1/ai/tools/{case.tool}/invoke", json={"params": case.arguments})
    body = response.json()
    if body.get("success"):
        return f"{response.status_code}, success"
    return f"{response.status_code}, {body['error']['code'] if body.get('error') else body['meta']['status']}"


def over_mcp(revision: str) -> Interface:
    """`tools/call`."""

    async def call(world: World, case: Case) -> str:
        async with client_of(f"{world.url}/mcp", revision, key=case.key) as client:
            try:
                result = await client.call_tool(case.tool, case.arguments)
            except MCPError as refusal:
                return f"error {refusal.error.code}"
        status = (result.meta or {})["toolcrib/status"]
        [text] = result.content
        return f"isError, {_code(getattr(text, 'text', ''), status)}" if result.is_error else "result"

    return call


async def on_the_command_line(world: World, case: Case) -> str:
    """`toolcrib tool call`."""
    if case.key != "owner":
        return "as the owner"
    arguments = ("tool", "call", case.tool, "--input", json.dumps(case.arguments), "--json", "--store", world.store)
    done = await asyncio.to_thread(toolcrib, *arguments)
    return f"exit {done.exit_code}"


async def in_langchain(world: World, case: Case) -> str:
    """A `StructuredTool`."""
    try:
        [loaded] = await langchain.load(world.acting(case), case.tool, raise_errors=True)
    except NotFound:
        return "NotFound"
    try:
        await loaded.ainvoke(case.arguments)
    except langchain.ToolCallFailed as failure:
        return f"ToolCallFailed, {_code(str(failure))}"
    return "text"


async def in_pydantic_ai(world: World, case: Case) -> str:
    """A tool of a `CribToolset`."""
    context = RunContext[Any](deps=None, model=TestModel(), usage=RunUsage())
    toolset = pydantic_ai.CribToolset(world.acting(case), case.tool)
    try:
        [(name, found)] = (await toolset.get_tools(context)).items()
    except NotFound:
        return "NotFound"
    try:
        await toolset.call_tool(name, case.arguments, context, found)
    except (ModelRetry, ToolFailed) as failure:
        return f"{type(failure).__name__}, {_code(failure.message)}"
    return "value"


async def in_openai_agents(world: World, case: Case) -> str:
    """A `FunctionTool`."""
    try:
        [loaded] = await openai_agents.load(world.acting(case), case.tool)
    except NotFound:
        return "NotFound"
    arguments = json.dumps(case.arguments)
    context = ToolContext[Any](context=None, tool_name=loaded.name, tool_call_id="c1", tool_arguments=arguments)
    code = _code(await loaded.on_invoke_tool(context, arguments))
    return f"text, {code}" if code else "text"


async def at_the_openai_endpoint(world: World, case: Case) -> str:
    """A chat completion, with OpenAI's SDK."""
    message: Any = {"role": "user", "content": case.arguments.get("message", "Hello")}
    async with AsyncOpenAI(base_url=f"{world.url}/v1", api_key=case.key, max_retries=0) as client:
        try:
            answer = await client.chat.completions.create(model=case.tool, messages=[message])
        except APIStatusError as refusal:
            return f"{refusal.status_code}, {refusal.code}"
    return f"200, {answer.choices[0].finish_reason}"


async def by_a2a(world: World, case: Case) -> str:
    """A message of A2A, with the SDK's client."""
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {case.key}"}, trust_env=False) as http:
        config = ClientConfig(httpx_client=http, streaming=False)
        try:
            client = await create_client(f"{world.url}/a2a/{case.tool}", config)
        except AgentCardResolutionError as refusal:
            return f"{refusal.status_code}, not_found"
        message = new_text_message(case.arguments.get("message", "Hello"), role=Role.ROLE_USER)
        [told] = [event async for event in client.send_message(SendMessageRequest(message=message))]
    state = TaskState.Name(told.task.status.state).removeprefix("TASK_STATE_").lower()
    data = [part.data for part in told.task.status.message.parts if part.HasField("data")]
    return ", ".join([state, *(MessageToDict(each)["error"]["code"] for each in data)])


async def by_ag_ui(world: World, case: Case) -> str:
    """A run of AG-UI."""
    message = {"id": "m1", "role": "user", "content": case.arguments.get("message", "Hello")}
    body = {"threadId": "t", "runId": "r", "messages": [message]}
    headers = {"Authorization": f"Bearer {case.key}"}
    async with httpx2.AsyncClient(base_url=world.url, headers=headers, timeout=30, trust_env=False) as client:
        response = await client.post(f"/ag-ui/{case.tool}", json=body)
    if response.status_code != 200:
        return f"{response.status_code}, {response.json()['error']['code']}"
    last = json.loads(response.text.strip().rpartition("data: ")[2])
    return f"{last['type']}, {last['metadata']['toolcrib']['status']}"


def _code(text: str, waits: str = "") -> str:
    """The code at the beginning of what a model reads; of a run that waits, its status."""
    code, colon, _ = text.partition(":")
    return waits if waits.startswith("awaiting") else code if colon and code.replace("_", "").isalpha() else ""


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
