"""The only module that uses aiohttp: a session that enforces an `EgressPolicy` and maps errors; also redirects.

The policy is checked for the URL of each hop, for every resolved address (one forbidden address refuses all), and for
each address when its socket is opened, which includes literal addresses. A socket only knows an address, so a context
variable carries the origin; aiohttp reuses a connection only for the same scheme, host and port. Redirects follow RFC
9110, section 15.4. `HttpSession` loads this module with its first request.

A POST that follows no redirect, such as a model request, is an `_Endpoint`: its head is rendered once, and it is
written to a connection of aiohttp's pool in one piece. Every other request goes through `aiohttp.ClientSession`.
"""

import asyncio
import re
import select
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import lru_cache
from io import BytesIO
from typing import Any, Final, NamedTuple, TypeAlias

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError
from msgspec import Struct
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from toolcrib.contracts.base.errors import EgressDenied, InvalidInput, ToolcribError
from toolcrib.infrastructure.net._urls import join, parse
from toolcrib.infrastructure.net.addresses import Resolver
from toolcrib.infrastructure.net.errors import (
    ConnectionFailed,
    HttpResponse,
    HttpStream,
    NetworkError,
    Phase,
    TimedOut,
    Timeouts,
    TooLarge,
)
from toolcrib.infrastructure.net.policy import EgressPolicy, Origin
from toolcrib.infrastructure.net.tls import TlsIdentity

REDIRECT_STATUSES: Final = frozenset({301, 302, 303, 307, 308})
_NEGOTIATION: Final = frozenset({"accept", "accept-encoding", "accept-language", "user-agent"})
"""The only headers that follow to another origin: an API key may sit in any other."""
_ABOUT_THE_BODY: Final = frozenset({"content-encoding", "content-language", "content-type"})


class Hop(NamedTuple):
    """One hop."""

    method: str
    url: URL
    headers: Mapping[str, str]
    body: bytes | None
    tls: TlsIdentity | None = None
    """For the origin of the first hop only."""


def redirect_request(request: Hop, status: int, location: str) -> Hop:
    """The request that follows the redirect.

    303 turns into a GET, as do 301 and 302 after a POST; a HEAD stays one. Another origin gets content negotiation
    headers only.

    Raises:
        EgressDenied: The location is malformed, or a body would have to be sent to another origin.
    """
    try:
        url = join(request.url, location)
        same_origin = url.origin() == request.url.origin()
    except ValueError:
        raise EgressDenied(
            f"egress denied: host {request.url.raw_host!r} redirects to a malformed URL; request the final one"
        ) from None
    if (status == 303 and request.method != "HEAD") or (status in {301, 302} and request.method == "POST"):
        request = request._replace(method="GET", body=None, headers=_without(request.headers, _ABOUT_THE_BODY))
    if same_origin:
        return request._replace(url=url)
    if request.body:
        raise EgressDenied(
            f"egress denied: host {request.url.raw_host!r} redirects a request with a body to another origin, "
            f"{url.scheme}://{url.raw_host}; if that is the right one, call it directly"
        )
    kept = {name: value for name, value in request.headers.items() if name.lower() in _NEGOTIATION}
    return request._replace(url=url, headers=kept, tls=None)


