"""Errors of a request without an answer, and the data of requests and answers.

A status of 400 or above is an answer, not an error.

    ToolcribError
    ├── PermissionDenied
    │   └── EgressDenied         the policy forbids the URL, the address or the redirect; nothing was sent there
    └── Unavailable
        └── NetworkError
            ├── ConnectionFailed no name, no route, refused, reset, TLS, or an answer that is not HTTP
            ├── TimedOut         `phase` says which limit of `Timeouts` ran out
            └── TooLarge         the decoded body exceeds the limit

Every message names the host, the limit and the next step. It has no path, query, user information, header, body or
cause, because messages of the HTTP library quote the whole URL.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from msgspec import Struct

from toolcrib.contracts.base.errors import EgressDenied, Unavailable

__all__ = [
    "ConnectionFailed",
    "EgressDenied",
    "NetworkError",
    "Phase",
    "TimedOut",
    "TooLarge",
]


class Timeouts(Struct, frozen=True, gc=False):
    """The limits in seconds of one request. Limits above 5 seconds may round up to the next whole second."""

    connect_s: float = 30.0
    """Resolving the name, connecting and the TLS handshake."""
    read_idle_s: float = 120.0
    """Waiting for the next bytes of the answer, the first ones included."""
    total_s: float | None = 120.0
    """The whole exchange with all redirects; None for no such limit. A stream never has one."""


class HttpResponse(Struct, frozen=True, gc=False):
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; a repeated header is joined with `, `."""
    body: bytes
    """After decompression."""
    url: str
    """Where the answer came from, after redirects."""

    def __repr__(self) -> str:
        return f"HttpResponse(status={self.status})"


@dataclass(frozen=True, slots=True)
class HttpStream:
    """An answer whose body is still arriving."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    """As in `HttpResponse`."""
    url: str = field(repr=False)
    chunks: AsyncIterator[bytes] = field(repr=False)
    """The body as it arrives, after decompression, in pieces without meaning."""

    async def read(self) -> bytes:
        """All of the body that has not been taken from `chunks` yet."""
        return b"".join([chunk async for chunk in self.chunks])


Phase: TypeAlias = Literal["connect", "read", "total"]
"""The part of a request that a time-out bounds: reaching the host, waiting for the next bytes, or all of it."""


class NetworkError(Unavailable):
    """Base of the failures on the way to a host and back."""

    code = "network_error"
    http_status = 502
    unsent = False
    """Whether the host was not reached, so that nothing of the request has left."""


class ConnectionFailed(NetworkError):
    """The host could not be reached, or the connection broke before the answer was complete.

    Args:
        message: What failed and what to do.
        unsent: As of `NetworkError`.
    """

    code = "connection_failed"

    def __init__(self, message: str, *, unsent: bool = False) -> None:
        super().__init__(message)
        self.unsent = unsent


class TimedOut(NetworkError):
    """One limit of `Timeouts` ran out.

    Args:
        message: What took too long and which parameter to raise.
        phase: Which limit it was.
        limit_s: The limit in seconds.
    """

    code = "network_timeout"
    http_status = 504

    def __init__(self, message: str, *, phase: Phase, limit_s: float) -> None:
        super().__init__(message)
        self.phase: Phase = phase
        self.unsent = phase == "connect"
        self.limit_s = limit_s


class TooLarge(NetworkError):
    """The body, after decompression, is larger than the limit. Trying again does not help.

    Args:
        message: The host, the limit and what to do.
        limit_bytes: The limit in bytes.
    """

    code = "response_too_large"
    retryable = False

    def __init__(self, message: str, *, limit_bytes: int) -> None:
        super().__init__(message)
        self.limit_bytes = limit_bytes
