"""What connected clients are told: changes of their lists, and of runs that they have subscribed to."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ResourceUpdated, ToolsListChanged

from tests.unit.mcp_server.served import client_of, mcp_server
from tests.unit.mcp_server.test_servers import crm_server, names
from tests.unit.mcp_server.test_surfaces import greet
from tests.unit.server.client import Server
from toolcrib import tool
from toolcrib.contracts import JsonObject, McpServerDefinition

pytestmark = pytest.mark.requirement("mcp_server.changes")


@tool(name="crm.find_people", side_effects="none")
async def find_people(company: str) -> JsonObject:
    """Find the people of a company."""
    return {"company": company}


class Told:
    """What a client of an older revision is told without asking."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[Any] = asyncio.Queue()

    async def __call__(self, message: Any) -> None:
        if isinstance(message, types.Notification):
            await self.messages.put(message)

    async def next(self) -> Any:
        return await asyncio.wait_for(self.messages.get(), 20)


@asynccontextmanager
async def session(url: str, told: Told, key: str = "owner") -> AsyncGenerator[Client]:
    """A client with a session of an older revision."""
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), mode="legacy", message_handler=told) as client,
    ):
        yield client


async def subscribe(client: Client, uri: str) -> None:
    request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
    await client.session.send_request(request, types.EmptyResult)


async def unsubscribe(client: Client, uri: str) -> None:
    request = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
    await client.session.send_request(request, types.EmptyResult)


async def approve(server: Server, run_id: str) -> None:
    await server.crib.decide(run_id, "call", approve=True)
    await server.crib.resume(run_id)


async def test_a_session_is_told_when_a_list_that_it_has_read_changes() -> None:
    told = Told()
    async with crm_server() as (server, url), session(f"{url}/servers/crm", told) as client:
        capabilities = client.server_capabilities
        before = await names(client)
        server.crib.add(greet)  # is not selected, so that nobody is told
        await server.crib.open()
        server.crib.add(find_people)
        await server.crib.open()
        message = await told.next()
        after = await names(client)
    assert capabilities.tools is not None
    assert capabilities.tools.list_changed is True
    assert isinstance(message, types.ToolListChangedNotification)
    assert set(after) - set(before) == {"crm_find_people"}
    assert told.messages.empty()


async def test_a_stream_tells_what_was_asked_for_until_it_is_closed() -> None:
    async with (
        mcp_server() as (server, url),
        client_of(url) as client,
        client.listen(tools_list_changed=True, prompts_list_changed=True) as events,
    ):
        server.crib.add(find_people)
        await server.crib.open()
        first = await asyncio.wait_for(anext(events), 20)
        server.crib.add(greet)
        await server.crib.open()
        second = await asyncio.wait_for(anext(events), 20)
    assert first == ToolsListChanged()
    assert second == PromptsListChanged()


async def test_a_changed_or_removed_selection_is_told() -> None:
    async with (
        crm_server() as (server, url),
        client_of(f"{url}/servers/crm") as client,
        client.listen(tools_list_changed=True) as events,
    ):
        await server.crib.mcp_servers.save(McpServerDefinition(name="crm", tools=("mail.*",)))
        changed = await asyncio.wait_for(anext(events), 20)
        listed = await names(client)
        await server.crib.mcp_servers.remove("crm")
        removed = await asyncio.wait_for(anext(events), 20)
    assert (changed, removed) == (ToolsListChanged(), ToolsListChanged())
    assert listed == ["mail_send"]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_run_that_was_subscribed_to_is_told_when_it_changes(mode: str) -> None:
    told = Told()
    async with mcp_server() as (server, url):
        async with client_of(url) as caller:
            waits = await caller.call_tool("update", {"stage": "Won"})
        run_id = (waits.meta or {})["toolcrib/run_id"]
        uri = f"toolcrib://runs/{run_id}"
        if mode == "legacy":
            async with session(url, told) as client:
                await subscribe(client, uri)
                await subscribe(client, "crm://handbook")  # does not change
                await approve(server, run_id)
                message = await told.next()
                await unsubscribe(client, uri)
                changed = str(message.params.uri)
        else:
            async with client_of(url) as client, client.listen(resource_subscriptions=[uri]) as events:
                await approve(server, run_id)
                event = await asyncio.wait_for(anext(events), 20)
                assert isinstance(event, ResourceUpdated)
                changed = event.uri
    assert changed == uri


async def test_a_client_subscribes_to_a_limited_number_of_runs_and_to_no_run_of_others() -> None:
    async with mcp_server() as (server, url):
        async with client_of(url) as caller:
            waits = await caller.call_tool("update", {"stage": "Won"})
        run_id = (waits.meta or {})["toolcrib/run_id"]
        uris = [f"toolcrib://runs/run_{number}" for number in range(101)]
        told = Told()
        async with session(url, told, "reader") as client:
            await subscribe(client, f"toolcrib://runs/{run_id}")
            await client.list_tools()
            await approve(server, run_id)
            server.crib.add(tool(name="search", side_effects="reads", version="2.0.0")(_search))
            await server.crib.open()
            message = await told.next()
        async with client_of(url) as client:
            with pytest.raises(MCPError, match="the limit is 100"):
                async with client.listen(resource_subscriptions=uris):
                    pass
    assert isinstance(message, types.ToolListChangedNotification)
    assert told.messages.empty()


async def _search(company: str) -> JsonObject:
    """Find deals and people."""
    return {"company": company}
