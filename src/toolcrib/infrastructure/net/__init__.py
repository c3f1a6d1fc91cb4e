"""HTTP under an egress policy: every URL that Toolcrib opens goes through one `HttpSession` with one `EgressPolicy`.

HTTP tools, OpenAPI imports and model providers use it. It knows no realm, tool or model: it takes a method, a URL and
bytes, and returns a status, headers and bytes, or an error of `errors`. aiohttp loads with the first request.
Decisions: docs/decisions/0002.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
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
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.infrastructure.net.addresses": "Resolver SystemResolver",
            "toolcrib.infrastructure.net.errors": (
                "ConnectionFailed EgressDenied HttpResponse HttpStream NetworkError TimedOut Timeouts TooLarge"
            ),
            "toolcrib.infrastructure.net.policy": "EgressPolicy Origin",
            "toolcrib.infrastructure.net.session": "HttpSession",
            "toolcrib.infrastructure.net.tls": "TlsIdentity",
        },
    )

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
