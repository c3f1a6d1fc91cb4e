"""The three transports to an MCP server: streamable HTTP, server-sent events (older servers), and a program's stdio.

HTTP requests of the SDK's client (httpx2) go through `HttpSession` under its egress policy: checked addresses, no
proxies, no redirects, limited bodies. Credentials are added here, so the SDK never has them. A program runs in its own
process session with only the variables that it is given; lines are limited, and only the end of its standard error is
kept. To stop it, its standard input is closed, then it is terminated, then killed with its child processes. Loaded
with the first connection.
"""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias, assert_never, cast
from urllib.parse import quote

import anyio
import httpx2
import orjson
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from toolcrib.contracts import EgressDenied, InvalidInput, Principal, ProviderDefinition
from toolcrib.core.executor import CallFailed
from toolcrib.core.providers import Credentials, ProviderAccess
from toolcrib.core.providers.auth.protected_resources import wanted_scopes
from toolcrib.core.providers.request_errors import retry_after
from toolcrib.infrastructure.net import HttpSession, HttpStream, NetworkError, Timeouts
from toolcrib.infrastructure.secrets import Redactor
from toolcrib.kinds.mcp.runtime.failures import (
    SessionGone,
    TransportTroubles,
    connection_failure,
    credentials_failure,
    network_failure,
    scope_failure,
    status_failure,
    unusable,
)
from toolcrib.kinds.mcp.runtime.server_target import ServerTarget
from toolcrib.kinds.mcp.runtime.session import McpSession, SessionOptions, hold

MAX_LINE: Final = 16 * 2**20
"""Bytes of one message."""

_GRACE_S: Final = 2.0
"""Seconds to end after each step: the end of its input, being asked to."""
_KEPT: Final = 4_096
"""Bytes of its standard error."""
_CHUNK: Final = 4_096

Streams: TypeAlias = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


@asynccontextmanager
async def running(
    command: Sequence[str],
    environment: Mapping[str, str],
    tell: Callable[[str], None],
    too_long: Callable[[], None],
) -> AsyncGenerator[Streams]:
    """Start a program, and give the streams of its messages.

    Args:
        command: The program and its arguments.
        environment: All of its variables.
        tell: Is told the end of its standard error, whenever there is more.
        too_long: Called when a message has more than `MAX_LINE` bytes, with which the connection ends.

    Raises:
        OSError: It cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environment),
        cwd="/",
        start_new_session=True,
        limit=MAX_LINE,
    )
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read(process, incoming, too_long)),
        asyncio.create_task(_write(process, outgoing)),
        asyncio.create_task(_listen(process, tell)),
    ]
    try:
        yield received, sent
    finally:
        await asyncio.shield(_end(process))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(_discard(process), _GRACE_S)
        for stream in (incoming, received, sent, outgoing):
            stream.close()


async def _discard(process: asyncio.subprocess.Process) -> None:
    """Read to the end what a program still writes: its pipe is closed only then."""
    stdout = cast("asyncio.StreamReader", process.stdout)
    while await stdout.read(MAX_LINE):
        pass


async def _read(
    process: asyncio.subprocess.Process,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    too_long: Callable[[], None],
) -> None:
    """Pass on messages until there are no more, or one is too long; invalid lines are ignored."""
    stdout = cast("asyncio.StreamReader", process.stdout)
    with incoming, suppress(anyio.BrokenResourceError):
        while line := await _next_line(stdout, too_long):
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                continue  # many servers print other things as well
            await incoming.send(SessionMessage(message))
    await _discard(process)


async def _next_line(stdout: asyncio.StreamReader, too_long: Callable[[], None]) -> bytes:
    """The next line; empty at the end, or where a line has more than `MAX_LINE` bytes."""
    try:
        return await stdout.readline()
    except ValueError:
        too_long()
        return b""


async def _write(process: asyncio.subprocess.Process, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
    stdin = cast("asyncio.StreamWriter", process.stdin)
    with suppress(ConnectionError):
        async for message in outgoing:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            stdin.write(text.encode() + b"\n")
            await stdin.drain()


async def _listen(process: asyncio.subprocess.Process, tell: Callable[[str], None]) -> None:
    stderr = cast("asyncio.StreamReader", process.stderr)
    kept = b""
    while chunk := await stderr.read(_CHUNK):
        kept = (kept + chunk)[-_KEPT:]
        tell(kept.decode(errors="replace"))


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the program, and all that it has started."""
    cast("asyncio.StreamWriter", process.stdin).close()
    for asking in (None, signal.SIGTERM, signal.SIGKILL):
        if asking is not None:
            _signal(process, asking)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_S)
            break
    _signal(process, signal.SIGKILL)  # what is left of its group


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


