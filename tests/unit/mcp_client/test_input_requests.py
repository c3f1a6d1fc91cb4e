"""Servers that ask for input during a call, and those that want further scopes."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated
from urllib.parse import parse_qs, urlsplit

import mcp_types as types
import pytest
from aiohttp import web
from mcp.server import MCPServer
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

from tests.twins import MASTER_KEYS
from tests.unit.mcp_client.server import Server
from tests.unit.mcp_client.server import running as serving_by_hand
from tests.unit.mcp_client.test_sdk_server import running
from tests.unit.net.servers import serving
from tests.unit.providers.authority import REDIRECT
from tests.unit.providers.test_protected_resources import Registrar
from toolcrib import Crib, EgressPolicy
from toolcrib.contracts import (
    InvalidInput,
    JsonObject,
    McpConnection,
    ProtectedResourceAuth,
    ProviderDefinition,
    Reason,
)
from toolcrib.contracts.providers.connections import McpInputRequests
from toolcrib.kinds.mcp.runtime.input_requests import filled_form

pytestmark = pytest.mark.requirement("mcp_client.input_requests")


class Guest(BaseModel):
    name: str
    seats: int = 2


def wants_guest() -> Elicit[Guest]:
    """What the server asks."""
    return Elicit("For whom?", Guest)


def table_server(*, reads: bool = True) -> MCPServer:
    """A server whose tool asks for whom a table is."""
    server = MCPServer("tables", log_level="ERROR")

    @server.tool(annotations=types.ToolAnnotations(read_only_hint=reads))
    async def reserve(guest: Annotated[ElicitationResult[Guest], Resolve(wants_guest)]) -> str:  # pyright: ignore[reportUnusedFunction] - the decorator keeps it
        """Reserve a table."""
        return f"{guest.data.name}, {guest.data.seats} seats" if guest.action == "accept" else guest.action

    return server


@asynccontextmanager
async def reserving(policy: McpInputRequests, *, reads: bool = True) -> AsyncGenerator[Crib]:
    """A crib that has imported the server."""
    async with running(table_server(reads=reads)) as port:
        egress = EgressPolicy(allow=(f"127.0.0.1:{port}",))
        async with Crib("memory://", environment={}, egress=egress) as crib:
            connection = McpConnection(input_requests=policy)
            url = f"http://127.0.0.1:{port}/mcp"
            await crib.save_provider(ProviderDefinition(name="tables", connection=connection, base_url=url))
            await crib.imports.sync("tables")
            yield crib


async def test_who_has_started_the_run_answers_what_a_server_asks() -> None:
    async with reserving("ask") as crib:
        waiting = await crib.invoke("reserve", {})
        question = await crib.questions.of_run(waiting.run_id)
        with pytest.raises(InvalidInput, match="does not fit"):
            await crib.questions.answer(waiting.run_id, "Ada")
        done = await crib.questions.answer(waiting.run_id, '{"name": "Ada", "seats": 4}')
    assert waiting.status == "awaiting_answer"
    assert question is not None
    assert question.question == "The MCP server 'tables' asks: For whom?"
    assert done.summary.output == {"result": "Ada, 4 seats"}


async def test_a_tool_that_may_not_be_called_twice_does_not_wait_for_an_answer() -> None:
    async with reserving("ask", reads=False) as crib:
        envelope = await crib.call("reserve")
    assert envelope.error is not None
    assert "is not idempotent" in envelope.error.message


async def test_a_server_that_asks_is_refused_unless_the_provider_says_otherwise() -> None:
    async with reserving("refuse") as crib:
        refused = await crib.call("reserve")
    async with reserving("defaults") as crib:
        declined = await crib.call("reserve")
    assert refused.error is not None
    assert declined.output == {"result": "decline"}


def test_a_form_is_filled_with_defaults_only_if_they_answer_all_that_is_required() -> None:
    fields: JsonObject = {"name": {"type": "string"}, "seats": {"type": "integer", "default": 2}}
    optional: JsonObject = {"requestedSchema": {"type": "object", "properties": fields}}
    required: JsonObject = {"requestedSchema": {"type": "object", "properties": fields, "required": ["name"]}}
    assert filled_form(optional) == {"action": "accept", "content": {"seats": 2}}
    assert filled_form(required) == {"action": "decline"}


async def test_a_scope_that_a_call_lacks_is_asked_for_with_the_next_connection() -> None:
    authority = Registrar()
    server = Server()
    missing = 'Bearer error="insufficient_scope", scope="deals.write"'

    def guard(request: web.BaseRequest, message: dict[str, object]) -> web.StreamResponse | None:
        token = request.headers.get("authorization", "")
        if not token:
            return web.Response(status=401, headers={"WWW-Authenticate": 'Bearer scope="deals.read"'})
        writes = message.get("method") == "tools/call" and not token.endswith("2")
        return web.Response(status=403, headers={"WWW-Authenticate": missing}) if writes else None

    server.before = guard
    async with serving(authority.handle) as port, serving_by_hand(server):
        authority.url = f"http://127.0.0.1:{port}"
        server.protected_by = authority.url
        allow = (f"127.0.0.1:{port}", f"127.0.0.1:{server.port}")
        environment = {"TOOLCRIB_MASTER_KEYS": MASTER_KEYS}
        async with Crib("memory://", egress=EgressPolicy(allow=allow), environment=environment) as crib:
            auth = ProtectedResourceAuth()
            provider = ProviderDefinition(name="crm", connection=McpConnection(), base_url=server.url, auth=auth)
            await crib.save_provider(provider)

            async def connect() -> str:
                url = (await crib.connections.begin("crm", redirect_uri=REDIRECT)).url
                await crib.connections.finish(authority.grant(url))
                return parse_qs(urlsplit(url).query)["scope"][0]

            first = await connect()
            await crib.imports.sync("crm")
            refused = await crib.call("look")
            again = await connect()
            allowed = await crib.call("look")
    assert refused.error is not None
    assert refused.error.reason == Reason.RECONNECT_REQUIRED
    assert "deals.write" in refused.error.message
    assert (first, again) == ("deals.read", "deals.read deals.write")
    assert allowed.error is None
