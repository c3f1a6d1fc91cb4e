"""The one way out for MCP over HTTP: the SDK's HTTP client on top of our `HttpSession`, under its egress policy.

The SDK brings a client, httpx2, that would resolve and connect by itself. This transport gives it neither sockets nor
credentials: requests go through the session (vetted addresses, no proxies, no redirects, bounded bodies), and the
credentials are put on here, so that the SDK never holds them and no redirect carries them away. Loaded with the first
connection, as it needs httpx2.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import quote

import httpx2
import orjson

from toolcrib.contracts import EgressDenied, InvalidInput, Principal, ProviderDefinition
from toolcrib.core.executor import CallFailed
from toolcrib.core.providers import Credentials, ProviderAccess
from toolcrib.core.providers.waits import retry_after
from toolcrib.infrastructure.net import HttpSession, HttpStream, NetworkError, Timeouts
from toolcrib.kinds.mcp.runtime.failures import SessionGone, answered, unauthorized, unreached
from toolcrib.kinds.mcp.runtime.troubles import Troubles

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
class Guarded(httpx2.AsyncBaseTransport):
    """Sends the requests of one connection."""

    session: HttpSession
    provider: ProviderDefinition
    principal: Principal
    access: ProviderAccess
    troubles: Troubles
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
            return self._failed(unauthorized(self.provider.name, failure))
        except (EgressDenied, NetworkError, InvalidInput) as problem:
            return self._failed(unreached(self.provider.name, problem))
        failure = self._judged(request, answer)
        if failure is None:
            return answer
        await answer.aclose()
        return self._failed(failure)

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

    def _judged(self, request: httpx2.Request, answer: httpx2.Response) -> CallFailed | None:
        """What an answer means, if the protocol cannot say it as well: there an error has a body of its own."""
        status = answer.status_code
        if status < 400 or (request.method != "POST" and status == 405):
            return None
        if status == 404 and _SESSION_ID in request.headers:
            gone = answered(self.provider.name, status, None)
            return SessionGone(gone.error, http_status=status)
        if status in {401, 403, 429} or (not _is_json(answer) and status not in {400, 404, 405}):
            return answered(self.provider.name, status, retry_after(dict(answer.headers), self.now()))
        return None

    def _failed(self, failure: CallFailed) -> httpx2.Response:
        """An answer that is an error of the protocol, and stands for the failure."""
        said = {"code": _INTERNAL_ERROR, "message": failure.error.message, "data": self.troubles.keep(failure)}
        if self.failed is not None:
            self.failed()
        body = orjson.dumps({"jsonrpc": "2.0", "id": None, "error": said})
        return httpx2.Response(502, headers={"content-type": "application/json"}, content=body)


class Events(httpx2.AsyncByteStream):
    """A stream of events as it arrives. Where it breaks, it ends: what was awaited from it is answered as broken."""

    def __init__(self, stream: HttpStream, held: AsyncExitStack, provider: str, troubles: Troubles) -> None:
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
            self._troubles.last = unreached(self._provider, problem)

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
