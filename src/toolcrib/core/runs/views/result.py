"""The result of a run for the Python API, and the state of an execution as an agent's response.

Both are computed from the journal at any time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import TypeVar

from toolcrib.contracts import (
    AgentOutputs,
    AgentResponse,
    ApprovalRequested,
    CallFinished,
    Json,
    ModelFinished,
    OpenQuestion,
    RunEvent,
    RunFinished,
    RunResult,
    RunStatus,
    StopReason,
    ToolEnvelope,
    ToolError,
    ToolRevision,
    Trace,
    WaitingApproval,
    approval_id,
    approval_signal,
)
from toolcrib.contracts.base.base import Contract
from toolcrib.core.runs.interrupts.signals import (
    open_client_calls,
    open_question,
    read_tree,
    to_approve,
    waiting_question,
)
from toolcrib.core.runs.models.model_requests import iterations_of
from toolcrib.core.runs.views.handles import answer_of, handles_of, outputs_of
from toolcrib.core.runs.views.trace import trace_of
from toolcrib.infrastructure.store import Journal

ContractT = TypeVar("ContractT", bound=Contract)


def result_of(run_id: str, finish: RunFinished) -> RunResult:
    """How a run ended, as its last event tells it."""
    return RunResult(run_id=run_id, **{name: getattr(finish, name) for name in _OUTCOME})


_OUTCOME = RunResult.__struct_fields__[1:]


@dataclass(frozen=True, slots=True)
class CallTraceback:
    """The traceback of an exception that a tool raised in a call."""

    run_id: str
    position: str
    name: str
    """Of the tool."""
    text: str
    """As Python prints it, without secrets; at most 20,000 characters."""


@dataclass(frozen=True)
class Result:
    """A run that ended or waits.

    Example:
        result = await crib.invoke("search_deals", {"company": "Acme"})
        print(result.output if result.ok else result.error)
        print([envelope.name for envelope in result.envelopes])
    """

    summary: RunResult
    log: Sequence[RunEvent] = field(repr=False)

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.summary.run_id

    @property
    def ok(self) -> bool:
        """Whether the run completed: it did what it was asked for."""
        return self.summary.status == "completed"

    @property
    def output(self) -> Json:
        """The answer; null unless the run completed."""
        return self.summary.output

    @property
    def partial(self) -> Json:
        """What was done until then by a run that did not complete, if anything."""
        return self.summary.partial

    @property
    def status(self) -> RunStatus:
        """How the run stands: `completed`, `incomplete` with the cause in `error`, and so on."""
        return self.summary.status

    @property
    def stop_reason(self) -> StopReason | None:
        """Why it stopped: `final_answer`, or the limit, denial, question or error; null while it waits."""
        return self.summary.stop_reason

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be said of the run besides, such as calls that failed and that the model recovered from."""
        return self.summary.warnings

    @property
    def error(self) -> ToolError | None:
        """Why the run did not complete."""
        return self.summary.error

    @property
    def cost_usd(self) -> Decimal | None:
        """US dollars; null means unknown."""
        return self.summary.cost_usd

    @property
    def envelopes(self) -> Sequence[ToolEnvelope]:
        """The envelopes of the run's calls, in the order in which they ended."""
        return [entry.event.envelope for entry in self.log if isinstance(entry.event, CallFinished)]

    @property
    def tracebacks(self) -> Sequence[CallTraceback]:
        """The tracebacks of exceptions that its tools raised; `crib.executions.tracebacks` has those of nested runs."""
        return tracebacks_of(self.log, self.run_id)

    @cached_property
    def question(self) -> OpenQuestion | None:
        """What it asks; `crib.questions.answer` answers it, and `of_run` there also tells what nested runs ask."""
        return waiting_question(self.log, ())

    @cached_property
    def outputs(self) -> AgentOutputs:
        """What an agent puts out, which every run has."""
        return outputs_of(self.log)

    @cached_property
    def events(self) -> Sequence[RunEvent]:
        """The events of the run, in order."""
        return tuple(self.log)

    @cached_property
    def trace(self) -> Trace:
        """What happened, step by step; `Crib.trace` also has nested runs."""
        return trace_of(self.events)


def tracebacks_of(events: Iterable[RunEvent], run_id: str) -> Sequence[CallTraceback]:
    """The tracebacks of the calls of a run that have ended."""
    ended = (entry.event for entry in events if isinstance(entry.event, CallFinished))
    return [
        CallTraceback(run_id, event.position, event.envelope.name, event.traceback)
        for event in ended
        if event.traceback is not None
    ]


def without_traceback(entry: RunEvent) -> RunEvent:
    """An event as whoever is not the author of a tool may see it."""
    if not isinstance(entry.event, CallFinished) or entry.event.traceback is None:
        return entry
    return entry.model_copy(update={"event": entry.event.model_copy(update={"traceback": None})})


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
        cost_unknown=trace.cost_unknown,
        output=answer_of(run.request.kind, trace.output)[1],
        partial=trace.partial,
        handles=await handles_of(journal, run, tool, events),
        error=trace.error,
        warnings=trace.warnings,
        tool_calls=tuple(open_client_calls(tree)),
        question=open_question(tree),
        approvals=tuple(_in_short(owner, request) for owner, request in to_approve(tree)),
    )


def _in_short(run_id: str, request: ApprovalRequested) -> WaitingApproval:
    return WaitingApproval(
        approval_id=approval_id(run_id, approval_signal(request.position, request.number)),
        run_id=run_id,
        **request.model_dump(include=_SHOWN),
    )


_SHOWN = WaitingApproval.model_fields.keys() & set(ApprovalRequested.__struct_fields__)


def _iterations(events: Sequence[RunEvent]) -> int:
    last = events[-1].event
    if isinstance(last, RunFinished):
        return last.iterations
    return sum(iterations_of(entry.event.purpose) for entry in events if isinstance(entry.event, ModelFinished))
