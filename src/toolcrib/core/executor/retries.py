"""Decides whether a failed attempt is retried, and what effect it may have had.

If a call that writes may have taken effect, because its answer was lost, late or unreadable, its error has
`details["effect"]`, so that retries, fallbacks, steps and later runs do not repeat it. `runs.context.unknown_outcomes`
finds out what happened. Pure.
"""

import asyncio
import traceback
from collections.abc import Mapping
from typing import Final, NamedTuple

from toolcrib.contracts import (
    CLOSING_S,
    DELEGATES,
    ErrorCode,
    ErrorRule,
    Reason,
    ToolDefinition,
    ToolEnvelope,
    ToolError,
)
from toolcrib.contracts.base.errors import Effect
from toolcrib.core.executor.envelope import EnvelopeBuilder, error
from toolcrib.core.executor.ports import CallFailed, CallRequest

_LOST: Final = frozenset({ErrorCode.TIMEOUT, ErrorCode.NETWORK_ERROR, ErrorCode.PROVIDER_ERROR})
"""Failures after which the other side may have done what it was asked, unless the runtime knows better."""
_REFUSED: Final = frozenset({ErrorCode.AUTH_REQUIRED, ErrorCode.RATE_LIMIT, ErrorCode.VALIDATION_ERROR})
"""What the other side answers when it has done nothing."""
_UNSENT: Final = frozenset({ErrorCode.TIMEOUT, ErrorCode.NETWORK_ERROR})
"""Failures on the way: if they had no effect, nothing has left."""
_BEFORE: Final = frozenset(
    {
        Reason.CYCLE_DETECTED,
        Reason.DEPTH_EXCEEDED,
        Reason.MISSING_SECRET,
        Reason.PROVIDER_DISABLED,
        Reason.RUNTIME_MISSING,
        Reason.TOOL_DRIFTED,
    }
)
"""Why a runtime refuses a call before it sends anything, unless it says otherwise."""
_TOLD: Final = "effect is unknown"
_SAYS: Final[Mapping[Effect, str]] = {
    "done": "it has taken effect, or some of it has; do not simply call it again",
    "unknown": "whether it took effect is unknown; check before calling it again",
}


def may_run_twice(tool: ToolDefinition) -> bool:
    """Whether two calls do no more than one: it only reads, is idempotent, carries a key, or writes with its record."""
    kind = tool.implementation.kind
    if tool.side_effects != "writes" or tool.idempotent or (tool.idempotency_key is not None and kind != "mcp"):
        return True  # a key does not reach an MCP server
    return tool.transactional and kind == "python"


def is_repeatable(tool: ToolDefinition) -> bool:
    """Whether a call that was cut off may be taken up again: as `may_run_twice`, or as a run with its own journal."""
    return may_run_twice(tool) or tool.implementation.kind in DELEGATES


def effect_of(tool: ToolDefinition, failure: CallFailed) -> Effect:
    """What a failed call of a tool that writes has changed.

    A runtime that knows says so. A nested run knows whether it has written. Else the code decides: what was refused has
    changed nothing, what was lost on the way or failed over there may have. A function that raises is believed.
    """
    if failure.effect is not None:
        return failure.effect
    if tool.implementation.kind in DELEGATES:
        return _of_nested(failure)
    is_lost = failure.error.code in _LOST and failure.error.reason is not Reason.NOT_FOUND
    return "unknown" if is_lost else "none"


def did_nothing(tool: ToolDefinition, failure: CallFailed) -> bool:
    """Whether a failed call has surely changed nothing: only then it is made again, or another tool in its place."""
    if tool.side_effects != "writes":
        return True
    if tool.implementation.kind in DELEGATES:
        return _of_nested(failure) == "none"
    code = failure.error.code
    return code in _REFUSED or (failure.effect == "none" and code in _UNSENT)


def was_sent(failure: CallFailed, builder: EnvelopeBuilder) -> bool:
    """Whether anything of a failed call has left this process, in any of its attempts: else it uses no budget."""
    attempts = (*builder.wasted, failure)
    return builder.context.attempt > 1 or any(
        each.http_status is not None or each.error.reason not in _BEFORE if each.sent is None else each.sent
        for each in attempts
    )


