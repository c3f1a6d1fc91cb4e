"""Rules of nested runs: their depth, no cycles, and what they return to the calling run."""

from decimal import Decimal

from toolcrib.contracts import ErrorCode, JsonObject, Reason, RunResult, ToolRevision
from toolcrib.core.executor.envelope import error
from toolcrib.core.executor.ports import CallContext, CallFailed

MAX_DEPTH = 5
"""Levels of tools that call tools that call tools."""


def check_nesting(tool: ToolRevision, context: CallContext) -> None:
    """Refuse a nested run that would be too deep, or inside a run of the same tool.

    Raises:
        CallFailed: It would.
    """
    if context.depth >= MAX_DEPTH:
        message = f"{tool.name!r} would be nested {context.depth + 1} deep, and {MAX_DEPTH} is the most"
        raise CallFailed(error(ErrorCode.POLICY_DENIED, Reason.DEPTH_EXCEEDED, message))
    if tool.content_hash in context.callers:
        way = " -> ".join((*context.callers.values(), tool.ref))
        message = f"{tool.ref!r} is running above this call already ({way}); a tool must not call itself"
        raise CallFailed(error(ErrorCode.POLICY_DENIED, Reason.CYCLE_DETECTED, message))


def facts_of(result: RunResult) -> JsonObject:
    """What the metadata of a call says about its nested run."""
    return {
        **result.metadata,
        "run_id": result.run_id,
        "status": result.status,
        "stop_reason": result.stop_reason,
        "warnings": list(result.warnings),
        "tool_calls": result.tool_calls,
        "tokens": result.all_tokens,
        "wrote": result.wrote,
        **({"cost_unknown": True} if result.cost_unknown else {}),
        **({} if result.cut_off is None else {"cut_off_usd": str(result.cut_off.upper_usd or 0)}),
    }


def cost_of(result: RunResult) -> Decimal | None:
    """What a nested run cost; null if it asked no model and none of its calls had a price, or nothing is known."""
    return result.cost_usd if result.cost_usd or result.iterations else None
