"""Whether a step is tried again after its call has failed, and how long it waits before. Pure.

The retries of the tool itself are over by then. What has taken effect is not done once more, and what may have only if
the step names the code of its failure; unless it may happen twice.
"""

from typing import Final

from toolcrib.contracts import ErrorCode, Reason, ToolDefinition, ToolError
from toolcrib.contracts.workflows import StepRetry
from toolcrib.core.executor import may_run_twice

_FINAL: Final = frozenset({ErrorCode.VALIDATION_ERROR, ErrorCode.POLICY_DENIED, ErrorCode.AUTH_REQUIRED})
"""What would come again."""


def wait_before_try(retry: StepRetry, tool: ToolDefinition, failure: ToolError, tries: int) -> float | None:
    """Seconds until the next try, or null if there will be none.

    The longer one of the policy's wait and what the other side asks for; one that is longer than `max_s` ends it.

    Args:
        retry: Of the step.
        tool: What was called.
        failure: How the last try failed.
        tries: How many there were, from 1.
    """
    if tries > retry.count or not _is_wanted(retry, tool, failure):
        return None
    wait = max(retry.wait_s(tries), failure.retry_after_s or 0.0)
    return wait if wait <= retry.max_s else None


def _is_wanted(retry: StepRetry, tool: ToolDefinition, failure: ToolError) -> bool:
    safe = may_run_twice(tool)
    if failure.reason is Reason.OUTCOME_UNKNOWN or (failure.effect == "done" and not safe):
        return False
    if retry.codes:
        return failure.code in retry.codes
    is_unknown = failure.effect == "unknown" or failure.reason is Reason.TOOL_TIMEOUT
    if is_unknown and not safe:
        return False
    return failure.code not in _FINAL