def _without(headers: Mapping[str, str], names: frozenset[str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in names}


_NOT_THE_CALLERS: Final = frozenset({"host", "content-length", "transfer-encoding"})
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ALWAYS_SENT: Final = {"User-Agent": "toolcrib"}
_NO_TIME_LEFT_S: Final = 0.001
"""aiohttp takes zero for no limit."""
_MAX_ADMITTED: Final = 1024
_MAX_ENDPOINTS: Final = 64
_MAX_CONTEXTS: Final = 256
_COPIED_AT_ONCE: Final = 2**20
"""aiohttp warns about larger bodies given as bytes, since sending them in one piece holds the loop."""

_HAS_POLL: Final = hasattr(select, "poll")
_MOST_STALE: Final = 2
"""How many kept-alive connections may turn out to be closed before a request is given up."""

AddressInfo: TypeAlias = tuple[int, int, int, str, tuple[Any, ...]]
"""One row of `getaddrinfo`: family, type, protocol, canonical name, address."""

_connecting: ContextVar[Origin] = ContextVar("toolcrib_net_connecting")
_Failure: TypeAlias = aiohttp.ClientError | OSError | HttpProcessingError
_FAILURES: Final = aiohttp.ClientError, OSError, HttpProcessingError
"""What an exchange can end with besides an answer."""


class _Endpoint(NamedTuple):
    """What all POSTs to one URL with the same headers have in common."""

    origin: Origin
    request: aiohttp.ClientRequest
    """Tells aiohttp where to connect; it is never sent."""
    head: bytes
    """The request up to the length of its body."""
    url: str


class _Exchange(Struct, eq=False):
    """A request that was sent."""

    ends_at: float
    protocol: ResponseHandler
    content: aiohttp.StreamReader | None = None
    """The body of its answer, once that has begun."""


class ExchangeTimeouts:
    """Ends what takes too long in all. One timer serves all exchanges, because hardly any of them gets that far.

    Args:
        loop: Its time.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._open: set[_Exchange] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, exchange: _Exchange) -> None:
        """From now on the exchange has until `ends_at`."""
        self._open.add(exchange)
        timer = self._timer
        if timer is None or exchange.ends_at < timer.when():
            if timer is not None:
                timer.cancel()
            self._timer = self._loop.call_at(exchange.ends_at, self._expire)

    def drop(self, exchange: _Exchange) -> None:
        """The exchange has ended. The timer is left alone: it finds nothing to do."""
        self._open.discard(exchange)

    def close(self) -> None:
        """Nothing is waited for any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        """As aiohttp does when nothing was read for too long: whoever waits for the exchange gets the error."""
        now = self._loop.time()
        for exchange in [each for each in self._open if each.ends_at <= now]:
            self._open.discard(exchange)
            late = TimeoutError()
            exchange.protocol.set_exception(late)
            if exchange.content is not None:
                exchange.content.set_exception(late)
        first = min((each.ends_at for each in self._open), default=None)
        self._timer = None if first is None else self._loop.call_at(first, self._expire)


class AiohttpTransport:
    """An aiohttp session for one policy, bound to the running loop."""

    def __init__(self, policy: EgressPolicy, resolver: Resolver) -> None:
        self.loop: Final = asyncio.get_running_loop()
        self._policy: Final = policy
        self.admitted: dict[tuple[str, str], Origin] = {}
        self._parsed: dict[str, URL] = {}
        self._endpoints: dict[tuple[str, tuple[tuple[str, str], ...]], _Endpoint | None] = {}
        self._deadlines: Final = ExchangeTimeouts(self.loop)
        self._contexts: dict[TlsIdentity, ssl.SSLContext] = {}
        self._opened = 0
        """Sockets that were opened so far."""
        self._connector: Final = aiohttp.TCPConnector(
            limit=0, resolver=VettingResolver(policy, resolver), socket_factory=self._open_socket
        )
        self._client: Final = aiohttp.ClientSession(
            connector=self._connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=_ALWAYS_SENT,
            trust_env=False,
        )

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        *,
        timeouts: Timeouts,
        max_bytes: int | None,
        above_policy: bool,
        follow: bool,
        tls: TlsIdentity | None,
    ) -> Coroutine[Any, Any, HttpResponse]:
        """See `HttpSession.request`."""
        limit = self._policy.max_bytes
        if max_bytes is not None and (above_policy or max_bytes < limit):
            limit = max_bytes
        if method == "POST" and not follow and tls is None and body and len(body) <= _COPIED_AT_ONCE:
            key = url, tuple(headers.items())
            endpoint = self._endpoints[key] if key in self._endpoints else self._add_endpoint(key, headers)
            if endpoint is not None:
                return self._post(endpoint, body, timeouts, limit)
        return self._ask(self._request(method, url, headers, body, tls), timeouts, limit, follow=follow)

    async def _ask(self, request: Hop, timeouts: Timeouts, limit: int, *, follow: bool) -> HttpResponse:
        """Send any request, and read the answer."""
        total_s = timeouts.total_s
        if follow:
            response, origin = await self._exchange(request, timeouts, total_s)
        else:
            origin = self.admit(request.url)
            response = await self._send(request, origin, timeouts, total_s)
        try:
            content = await response.content.readany()  # the whole of a short body
            if len(content) > limit or not response.content.at_eof():
                content = await CappedBody(response.content, response.close, origin, timeouts, limit).read(content)
        except (aiohttp.ClientError, OSError) as error:
            raise _in_our_words(error, origin, timeouts) from None
        finally:
            response.release()
        return HttpResponse(
            response.status, _lower_case(response.headers), content, str(response.url if follow else request.url)
        )

    async def _post(self, endpoint: _Endpoint, body: bytes, timeouts: Timeouts, limit: int) -> HttpResponse:
        """Send a body to an endpoint, and read the answer."""
        origin, total_s, idle_s = endpoint.origin, timeouts.total_s, timeouts.read_idle_s
        exchange: _Exchange | None = None
        started = self.loop.time()
        connection = await self._connect(endpoint, timeouts)
        protocol, transport = connection.protocol, connection.transport
        if protocol is None or transport is None:
            connection.close()
            raise _in_our_words(aiohttp.ServerDisconnectedError(), origin, timeouts)
        try:
            silent_s = idle_s if total_s is None or idle_s < total_s else None
            protocol.set_response_params(read_until_eof=True, read_timeout=silent_s)
            transport.write(b"%b%d\r\n\r\n%b" % (endpoint.head, len(body), body))
            if silent_s is not None:
                protocol.start_timeout()
            if total_s:  # as with aiohttp, 0 is no limit
                exchange = _Exchange(started + total_s, protocol)
                self._deadlines.add(exchange)
            message, stream = await protocol.read()
            while 100 <= message.code < 200 and message.code != 101:  # the answer is still to come
                message, stream = await protocol.read()
            if exchange is not None:
                exchange.content = stream
            content = await stream.readany()  # the whole of a short body
            if len(content) > limit or not stream.at_eof():
                content = await CappedBody(stream, connection.close, origin, timeouts, limit).read(content)
        except _FAILURES as error:
            connection.close()
            raise _in_our_words(error, origin, timeouts) from None
        except BaseException:
            connection.close()  # its answer may still come, and is nobody's
            raise
        finally:
            if exchange is not None:
                self._deadlines.drop(exchange)
        connection.release()
        return HttpResponse(message.code, _lower_case(message.headers), content, endpoint.url)

    async def _connect(self, endpoint: _Endpoint, timeouts: Timeouts) -> Connection:
        """A connection to an endpoint: one that was kept, unless the server has closed it, or a new one."""
        origin = endpoint.origin
        token = _connecting.set(origin)
        try:
            while True:
                opened = self._opened
                connection = await self._connector.connect(endpoint.request, [], _connect_timeout(timeouts))
                if self._opened != opened or not _is_stale(connection):  # a kept one is there at once
                    return connection
                connection.close()
        except TimeoutError:
            if timeouts.total_s is not None and timeouts.total_s <= timeouts.connect_s:
                raise _timeout_error(origin, "total", timeouts.total_s) from None
            raise _timeout_error(origin, "connect", timeouts.connect_s) from None
        except (aiohttp.ClientError, OSError) as error:
            raise _in_our_words(error, origin, timeouts) from None
        finally:
            _connecting.reset(token)

    def _open_socket(self, info: AddressInfo) -> socket.socket:
        self._opened += 1
        return vetted_socket(self._policy, info)

    def _add_endpoint(
        self, key: tuple[str, tuple[tuple[str, str], ...]], headers: Mapping[str, str]
    ) -> _Endpoint | None:
        """What POSTs to a URL have in common, kept for the next; null if they are not ordinary ones."""
        hop = self._request("POST", key[0], headers, None, None)
        endpoint = None
        if not any(name.lower() == "expect" for name in headers):
            origin = self.admit(hop.url)
            sent = CIMultiDict({**_ALWAYS_SENT, **headers})
            request = aiohttp.ClientRequest(
                "POST", hop.url, headers=sent, data=b"", loop=self.loop, session=self._client, ssl=True
            )
            endpoint = _Endpoint(origin, request, _head(request, origin), str(hop.url))
        if len(self._endpoints) >= _MAX_ENDPOINTS:
            self._endpoints.clear()
        self._endpoints[key] = endpoint
        return endpoint

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        *,
        timeouts: Timeouts,
        max_bytes: int | None,
        follow: bool,
        tls: TlsIdentity | None,
    ) -> AsyncGenerator[HttpStream]:
        """See `HttpSession.stream`."""
        request = self._request(method, url, headers, body, tls)
        if follow:
            response, origin = await self._exchange(request, timeouts, None)
        else:
            origin = self.admit(request.url)
            response = await self._send(request, origin, timeouts, None)
        try:
            chunks = CappedBody(response.content, response.close, origin, timeouts, self._limit(max_bytes))
            yield HttpStream(response.status, _lower_case(response.headers), str(response.url), chunks)
        finally:
            response.release()

    async def close(self) -> None:
        """Close the connections; see `HttpSession.close`."""
        self._deadlines.close()
        await self._client.close()

    async def _exchange(
        self, request: Hop, timeouts: Timeouts, total_s: float | None
    ) -> tuple[aiohttp.ClientResponse, Origin]:
        """The answer after all redirects, with the headers in and the body still to come."""
        started = self.loop.time()
        remaining = total_s
        redirects = 0
        try:
            while True:
                origin = self.admit(request.url)
                response = await self._send(request, origin, timeouts, remaining)
                location = response.headers.get("Location") if response.status in REDIRECT_STATUSES else None
                if not location:
                    return response, origin
                response.release()
                redirects += 1
                self._check_redirects(redirects, origin)
                request = redirect_request(request, response.status, location)
                if total_s is not None:
                    remaining = max(total_s - (self.loop.time() - started), _NO_TIME_LEFT_S)
        except (EgressDenied, NetworkError) as problem:
            problem.unsent = problem.unsent and not redirects
            raise

    def _check_redirects(self, redirects: int, origin: Origin) -> None:
        if redirects > self._policy.max_redirects:
            raise EgressDenied(
                f"egress denied: host {origin.host!r} redirects once more after {self._policy.max_redirects} "
                "redirects; request the final URL or raise the policy's `max_redirects`"
            )

    async def _send(
        self, request: Hop, origin: Origin, timeouts: Timeouts, total_s: float | None
    ) -> aiohttp.ClientResponse:
        body, stale = request.body, 0
        token = _connecting.set(origin)
        try:
            while True:
                try:
                    return await self._client.request(
                        request.method,
                        request.url,
                        headers=request.headers,
                        data=BytesIO(body) if body is not None and len(body) > _COPIED_AT_ONCE else body,
                        allow_redirects=False,
                        ssl=True if request.tls is None else self._context(request.tls),
                        timeout=_client_timeout(timeouts, total_s),
                    )
                except aiohttp.ClientOSError as error:
                    stale += 1
                    if stale > _MOST_STALE or not _was_unsent(request, error):
                        raise
        except aiohttp.ServerDisconnectedError as error:
            if request.tls is None:
                raise _in_our_words(error, origin, timeouts) from None
            raise ConnectionFailed(
                f"connection to {origin.netloc} failed: the server closed it without an answer, which is how some "
                "refuse a client certificate; check that it accepts ours"
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            raise _in_our_words(error, origin, timeouts) from None
        except ValueError:
            raise _not_http(origin) from None
        finally:
            _connecting.reset(token)

    def _context(self, identity: TlsIdentity) -> ssl.SSLContext:
        """One context for each identity: aiohttp shares connections between equal ones only."""
        context = self._contexts.pop(identity, None) or identity.context()
        self._contexts[identity] = context
        if len(self._contexts) > _MAX_CONTEXTS:
            del self._contexts[next(iter(self._contexts))]  # the one that was not used for the longest time
        return context

    def _request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, tls: TlsIdentity | None
    ) -> Hop:
        """The first hop. The address of a fixed endpoint is read once; its verdict is asked for each time."""
        for name in headers:
            if not _may_send(name):
                raise InvalidInput(f"header {name!r} is not a valid name, or is set from the URL and the body; omit it")
        parsed = self._parsed.get(url)
        if parsed is None:
            try:
                parsed = parse(url)
            except ValueError:
                raise EgressDenied("egress denied: the URL is malformed; write it as https://host/path") from None
            if "?" not in url and "@" not in url:
                if len(self._parsed) >= _MAX_ADMITTED:
                    self._parsed.clear()
                self._parsed[url] = parsed
        return Hop(method, parsed, headers, body, tls)

    def admit(self, url: URL) -> Origin:
        """The policy's verdict, remembered: an agent asks the same few origins thousands of times."""
        key = (url.scheme, url.raw_authority)
        origin = self.admitted.get(key)
        if origin is None:
            origin = self._policy.admit(url)
            if len(self.admitted) >= _MAX_ADMITTED:
                self.admitted.clear()
            self.admitted[key] = origin
        return origin

    def _limit(self, max_bytes: int | None) -> int:
        return self._policy.max_bytes if max_bytes is None else min(max_bytes, self._policy.max_bytes)


