"""What a failed attempt means, and whether it is repeated: the tool's error semantics (004), as pure decisions."""

import asyncio
import traceback
from collections.abc import Mapping
from typing import NamedTuple

from toolcrib.contracts import CLOSING_S, DELEGATES, ErrorCode, ErrorRule, Reason, ToolDefinition, ToolError
from toolcrib.core.executor.effects import did_nothing, may_run_twice
from toolcrib.core.executor.envelope import error
from toolcrib.core.executor.ports import CallFailed, ToolCall

_TRANSIENT = frozenset({ErrorCode.RATE_LIMIT, ErrorCode.TIMEOUT, ErrorCode.PROVIDER_ERROR, ErrorCode.NETWORK_ERROR})
_REASONS: Mapping[ErrorCode, Reason] = {
    ErrorCode.VALIDATION_ERROR: Reason.INPUT_SCHEMA_MISMATCH,
    ErrorCode.TIMEOUT: Reason.TOOL_TIMEOUT,
    ErrorCode.RATE_LIMIT: Reason.RATE_LIMITED,
    ErrorCode.POLICY_DENIED: Reason.REQUEST_REFUSED,
    ErrorCode.AUTH_REQUIRED: Reason.REQUEST_REFUSED,
    ErrorCode.PROVIDER_ERROR: Reason.TOOL_FAILED,
    ErrorCode.NETWORK_ERROR: Reason.TOOL_FAILED,
    ErrorCode.SANDBOX_ERROR: Reason.TOOL_FAILED,
    ErrorCode.UNKNOWN: Reason.TOOL_FAILED,
}


class TimeLimit(NamedTuple):
    """How long a call may take, and what to say of one that takes longer."""

    seconds: float
    given_s: float
    """As it was said: without the time that a run of its own has for its end."""
    by_caller: bool = False

    @property
    def whose(self) -> str:
        """The limit, and who has set it."""
        return f"timeout_s={self.given_s:g}{', which its caller gives it' if self.by_caller else ''}"


def time_limit(tool: ToolDefinition, call: ToolCall) -> TimeLimit:
    """The smaller one of a tool's own limit and its caller's; a run of its own gets more, to end itself before."""
    own, given = tool.call_timeout_s, call.timeout_s
    if given is None:
        return TimeLimit(own, tool.timeout_s)
    seconds = given + CLOSING_S if tool.implementation.kind in DELEGATES else given
    if seconds >= own:
        return TimeLimit(own, tool.timeout_s)
    return TimeLimit(seconds, given, by_caller=True)


def crashed(tool: ToolDefinition, crash: BaseException) -> CallFailed:
    """The failure that an unforeseen exception of a tool is."""
    match crash:
        case TimeoutError():
            code, reason = ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT
        case asyncio.CancelledError():
            code, reason = ErrorCode.UNKNOWN, Reason.CANCELLED
        case _:
            code, reason = ErrorCode.UNKNOWN, Reason.TOOL_FAILED
    # Unlike str(), this survives an exception whose own __str__ fails.
    said = "".join(traceback.format_exception_only(crash)).strip()
    return CallFailed(error(code, reason, f"tool {tool.name!r} raised {said}"))


def classified(failure: ToolError) -> ToolError:
    """The error that somebody outside gives, with a reason: the closest to its code, if it has none that is known."""
    if failure.reason is not None:
        return failure
    return failure.model_copy(update={"details": {**(failure.details or {}), "reason": _REASONS[failure.code].value}})


def rule_for(tool: ToolDefinition, failure: ToolError, http_status: int | None) -> ErrorRule | None:
    """The first rule that names the error's status, its class (`5xx`) or its code."""
    names = {failure.code.value}
    if http_status is not None:
        names |= {str(http_status), f"{http_status // 100}xx"}
    return next((rule for rule in tool.error_handling if rule.when in names), None)


def wait_before_retry(tool: ToolDefinition, failure: CallFailed, attempt: int) -> float | None:
    """Seconds until the next attempt, or null if there will be none.

    A rule decides if one fits; else, and before a fallback, transient errors are retried, an answer that cannot be used
    not among them. A call that must not run twice is retried only if it has surely done nothing: it was refused, or
    never sent. A `retry-after` longer than the policy's longest wait ends it.

    Args:
        tool: The definition with its rules, and its retry policy: if that has no retries, the failure's counts.
        failure: How the attempt failed.
        attempt: Number of the failed attempt, from 1.
    """
    policy = tool.retry if tool.retry.count or failure.retry is None else failure.retry
    if attempt > policy.count:
        return None
    said = failure.error
    rule = rule_for(tool, said, failure.http_status)
    wanted = _may_pass(said) if rule is None or rule.action == "fallback" else rule.action == "retry"
    if not wanted or not (may_run_twice(tool) or did_nothing(tool, failure)):
        return None
    wait = max(policy.wait_s(attempt), said.retry_after_s or 0.0)
    return wait if wait <= policy.max_s else None


def explained(tool: ToolDefinition, failure: ToolError, http_status: int | None) -> ToolError:
    """The error with the message that the tool's author wrote for it, if there is one."""
    rule = rule_for(tool, failure, http_status)
    if rule is None or rule.message is None:
        return failure
    return failure.model_copy(update={"message": f"{rule.message} ({failure.message})"})


def _may_pass(failure: ToolError) -> bool:
    return failure.code in _TRANSIENT and failure.reason is not Reason.BAD_RESPONSE
