"""The MCP server over HTTP, at `/mcp` of the server.

A virtual server is at `/mcp/servers/{name}`, and a single tool at `/mcp/tools/{name}`. Each of these addresses followed
by `/sse` serves clients of revision 2024-11-05.

Requests of protocol revision 2026-07-28 need no session. Clients of older revisions get one, which is bound to the
principal that began it. The SDK is imported and started by the first request.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from toolcrib.contracts import McpServerDefinition, NotFound, PermissionDenied, Principal, Unavailable
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.crib import Crib

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from toolcrib.interfaces.mcp.server import McpServer
    from toolcrib.interfaces.mcp.sse import SseSessions

PATH: Final = "/mcp"
PATHS: Final = (PATH, f"{PATH}/servers/{{server}}", f"{PATH}/tools/{{tool}}")
_STREAM: Final = "/sse"
_MESSAGES: Final = "/messages"
SSE_PATHS: Final = tuple(path + ending for path in PATHS for ending in (_STREAM, _MESSAGES))
"""The addresses of clients of revision 2024-11-05: of the stream, and of the messages that they post."""
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class _Transports(NamedTuple):
    """What answers requests, once the SDK is started."""

    streamable_http: "StreamableHTTPSessionManager"
    sse: "SseSessions"


class McpEndpoint:
    """An ASGI application for requests that `Authentication` has let pass.

    Args:
        crib: Has the tools.
        self_approval: Whether callers may decide on their own calls.
    """

    def __init__(self, crib: Crib, *, self_approval: bool = False) -> None:
        self._crib = crib
        self.self_approval = self_approval
        self._starting = asyncio.Lock()
        self._transports: _Transports | None = None
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request at one of `PATHS`.

        Raises:
            PermissionDenied: It comes from a page of another site.
            NotFound: There is no such virtual server, or no such tool for the principal.
        """
        transports, known = await self._begin(scope)
        await transports.streamable_http.handle_request(known, receive, send)

    async def answer_sse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request at one of `SSE_PATHS`.

        Raises:
            PermissionDenied: It comes from a page of another site.
            NotFound: There is no such virtual server, or no such tool for the principal.
            Unavailable: Too many streams are open.
        """
        transports, known = await self._begin(scope)
        await transports.sse.serve(known, receive, send)

    async def _begin(self, scope: Scope) -> tuple[_Transports, Scope]:
        """What answers the request, and the request with what the handlers ask it for."""
        _refuse_foreign_origin(scope)
        transports = await self._started()
        from toolcrib.interfaces.mcp.server import SERVED  # noqa: PLC0415 - see the module

        server = await self._server(scope)
        SERVED.set(server)
        state = {**scope["state"], "mcp_server_of": partial(self._server, scope)}
        return transports, {**scope, "state": state, "user": _user(scope)}

    async def _server(self, scope: Scope) -> McpServerDefinition | None:
        """The virtual server that the address names; for that of a tool, one that has only this tool."""
        names: Mapping[str, str] = scope["path_params"]
        if not names:
            return None
        from toolcrib.interfaces.mcp.offers import ToolOffers, find_server  # noqa: PLC0415 - see the module

        crib = self._crib.acting_as(cast("Principal", scope["state"]["principal"]))
        if "server" in names:
            return await find_server(crib, names["server"])
        tool = names["tool"]
        if not await ToolOffers(crib).has(tool):
            msg = f"there is no tool {tool[:100]!r} for this key; an MCP client lists the tools at {PATH}"
            raise NotFound(msg)
        return McpServerDefinition(name=tool, tools=(tool,))

    async def close(self) -> None:
        """End all sessions."""
        self._stop.set()
        if self._task is not None:
            await self._task

    async def _started(self) -> _Transports:
        async with self._starting:
            if self._transports is None:
                ready = asyncio.Event()
                self._task = asyncio.create_task(self._serve(ready))
                waiting = asyncio.create_task(ready.wait())
                await asyncio.wait({self._task, waiting}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if self._task.done():
                    await self._task  # raises why it could not start
            return cast("_Transports", self._transports)

    async def _serve(self, ready: asyncio.Event) -> None:
        """Own the task group of the SDK, which one task must enter and leave."""
        try:
            from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415 - see above

            from toolcrib.interfaces.mcp.sse import SseSessions  # noqa: PLC0415 - see above

            server = _server_for(self._crib, self_approval=self.self_approval)
        except ImportError as problem:
            raise Unavailable(missing_extra("the MCP server", problem.name, "mcp")) from problem
        built = server.build()
        sse = SseSessions(built, stream=_STREAM, messages=_MESSAGES)
        transports = _Transports(StreamableHTTPSessionManager(built), sse)
        async with transports.streamable_http.run(), server.open():
            self._transports = transports
            ready.set()
            await self._stop.wait()
            sse.close()
        self._transports = None


class _SseEndpoint:
    """The endpoint for clients of revision 2024-11-05, as an ASGI application of its own.

    Args:
        endpoint: Has the sessions.
    """

    def __init__(self, endpoint: McpEndpoint) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request at one of `SSE_PATHS`."""
        await self._endpoint.answer_sse(scope, receive, send)


def mcp_routes(endpoint: McpEndpoint) -> list[Route]:
    """The routes of all addresses of an endpoint."""
    by_sse = _SseEndpoint(endpoint)
    return [*(Route(path, endpoint) for path in PATHS), *(Route(path, by_sse) for path in SSE_PATHS)]


def _server_for(crib: Crib, *, self_approval: bool) -> "McpServer":
    from toolcrib.interfaces.mcp.server import Context, McpServer  # noqa: PLC0415 - see the module

    def crib_of(ctx: Context) -> Any:
        return crib.acting_as(cast("Principal", cast("Any", ctx.request).state.principal))

    async def server_of(ctx: Context) -> McpServerDefinition | None:
        return await cast("Any", ctx.request).state.mcp_server_of()

    return McpServer(crib_of, self_approval=self_approval, server_of=server_of)


def _user(scope: Scope) -> Any:
    """The principal as the SDK knows who began a session."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser  # noqa: PLC0415 - see the module
    from mcp.server.auth.provider import AccessToken  # noqa: PLC0415 - see the module

    principal = cast("Principal", scope["state"]["principal"])
    return AuthenticatedUser(AccessToken(token="", client_id=principal.realm, subject=principal.id, scopes=[]))


def _refuse_foreign_origin(scope: Scope) -> None:
    """Refuse requests that a web page of another site makes, also one whose name was pointed at this machine."""
    headers: dict[bytes, str] = {name: value.decode("latin-1") for name, value in scope["headers"]}
    host = _host_of(f"//{headers.get(b'host', '')}")
    if _is_loopback((scope.get("server") or ("", 0))[0]) and host and host not in _LOCAL:
        msg = f"the request names the host {host[:100]!r}, and this server is on localhost only"
        raise PermissionDenied(msg)
    origin = headers.get(b"origin")
    same_site = {host, *_LOCAL} if host in _LOCAL else {host}
    if origin is not None and _host_of(origin) not in same_site:
        msg = f"the request comes from a page of {origin[:100]!r}; call {PATH} from a program, or from this site"
        raise PermissionDenied(msg)


def _host_of(address: str) -> str:
    """The host of a URL; empty if it has none."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _is_loopback(address: str) -> bool:
    with contextlib.suppress(ValueError):
        return ip_address(address).is_loopback
    return False
