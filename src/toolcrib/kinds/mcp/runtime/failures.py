"""What a failure of an MCP server means, as one of the nine error codes.

| what happened | code | reason |
|---|---|---|
| 401, 403, no new token, -32042 (a person has to visit a page) | AUTH_REQUIRED | reconnect_required |
| the server's tool answered with an error (`isError`) | PROVIDER_ERROR | tool_failed |
| -32602, invalid parameters | VALIDATION_ERROR | request_refused |
| -32002, no such resource; -32601, no such method | PROVIDER_ERROR | not_found |
| no answer in time, 408, 504 | TIMEOUT | tool_timeout |
| 429 | RATE_LIMIT | rate_limited |
| the connection broke, or was not to be had | NETWORK_ERROR | tool_failed |
| something that is no MCP, or too much of it | PROVIDER_ERROR | bad_response |
| any other error | PROVIDER_ERROR | tool_failed |

The SDK turns each failure of a transport into a protocol error and loses its cause. The transports of this package put
a ticket into that error, which only this process can create, and keep the cause under the ticket.
"""

import secrets
from dataclasses import dataclass, field
from typing import Final, cast

from toolcrib.contracts import EgressDenied, ErrorCode, InvalidInput, Json, JsonObject, Reason
from toolcrib.core.executor import CallFailed, error
from toolcrib.core.providers.request_errors import meaning_of
from toolcrib.infrastructure.net import NetworkError

_TICKET: Final = "toolcrib_ticket"
_MOST_KEPT: Final = 1_000


@dataclass(slots=True)
class TransportTroubles:
    """Of one connection."""

    last: CallFailed | None = None
    """What ended the connection, if it has ended."""
    output: str = ""
    """The end of what a program wrote to its standard error, without its secrets."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Of the credentials that were sent last; they must not be shown."""
    _kept: dict[str, CallFailed] = field(default_factory=dict[str, CallFailed])

    def keep(self, failure: CallFailed) -> JsonObject:
        """Keep a failure; returns the data of the protocol error that refers to it."""
        self.last = failure
        if len(self._kept) >= _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        ticket = secrets.token_hex(16)
        self._kept[ticket] = failure
        return {_TICKET: ticket}

    def behind(self, data: Json) -> CallFailed | None:
        """The failure that an error's data refers to; null if there is none."""
        if not isinstance(data, dict):
            return None
        ticket = cast("JsonObject", data).get(_TICKET)
        return self._kept.pop(ticket, None) if isinstance(ticket, str) else None


MOST_WORDS: Final = 4_096
"""Characters of the other side's own words."""

_CODES: Final[dict[int, tuple[ErrorCode, Reason]]] = {
    -32602: (ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
    -32601: (ErrorCode.PROVIDER_ERROR, Reason.NOT_FOUND),
    -32002: (ErrorCode.PROVIDER_ERROR, Reason.NOT_FOUND),
    -32001: (ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT),
    -32042: (ErrorCode.AUTH_REQUIRED, Reason.RECONNECT_REQUIRED),
    -32700: (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE),
}
_LATE: Final = "timed out"
"""How the SDK ends to say so; servers use its code, -32001, for other things too."""


class SessionGone(CallFailed):
    """The connection was lost before anything was done on it: the same may be asked on a new one."""


def reconnect(provider: str, why: str) -> CallFailed:
    """The credentials are missing, refused or expired; a person has to connect the provider again."""
    message = f"provider {provider!r}: {why}; reconnect it: check or renew its credentials, then call again"
    return CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.RECONNECT_REQUIRED, message))


def credentials_failure(provider: str, failure: CallFailed) -> CallFailed:
    """A failure to get credentials; if a token endpoint has refused, a person has to reconnect."""
    if failure.error.code is not ErrorCode.AUTH_REQUIRED or failure.error.reason is Reason.MISSING_SECRET:
        return failure
    renewed = reconnect(provider, failure.error.message)
    renewed.secrets = failure.secrets
    return renewed


def status_failure(provider: str, status: int, retry_after_s: float | None) -> CallFailed:
    """A status of 400 and more."""
    if status in {401, 403}:
        failure = reconnect(provider, f"its MCP server refused the credentials with status {status}")
        failure.http_status = status
        return failure
    if status in {408, 504}:
        code, reason = ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT
    elif status == 429:
        code, reason = ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED
    else:
        code, reason = ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED
    message = f"provider {provider!r}: its MCP server answered with status {status}"
    found = error(code, reason, message).model_copy(update={"retry_after_s": retry_after_s})
    return CallFailed(found, http_status=status)


def scope_failure(provider: str, wanted: tuple[str, ...]) -> CallFailed:
    """The server wants scopes that the token does not have."""
    failure = reconnect(provider, f"its MCP server wants the scopes {' '.join(wanted)[:MOST_WORDS]} for this")
    failure.http_status = 403
    return failure


def network_failure(provider: str, problem: EgressDenied | NetworkError | InvalidInput | OSError) -> CallFailed:
    """The error if the network, the egress policy or the system blocked the transfer."""
    match problem:
        case EgressDenied() | NetworkError():
            code, reason = meaning_of(problem)
        case _:
            code, reason = ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED
    effect = "none" if isinstance(problem, NetworkError) and problem.unsent else None
    sent = None if isinstance(problem, OSError | InvalidInput) else not problem.unsent
    return CallFailed(error(code, reason, f"provider {provider!r}: {problem}"), effect=effect, sent=sent)


def protocol_failure(provider: str, code: int, message: str) -> CallFailed:
    """An error of the protocol (JSON-RPC 2.0, section 5.1, and the codes of MCP)."""
    found, reason = _CODES.get(code, (ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED))
    words = " ".join(message.split())[:MOST_WORDS]
    if found is ErrorCode.TIMEOUT and not words.endswith(_LATE):
        found, reason = ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED
    if found is ErrorCode.AUTH_REQUIRED:
        return reconnect(provider, f"its MCP server wants a person to visit a page first ({words})")
    remedy = "; correct the arguments" if found is ErrorCode.VALIDATION_ERROR else ""
    text = f"provider {provider!r}: its MCP server refused with {code}: {words}{remedy}"
    return CallFailed(error(found, reason, text, rpc_code=code))


def broken(provider: str, output: str = "") -> CallFailed:
    """The connection broke while an answer was awaited; whether the call took effect is not known."""
    message = f"provider {provider!r}: the connection to its MCP server broke before it answered"
    return CallFailed(error(ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED, f"{message}{_server_words(output)}"))


def connection_failure(
    provider: str, why: str, output: str = "", *, code: ErrorCode = ErrorCode.NETWORK_ERROR
) -> CallFailed:
    """The error if no connection can be opened."""
    message = f"provider {provider!r}: its MCP server cannot be connected: {why}"
    failure = error(code, Reason.TOOL_FAILED, f"{message}{_server_words(output)}")
    return CallFailed(failure, effect="none", sent=False)


def unusable(provider: str, why: str) -> CallFailed:
    """An answer that is not what the protocol says, or more than is read."""
    message = f"provider {provider!r}: the answer of its MCP server cannot be used: {why}"
    return CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, message))


def late(provider: str, limit_s: float) -> CallFailed:
    """No connection within the time."""
    message = f"provider {provider!r}: its MCP server was not connected within {limit_s:g} s"
    return CallFailed(error(ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT, message))


def _server_words(output: str) -> str:
    words = " ".join(output.split())
    return f"; it wrote: {words[-MOST_WORDS:]}" if words else ""
