"""An MCP server in this process, over HTTP, that can be made to misbehave: JSON-RPC by hand, without the SDK.

It speaks the protocol of 2025-11-25 and knows no `server/discover`, as most servers do.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from tests.unit.net.servers import serving
from toolcrib import Crib, EgressPolicy

SESSION_ID = "a-session"


def tool(name: str = "look", **said: Any) -> dict[str, Any]:
    """An entry of a list of tools, which reads and takes a text."""
    usual = {
        "description": "Looks something up.",
        "inputSchema": {"type": "object", "properties": {"what": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
    }
    return {"name": name, **usual, **said}


def texts(*parts: str) -> dict[str, Any]:
    """A result of texts."""
    return {"content": [{"type": "text", "text": part} for part in parts]}


class RpcError(Exception):
    """Raised by a handler: the answer is this error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Server:
    """What a server offers, and what has been asked of it."""

    tools: list[Any] = field(default_factory=lambda: [tool()])
    prompts: list[Any] = field(default_factory=list[Any])
    resources: list[Any] = field(default_factory=list[Any])
    templates: list[Any] = field(default_factory=list[Any])
    handlers: dict[str, Callable[[dict[str, Any]], Any]] = field(default_factory=dict[str, Any])
    """What answers a method, instead of the usual."""
    before: Callable[[web.BaseRequest, dict[str, Any]], web.StreamResponse | None] = lambda _request, _message: None
    """May answer in the server's place."""
    notify: list[str] = field(default_factory=list[str])
    """Methods of notifications that are sent ahead of the next answer."""
    asked: list[str] = field(default_factory=list[str])
    """Methods, in order."""
    calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a session was ended."""
    protected_by: str = ""
    """The issuer of the tokens that it wants, if it says so (RFC 9728)."""
    port: int = 0
    _events: "asyncio.Queue[bytes]" = field(default_factory=asyncio.Queue[bytes])

    @property
    def url(self) -> str:
        """The endpoint for streamable HTTP."""
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def sse_url(self) -> str:
        """The endpoint for the older transport."""
        return f"http://127.0.0.1:{self.port}/sse"

    @property
    def egress(self) -> EgressPolicy:
        """A policy that lets it be reached."""
        return EgressPolicy(allow=(f"127.0.0.1:{self.port}",))

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if request.method == "GET" and request.path == "/sse":
            return await self._stream(request)
        if self.protected_by and request.path.startswith("/.well-known/oauth-protected-resource"):
            return web.json_response({"resource": self.url, "authorization_servers": [self.protected_by]})
        if request.method != "POST":
            if request.method == "DELETE":
                self.left.set()
            return web.Response(status=405)
        message = orjson.loads(await request.read())
        self.asked.append(message.get("method", ""))
        instead = self.before(request, message)
        if instead is not None:
            return instead
        if "id" not in message:
            return web.Response(status=202)
        body = orjson.dumps({"jsonrpc": "2.0", "id": message["id"], **self._reply(message)})
        if request.path == "/messages":
            await self._events.put(b"event: message\ndata: " + body + b"\n\n")
            return web.Response(status=202)
        headers = {"mcp-session-id": SESSION_ID}
        if self.notify:
            notes = [orjson.dumps({"jsonrpc": "2.0", "method": method}) for method in self.notify]
            self.notify.clear()
            events = b"".join(b"event: message\ndata: " + data + b"\n\n" for data in (*notes, body))
            return web.Response(body=events, content_type="text/event-stream", headers=headers)
        return web.Response(body=body, content_type="application/json", headers=headers)

    def _reply(self, message: dict[str, Any]) -> dict[str, Any]:
        method, params = message["method"], message.get("params", {})
        if method == "tools/call":
            self.calls.append(params)
        handler = self.handlers.get(method) or getattr(self, "_" + method.replace("/", "_"), None)
        if handler is None:
            return {"error": {"code": -32601, "message": f"no method {method}"}}
        try:
            return {"result": handler(params)}
        except RpcError as error:
            return {"error": {"code": error.code, "message": str(error)}}

    def _initialize(self, _params: dict[str, Any]) -> dict[str, Any]:
        lists = {"tools": self.tools, "prompts": self.prompts, "resources": self.resources or self.templates}
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {name: {"listChanged": True} for name, entries in lists.items() if entries},
            "serverInfo": {"name": "by hand", "version": "1"},
        }

    def _tools_list(self, _params: dict[str, Any]) -> dict[str, Any]:
        return {"tools": self.tools}

    def _prompts_list(self, _params: dict[str, Any]) -> dict[str, Any]:
        return {"prompts": self.prompts}

    def _resources_list(self, _params: dict[str, Any]) -> dict[str, Any]:
        return {"resources": self.resources}

    def _resources_templates_list(self, _params: dict[str, Any]) -> dict[str, Any]:
        return {"resourceTemplates": self.templates}

    def _tools_call(self, params: dict[str, Any]) -> dict[str, Any]:
        return texts(f"{params['name']}: {orjson.dumps(params.get('arguments', {})).decode()}")

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        instead = self.before(request, {"method": "GET"})
        if instead is not None:
            return instead
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"event: endpoint\ndata: /messages\n\n")
        while event := await self._events.get():
            await response.write(event)
        return response

    async def end_stream(self) -> None:
        """End the stream of the older transport."""
        await self._events.put(b"")


@asynccontextmanager
async def running(server: Server | None = None) -> AsyncGenerator[Server]:
    """A server that runs."""
    server = server or Server()
    async with serving(server.answer) as port:
        server.port = port
        yield server
        await server.end_stream()


@asynccontextmanager
async def crib_for(server: Server, **options: Any) -> AsyncGenerator[Crib]:
    """A crib that may reach a server."""
    async with Crib("memory://", egress=server.egress, environment=options.pop("environment", {}), **options) as crib:
        yield crib