def error_with_effect(failure: CallFailed, builder: EnvelopeBuilder) -> ToolError:
    """The error of a call that failed, with what is known of its effect, for whoever thinks of calling again."""
    tool_error, tool = failure.error, builder.tool
    if tool is None or tool.definition.side_effects != "writes":
        return tool_error
    effect: Effect = "done" if builder.acted else effect_of(tool.definition, failure)
    if effect == "none" and _was_lost_before(tool.definition, builder):
        effect = "unknown"
    if effect == "none" or tool_error.effect != "none":  # a nested run's error tells it already
        return tool_error
    message = tool_error.message if _TOLD in tool_error.message else f"{tool_error.message}; {_SAYS[effect]}"
    return tool_error.model_copy(
        update={"message": message, "details": {**(tool_error.details or {}), "effect": effect}}
    )


def _was_lost_before(tool: ToolDefinition, builder: EnvelopeBuilder) -> bool:
    """Whether an attempt before may have taken effect, here or before a crash: a later refusal tells nothing of it."""
    if any(effect_of(tool, failure) == "unknown" for failure in builder.wasted):
        return True
    return builder.context.attempt > 1 and builder.attempts > 0 and may_run_twice(tool)


def has_acted(envelope: ToolEnvelope) -> bool:
    """Whether a call has changed something, or may have: in this run, not in one whose outcome it has taken over."""
    if envelope.side_effects != "writes" or envelope.reused is not None:
        return False
    if envelope.metadata.get("wrote") is False:
        return False
    return envelope.ok or (envelope.error is not None and envelope.error.effect != "none")


def _of_nested(failure: CallFailed) -> Effect:
    wrote = failure.metadata.get("wrote")
    if wrote is None:  # it was cut off, or an older release has not said it
        return "none" if failure.metadata.get("tool_calls") == 0 else "unknown"
    return "done" if wrote else "none"


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


def time_limit(tool: ToolDefinition, call: CallRequest) -> TimeLimit:
    """The smaller one of a tool's own limit and its caller's; a run of its own gets more, to end itself before."""
    own, given = tool.call_timeout_s, call.timeout_s
    if given is None:
        return TimeLimit(own, tool.timeout_s)
    seconds = given + CLOSING_S if tool.implementation.kind in DELEGATES else given
    if seconds >= own:
        return TimeLimit(own, tool.timeout_s)
    return TimeLimit(seconds, given, by_caller=True)


_CUT: Final = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)
"""What a connection raises that broke in use: what was sent over it may have arrived."""


def time_out(tool: ToolDefinition, limit: TimeLimit) -> ToolError:
    """The error of a call that took longer than its limit: of one that writes, the effect is unknown."""
    doubt = f"; the {_TOLD}" if tool.side_effects == "writes" else ""
    message = f"tool {tool.name!r} did not end within {limit.whose}{doubt}"
    return error(ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT, message)


def crash_failure(tool: ToolDefinition, crash: BaseException) -> CallFailed:
    """The failure that an unforeseen exception of a tool is."""
    effect: Effect | None = None
    match crash:
        case TimeoutError():
            code, reason = ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT
        case ConnectionError():
            code, reason = ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED
            effect = None if isinstance(crash, _CUT) else "none"
        case asyncio.CancelledError():
            code, reason = ErrorCode.UNKNOWN, Reason.CANCELLED
        case _:
            code, reason = ErrorCode.UNKNOWN, Reason.TOOL_FAILED
    # Unlike str(), this survives an exception whose own __str__ fails.
    message = "".join(traceback.format_exception_only(crash)).strip()
    return CallFailed(error(code, reason, f"tool {tool.name!r} raised {message}"), effect=effect)


def with_reason(failure: ToolError) -> ToolError:
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
    tool_error = failure.error
    rule = rule_for(tool, tool_error, failure.http_status)
    wanted = _may_pass(tool_error) if rule is None or rule.action == "fallback" else rule.action == "retry"
    if not wanted or not (may_run_twice(tool) or did_nothing(tool, failure)):
        return None
    wait = max(policy.wait_s(attempt), tool_error.retry_after_s or 0.0)
    return wait if wait <= policy.max_s else None


def with_author_message(tool: ToolDefinition, failure: ToolError, http_status: int | None) -> ToolError:
    """The error with the message that the tool's author wrote for it, if there is one."""
    rule = rule_for(tool, failure, http_status)
    if rule is None or rule.message is None:
        return failure
    return failure.model_copy(update={"message": f"{rule.message} ({failure.message})"})


def _may_pass(failure: ToolError) -> bool:
    return failure.code in _TRANSIENT and failure.reason is not Reason.BAD_RESPONSE
