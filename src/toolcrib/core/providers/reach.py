"""What it means for a call that a request was not let through: by the run's budget, the network or its policy.

It is the same for every runtime whose requests go through `net`. Answers of the other side are not judged here.
"""

from typing import assert_never

from toolcrib.contracts import EgressDenied, ErrorCode, InvalidInput, InvalidSettings, Reason, ToolDefinition
from toolcrib.core.executor import CallFailed, Dispatch, error
from toolcrib.infrastructure.net import NetworkError, TimedOut, TooLarge


def count_request(dispatch: Dispatch) -> None:
    """Take one request from the run's budget.

    Raises:
        CallFailed: There is none left.
    """
    shortage = dispatch.context.budget.take_request()
    if shortage is not None:
        message = f"{dispatch.tool.name!r}: {shortage.message}"
        raise CallFailed(error(ErrorCode.POLICY_DENIED, shortage.reason, message))


def meaning_of(problem: EgressDenied | NetworkError) -> tuple[ErrorCode, Reason]:
    """What the network or its policy has against a request, in the nine codes."""
    match problem:
        case EgressDenied():
            return ErrorCode.POLICY_DENIED, Reason.SSRF_BLOCKED
        case TimedOut():
            return ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT
        case TooLarge():
            return ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE
        case NetworkError():
            return ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED
        case _:
            assert_never(problem)


def unanswered(tool: ToolDefinition, problem: EgressDenied | NetworkError | InvalidInput) -> CallFailed:
    """The failure that the network or its policy means."""
    match problem:
        case EgressDenied() | NetworkError():
            code, reason = meaning_of(problem)
        case InvalidSettings():  # the client certificate cannot be used
            code, reason = ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET
        case InvalidInput():
            code, reason = ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH
        case _:
            assert_never(problem)
    unsent = isinstance(problem, NetworkError) and problem.unsent
    return CallFailed(error(code, reason, f"tool {tool.name!r}: {problem}"), effect="none" if unsent else None)
