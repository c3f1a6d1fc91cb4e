"""What a status of gRPC means for a call, in the nine codes of contracts, section 3.

| status | code | why |
|---|---|---|
| UNAUTHENTICATED, PERMISSION_DENIED | AUTH_REQUIRED | the credentials are wrong or not enough |
| DEADLINE_EXCEEDED | TIMEOUT | the effect is unknown, as after our own time-out |
| RESOURCE_EXHAUSTED | RATE_LIMIT | with the seconds to wait, where the server says so |
| INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, FAILED_PRECONDITION, OUT_OF_RANGE | VALIDATION_ERROR | it refused this \
request; the same one cannot work later |
| UNAVAILABLE | NETWORK_ERROR | it was not reached, or is not there now |
| UNKNOWN, INTERNAL, DATA_LOSS, ABORTED, CANCELLED, UNIMPLEMENTED | PROVIDER_ERROR | its own fault |

What the server adds as `google.rpc.Status` (AIP-193) is told: wrong fields, waits, reasons; not its stack traces.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import orjson
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode
from grpc.aio import AioRpcError

from toolcrib.contracts import ErrorCode, Json, JsonObject, Reason, ToolDefinition
from toolcrib.core.executor import CallFailed, error

MAX_EXPLANATION: Final = 4_096
"""Bytes of the server's own details."""

_MAX_WORDS: Final = 500
_MAX_PROBLEMS: Final = 20
_DETAILS: Final = "grpc-status-details-bin"
_PUSHBACK: Final = "grpc-retry-pushback-ms"
_TOO_LARGE: Final = "Received message larger than max"
"""What grpcio says when it refuses an answer; the status is that of a rate limit."""

_Meaning: TypeAlias = tuple[ErrorCode, Reason]
_MEANINGS: Final[Mapping[StatusCode, _Meaning]] = {
    StatusCode.OK: (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE),
    StatusCode.CANCELLED: (ErrorCode.PROVIDER_ERROR, Reason.CANCELLED),
    StatusCode.UNKNOWN: (ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
    StatusCode.INVALID_ARGUMENT: (ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
    StatusCode.DEADLINE_EXCEEDED: (ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT),
    StatusCode.NOT_FOUND: (ErrorCode.VALIDATION_ERROR, Reason.NOT_FOUND),
    StatusCode.ALREADY_EXISTS: (ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
    StatusCode.PERMISSION_DENIED: (ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED),
    StatusCode.RESOURCE_EXHAUSTED: (ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED),
    StatusCode.FAILED_PRECONDITION: (ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
    StatusCode.ABORTED: (ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
    StatusCode.OUT_OF_RANGE: (ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
    StatusCode.UNIMPLEMENTED: (ErrorCode.PROVIDER_ERROR, Reason.NOT_FOUND),
    StatusCode.INTERNAL: (ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
    StatusCode.UNAVAILABLE: (ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED),
    StatusCode.DATA_LOSS: (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE),
    StatusCode.UNAUTHENTICATED: (ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED),
}
_REMEDIES: Final[Mapping[StatusCode, str]] = {
    StatusCode.UNAUTHENTICATED: "check the provider's credentials",
    StatusCode.PERMISSION_DENIED: "check what the provider's credentials may do",
    StatusCode.RESOURCE_EXHAUSTED: "wait before calling again",
    StatusCode.UNAVAILABLE: "check the provider's address, or try again later",
    StatusCode.UNIMPLEMENTED: "the server has no such method any more; import the provider again",
}
_CORRECT: Final = "correct the arguments; the same call cannot work later"
_MAY_WORK_LATER: Final = frozenset(
    {ErrorCode.RATE_LIMIT, ErrorCode.PROVIDER_ERROR, ErrorCode.TIMEOUT, ErrorCode.NETWORK_ERROR}
)


def answered(tool: ToolDefinition, problem: AioRpcError, max_bytes: int) -> CallFailed:
    """The failure that a status means.

    Args:
        tool: The tool.
        problem: The status, with what the server adds.
        max_bytes: The largest message that is taken.
    """
    status, words = problem.code(), " ".join((problem.details() or "").split())[:_MAX_WORDS]
    metadata: JsonObject = {"grpc_status": status.name}
    if status is StatusCode.RESOURCE_EXHAUSTED and _TOO_LARGE in words:
        message = f"tool {tool.name!r} got an answer of more than {max_bytes} bytes; ask for less, a page or a filter"
        return CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, message), metadata=metadata)
    code, reason = _MEANINGS[status]
    remedy = _REMEDIES.get(status, _CORRECT if code is ErrorCode.VALIDATION_ERROR else None)
    trailing = dict(_pairs(problem))
    added = _Added(trailing.get(_DETAILS, b""))
    told = f"tool {tool.name!r} got {status.name}" + (f": {words}" if words else "")
    failure = error(code, reason, "; ".join(filter(None, [told, *added.listed(), remedy])), **added.details())
    wait = added.wait_s if added.wait_s is not None else _pushback(trailing.get(_PUSHBACK))
    if wait is not None and code in _MAY_WORK_LATER:
        failure = failure.model_copy(update={"retry_after_s": wait})
    return CallFailed(failure, metadata=metadata)


class _Added:
    """The details of a `google.rpc.Status`, those of the standard types."""

    def __init__(self, data: bytes) -> None:
        self.wait_s: float | None = None
        self.problems: list[JsonObject] = []
        self.explanation: list[Json] = []
        try:
            found = status_pb2.Status.FromString(data)
        except DecodeError:
            return
        for packed in found.details:
            self._take(packed)

    def _take(self, packed: Any) -> None:
        retry, bad, debug = (
            error_details_pb2.RetryInfo(),
            error_details_pb2.BadRequest(),
            error_details_pb2.DebugInfo.DESCRIPTOR,
        )
        try:
            if packed.Unpack(retry):
                self.wait_s = max(retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9, 0.0)
            elif packed.Unpack(bad):
                found = bad.field_violations[:_MAX_PROBLEMS]
                self.problems += [{"path": one.field, "problem": one.description} for one in found]
            elif not packed.Is(debug):
                self.explanation.append(json_format.MessageToDict(packed, preserving_proto_field_name=True))
        except (json_format.Error, DecodeError, TypeError, ValueError):
            self.explanation.append({"@type": packed.type_url[:_MAX_WORDS]})

    def listed(self) -> Iterable[str]:
        """The wrong fields, for the message."""
        return (f"{one['path']}: {one['problem']}" for one in self.problems[:5])

    def details(self) -> JsonObject:
        """What goes into the error's details."""
        found: JsonObject = {"problems": self.problems} if self.problems else {}
        if self.explanation and len(orjson.dumps(self.explanation)) <= MAX_EXPLANATION:
            found["explanation"] = self.explanation
        return found


def _pairs(problem: AioRpcError) -> Iterable[tuple[str, Any]]:
    trailing: Any = problem.trailing_metadata()
    return trailing or ()


def _pushback(milliseconds: Any) -> float | None:
    """Seconds that a server asks to wait (gRFC A6); a negative number asks not to try again."""
    text = str(milliseconds)
    return int(text) / 1000 if text.isdecimal() and text.isascii() else None