SILENCE_S: Final = 600.0
"""Seconds for which a stream of a server may say nothing."""

_CONNECT_S: Final = 30.0
_INTERNAL_ERROR: Final = -32603
_OURS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "user-agent"})
"""Headers of the SDK's client that our own session writes itself."""
_DECODED: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers that describe a body before it was decoded."""
_SESSION_ID: Final = "mcp-session-id"
_EVENTS: Final = "text/event-stream"


@dataclass(slots=True)
class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends the requests of one connection."""

    session: HttpSession
    provider: ProviderDefinition
    principal: Principal
    access: ProviderAccess
    troubles: TransportTroubles
    now: Callable[[], datetime]
    failed: Callable[[], None] | None = None
    """Called when a request has failed."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Ask once, and once more with a new token if a fetched one was refused. Never raises what the network does."""
        try:
            credentials = await self._credentials(request)
            answer = await self._send(request, credentials)
            if answer.status_code == 401 and self.access.forget(credentials):
                await answer.aclose()
                answer = await self._send(request, await self._credentials(request))
        except CallFailed as failure:
            return self._error_response(credentials_failure(self.provider.name, failure))
        except (EgressDenied, NetworkError, InvalidInput) as problem:
            return self._error_response(network_failure(self.provider.name, problem))
        wanted = wanted_scopes(answer.headers.get("www-authenticate", "")) if answer.status_code == 403 else ()
        if wanted:
            await self.access.note_wanted_scopes(self.provider, self.principal, wanted)
        failure = self._failure_from(request, answer, wanted)
        if failure is None:
            return answer
        await answer.aclose()
        return self._error_response(failure)

    async def _credentials(self, request: httpx2.Request) -> Credentials:
        found = await self.access.credentials(self.provider, str(request.url), self.principal)
        self.troubles.secrets = found.secrets
        return found

    async def _send(self, request: httpx2.Request, credentials: Credentials) -> httpx2.Response:
        async with AsyncExitStack() as stack:
            stream = await stack.enter_async_context(
                self.session.stream(
                    request.method,
                    _url(request, credentials),
                    headers=_headers(request, self.provider, credentials),
                    body=await request.aread() or None,
                    timeout=Timeouts(connect_s=_CONNECT_S, read_idle_s=SILENCE_S, total_s=None),
                    follow_redirects=False,
                )
            )
            headers = {name: value for name, value in stream.headers.items() if name not in _DECODED}
            if not stream.headers.get("content-type", "").startswith(_EVENTS):
                return httpx2.Response(stream.status, headers=headers, content=await stream.read(), request=request)
            events = Events(stream, stack.pop_all(), self.provider.name, self.troubles)
            return httpx2.Response(stream.status, headers=headers, stream=events, request=request)

    def _failure_from(
        self, request: httpx2.Request, answer: httpx2.Response, wanted: tuple[str, ...]
    ) -> CallFailed | None:
        """What an answer means, if the protocol cannot say it as well: there an error has a body of its own."""
        status = answer.status_code
        if status < 400 or (request.method != "POST" and status == 405):
            return None
        if status == 404 and _SESSION_ID in request.headers:
            failure = status_failure(self.provider.name, status, None)
            return SessionGone(failure.error, http_status=status)
        if wanted:
            return scope_failure(self.provider.name, wanted)
        if status in {401, 403, 429} or (not _is_json(answer) and status not in {400, 404, 405}):
            return status_failure(self.provider.name, status, retry_after(dict(answer.headers), self.now()))
        return None

    def _error_response(self, failure: CallFailed) -> httpx2.Response:
        """A response with a protocol error that refers to the failure."""
        protocol_error = {
            "code": _INTERNAL_ERROR,
            "message": failure.error.message,
            "data": self.troubles.keep(failure),
        }
        if self.failed is not None:
            self.failed()
        body = orjson.dumps({"jsonrpc": "2.0", "id": None, "error": protocol_error})
        return httpx2.Response(502, headers={"content-type": "application/json"}, content=body)


