"""Runs a tool that calls others: a nested run with a journal of its own and a budget inside its parent's."""

from toolcrib.core.executor import CallFailed, Dispatch, Outcome, check_nesting, cost_of, facts_of


class DelegateRuntime:
    """Starts the nested run through the run that calls."""

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Run the tool as a run of its own, and bring back its output."""
        check_nesting(dispatch.tool, dispatch.context)
        result = await dispatch.context.journal.spawn(
            dispatch.position,
            dispatch.tool,
            dispatch.input,
            attempt=dispatch.attempt,
            timeout_s=dispatch.timeout_s,
        )
        metadata, cost = facts_of(result), cost_of(result)
        if result.error is not None:
            raise CallFailed(result.error, metadata=metadata, cost_usd=cost, tainted=result.tainted)
        return Outcome(
            result.output, metadata=metadata, attachments=result.attachments, cost_usd=cost, tainted=result.tainted
        )
