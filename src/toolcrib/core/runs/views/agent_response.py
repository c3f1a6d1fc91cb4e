"""The state of an execution as REST shows it: an `AgentResponse`, computed from the journal at any time."""

from collections.abc import Sequence

from toolcrib.contracts import AgentResponse, ModelFinished, RunEvent, RunFinished, ToolRevision
from toolcrib.core.runs.interrupts.signals import read_tree
from toolcrib.core.runs.models.model_requests import iterations_of
from toolcrib.core.runs.views.handles import answer_of, handles_of, outputs_of
from toolcrib.core.runs.views.trace import trace_of
from toolcrib.core.runs.views.waiting import waiting_of
from toolcrib.infrastructure.store import Journal


async def read_response(journal: Journal, run_id: str, tool: ToolRevision) -> AgentResponse:
    """How a run stands.

    Args:
        journal: Has the run.
        run_id: The run.
        tool: The revision that it executes.

    Raises:
        NotFound: No such run.
    """
    tree = await read_tree(journal, run_id)
    run, events, _ = tree[0]
    trace = trace_of(events)
    outputs, waiting = outputs_of(events), waiting_of(tree)
    return AgentResponse(
        **{name: getattr(outputs, name) for name in type(outputs).model_fields},
        agent=run.request.tool,
        run_id=run_id,
        conversation_id=run.request.conversation_id,
        session_id=run.request.session_id,
        status=trace.status if trace.stop_reason else run.status,
        stop_reason=trace.stop_reason,
        iterations=iterations_made(events),
        usage=trace.usage,
        tokens=trace.tokens,
        cost_usd=trace.cost,
        cost_unknown=trace.cost_unknown,
        output=answer_of(run.request.kind, trace.output)[1],
        partial=trace.partial,
        handles=await handles_of(journal, run, tool, events),
        error=trace.error,
        warnings=trace.warnings,
        tool_calls=waiting.tool_calls,
        question=waiting.question,
        approvals=waiting.approvals,
    )


def iterations_made(events: Sequence[RunEvent]) -> int:
    """How many answers models have given to a run."""
    last = events[-1].event
    if isinstance(last, RunFinished):
        return last.iterations
    return sum(iterations_of(entry.event.purpose) for entry in events if isinstance(entry.event, ModelFinished))
