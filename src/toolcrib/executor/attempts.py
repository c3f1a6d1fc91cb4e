"""Whether a failed attempt is repeated, and when: the tool's error semantics (004), as pure decisions."""

from toolcrib.contracts import ErrorCode, ErrorRule, RetryPolicy, ToolDefinition, ToolError

_TRANSIENT = frozenset({ErrorCode.RATE_LIMIT, ErrorCode.TIMEOUT, ErrorCode.PROVIDER_ERROR, ErrorCode.NETWORK_ERROR})


def is_repeatable(tool: ToolDefinition) -> bool:
    """Whether a call may run twice without doing twice: it only reads, is idempotent, or carries a key."""
    return (
        tool.side_effects != "writes"
        or tool.idempotent
        or tool.idempotency_key is not None
        or tool.implementation.kind == "agentic"
    )


def rule_for(tool: ToolDefinition, error: ToolError, http_status: int | None) -> ErrorRule | None:
    """The first rule that names the error's status, its class (`5xx`) or its code."""
    names = {error.code.value}
    if http_status is not None:
        names |= {str(http_status), f"{http_status // 100}xx"}
    return next((rule for rule in tool.error_handling if rule.when in names), None)


def wait_before_retry(tool: ToolDefinition, error: ToolError, http_status: int | None, attempt: int) -> float | None:
    """Seconds until the next attempt, or null if there will be none.

    A rule decides if one fits; else transient errors are retried. A call that is not repeatable is retried only if
    the other side surely did nothing: it refused by rate limit. A `retry-after` longer than the policy's longest wait
    ends it.

    Args:
        tool: The definition with its retry policy and rules.
        error: How the attempt failed.
        http_status: Status of the answer, if there was one.
        attempt: Number of the failed attempt, from 1.
    """
    if attempt > tool.retry.count:
        return None
    rule = rule_for(tool, error, http_status)
    wanted = rule.action == "retry" if rule is not None else error.code in _TRANSIENT
    if not wanted or not (is_repeatable(tool) or error.code is ErrorCode.RATE_LIMIT):
        return None
    wait = max(_backoff(tool.retry, attempt), error.retry_after_s or 0.0)
    return wait if wait <= tool.retry.max_s else None


def explained(tool: ToolDefinition, error: ToolError, http_status: int | None) -> ToolError:
    """The error with the message that the tool's author wrote for it, if there is one."""
    rule = rule_for(tool, error, http_status)
    if rule is None or rule.message is None:
        return error
    return error.model_copy(update={"message": f"{rule.message} ({error.message})"})


def _backoff(policy: RetryPolicy, attempt: int) -> float:
    match policy.backoff:
        case "none":
            return 0.0
        case "linear":
            return min(policy.base_s * attempt, policy.max_s)
        case "exponential":
            return min(policy.base_s * 2 ** (attempt - 1), policy.max_s)
