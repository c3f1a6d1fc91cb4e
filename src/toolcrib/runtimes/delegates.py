"""Runs a tool that calls others: a nested run with a journal of its own and a budget inside its parent's."""

from decimal import Decimal

from toolcrib.contracts import ErrorCode, JsonObject, Reason, RunResult
from toolcrib.executor import CallFailed, Dispatch, Outcome, error

MAX_DEPTH = 5
"""Levels of tools that call tools that call tools."""


class DelegateRuntime:
    """Starts the nested run through the run that calls."""

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Run the tool as a run of its own, and bring back its output."""
        tool = dispatch.tool
        if dispatch.context.depth >= MAX_DEPTH:
            message = f"{tool.name!r} would be nested {dispatch.context.depth + 1} deep, and {MAX_DEPTH} is the most"
            raise CallFailed(error(ErrorCode.POLICY_DENIED, Reason.DEPTH_EXCEEDED, message))
        if tool.content_hash in dispatch.context.callers:
            way = " -> ".join((*dispatch.context.callers.values(), tool.ref))
            message = f"{tool.ref!r} is running above this call already ({way}); a tool must not call itself"
            raise CallFailed(error(ErrorCode.POLICY_DENIED, Reason.CYCLE_DETECTED, message))
        result = await dispatch.context.journal.spawn(dispatch.position, tool, dispatch.input)
        metadata: JsonObject = {
            "run_id": result.run_id,
            "stop_reason": result.stop_reason,
            "warnings": list(result.warnings),
            "tool_calls": result.tool_calls,
            "tokens": result.usage.total_tokens,
        }
        if result.error is not None:
            raise CallFailed(result.error, metadata=metadata, cost_usd=_cost(result))
        return Outcome(result.output, metadata=metadata, attachments=result.attachments, cost_usd=_cost(result))


def _cost(result: RunResult) -> Decimal | None:
    """What a nested run cost; null if it asked no model and none of its calls had a price."""
    return result.cost_usd if result.cost_usd or result.iterations else None
