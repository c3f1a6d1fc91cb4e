"""Journals that are written by hand: events with their numbers, and the calls that they tell of."""

from tests.twins import AT
from tests.unit.store.samples import REQUEST
from toolcrib.contracts import (
    CallFinished,
    CallStarted,
    CallStatus,
    ErrorCode,
    Event,
    GuardDecision,
    Json,
    RunEvent,
    RunFinished,
    RunKind,
    RunStarted,
    ToolEnvelope,
    ToolError,
)

ALLOWED = GuardDecision(outcome="allow", rule="allow_list")


def journal(*events: Event, kind: RunKind = "agent") -> list[RunEvent]:
    """The log of a run that has begun."""
    started = RunStarted(request=REQUEST.model_copy(update={"kind": kind}))
    return [
        RunEvent("r1", number, AT, "default", "owner", event)
        for number, event in enumerate((started, *events), start=1)
    ]


def envelope(position: str, name: str = "look_up", *, status: CallStatus = "success", output: Json = 1) -> ToolEnvelope:
    """The envelope of a call, whose id is its position with `#` before it."""
    failure = None if status in {"success", "skipped"} else ToolError(code=ErrorCode.UNKNOWN, message="it broke")
    return ToolEnvelope(
        call_id=f"#{position}",
        name=name,
        version="1.0.0",
        position=position,
        status=status,
        output=output if status == "success" else None,
        error=failure,
        t_start=AT,
        t_end=AT,
    )


def begun(position: str, name: str = "look_up") -> CallStarted:
    """A call that was dispatched."""
    return CallStarted(
        position=position,
        call_id=f"#{position}",
        name=name,
        version="1.0.0",
        content_hash="sha256:1",
        side_effects="reads",
        input={},
        idempotency_key=position,
        decision=ALLOWED,
    )


def done(position: str, name: str = "look_up", *, status: CallStatus = "success", output: Json = 1) -> CallFinished:
    """A call that has ended."""
    return CallFinished(position=position, envelope=envelope(position, name, status=status, output=output))


def finished(output: Json) -> RunFinished:
    """The end of a run that has come to its answer."""
    return RunFinished(status="completed", stop_reason="final_answer", output=output)
