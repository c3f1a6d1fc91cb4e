"""The transport of protocol revision 2024-11-05, for clients that do not speak streamable HTTP.

A client reads one stream of server-sent events, whose first event names the address that it posts its messages to. The
stream is the session: it lives in the memory of one process, and belongs to the principal that opened it.

Example:
    from toolcrib.interfaces.mcp.server import McpServer
    from toolcrib.interfaces.mcp.sse import SseSessions

    sessions = SseSessions(McpServer(lambda _: crib).build(), stream="/sse", messages="/messages")
    print(sessions.count)
"""

from typing import Any, Final

import anyio
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from toolcrib.contracts import Unavailable

MOST_SESSIONS: Final = 1_000
"""Streams that are open at the same time; further ones are refused."""


class SseSessions:
    """The sessions of older clients.

    Args:
        server: The server of the SDK.
        stream: What the address of a stream ends with.
        messages: What the address ends with that a client posts its messages to.
    """

    def __init__(self, server: Server[Any], *, stream: str, messages: str) -> None:
        self._server = server
        self._stream_ending = stream
        self._messages_ending = messages
        self._transport = SseServerTransport(messages)
        self._open: set[anyio.CancelScope] = set()

    @property
    def count(self) -> int:
        """Sessions that are open."""
        return len(self._open)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a stream until its client closes it, or take a message for a session.

        Args:
            scope: Of a request at one of the two addresses, with its `user`.
            receive: As ASGI says.
            send: As ASGI says.

        Raises:
            Unavailable: Too many streams are open.
        """
        path: str = scope["path"]
        if path.endswith(self._messages_ending):
            await self._transport.handle_post_message(scope, receive, send)
        elif scope["method"] != "GET":
            await Response(status_code=405, headers={"Allow": "GET"})(scope, receive, send)
        else:
            await self._stream({**scope, "root_path": self._place(scope)}, receive, send)

    def close(self) -> None:
        """End all sessions; their streams end."""
        for session in tuple(self._open):
            session.cancel()

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.count >= MOST_SESSIONS:
            msg = f"{MOST_SESSIONS} streams of MCP clients are open; use streamable HTTP at /mcp, or connect later"
            raise Unavailable(msg)
        session = anyio.CancelScope()
        self._open.add(session)
        try:
            async with self._transport.connect_sse(scope, receive, send) as (read, write):
                with session:  # around the server only, so that the stream still ends as HTTP wants it
                    await self._server.run(read, write, self._server.create_initialization_options())
        finally:
            self._open.discard(session)

    def _place(self, scope: Scope) -> str:
        """The path, as clients write it, that the two addresses of a session begin with."""
        mounted: str = scope.get("root_path", "")
        path: str = scope["path"].removesuffix(self._stream_ending)
        return path if path.startswith(f"{mounted}/") else mounted + path
