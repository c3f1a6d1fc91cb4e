"""`HttpSession`: the HTTP client of a process, with one policy, one event loop and kept-alive connections.

It has no cookies, uses no proxies or other settings of the environment, and does not retry. It can be created
anywhere, and binds to the event loop of its first request.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from toolcrib.contracts.base.errors import Conflict
from toolcrib.infrastructure.net.addresses import Resolver, SystemResolver
from toolcrib.infrastructure.net.errors import HttpResponse, HttpStream, Timeouts
from toolcrib.infrastructure.net.policy import EgressPolicy
from toolcrib.infrastructure.net.tls import TlsIdentity

if TYPE_CHECKING:
    from toolcrib.infrastructure.net._transport import AiohttpTransport
    from toolcrib.infrastructure.net.routes import Route

_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_DEFAULT_TIMEOUTS: Final = Timeouts()


class HttpSession:
    """Requests under one egress policy.

    Connections are kept alive and never shared with another policy. Close the session in the loop that used it, or use
    it as an async context manager.

    Args:
        policy: What may be reached; the public internet by default.
        resolver: Where addresses come from; the system by default.
    """

    def __init__(self, policy: EgressPolicy | None = None, *, resolver: Resolver | None = None) -> None:
        self.policy: Final = policy or EgressPolicy()
        self._resolver: Final = resolver or SystemResolver()
        self._transport: AiohttpTransport | None = None
        self._closed = False

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
        body: bytes | None = None,
        timeout: Timeouts = _DEFAULT_TIMEOUTS,
        max_bytes: int | None = None,
        above_policy: bool = False,
        follow_redirects: bool = True,
        tls: TlsIdentity | None = None,
    ) -> Coroutine[Any, Any, HttpResponse]:
        """Ask and read the whole answer. Any status is an answer.

        Args:
            method: The HTTP method.
            url: Absolute, http or https.
            headers: Sent as they are; `Host` and the framing headers are not the caller's.
            body: The content; its type is one of the headers.
            timeout: Limits of connecting, of silence and of the whole exchange.
            max_bytes: A limit below the policy's for the decoded body.
            above_policy: Whether that limit holds in place of the policy's, for readers with a bound of their own.
            follow_redirects: Whether a redirect is followed, at most `max_redirects` of the policy.
            tls: Who we are to the URL's own origin, and how that is known; a redirect to another one loses it.

        Raises:
            EgressDenied: The policy forbids the URL, the address behind it, or a redirect.
            ConnectionFailed: The host was not reached or the connection broke.
            TimedOut: A limit of `timeout` ran out.
            TooLarge: The decoded body exceeds the limit.
            InvalidInput: A header or the method cannot be sent, or the certificate of `tls` cannot be used.
            Conflict: The session is closed or belongs to another event loop.
        """
        return self._ensure_transport().request(
            method,
            url,
            headers,
            body,
            timeouts=timeout,
            max_bytes=max_bytes,
            above_policy=above_policy,
            follow=follow_redirects,
            tls=tls,
        )

    def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
        body: bytes | None = None,
        timeout: Timeouts = _DEFAULT_TIMEOUTS,
        max_bytes: int | None = None,
        follow_redirects: bool = True,
        tls: TlsIdentity | None = None,
    ) -> AbstractAsyncContextManager[HttpStream]:
        """Ask and read the answer as it arrives, for server-sent events and other long answers.

        As `request`, but `timeout.total_s` does not apply; `timeout.read_idle_s` bounds each silence between chunks.
        Leaving the context before the end of the body closes the connection.
        """
        return self._ensure_transport().stream(
            method, url, headers, body, timeouts=timeout, max_bytes=max_bytes, follow=follow_redirects, tls=tls
        )

    async def route(self, url: str) -> "Route":
        """Where a client with sockets of its own may connect to reach a URL, whose addresses are resolved now.

        Raises:
            EgressDenied: The policy forbids the URL or an address behind it.
            ConnectionFailed: The host name does not resolve.
        """
        from toolcrib.infrastructure.net.routes import find_route  # noqa: PLC0415 - yarl loads with the first request only

        return await find_route(self.policy, self._resolver, url)

    async def close(self) -> None:
        """Close all connections. The session cannot be used again; closing twice is fine.

        Raises:
            Conflict: The session belongs to another event loop that is still open.
        """
        transport = self._transport
        if transport is not None:
            if transport.loop is not asyncio.get_running_loop() and not transport.loop.is_closed():
                raise Conflict("HttpSession belongs to another event loop; close it in the loop that made its requests")
            await transport.close()
        self._transport = None
        self._closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def with_request_hook(self, before: Callable[[], None]) -> "HttpSession":
        """A view of this session that asks before each request; what `before` raises, the request raises.

        It shares the connections. Closing it closes nothing.
        """
        return _Metered(self.policy, self._ensure_transport, before)

    def _ensure_transport(self) -> "AiohttpTransport":
        transport = self._transport
        if transport is None:
            transport = self._transport = self._open()
        if transport.loop is not asyncio.get_running_loop():
            raise Conflict("HttpSession belongs to another event loop; make one session per loop")
        return transport

    def _open(self) -> "AiohttpTransport":
        if self._closed:
            raise Conflict("HttpSession is closed; make a new one")
        from toolcrib.infrastructure.net._transport import AiohttpTransport  # noqa: PLC0415 - aiohttp loads with the first request only

        return AiohttpTransport(self.policy, self._resolver)


class _Metered(HttpSession):
    def __init__(
        self, policy: EgressPolicy, shared: "Callable[[], AiohttpTransport]", before: Callable[[], None]
    ) -> None:
        super().__init__(policy)
        self._shared: Final = shared
        self._before: Final = before

    def _ensure_transport(self) -> "AiohttpTransport":
        self._before()
        return self._shared()
