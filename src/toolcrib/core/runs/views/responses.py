"""How an execution stands: its run, read as an agent's response, at any time and for every end.

Whatever it says comes from the journal; asking changes nothing.
"""

from collections.abc import Sequence

from toolcrib.contracts import (
    AgentResponse,
    ApprovalRequested,
    ModelFinished,
    RunFinished,
    ToolRevision,
    WaitingApproval,
    approval_id,
    approval_signal,
)
from toolcrib.core.runs.interrupts.tree import handed_over, open_question, read_tree, to_approve
from toolcrib.core.runs.journal.history import Logged
from toolcrib.core.runs.models.calls import counted
from toolcrib.core.runs.views.handles import handles_of
from toolcrib.core.runs.views.outputs import answer_of, outputs_of
from toolcrib.core.runs.views.trace_part import trace_of
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
    outputs = outputs_of(events)
    return AgentResponse(
        **{name: getattr(outputs, name) for name in type(outputs).model_fields},
        agent=run.request.tool,
        run_id=run_id,
        conversation_id=run.request.conversation_id,
        session_id=run.request.session_id,
        status=trace.status if trace.stop_reason else run.status,
        stop_reason=trace.stop_reason,
        iterations=_iterations(events),
        usage=trace.usage,
        tokens=trace.tokens,
        cost_usd=trace.cost,
        output=answer_of(run.request.kind, trace.output)[1],
        handles=await handles_of(journal, run, tool, events),
        error=trace.error,
        warnings=trace.warnings,
        tool_calls=tuple(handed_over(tree)),
        question=open_question(tree),
        approvals=tuple(_in_short(owner, request) for owner, request in to_approve(tree)),
    )


def _in_short(run_id: str, request: ApprovalRequested) -> WaitingApproval:
    return WaitingApproval(
        approval_id=approval_id(run_id, approval_signal(request.position, request.number)),
        run_id=run_id,
        **request.model_dump(include=_SHOWN),
    )


_SHOWN = WaitingApproval.model_fields.keys() & ApprovalRequested.model_fields.keys()


def _iterations(events: Sequence[Logged]) -> int:
    last = events[-1].event
    if isinstance(last, RunFinished):
        return last.iterations
    return sum(counted(entry.event.purpose) for entry in events if isinstance(entry.event, ModelFinished))