class Events(httpx2.AsyncByteStream):
    """A stream of events as it arrives. Where it breaks, it ends: what was awaited from it is answered as broken."""

    def __init__(self, stream: HttpStream, held: AsyncExitStack, provider: str, troubles: TransportTroubles) -> None:
        self._stream = stream
        self._held = held
        self._provider = provider
        self._troubles = troubles

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The chunks."""
        try:
            async for chunk in self._stream.chunks:
                yield chunk
        except NetworkError as problem:
            self._troubles.last = network_failure(self._provider, problem)

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._held.aclose()


def _url(request: httpx2.Request, credentials: Credentials) -> str:
    url = str(request.url)
    if not credentials.query:
        return url
    added = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in credentials.query.items())
    return f"{url}{'&' if '?' in url else '?'}{added}"


def _headers(request: httpx2.Request, provider: ProviderDefinition, credentials: Credentials) -> Mapping[str, str]:
    sent = {name.lower(): value for name, value in provider.headers.items()}
    sent |= {name.lower(): value for name, value in request.headers.items() if name.lower() not in _OURS}
    if credentials.cookies:
        sent["cookie"] = "; ".join(f"{name}={value}" for name, value in credentials.cookies.items())
    return sent | credentials.headers


def _is_json(answer: httpx2.Response) -> bool:
    return answer.headers.get("content-type", "").lower().startswith("application/json")


logging.getLogger("mcp").setLevel(logging.CRITICAL)
"""The SDK logs session ids, and messages that it cannot read with all that they hold. What fails is in our errors."""


async def serve(
    reach: ServerTarget, asking: SessionOptions, opened: Callable[[McpSession], None], leave: asyncio.Event
) -> None:
    """Open a connection, hand its session out, and hold it open until it is left. What prevents it is in the troubles.

    Args:
        reach: The server.
        asking: What the session is opened with.
        opened: Is given the session.
        leave: When to close it.
    """
    match reach.connection.transport:
        case "stdio":
            await _program(reach, asking, opened, leave)
        case "streamable_http":
            async with _client(reach, asking) as client:
                url, limit = reach.provider.address, reach.session.policy.max_bytes
                streams = streamable_http_client(url, http_client=client, max_sse_event_size=limit)
                await hold(streams, asking, legacy=False, opened=opened, leave=leave)
        case "sse":

            def factory(*_: Any, **__: Any) -> httpx2.AsyncClient:
                return _client(reach, asking, failed=leave.set)  # what was not accepted is answered nowhere

            streams = sse_client(reach.provider.address, httpx_client_factory=factory, sse_read_timeout=SILENCE_S)
            await hold(streams, asking, legacy=True, opened=opened, leave=leave)
        case _:
            assert_never(reach.connection.transport)


async def _program(
    reach: ServerTarget, asking: SessionOptions, opened: Callable[[McpSession], None], leave: asyncio.Event
) -> None:
    redactor = Redactor(reach.secrets)

    def tell(text: str) -> None:
        asking.troubles.output = redactor.text(text)

    def too_long() -> None:
        why = f"it is a message of more than {MAX_LINE} bytes, the most that is read; ask for less, a page or a filter"
        asking.troubles.last = unusable(reach.provider.name, why)

    streams = running(reach.connection.command, reach.environment, tell, too_long)
    try:
        await hold(streams, asking, legacy=False, opened=opened, leave=leave)
    except OSError as problem:
        asking.troubles.last = connection_failure(
            reach.provider.name, f"its program {reach.connection.command[0]!r} does not start: {problem.strerror}"
        )


def _client(
    reach: ServerTarget, asking: SessionOptions, failed: Callable[[], None] | None = None
) -> httpx2.AsyncClient:
    """The SDK's HTTP client, whose only way out is ours; nothing of the environment changes that."""
    guarded = GuardedTransport(
        reach.session, reach.provider, reach.principal, reach.access, asking.troubles, reach.now, failed=failed
    )
    return httpx2.AsyncClient(transport=guarded, timeout=None, trust_env=False)
