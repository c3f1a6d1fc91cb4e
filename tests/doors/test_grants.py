"""Two keys of unequal grants at each interface: lists, calls, runs and approvals of others, and what refusals tell."""

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from a2a.client import A2AClientError, AgentCardResolutionError, ClientConfig, create_client
from a2a.helpers import new_text_message
from a2a.types import GetTaskRequest, Role, SendMessageRequest
from a2a.utils.errors import A2AError
from mcp.shared.exceptions import MCPError
from openai import APIStatusError, AsyncOpenAI
from pydantic_ai import RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage

from tests.doors.interfaces import INTERFACES
from tests.doors.world import PRINCIPALS, Case, World, asked, served_world
from tests.unit.mcp_server.served import client_of
from toolcrib.contracts import NotFound, PermissionDenied, Principal
from toolcrib.interfaces.adapters import langchain, openai_agents, pydantic_ai

TOOLS = {"count", "elsewhere", "find", "measure", "paid", "pick", "send_offer", "wait_for_ever", "wait_long"}
AGENTS = {"desk", "restless", "dear"}
MAY_EXECUTE: Mapping[str, set[str]] = {
    "owner": TOOLS | AGENTS,
    "reader": {"find"},
    "seller": {"find", "send_offer", "desk"},
}
MAY_SEE: Mapping[str, set[str]] = {**MAY_EXECUTE, "reader": {"find", "send_offer", "desk"}}

Listing = Callable[[World, str], Awaitable[set[str]]]


def web(world: World, key: str) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx2.AsyncClient(base_url=world.url, headers=headers, timeout=30, trust_env=False)


def over_rest(path: str) -> Listing:
    async def names(world: World, key: str) -> set[str]:
        found: list[str] = []
        cursor = ""
        async with web(world, key) as client:
            while cursor is not None:
                page = (await client.get(f"/api/v1{path}", params={"after": cursor, "limit": 1})).json()
                assert cursor in {"", *found}, "a cursor names nothing that was not shown"
                found += [(each.get("definition") or each)["name"] for each in page["items"]]
                cursor = page["next"]
        return {*found}

    return names


async def over_mcp(world: World, key: str) -> set[str]:
    async with client_of(f"{world.url}/mcp", key=key) as client:
        return {tool.name for tool in (await client.list_tools()).tools}


async def in_langchain(world: World, key: str) -> set[str]:
    return {tool.name for tool in await langchain.load(world.acting(Case("", {}, key=key)))}


async def in_pydantic_ai(world: World, key: str) -> set[str]:
    context = RunContext[Any](deps=None, model=TestModel(), usage=RunUsage())
    return {*await pydantic_ai.CribToolset(world.acting(Case("", {}, key=key))).get_tools(context)}


async def in_openai_agents(world: World, key: str) -> set[str]:
    return {tool.name for tool in await openai_agents.load(world.acting(Case("", {}, key=key)))}


async def in_exports(world: World, key: str) -> set[str]:
    return {str(one["name"]) for one in await world.acting(Case("", {}, key=key)).export()}


async def at_the_openai_endpoint(world: World, key: str) -> set[str]:
    async with AsyncOpenAI(base_url=f"{world.url}/v1", api_key=key) as client:
        return {model.id async for model in client.models.list()}


LISTS: Mapping[str, tuple[Listing, Mapping[str, set[str]], set[str]]] = {
    "REST tools": (over_rest("/ai/tools"), MAY_SEE, TOOLS | AGENTS),
    "REST agents": (over_rest("/ai/agents"), MAY_SEE, AGENTS),
    "REST ai-tools": (over_rest("/ai-tools"), MAY_SEE, TOOLS | AGENTS),
    "MCP": (over_mcp, MAY_EXECUTE, TOOLS | AGENTS),
    "LangChain": (in_langchain, MAY_EXECUTE, TOOLS | AGENTS),
    "pydantic-ai": (in_pydantic_ai, MAY_EXECUTE, TOOLS | AGENTS),
    "OpenAI Agents": (in_openai_agents, MAY_EXECUTE, TOOLS | AGENTS),
    "exports": (in_exports, MAY_SEE, TOOLS | AGENTS),
    "OpenAI endpoint": (at_the_openai_endpoint, MAY_EXECUTE, AGENTS),
}
"""How each interface lists, what decides on it, and what it has at all."""


