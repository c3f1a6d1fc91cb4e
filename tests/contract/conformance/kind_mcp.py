"""Tools of an MCP server with a bearer token, over streamable HTTP."""

from contextlib import AsyncExitStack
from typing import Any

import orjson
from aiohttp import web

from tests.contract.conformance.kind import INPUT, NAME, Kind
from tests.contract.conformance.kind_http import NOBODY, answer_of
from tests.contract.conformance.world import Behaviour, Flaky, Mischief, Refused, World
from tests.unit.net.servers import serving
from toolcrib import Crib
from toolcrib.contracts import BearerAuth, ToolDefinition


class McpKind(Kind):
    """One tool of a server in this process, which speaks JSON-RPC by hand."""

    name = "mcp"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.port = 0
        self._imported: ToolDefinition

    async def open(self, stack: AsyncExitStack) -> None:
        self.port = await stack.enter_async_context(serving(self._answer))

    def addresses(self) -> tuple[str, ...]:
        return (f"127.0.0.1:{self.port}", f"127.0.0.1:{NOBODY}")

    async def furnish(self, crib: Crib) -> None:
        auth = BearerAuth(token="${env:KEY}")
        imported = await crib.imports.mcp(f"http://127.0.0.1:{self.port}/mcp", name="world", auth=auth)
        [self._imported] = imported.tools

    def definition(self) -> ToolDefinition:
        return self._imported.model_copy(
            update={"name": NAME, "source": "manual", "side_effects": "reads", "idempotent": False}
        )

    async def prepare(self, crib: Crib, behaviour: Behaviour) -> None:
        port = NOBODY if behaviour is Behaviour.BE_UNREACHABLE else self.port
        provider = crib.providers.find(crib.principal.realm, "world")
        assert provider is not None
        await crib.save_provider(provider.model_copy(update={"base_url": f"http://127.0.0.1:{port}/mcp"}))

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405)
        message: Any = orjson.loads(await request.read())
        if "id" not in message:
            return web.Response(status=202)
        try:
            result = await self._result(message)
        except Mischief as mischief:
            told: Any = mischief.what
            if isinstance(told, dict):
                return web.json_response({"jsonrpc": "2.0", "id": message["id"], **told})
            return answer_of(request, mischief)
        except Flaky:
            return web.Response(status=503)
        except Refused:
            return web.Response(status=401, text=f"wrong: {request.headers['Authorization']}")
        reply = {"jsonrpc": "2.0", "id": message["id"], **result}
        return web.json_response(reply, headers={"mcp-session-id": "a-session"})

    async def _result(self, message: Any) -> dict[str, Any]:
        match message["method"]:
            case "initialize":
                server = {"name": "world", "version": "1"}
                known: Any = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server}
                return {"result": known}
            case "tools/list":
                acts = {"name": "act", "inputSchema": INPUT, "annotations": {"readOnlyHint": True}}
                return {"result": {"tools": [acts]}}
            case "tools/call":
                done = await self.world.act(message["params"]["arguments"]["text"])
                return {"result": {"content": [{"type": "text", "text": "done"}], "structuredContent": done}}
            case _:
                return {"error": {"code": -32601, "message": "no such method"}}
