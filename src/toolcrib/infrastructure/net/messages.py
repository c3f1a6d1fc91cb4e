"""What goes into a request beside method, URL and bytes, and what comes out. Plain data, no I/O."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The limits in seconds of one request. Limits above 5 seconds may round up to the next whole second."""

    connect_s: float = 30.0
    """Resolving the name, connecting and the TLS handshake."""
    read_idle_s: float = 120.0
    """Waiting for the next bytes of the answer, the first ones included."""
    total_s: float | None = 120.0
    """The whole exchange with all redirects; None for no such limit. A stream never has one."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A complete answer."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case; a repeated header is joined with `, `."""
    body: bytes = field(repr=False)
    """After decompression."""
    url: str = field(repr=False)
    """Where the answer came from, after redirects."""


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