@pytest.fixture(autouse=True)
def seller(monkeypatch: pytest.MonkeyPatch) -> None:
    grants = ("ai://tools/crm/find/execute", "ai://tools/crm/send_offer/execute", "ai://agents/desk/execute")
    monkeypatch.setitem(PRINCIPALS, "seller", Principal(id="seller", grants=grants))


@pytest.mark.requirement("doors.lists")
async def test_each_interface_lists_what_a_key_may_see_or_execute_and_no_more(tmp_path: Path) -> None:
    found: dict[tuple[str, str], set[str]] = {}
    async with served_world(tmp_path) as world:
        for name, (listed, _, _) in LISTS.items():
            for key in MAY_SEE:
                found[name, key] = await listed(world, key)

    wanted = {(name, key): may[key] & all_of for name, (_, may, all_of) in LISTS.items() for key in MAY_SEE}
    assert found == wanted


@pytest.mark.requirement("doors.refusals")
async def test_what_a_key_may_not_call_begins_no_run_and_looks_like_what_is_not_there(tmp_path: Path) -> None:
    """REST alone says 403 of what exists: it names the grant that lacks."""
    alike = {name: door for name, (_, door) in INTERFACES.items() if name not in {"Python", "REST", "command line"}}
    async with served_world(tmp_path) as world:
        before = await world.newest()
        for door in alike.values():
            for key in ("reader", "seller"):
                hidden = [Case(name, {}, key=key) for name in ("wait_long", "paid")]
                hidden += [asked("Hello", "dear", key=key)]
                unknown = await door(world, Case("no_such_tool", {}, key=key))
                assert [await door(world, case) for case in hidden] == [unknown] * 3
        assert await world.newest() == before
        allowed = {
            name: await door(world, Case("find", {"company": "A"}, key="seller")) for name, door in alike.items()
        }

    assert {name for name, seen in allowed.items() if "not_found" in seen.outcome} == {
        "A2A",
        "AG-UI",
        "OpenAI endpoint",
    }


async def rest_run(world: World, key: str, run_id: str) -> str:
    async with web(world, key) as client:
        answers = [
            await client.get(f"/api/v1/executions/{run_id}{rest}")
            for rest in ("", "/events", "/attachments", "/bundle", "/trace")
        ]
        answers.append(await client.post(f"/api/v1/executions/{run_id}/cancel", json={}))
    assert {answer.status_code for answer in answers} <= {403, 404}
    return "".join(answer.text for answer in answers)


async def mcp_run(world: World, key: str, run_id: str) -> str:
    async with client_of(f"{world.url}/mcp", key=key) as client:
        with pytest.raises(MCPError) as refused:
            await client.read_resource(f"toolcrib://runs/{run_id}")
    return str(refused.value)


async def openai_run(world: World, key: str, run_id: str) -> str:
    async with AsyncOpenAI(base_url=f"{world.url}/v1", api_key=key, max_retries=0) as client:
        with pytest.raises(APIStatusError) as refused:
            await client.responses.retrieve(f"resp_{run_id.removeprefix('run_')}")
        with pytest.raises(APIStatusError) as kept:
            await client.responses.cancel(f"resp_{run_id.removeprefix('run_')}")
    assert (refused.value.status_code, kept.value.status_code) == (404, 404)
    return refused.value.message + kept.value.message


async def a2a_run(world: World, key: str, run_id: str) -> str:
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}, trust_env=False) as http:
        try:
            client = await create_client(f"{world.url}/a2a/desk", ClientConfig(httpx_client=http, streaming=False))
            await client.get_task(GetTaskRequest(id=run_id))
        except (A2AError, A2AClientError, AgentCardResolutionError) as refused:
            return str(refused)
    raise AssertionError("the task was shown")


async def agui_run(world: World, key: str, run_id: str) -> str:
    resume = [{"interruptId": f"{run_id}/question", "status": "resolved", "payload": "L"}]
    body: dict[str, Any] = {"threadId": "t", "runId": "r", "messages": [], "resume": resume}
    async with web(world, key) as client:
        answer = await client.post("/ag-ui/desk", json=body)
    assert answer.status_code in {404, 422}
    return answer.text


READ_RUN: Mapping[str, Callable[[World, str, str], Awaitable[str]]] = {
    "REST": rest_run,
    "MCP": mcp_run,
    "OpenAI endpoint": openai_run,
    "A2A": a2a_run,
    "AG-UI": agui_run,
}


