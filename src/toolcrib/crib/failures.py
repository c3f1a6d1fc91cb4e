"""Failed calls that people have asked for outside of a run, as errors of the tree."""

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
