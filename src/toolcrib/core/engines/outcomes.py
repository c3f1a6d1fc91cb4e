"""The ends of runs as data, and the state of runs that other processes drive, read from the journal.

Nothing here writes to the journal.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from toolcrib.contracts import (
    CANCEL,
    ErrorCode,
    Json,
    Reason,
    ResumeCause,
    Run,
    RunEvent,
    RunFinished,
    RunRequest,
    RunResult,
    RunSuspended,
    Signal,
    ToolcribError,
    Usage,
)
from toolcrib.contracts.runs.runs import CostBounds
from toolcrib.core.executor import error
from toolcrib.core.policy import Budget
from toolcrib.core.runs import ModelRefused, RunContext, RunEnd, as_contract, in_format, result_of
from toolcrib.infrastructure.store import Claim, Journal


class DriveResult(Struct, frozen=True):
    """A run after this process has driven it: how it stands, and its log."""

    result: RunResult
    log: Sequence[RunEvent]


def to_run_finished(ended: RunEnd, context: RunContext | None) -> RunFinished:
    """The last event of a run: how its program ended, and what it used."""
    spending = context.models.spending if context else None
    ended = in_format(ended, context.request) if context else ended
    return RunFinished(
        status=ended.status,
        stop_reason=ended.stop_reason,
        output=ended.output,
        partial=ended.partial,
        attachments=ended.attachments,
        metadata=ended.metadata,
        tainted=context.ever_tainted if context else False,
        error=ended.error,
        warnings=(*context.warnings, *ended.warnings) if context else ended.warnings,
        usage=as_contract(spending.usage) if spending else Usage(),
        tokens=context.budget.tokens if context else 0,
        cost_usd=context.budget.cost_usd - context.budget.cut_off_usd if context else None,
        cost_unknown=context.cost_unknown if context else False,
        cut_off=_cut_off(context.budget) if context else None,
        iterations=context.budget.iterations if context else 0,
        tool_calls=context.budget.tool_calls if context else 0,
        wrote=context.wrote if context else False,
    )


def _cut_off(budget: Budget) -> CostBounds | None:
    """What calls may have cost that were cut off; null if none was."""
    return CostBounds(upper_usd=budget.cut_off_usd or None) if budget.cut_off else None


def end_of_orphan(request: RunRequest) -> RunEnd:
    """The end of a nested run that nobody waits for."""
    return _end_as_cancelled(caller_ended(request.parent_run_id))


def caller_ended(parent_run_id: str | None) -> str:
    """Why a nested run is cancelled that nobody waits for."""
    return f"the run {parent_run_id} that called this one has ended; start this tool anew if it is needed"


def call_ended(parent_run_id: str) -> str:
    """Why a nested run is cancelled whose caller goes on without it."""
    return f"the call in run {parent_run_id} that this run belongs to has ended without it"


def cancel_signal(*, by: str, reason: str | None, at: datetime) -> Signal:
    """What ends a run: who wants it, and why."""
    return Signal(name=CANCEL, payload={"reason": reason}, made_by=by, at=at)


def end_by_cancel(signal: Signal, partial: Json) -> RunEnd:
    """The end of a run that somebody has cancelled, with what it had so far."""
    reason = signal.payload.get("reason")
    return _end_as_cancelled(
        f"the run was cancelled by {signal.made_by!r}" + (f": {reason}" if reason else ""), partial
    )


def _end_as_cancelled(message: str, partial: Json = None) -> RunEnd:
    failure = error(ErrorCode.UNKNOWN, Reason.CANCELLED, message)
    return RunEnd(partial=partial, status="cancelled", stop_reason="cancelled", error=failure)


def end_of(failure: Exception, partial: Json) -> RunEnd:
    """The end of a run whose program failed, with what it had so far if a guardrail has stopped it."""
    return _end_of_refusal(failure, partial) if isinstance(failure, ModelRefused) else _end_of_crash(failure)


def _end_of_crash(crash: Exception) -> RunEnd:
    if isinstance(crash, ToolcribError):
        message = str(crash)
    else:
        message = f"the run's program failed with {type(crash).__name__}: {str(crash)[:500]}"
    failure = error(ErrorCode.UNKNOWN, Reason.TOOL_FAILED, message)
    return RunEnd(status="failed", stop_reason="error", error=failure)


def _end_of_refusal(refusal: ModelRefused, partial: Json) -> RunEnd:
    """The end of a run whose model a guardrail keeps from being asked, or from being heard."""
    decision = refusal.decision
    reason = decision.reason or Reason.GUARDRAIL_REFUSED
    failure = error(ErrorCode.POLICY_DENIED, reason, str(refusal), rule=decision.rule, inputs=decision.inputs)
    return RunEnd(partial=partial, status="failed", stop_reason="policy", error=failure)


def resume_cause(claim: Claim) -> ResumeCause:
    """Why a run that had been worked on could be claimed."""
    last = claim.events[-1].event if claim.events else None
    if not isinstance(last, RunSuspended):
        return "crash"
    if last.status == "queued":
        return "shutdown"
    arrived = next((name for name in last.waiting_for if name in claim.signals), None)
    if arrived is None:
        return "timer"
    match arrived.partition(":")[0]:
        case "approval":
            return "approval"
        case "client":
            return "client"
        case _:
            return "signal"


async def read_driven(journal: Journal, run: Run) -> DriveResult:
    """A run as the journal has it, whoever has driven it.

    Args:
        journal: Has its log.
        run: Its row, which was read before the log.
    """
    log = list(await journal.events(run.run_id))
    last = log[-1].event
    if isinstance(last, RunFinished):
        return DriveResult(result_of(run.run_id, last), log)
    return DriveResult(RunResult(run_id=run.run_id, status=run.status), log)