@pytest.mark.requirement("doors.runs_of_others")
async def test_a_run_of_another_key_is_neither_read_nor_carried_on_at_any_interface(tmp_path: Path) -> None:
    async with served_world(tmp_path) as world:
        sold = await world.acting(asked("", key="seller")).invoke("find", {"company": "Secretive"})
        waits = await world.acting(asked("", key="seller")).invoke("send_offer", {"deal": "hidden-deal"})
        told = {
            name: [await read(world, "reader", run.run_id) for run in (sold, waits)] for name, read in READ_RUN.items()
        }
        after = await world.crib.executions.result(waits.run_id)

    assert after.status == "awaiting_approval"
    assert [
        name for name, texts in told.items() if "Secretive" in "".join(texts) or "hidden-deal" in "".join(texts)
    ] == []


@pytest.mark.requirement("doors.approvals_of_others")
async def test_an_approval_is_seen_and_decided_by_who_may_and_by_nobody_else_at_any_interface(tmp_path: Path) -> None:
    async with served_world(tmp_path) as world:
        task = await _offer_by_a2a(world, "seller")
        [approval] = (await world.crib.approvals.page(run_id=task)).items
        path, decision = f"/api/v1/approvals/{approval.approval_id}", {"approved": True}
        for key in ("reader", "seller"):
            async with web(world, key) as client:
                decided = await client.post(f"{path}/decide", json=decision)
                listed = (await client.get("/api/v1/approvals")).json()["items"]
            assert decided.status_code in {403, 404}, key
            assert [each["approval_id"] for each in listed] == ([approval.approval_id] if key == "seller" else [])
            with pytest.raises((NotFound, PermissionDenied)):
                await world.acting(asked("", key=key)).approvals.decide(approval.approval_id, approve=True)
        resume = [{"interruptId": f"{task}/approval/{approval.approval_id}", "status": "resolved", "payload": decision}]
        body: dict[str, Any] = {"threadId": "t", "runId": "r", "messages": [], "resume": resume}
        async with web(world, "seller") as client:
            own = await client.post("/ag-ui/desk", json=body)
        still = await world.crib.executions.result(task)
        async with web(world, "boss") as client:
            decided = await client.post(f"{path}/decide", json=decision)
        done = await world.crib.resume(task)

    assert (own.status_code, still.status, decided.status_code, done.status) == (
        403,
        "awaiting_approval",
        200,
        "completed",
    )


async def _offer_by_a2a(world: World, key: str) -> str:
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}, trust_env=False) as http:
        client = await create_client(f"{world.url}/a2a/desk", ClientConfig(httpx_client=http, streaming=False))
        message = new_text_message("Send the offer", role=Role.ROLE_USER)
        [told] = [event async for event in client.send_message(SendMessageRequest(message=message))]
    return told.task.id


@pytest.mark.requirement("doors.hints")
async def test_no_route_of_rest_tells_a_key_the_name_of_what_it_may_not_see(tmp_path: Path) -> None:
    """Each route of the OpenAPI document, with names that are nearly those of hidden tools and definitions."""
    near = {"wait_lon": "wait_long", "dea": "dear", "pai": "paid", "vaul": "vault"}
    heard: dict[str, str] = {}
    async with served_world(tmp_path) as world, web(world, "reader") as client:
        await world.crib.fragments.save(_fragment("vault"))
        document = (await client.get("/openapi.json")).json()
        for path, methods in document["paths"].items():
            if "{" not in path:
                continue
            for method in methods.keys() & {"get", "post", "put", "patch", "delete"}:
                for given, hidden in near.items():
                    address = "/".join(given if part.startswith("{") else part for part in path.split("/"))
                    answer = await client.request(method, address, json={} if method != "get" else None)
                    said = answer.text.replace(given, "") if hidden not in given else answer.text
                    if any(f"{name}" in json.dumps(said) for name in (hidden, "wait_for_ever", "elsewhere")):
                        heard[f"{method} {path}"] = answer.text
        own = await client.get("/api/v1/ai/tools/fin")

    assert heard == {}
    assert "did you mean 'find'" in own.json()["detail"]


def _fragment(name: str) -> Any:
    from toolcrib.contracts import PromptFragment

    return PromptFragment(name=name, text="Be brief.")
