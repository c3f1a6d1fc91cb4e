"""Connections: whose they are, how they end, and what happens to calls then."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from aiohttp import web

from tests.twins import DictSecrets, ManualClock, make_access
from tests.unit.mcp_client.server import SESSION_ID, Server, crib_for, running, texts, tool
from toolcrib import Crib, EgressPolicy
from toolcrib.contracts import (
    OWNER,
    BearerAuth,
    EgressDenied,
    ErrorCode,
    InvalidInput,
    McpConnection,
    OAuth2Auth,
    Principal,
    ProviderDefinition,
    Reason,
    ReconnectRequired,
    Unavailable,
)
from toolcrib.core.executor import CallFailed
from toolcrib.infrastructure.net import HttpSession
from toolcrib.kinds.mcp.importer import AllowedPrograms
from toolcrib.kinds.mcp.runtime import McpServers

WANTED: dict[str, dict[str, Any]] = {
    "sampling/createMessage": {"messages": [], "maxTokens": 1},
    "elicitation/create": {"message": "m", "requestedSchema": {"type": "object", "properties": {}}},
    "roots/list": {},
}
"""What a server may ask of a client."""
OTHER = Principal(id="user:other")


@asynccontextmanager
async def servers_for(server: Server, clock: ManualClock, **options: Any) -> AsyncGenerator[McpServers]:
    """Connections to a server, with a clock by hand."""
    async with HttpSession(server.egress) as session:
        access = make_access(session, clock, DictSecrets({}), lambda _realm, _name: None)
        servers = McpServers(session, access, commands=AllowedPrograms(), environment={}, clock=clock, **options)
        try:
            yield servers
        finally:
            await servers.close()


def provider(server: Server, name: str = "there", **more: Any) -> ProviderDefinition:
    """A provider that is the server."""
    return ProviderDefinition(name=name, connection=McpConnection(), base_url=server.url, **more)


@pytest.mark.requirement("mcp_client.connections")
async def test_calls_of_one_principal_share_a_connection_and_those_of_others_do_not():
    async with (
        running() as server,
        servers_for(server, ManualClock()) as servers,
        servers.connection("r", provider(server), OWNER) as first,
    ):
        async with servers.connection("r", provider(server), OWNER) as second:
            assert first is second
        async with servers.connection("r", provider(server), OTHER) as others:
            assert others is not first
        async with servers.connection("other", provider(server), OWNER) as elsewhere:
            assert elsewhere is not first
        async with servers.connection("r", provider(server, headers={"x": "1"}), OWNER) as changed:
            assert changed is not first


@pytest.mark.requirement("mcp_client.connections")
async def test_a_connection_that_nobody_uses_is_closed_and_opened_again_when_it_is_needed():
    async with running() as server, servers_for(server, ManualClock(), idle_s=0.0) as servers:
        async with servers.connection("r", provider(server), OWNER) as first:
            await first.listing(["tools"])
        await server.left.wait()
        async with servers.connection("r", provider(server), OWNER) as second:
            await second.listing(["tools"])
    assert server.asked.count("initialize") == 2


@pytest.mark.requirement("mcp_client.bounds")
async def test_the_connection_that_was_idle_for_the_longest_time_makes_room():
    async with running() as server, servers_for(server, ManualClock(), most=2) as servers:
        for name in ("a", "b", "c"):
            async with servers.connection("r", provider(server, name), OWNER) as found:
                await found.listing(["tools"])
        async with servers.connection("r", provider(server, "c"), OWNER) as again:
            assert again is found


@pytest.mark.requirement("mcp_client.bounds")
async def test_if_all_connections_are_in_use_a_further_one_is_refused_for_a_moment():
    async with (
        running() as server,
        servers_for(server, ManualClock(), most=1) as servers,
        servers.connection("r", provider(server, "a"), OWNER),
    ):
        with pytest.raises(CallFailed) as refused:
            async with servers.connection("r", provider(server, "b"), OWNER):
                pass
    assert refused.value.error.code is ErrorCode.RATE_LIMIT
    assert refused.value.error.retry_after_s == 1.0


@pytest.mark.requirement("mcp_client.connections")
async def test_after_failures_to_connect_the_next_attempts_wait_longer_and_longer():
    server, clock = Server(), ManualClock()
    server.before = lambda _request, _message: web.Response(status=500)

    async def attempt() -> CallFailed:
        with pytest.raises(CallFailed) as failed:
            async with servers.connection("r", provider(server), OWNER) as found:
                await found.listing(["tools"])
        return failed.value

    async with running(server), servers_for(server, clock) as servers:
        await attempt()  # after the first failure it is tried again at once
        waits: list[float | None] = []
        for _ in range(3):
            await attempt()
            asked = len(server.asked)
            refused = (await attempt()).error
            assert len(server.asked) == asked
            assert "could not be connected" in refused.message
            waits.append(refused.retry_after_s)
            await clock.sleep(refused.retry_after_s or 0.0)
        server.before = lambda _request, _message: None
        await clock.sleep(60.0)
        async with servers.connection("r", provider(server), OWNER) as found:
            await found.listing(["tools"])
    assert waits == [1.0, 2.0, 4.0]


@pytest.mark.requirement("mcp_client.connections")
async def test_calls_at_the_same_time_share_a_look_at_the_list():
    async with (
        running() as server,
        servers_for(server, ManualClock()) as servers,
        servers.connection("r", provider(server), OWNER) as found,
    ):
        await found.listing(["tools"])
        before = server.asked.count("tools/list")
        await asyncio.gather(*(found.listing(["tools"]) for _ in range(20)))
    assert server.asked.count("tools/list") - before <= 3


@pytest.mark.requirement("mcp_client.broken")
async def test_a_session_that_the_server_has_forgotten_is_begun_anew_and_the_call_is_made_once():
    async with running() as server, crib_for(server) as crib:
        await crib.imports.mcp(server.url, name="there")
        old = {"forgotten": True}

        def forget(request: web.BaseRequest, message: dict[str, Any]) -> web.StreamResponse | None:
            if message["method"] == "initialize":
                old["forgotten"] = False
            forgotten = old["forgotten"] and request.headers.get("mcp-session-id") == SESSION_ID
            return web.Response(status=404) if forgotten else None

        server.before = forget
        assert (await crib.call("look")).ok
    assert len(server.calls) == 1
    assert server.asked.count("initialize") == 2


@pytest.mark.requirement("mcp_client.broken")
async def test_a_call_during_which_the_connection_broke_fails_and_is_not_made_again():
    server = Server(tools=[tool(annotations={})])

    def cut(request: web.BaseRequest, message: dict[str, Any]) -> web.StreamResponse | None:
        if message["method"] == "tools/call":
            server.calls.append(message)
            assert request.transport is not None
            request.transport.abort()
        return None

    async with running(server), crib_for(server) as crib:
        await crib.imports.mcp(server.url, name="there")
        server.before = cut
        envelope = await crib.call("look")
        server.before = lambda _request, _message: None
        assert (await crib.call("look")).ok
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED)
    assert envelope.attempts == 1


@pytest.mark.requirement("mcp_client.sse")
@pytest.mark.parametrize("status", [401, 500])
async def test_a_message_that_a_server_of_the_older_transport_does_not_accept_fails_its_call(status: int):
    async with running() as server, crib_for(server) as crib:
        await crib.imports.mcp(server.sse_url, name="there", transport="sse")
        server.before = lambda _request, message: (
            web.Response(status=status) if message["method"] == "tools/call" else None
        )
        envelope = await crib.call("look")
    assert envelope.error is not None
    expected = ErrorCode.AUTH_REQUIRED if status == 401 else ErrorCode.PROVIDER_ERROR
    assert envelope.error.code is expected


@pytest.mark.requirement("mcp_client.reconnect")
@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("transport", ["streamable_http", "sse"])
async def test_refused_credentials_say_reconnect_in_import_sync_and_call(status: int, transport: Any):
    async with running() as server, crib_for(server, environment={"TOKEN": "a-token-012345"}) as crib:
        url = server.url if transport == "streamable_http" else server.sse_url
        auth = BearerAuth(token="${env:TOKEN}")
        await crib.imports.mcp(url, name="there", transport=transport, auth=auth)
        server.before = lambda _request, _message: web.Response(status=status)
        with pytest.raises(ReconnectRequired, match="reconnect"):
            await crib.imports.mcp(url, name="new", transport=transport, auth=auth)
        assert crib.providers.find("default", "new") is None
        with pytest.raises(ReconnectRequired, match="reconnect"):
            await crib.imports.sync("there")
        envelope = await crib.call("look")
        assert envelope.error is not None
        assert (envelope.error.code, envelope.error.reason) == (ErrorCode.AUTH_REQUIRED, Reason.RECONNECT_REQUIRED)
        assert "reconnect" in envelope.error.message
        assert crib.registry.find_by_ref("default", "look") is not None


@pytest.mark.requirement("mcp_client.reconnect")
async def test_a_secret_that_is_not_set_is_an_error_and_nothing_of_ours_is_sent_instead():
    async with running() as server, crib_for(server, environment={"OTHER": "ours"}) as crib:
        with pytest.raises(ReconnectRequired, match="TOKEN"):
            await crib.imports.mcp(server.url, name="there", auth=BearerAuth(token="${env:TOKEN}"))
    assert server.asked == []


def oauth(server: Server) -> OAuth2Auth:
    """Tokens of an endpoint at the same server."""
    url = f"http://127.0.0.1:{server.port}/token"
    return OAuth2Auth(token_url=url, client_id="${env:ID}", client_secret="${env:SECRET}")


@pytest.mark.requirement("mcp_client.credentials")
async def test_a_token_that_is_refused_is_fetched_anew_once():
    tokens = iter(["first-token-0123", "second-token-0123", "third-token-0123"])
    server = Server()
    good = {"token": "first-token-0123"}
    usual = server.answer

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/token":
            return web.json_response({"access_token": next(tokens), "token_type": "bearer", "expires_in": 3600})
        if request.headers.get("authorization") != f"Bearer {good['token']}":
            return web.Response(status=401)
        return await usual(request)

    server.answer = answer
    async with running(server), crib_for(server, environment={"ID": "an-id", "SECRET": "a-secret-0123"}) as crib:
        await crib.imports.mcp(server.url, name="there", auth=oauth(server))
        good["token"] = "second-token-0123"
        assert (await crib.call("look")).ok
    assert len(server.calls) == 1


@pytest.mark.requirement("mcp_client.reconnect")
async def test_a_token_that_cannot_be_renewed_says_reconnect():
    server = Server()
    usual = server.answer

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/token":
            return web.json_response({"error": "invalid_grant"}, status=400)
        return await usual(request)

    server.answer = answer
    async with running(server), crib_for(server, environment={"ID": "an-id", "SECRET": "a-secret-0123"}) as crib:
        with pytest.raises(ReconnectRequired, match="reconnect"):
            await crib.imports.mcp(server.url, name="there", auth=oauth(server))


@pytest.mark.requirement("mcp_client.egress")
@pytest.mark.parametrize("transport", ["streamable_http", "sse"])
async def test_a_server_that_the_policy_does_not_allow_is_not_reached_whatever_the_environment_says(
    transport: Any, monkeypatch: pytest.MonkeyPatch
):
    async with running() as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{server.port}")
        server_elsewhere = Server(port=server.port)
        async with crib_for(server_elsewhere) as crib:
            for url in ("http://169.254.169.254/mcp", "http://127.0.0.1:1/mcp", "http://[::1]/mcp"):
                with pytest.raises(EgressDenied):
                    await crib.imports.mcp(url, name="there", transport=transport)
    assert server.asked == []
    assert server.headers == []


@pytest.mark.requirement("mcp_client.egress")
async def test_a_redirect_to_another_origin_is_not_followed():
    async with running() as other, running() as server:
        server.before = lambda _request, _message: web.Response(status=307, headers={"location": other.url})
        egress = EgressPolicy(allow=(f"127.0.0.1:{server.port}", f"127.0.0.1:{other.port}"))
        async with Crib("memory://", egress=egress) as crib:
            with pytest.raises(InvalidInput, match="not followed"):
                await crib.imports.mcp(server.url, name="there")
    assert other.headers == []


@pytest.mark.requirement("mcp_client.egress")
async def test_an_endpoint_event_that_leads_elsewhere_is_refused():
    async with running() as other, running() as server:
        usual = server.answer

        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            if request.method == "GET":
                event = f"event: endpoint\ndata: {other.url}\n\n".encode()
                return web.Response(body=event, content_type="text/event-stream")
            return await usual(request)

        server.answer = answer
        async with running(server), crib_for(server) as crib:
            connection = McpConnection(transport="sse")
            await crib.save_provider(
                ProviderDefinition(name="there", connection=connection, base_url=server.sse_url, timeout_s=0.3)
            )
            with pytest.raises(Unavailable):
                await crib.imports.sync("there")
    assert other.headers == []


@pytest.mark.requirement("mcp_client.refuses_requests")
async def test_requests_of_the_server_are_refused_politely_and_the_call_goes_on():
    refusals: list[dict[str, Any]] = []
    server = Server()
    usual = server.answer

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        message = orjson.loads(body or b"{}")
        if "method" not in message and "error" in message:
            refusals.append(message)
            return web.Response(status=202)
        if message.get("method") != "tools/call":
            return await usual(request)
        asked = [
            {"jsonrpc": "2.0", "id": 100 + at, "method": method, "params": params}
            for at, (method, params) in enumerate(WANTED.items())
        ]
        result = {"jsonrpc": "2.0", "id": message["id"], "result": texts("done")}
        events = b"".join(b"event: message\ndata: " + orjson.dumps(part) + b"\n\n" for part in (*asked, result))
        return web.Response(body=events, content_type="text/event-stream")

    server.answer = answer
    async with running(server), crib_for(server) as crib:
        await crib.imports.mcp(server.url, name="there")
        envelope = await crib.call("look")
        assert envelope.output == "done"
        assert (await crib.call("look")).ok
    assert {refused["id"] for refused in refusals} == {100, 101, 102}
    assert all(refused["error"]["message"].endswith("not supported") for refused in refusals)


@pytest.mark.requirement("mcp_client.broken")
async def test_a_server_is_told_of_a_call_that_was_cancelled_and_the_connection_goes_on():
    server, begun, told, let_go = Server(), asyncio.Event(), asyncio.Event(), asyncio.Event()
    usual = server.answer

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        method = orjson.loads(await request.read() or b"{}").get("method")
        if method == "tools/call" and not begun.is_set():
            begun.set()
            await let_go.wait()
        if method == "notifications/cancelled":
            told.set()
        return await usual(request)

    server.answer = answer
    async with running(server), crib_for(server) as crib:
        await crib.imports.mcp(server.url, name="there")
        call = asyncio.create_task(crib.call("look"))
        await begun.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await asyncio.wait_for(told.wait(), 10)
        let_go.set()
        assert (await crib.call("look")).ok
    assert server.asked.count("initialize") == 1
