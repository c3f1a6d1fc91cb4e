"""The transport of revision 2024-11-05: a stream of events, and an address to which the client posts its messages."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.unit.mcp_server.served import SSE, client_of, mcp_server, on_a_port
from tests.unit.mcp_server.test_http import HELLO
from tests.unit.mcp_server.test_progress import Steps
from tests.unit.mcp_server.test_tools import text_of
from toolcrib.contracts import JsonObject, McpServerDefinition
from toolcrib.interfaces.mcp import sse

pytestmark = pytest.mark.requirement("mcp_server.sse")


@asynccontextmanager
async def stream(url: str, key: str = "owner") -> AsyncGenerator[tuple[httpx2.AsyncClient, str]]:
    """A client whose stream is open, and the address that the server has named."""
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http,
        http.stream("GET", f"{url}/sse") as opened,
    ):
        assert opened.status_code == 200
        async for line in opened.aiter_lines():
            if line.startswith("data: "):
                yield http, str(httpx2.URL(url).join(line.removeprefix("data: ")))
                break


async def status_of_stream(url: str) -> int:
    """The status that a client gets that asks for a stream; it goes at once."""
    headers = {"Authorization": "Bearer owner"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False) as http,
        http.stream("GET", f"{url}/sse") as opened,
    ):
        return opened.status_code


async def test_an_old_client_lists_calls_and_hears_of_progress() -> None:
    steps = Steps()
    async with mcp_server() as (server, url):
        steps.add_to(server)
        async with client_of(url, SSE) as client:
            listed = {each.name for each in (await client.list_tools()).tools}
            found = await client.call_tool("search", {"company": "Acme"})
            done = await client.call_tool("climb", {}, progress_callback=steps.hear)
            run = await client.read_resource(f"toolcrib://runs/{(found.meta or {})['toolcrib/run_id']}")
        async with client_of(url, SSE, key="reader") as client:
            readers = [each.name for each in (await client.list_tools()).tools]
            with pytest.raises(MCPError, match="no tool 'update'"):
                await client.call_tool("update", {"stage": "won"})

    assert {"search", "update", "pick"} <= listed
    assert text_of(found) == '[{"name":"Acme"}]'
    assert (text_of(done), steps.heard) == ("top", [(1.0, 2.0, "half way")])
    assert '"completed"' in str(run.contents[0])
    assert readers == ["search"]


async def test_an_old_client_connects_to_a_virtual_server_and_to_a_single_tool() -> None:
    async with mcp_server() as (server, url):
        await server.crib.mcp_servers.save(McpServerDefinition(name="crm", tools=("search", "pick"), title="The CRM"))
        async with client_of(f"{url}/servers/crm", SSE) as client:
            selected = sorted(each.name for each in (await client.list_tools()).tools)
            told = client.server_info
            found = await client.call_tool("search", {"company": "Acme"})
        async with client_of(f"{url}/tools/pick", SSE) as client:
            single = [each.name for each in (await client.list_tools()).tools]
        async with httpx2.AsyncClient(headers={"Authorization": "Bearer owner"}, trust_env=False) as http:
            unknown = await http.get(f"{url}/servers/nowhere/sse")

    assert told is not None
    assert (selected, told.title, found.is_error, single) == (["pick", "search"], "The CRM", False, ["pick"])
    assert unknown.status_code == 404


async def test_a_session_takes_messages_of_the_principal_that_opened_it_only() -> None:
    async with mcp_server() as (_, url), stream(url) as (http, messages):
        statuses = [
            (await http.post(messages, json=HELLO, headers={"Authorization": f"Bearer {key}"})).status_code
            for key in ("reader", "nobody", "owner")
        ]
        without = await http.post(messages.partition("?")[0], json=HELLO)
        posted = await http.post(f"{url}/sse", json=HELLO)
        keyless = await http.get(f"{url}/sse", headers={"Authorization": ""})

    assert statuses == [404, 401, 202]
    assert (without.status_code, posted.status_code, keyless.status_code) == (400, 405, 401)


async def test_a_page_of_another_site_neither_opens_a_stream_nor_posts_messages() -> None:
    foreign = {"Origin": "https://evil.example"}
    async with mcp_server() as (_, url), stream(url) as (http, messages):
        opened = await http.get(f"{url}/sse", headers=foreign)
        posted = await http.post(messages, json=HELLO, headers=foreign)

    assert (opened.status_code, posted.status_code) == (403, 403)


@pytest.mark.parametrize(("meta", "status"), [({"progressToken": 1}, "cancelled"), ({}, "completed")])
async def test_a_call_whose_stream_ends_is_cancelled_if_its_client_has_asked_for_progress(
    meta: JsonObject, status: str
) -> None:
    steps = Steps()
    call: JsonObject = {"name": "climb", "arguments": {}, "_meta": meta}
    async with mcp_server() as (server, url):
        steps.add_to(server)
        async with stream(url) as (http, messages):
            for message in (
                HELLO,
                {"jsonrpc": "2.0", "method": "notifications/initialized"},
                {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
            ):
                await http.post(messages, json=message)
            await steps.begun.wait()
        if not meta:
            steps.go_on.set()
        [run] = await server.crib.store.journal.runs("default")
        ended = await server.finished(run.run_id)

    assert ended["run"]["status"] == status


async def test_an_application_that_is_mounted_names_the_address_as_its_clients_reach_it() -> None:
    async with (
        mcp_server() as (server, _),
        on_a_port(Starlette(routes=[Mount("/crib", server.app)])) as url,
        client_of(url.replace("/mcp", "/crib/mcp"), SSE) as client,
    ):
        found = await client.call_tool("search", {"company": "Acme"})

    assert not found.is_error


async def test_streams_above_the_limit_are_refused_until_one_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MOST_SESSIONS", 1)
    async with mcp_server() as (_, url):
        async with stream(url) as (http, _):
            refused = await http.get(f"{url}/sse")
        async with asyncio.timeout(30):  # the server hears of the end of a stream a little later than its client
            while await status_of_stream(url) == 503:
                pass

    assert refused.status_code == 503
    assert "streamable HTTP" in refused.text


async def test_streams_end_with_the_server_and_requests_that_come_together_share_one_start() -> None:
    async with mcp_server() as (server, url):

        async def ends() -> bytes:
            headers = {"Authorization": "Bearer owner"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http,
                http.stream("GET", f"{url}/sse") as opened,
            ):
                chunks = opened.aiter_bytes()
                first = await anext(chunks)
                begun.release()
                return first + b"".join([chunk async for chunk in chunks])

        begun = asyncio.Semaphore(0)
        clients = [asyncio.create_task(ends()) for _ in range(4)]
        for _ in clients:
            await begun.acquire()
        await server.app.state.mcp.close()
        read = await asyncio.gather(*clients)

    assert all(b"/mcp/messages?session_id=" in each for each in read)