class CappedBody(AsyncIterator[bytes]):
    """The chunks of a body after decompression, up to a limit. aiohttp inflates one bounded piece at a time."""

    __slots__ = ("_close", "_content", "_left", "_limit", "_origin", "_timeouts")

    def __init__(
        self,
        content: aiohttp.StreamReader,
        close: Callable[[], None],
        origin: Origin,
        timeouts: Timeouts,
        limit: int,
    ) -> None:
        self._close = close
        self._content = content
        self._origin = origin
        self._timeouts = timeouts
        self._limit = limit
        self._left = limit

    async def __anext__(self) -> bytes:
        chunk = await self._next()
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def read(self, first: bytes) -> bytes:
        """The whole body, of which the first piece has come already."""
        chunks = [self._counted(first)]
        while chunk := await self._next():
            chunks.append(chunk)
        return b"".join(chunks)

    async def _next(self) -> bytes:
        try:
            return self._counted(await self._content.readany())
        except (aiohttp.ClientError, OSError) as error:
            raise _in_our_words(error, self._origin, self._timeouts) from None

    def _counted(self, chunk: bytes) -> bytes:
        self._left -= len(chunk)
        if self._left < 0:
            self._close()
            raise TooLarge(
                f"host {self._origin.host!r} answered with more than {self._limit} bytes; ask for less (a page, a "
                "filter) or raise `max_bytes` of the request and of the egress policy",
                limit_bytes=self._limit,
            )
        return chunk


