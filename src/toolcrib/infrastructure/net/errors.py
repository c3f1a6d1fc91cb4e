"""How a request can fail before there is an answer. A status of 400 or above is an answer, not a failure.

    ToolcribError
    ├── PermissionDenied
    │   └── EgressDenied         the policy forbids the URL, the address or the redirect; nothing was sent there
    └── Unavailable
        └── NetworkError
            ├── ConnectionFailed no name, no route, refused, reset, TLS, or an answer that is not HTTP
            ├── TimedOut         `phase` says which limit of `Timeouts` ran out
            └── TooLarge         the decoded body exceeds the limit

Every message names the host, the limit and the next step. None holds a path, a query, user information, a header or a
body, and none shows its cause, because the messages of the HTTP library quote the whole URL.
"""

from typing import Literal, TypeAlias

from toolcrib.contracts.base.errors import EgressDenied, Unavailable

__all__ = ["ConnectionFailed", "EgressDenied", "NetworkError", "Phase", "TimedOut", "TooLarge"]

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
