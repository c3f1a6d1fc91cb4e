"""What a rehearsal has found, in words: readings of what a run did in it, and of what it may do later. No I/O."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from toolcrib.contracts import (
    ApprovalRequested,
    ApprovalWithdrawn,
    CallFinished,
    Divergence,
    Json,
    Reason,
    Run,
    RunEvent,
    RunFinished,
    ToolEnvelope,
    ToolRevision,
)
from toolcrib.contracts.rehearsals import ReasonCode, RehearsalReason, Verdict
from toolcrib.contracts.workflows import WorkflowImplementation, WorkflowStep

_NOT_OF_THE_CHANGE: Final = frozenset(
    {Reason.OUTCOME_UNKNOWN, Reason.APPROVAL_EXPIRED, Reason.APPROVAL_REJECTED, Reason.CANCELLED}
)
_MOST_SHOWN: Final = 200
"""Characters of a value in a message."""
_ENDED_BADLY: Final = frozenset({"failed", "timed_out"})


def reasons_of_events(run: Run, events: Sequence[RunEvent], *, before: int) -> Iterator[RehearsalReason]:
    """What a run did in its rehearsal that it would not do if all were well.

    Args:
        run: The run.
        events: All of it, those of the rehearsal last.
        before: Number of the last event before the rehearsal.
    """
    why: dict[str, str] = {}
    for entry in events[before:]:
        match entry.event:
            case ApprovalWithdrawn(position=position, reason=reason):
                why[position] = reason
            case ApprovalRequested(number=number, position=position) as asked if number > 1:
                changed = why.get(position, "it is not what was shown any more")
                message = f"the call {position} of {asked.name}@{asked.version} must be asked about again: {changed}"
                next_step = "decide on it before the change, or tell who decides that it will be asked again"
                tool = f"{asked.name}@{asked.version}"
                yield _reason("asked_again", run, tool, message, next_step, position=position)
            case CallFinished(envelope=envelope) if _is_refused(envelope):
                yield _refused(run, envelope)
            case RunFinished(status=status, error=failure) if status in _ENDED_BADLY:
                told = failure.message if failure is not None else f"it has {status.replace('_', ' ')}"
                next_step = "correct what is said here, let the run end before the change, or cancel it"
                verdict: Verdict = "will_strand" if run.request.parent_run_id is None else "needs_attention"
                message = f"the run fails: {told}"
                yield _reason("fails", run, run.request.tool, message, next_step, verdict=verdict)
            case _:
                pass


def reason_of_ability(run: Run, missing: str) -> RehearsalReason:
    """A run that this process, as it would be, could not carry on."""
    next_step = "add what is missing, unchanged, keep a process that has it until the run has ended, or cancel the run"
    return _reason("cannot_run_here", run, run.request.tool, missing, next_step, verdict="will_strand")


def reason_of_failure(run: Run, failure: Exception) -> RehearsalReason:
    """A run that nobody could drive."""
    next_step = "put back what is missing, or cancel the run"
    message = f"the run cannot be carried on: {failure}"
    return _reason("fails", run, run.request.tool, message, next_step, verdict="will_strand")


def reason_of_divergence(run: Run, found: Divergence) -> RehearsalReason:
    """A run of which the code would now ask for something else than it has asked for."""
    message = (
        f"event {found.event} of run {found.run_id} has {found.field} = {_short(found.expected)}, and the code would "
        f"now have {_short(found.got)}: it goes on with what was recorded, if it can"
    )
    next_step = "let it end under the release that has begun it, before that is replaced"
    return _reason("diverges", run, run.request.tool, message, next_step)


def reasons_of_later_calls(
    run: Run, tool: ToolRevision, refused: Mapping[str, str], events: Sequence[RunEvent]
) -> Iterator[RehearsalReason]:
    """Tools that a run has not come to yet, and that would be refused if it did.

    Args:
        run: The run.
        tool: What it executes.
        refused: Why calls would be refused, by the references of the tools in its definition.
        events: Of the run.
    """
    reached = {entry.event.position for entry in events if isinstance(entry.event, CallFinished)}
    for ref, why in refused.items():
        steps = _steps_of(tool, ref)
        left = [step for step in steps if not any(_is_of(position, step.name) for position in reached)]
        if steps and not left:
            continue
        certain = [step.name for step in left if _is_certain(step, tool)]
        place = f"step {left[0].name!r}" if left else "a later call"
        message = f"{why}; {place} of {run.request.tool} that calls it would be refused"
        next_step = "let the run end before the change, deprecate instead of block, or cancel the run"
        verdict: Verdict = "will_strand" if certain else "needs_attention"
        yield _reason("later_call_refused", run, ref, message, next_step, verdict=verdict)


def worst(reasons: Sequence[RehearsalReason]) -> Verdict:
    """The verdict on a family."""
    found = {reason.verdict for reason in reasons}
    if "will_strand" in found:
        return "will_strand"
    return "needs_attention" if "needs_attention" in found else "safe"


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _refused(run: Run, envelope: ToolEnvelope) -> RehearsalReason:
    why = envelope.error.message if envelope.error is not None else envelope.status
    tool = f"{envelope.name}@{envelope.version}" if envelope.version else envelope.name
    message = f"the call {envelope.position} of {tool} is refused: {why}"
    next_step = "undo what refuses it, or tell whoever waits for the run that it comes out differently"
    return _reason("call_refused", run, tool, message, next_step, position=envelope.position)


def _is_refused(envelope: ToolEnvelope) -> bool:
    failure = envelope.error
    return failure is not None and failure.reason not in _NOT_OF_THE_CHANGE


def _steps_of(tool: ToolRevision, ref: str) -> list[WorkflowStep]:
    workflow = tool.definition.implementation
    if not isinstance(workflow, WorkflowImplementation):
        return []
    return [step for step in workflow.steps if step.callee(workflow.handlers) == ref]


def _is_of(position: str, step: str) -> bool:
    return position == step or position.startswith((f"{step}[", f"{step}."))


def _is_certain(step: WorkflowStep, tool: ToolRevision) -> bool:
    """Whether a step is sure to be run, and its failure to end the workflow."""
    workflow = tool.definition.implementation
    steps = workflow.steps if isinstance(workflow, WorkflowImplementation) else ()
    targets = {each.goes_to for each in steps}
    return step.condition is None and step.for_each is None and step.on_error == "fail" and step.name not in targets


def _reason(
    code: ReasonCode,
    run: Run,
    tool: str,
    message: str,
    next_step: str,
    *,
    verdict: Verdict = "needs_attention",
    position: str | None = None,
) -> RehearsalReason:
    return RehearsalReason(
        code=code,
        verdict=verdict,
        run_id=run.run_id,
        tool=tool,
        position=position,
        message=message,
        next_step=next_step,
    )