class VettingResolver(AbstractResolver):
    """A `Resolver` as aiohttp wants it, whose answers are all vetted: one denied address refuses the name."""

    def __init__(self, policy: EgressPolicy, resolver: Resolver) -> None:
        self._policy = policy
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """All addresses, or `EgressDenied`."""
        origin = _connecting.get()
        addresses = await self._resolver.resolve(origin.host, port)
        if not addresses:
            raise OSError(f"host {origin.host!r} has no address")
        for address in addresses:
            self._policy.vet(origin, address)
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)
            for address in addresses
        ]

    async def close(self) -> None:
        """Nothing to close: the resolver belongs to whoever made it."""


class AddressRefused(PermissionError):
    """A denial in the only form that survives aiohttp's race between addresses."""


def vetted_socket(policy: EgressPolicy, info: AddressInfo) -> socket.socket:
    """The socket for one address of the origin being connected to.

    Raises:
        AddressRefused: The policy denies the address.
    """
    family, kind, protocol, _, address = info
    try:
        policy.vet(_connecting.get(), str(address[0]))
    except EgressDenied as denied:
        raise AddressRefused(str(denied)) from None
    return socket.socket(family, kind, protocol)


@lru_cache(1024)
def _may_send(name: str) -> bool:
    """Whether a caller may set this header: a name with a colon or space in it could smuggle in one they may not."""
    return _TOKEN.fullmatch(name) is not None and name.lower() not in _NOT_THE_CALLERS


