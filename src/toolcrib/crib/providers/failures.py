"""Failed calls that people have asked for outside of a run as errors of the tree, and the other way round."""

from toolcrib.contracts import (
    EgressDenied,
    ErrorCode,
    InvalidInput,
    PermissionDenied,
    Reason,
    ReconnectRequired,
    ToolcribError,
    ToolError,
    Unavailable,
)
from toolcrib.core.executor import error


def in_the_tree(failure: ToolError) -> ToolcribError:
    """The error of the tree that says the same."""
    match failure.code:
        case ErrorCode.AUTH_REQUIRED:
            return ReconnectRequired(failure.message)
        case ErrorCode.POLICY_DENIED:
            return (EgressDenied if failure.reason is Reason.SSRF_BLOCKED else PermissionDenied)(failure.message)
        case ErrorCode.NETWORK_ERROR | ErrorCode.TIMEOUT | ErrorCode.RATE_LIMIT:
            return Unavailable(failure.message)
        case _:
            return InvalidInput(failure.message)


def as_a_call(problem: ToolcribError) -> ToolError:
    """What a call would fail with for the same reason."""
    match problem:
        case ReconnectRequired():
            code, reason = ErrorCode.AUTH_REQUIRED, Reason.RECONNECT_REQUIRED
        case EgressDenied():
            code, reason = ErrorCode.POLICY_DENIED, Reason.SSRF_BLOCKED
        case PermissionDenied():
            code, reason = ErrorCode.POLICY_DENIED, Reason.PERMISSION_MISSING
        case Unavailable():
            code, reason = ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED
        case _:
            code, reason = ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE
    return error(code, reason, str(problem))
