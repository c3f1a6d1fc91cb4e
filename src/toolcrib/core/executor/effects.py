"""What a failed call has changed all the same, and whether it may be made once more. Pure.

A call that writes may have taken effect although nobody heard of it: the answer was lost, came too late, or could not
be read. The error of its envelope says so (`details["effect"]`), so that no retry, no fallback, no step of a workflow
and no run that takes up another one does twice what may be done once. What becomes of such a call later is not decided
here: see `runs.indoubt`.
"""

from collections.abc import Mapping
from typing import Final

from toolcrib.contracts import DELEGATES, ErrorCode, Reason, ToolDefinition, ToolEnvelope, ToolError
from toolcrib.contracts.base.errors import Effect
from toolcrib.core.executor.envelope import Receipt
from toolcrib.core.executor.ports import CallFailed

_LOST: Final = frozenset({ErrorCode.TIMEOUT, ErrorCode.NETWORK_ERROR, ErrorCode.PROVIDER_ERROR})
"""Failures after which the other side may have done what it was asked, unless the runtime knows better."""
_REFUSED: Final = frozenset({ErrorCode.AUTH_REQUIRED, ErrorCode.RATE_LIMIT, ErrorCode.VALIDATION_ERROR})
"""What the other side answers when it has done nothing."""
_UNSENT: Final = frozenset({ErrorCode.TIMEOUT, ErrorCode.NETWORK_ERROR})
"""Failures on the way: if they had no effect, nothing has left."""
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


def labelled(failure: CallFailed, receipt: Receipt) -> ToolError:
    """The error of a call that failed, with what is known of its effect, for whoever thinks of calling again."""
    said, tool = failure.error, receipt.tool
    if tool is None or tool.definition.side_effects != "writes":
        return said
    effect: Effect = "done" if receipt.acted else effect_of(tool.definition, failure)
    if effect == "none" and _was_lost_before(tool.definition, receipt):
        effect = "unknown"
    if effect == "none" or said.effect != "none":  # a nested run's error tells it already
        return said
    message = said.message if _TOLD in said.message else f"{said.message}; {_SAYS[effect]}"
    return said.model_copy(update={"message": message, "details": {**(said.details or {}), "effect": effect}})


def _was_lost_before(tool: ToolDefinition, receipt: Receipt) -> bool:
    """Whether an attempt before may have taken effect, here or before a crash: a later refusal tells nothing of it."""
    if any(effect_of(tool, failure) == "unknown" for failure in receipt.wasted):
        return True
    return receipt.context.attempt > 1 and receipt.attempts > 0 and may_run_twice(tool)


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