@lru_cache(64)
def _client_timeout(timeouts: Timeouts, total_s: float | None) -> aiohttp.ClientTimeout:
    idle_s = timeouts.read_idle_s
    if total_s is not None and total_s <= idle_s:
        return aiohttp.ClientTimeout(total=total_s, connect=timeouts.connect_s)  # a timer per packet would never fire
    return aiohttp.ClientTimeout(total=total_s, connect=timeouts.connect_s, sock_read=idle_s)


@lru_cache(64)
def _connect_timeout(timeouts: Timeouts) -> aiohttp.ClientTimeout:
    """As long as connecting may take: never longer than all."""
    total_s = timeouts.total_s
    return aiohttp.ClientTimeout(connect=timeouts.connect_s if total_s is None else min(timeouts.connect_s, total_s))


def _head(request: aiohttp.ClientRequest, origin: Origin) -> bytes:
    """The start of a request as aiohttp would send it, up to the length of its body, which comes last."""
    lines = [f"{request.method} {request.url.raw_path_qs} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in request.headers.items() if name.lower() != "content-length"]
    if any(character in line for line in lines for character in "\r\n\0"):
        raise _not_http(origin)
    return "\r\n".join([*lines, "Content-Length: "]).encode()


def _is_stale(connection: Connection) -> bool:
    """Whether the server has closed a kept connection, or has said something unasked, and the loop has not seen it."""
    transport = connection.transport
    sock = None if transport is None else transport.get_extra_info("socket")
    if sock is None:
        return False
    if _HAS_POLL:
        poll = select.poll()
        poll.register(sock.fileno(), select.POLLIN)
        found = poll.poll(0)
        return bool(found) and bool(found[0][1] & select.POLLIN)
    return bool(select.select([sock.fileno()], [], [], 0)[0])


def _lower_case(given: CIMultiDictProxy[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in given.items():
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers


def _was_unsent(request: Hop, error: aiohttp.ClientOSError) -> bool:
    """Whether a kept-alive connection was closed by the server before the request was written, in its one piece.

    Then it may be sent again whatever it does, because nothing of it has left.
    """
    in_one_piece = len(request.body or b"") <= _COPIED_AT_ONCE
    return in_one_piece and isinstance(error.__cause__, aiohttp.ClientConnectionResetError)


def _not_http(origin: Origin) -> InvalidInput:
    return InvalidInput(
        f"request to host {origin.host!r}: the method or a header holds a character that HTTP does not allow"
    )


def _in_our_words(
    error: aiohttp.ClientError | OSError | HttpProcessingError, origin: Origin, timeouts: Timeouts
) -> ToolcribError:
    """The failure without aiohttp's message, which may quote the whole URL."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return _timeout_error(origin, "connect", timeouts.connect_s)
    if isinstance(error, aiohttp.SocketTimeoutError):
        return _timeout_error(origin, "read", timeouts.read_idle_s)
    if isinstance(error, TimeoutError):
        return _timeout_error(origin, "total", timeouts.total_s or 0)
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, AddressRefused):
        return EgressDenied(str(error.os_error))
    return ConnectionFailed(
        f"connection to {origin.netloc} failed: {_cause(error)}; check the host or try again later",
        unsent=isinstance(error, aiohttp.ClientConnectorError),
    )


def _cause(error: _Failure) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "the host name does not resolve"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        reason = error.certificate_error
        verdict = reason.verify_message if isinstance(reason, ssl.SSLCertVerificationError) else "bad certificate"
        return f"TLS: {verdict}"
    if isinstance(error, aiohttp.ClientSSLError):
        return f"TLS: {error.strerror}"
    if isinstance(error, OSError) and error.strerror and error.errno is not None:
        return error.strerror
    if isinstance(error, aiohttp.ClientOSError):
        return "the server closed the connection while the request was sent"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection without an answer"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the body of the answer broke off or cannot be decoded"
    return "the answer is not valid HTTP"


def _timeout_error(origin: Origin, phase: Phase, limit_s: float) -> TimedOut:
    parameter = {"connect": "connect_s", "read": "read_idle_s", "total": "total_s"}[phase]
    waiting = {"connect": "was not reached", "read": "sent nothing", "total": "did not finish"}[phase]
    return TimedOut(
        f"{origin.netloc} {waiting} within {limit_s:g} s; try again, or raise `{parameter}` of the request's time-outs",
        phase=phase,
        limit_s=limit_s,
    )
