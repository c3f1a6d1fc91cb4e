"""The endpoint itself: keys, sessions, pages of other sites, and the end of the server."""

import asyncio

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from tests.unit.mcp_server.served import client_of, mcp_server

HEADERS = {"Accept": "application/json, text/event-stream", "Authorization": "Bearer owner"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.mark.requirement("mcp_server.keys")
async def test_nothing_is_answered_without_a_key() -> None:
    async with mcp_server() as (_, url), httpx2.AsyncClient(trust_env=False) as http:
        none = await http.post(url, json=HELLO, headers={**HEADERS, "Authorization": ""})
        wrong = await http.post(url, json=HELLO, headers={**HEADERS, "Authorization": "Bearer nobody"})
    assert (none.status_code, wrong.status_code) == (401, 401)
    assert none.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.requirement("mcp_server.keys")
async def test_a_session_belongs_to_the_principal_that_began_it() -> None:
    async with mcp_server() as (_, url), httpx2.AsyncClient(trust_env=False) as http:
        begun = await http.post(url, json=HELLO, headers=HEADERS)
        session = {**HEADERS, "Mcp-Session-Id": begun.headers["Mcp-Session-Id"]}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        own = await http.post(url, json=ping, headers=session)
        stranger = await http.post(url, json=ping, headers={**session, "Authorization": "Bearer reader"})
    assert (begun.status_code, own.status_code, stranger.status_code) == (200, 200, 404)


@pytest.mark.requirement("mcp_server.origin")
async def test_a_page_of_another_site_is_refused() -> None:
    async with mcp_server() as (_, url), httpx2.AsyncClient(trust_env=False) as http:
        statuses = [
            (await http.post(url, json=HELLO, headers={**HEADERS, **headers})).status_code
            for headers in (
                {"Origin": "http://localhost:3000"},
                {"Origin": "https://evil.example"},
                {"Host": "evil.example", "Origin": "http://evil.example"},
                {"Host": "evil.example"},
                {"Origin": "null"},
            )
        ]
    assert statuses == [200, 403, 403, 403, 403]


@pytest.mark.requirement("mcp_server.first_use")
async def test_requests_that_come_together_first_share_one_start_and_a_server_that_ends_closes_sessions() -> None:
    async with mcp_server() as (server, url):

        async def names() -> int:
            async with client_of(url, "legacy") as client:
                return len((await client.list_tools()).tools)

        counts = await asyncio.gather(*(names() for _ in range(8)))
        async with client_of(url, "legacy") as client:
            await server.app.state.mcp.close()
            with pytest.raises(MCPError):
                await client.list_tools()
    assert len(set(counts)) == 1
