"""The way out: every URL that Toolcrib opens goes through one `HttpSession` under one `EgressPolicy`.

HTTP tools, OpenAPI documents and model providers all use it, so what one realm may reach is decided in one place.
The package knows no realm, tool or model; it turns a method, a URL and bytes into a status, headers and bytes, or into
one of the errors of `toolcrib.infrastructure.net.errors`. Importing it does not load aiohttp; the first request does.
"""

from toolcrib.infrastructure.net.addresses import Resolver, SystemResolver
from toolcrib.infrastructure.net.errors import (
    ConnectionFailed,
    EgressDenied,
    HttpResponse,
    HttpStream,
    NetworkError,
    TimedOut,
    Timeouts,
    TooLarge,
)
from toolcrib.infrastructure.net.policy import EgressPolicy, Origin
from toolcrib.infrastructure.net.session import HttpSession
from toolcrib.infrastructure.net.tls import TlsIdentity

__all__ = [
    "ConnectionFailed",
    "EgressDenied",
    "EgressPolicy",
    "HttpResponse",
    "HttpSession",
    "HttpStream",
    "NetworkError",
    "Origin",
    "Resolver",
    "SystemResolver",
    "TimedOut",
    "Timeouts",
    "TlsIdentity",
    "TooLarge",
]
