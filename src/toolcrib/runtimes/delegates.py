"""Runs a tool that calls others: a nested run with a journal of its own and a budget inside its parent's."""

from toolcrib.contracts import ErrorCode, JsonObject, Reason
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
        result = await dispatch.context.journal.spawn(dispatch.position, tool, dispatch.input)
        metadata: JsonObject = {
            "run_id": result.run_id,
            "stop_reason": result.stop_reason,
            "warnings": list(result.warnings),
            "tool_calls": result.tool_calls,
            "tokens": result.usage.total_tokens,
        }
        if result.error is not None:
            raise CallFailed(result.error, metadata=metadata, cost_usd=result.cost_usd)
        return Outcome(result.output, metadata=metadata, cost_usd=result.cost_usd)
