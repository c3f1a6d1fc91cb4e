"""The way out: every URL that Toolcrib opens goes through one `HttpSession` under one `EgressPolicy`.

HTTP tools, OpenAPI documents and model providers all use it, so what one realm may reach is decided in one place.
The package knows no realm, tool or model; it turns a method, a URL and bytes into a status, headers and bytes, or into
one of the errors of `toolcrib.net.errors`. Importing it does not load aiohttp; the first request does.
"""

from toolcrib.net.errors import ConnectionFailed, EgressDenied, NetworkError, TimedOut, TooLarge
from toolcrib.net.messages import HttpResponse, HttpStream, Timeouts
from toolcrib.net.policy import EgressPolicy, Origin
from toolcrib.net.resolver import Resolver, SystemResolver
from toolcrib.net.session import HttpSession
from toolcrib.net.tls import TlsIdentity

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
