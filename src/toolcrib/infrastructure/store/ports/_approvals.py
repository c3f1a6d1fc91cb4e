"""What events and signals mean for the rows of the inbox: pure functions that both stores share."""

from datetime import datetime
from typing import Any

from msgspec import Struct

from toolcrib.contracts import (
    Approval,
    ApprovalDecided,
    ApprovalRequested,
    ApprovalStatus,
    ApprovalWithdrawn,
    JsonObject,
    RunFinished,
    Signal,
    approval_id,
    approval_signal,
    is_approval_signal,
)
from toolcrib.infrastructure.store.ports.ports import Entry

_ENDED = "its run has ended"


class Answered(Struct, frozen=True):
    """An answer to a request that is open; to any other it changes nothing."""

    signal: str | None
    """Names the request; null for all open ones of the run."""
    status: ApprovalStatus
    by: str | None = None
    at: datetime | None = None
    reason: str | None = None
    edited_input: JsonObject | None = None


class Withdrawn(Struct, frozen=True):
    """A request holds no longer, whatever was answered."""

    signal: str
    reason: str


def asked(entry: Entry) -> Approval | None:
    """The row that an event begins."""
    event = entry.event
    if not isinstance(event, ApprovalRequested):
        return None
    signal = approval_signal(event.position, event.number)
    return Approval(
        approval_id=approval_id(entry.run_id, signal),
        realm=entry.realm,
        run_id=entry.run_id,
        position=event.position,
        number=event.number,
        root_run_id=event.root_run_id or entry.run_id,
        callers=event.callers,
        call_id=event.call_id,
        tool=event.name,
        version=event.version,
        content_hash=event.content_hash,
        arguments_hash=event.arguments_hash,
        policy_hash=event.policy_hash,
        narrowed=event.narrowed,
        side_effects=event.side_effects,
        input=event.input,
        message=event.message,
        requested_by=event.requested_by or entry.made_by,
        acting=event.acting or entry.made_by,
        step=event.step,
        question=event.question,
        requested_at=entry.at,
        expires_at=event.expires_at,
    )


def closed(entry: Entry) -> Answered | Withdrawn | None:
    """What an event changes in the rows that there are."""
    match entry.event:
        case ApprovalDecided() as event:
            decision = None if event.decision is None else event.decision.model_dump(mode="json")
            return _answered(approval_signal(event.position, event.number), decision, event.made_by, entry.at)
        case ApprovalWithdrawn() as event:
            return Withdrawn(approval_signal(event.position, event.number), event.reason)
        case RunFinished():
            return Answered(None, "cancelled", reason=_ENDED)
        case _:
            return None


def told(signal: Signal) -> Answered | None:
    """What a signal decides; its payload is a decision, and empty if the time is over."""
    if not is_approval_signal(signal.name):
        return None
    return _answered(signal.name, signal.payload or None, signal.made_by, signal.at)


def _answered(signal: str, decision: dict[str, Any] | None, by: str, at: datetime) -> Answered:
    if decision is None:
        return Answered(signal, "expired", by, at)
    if not decision.get("approved"):
        return Answered(signal, "rejected", by, at, decision.get("reason"))
    edited = decision.get("edited_input")
    return Answered(signal, "approved" if edited is None else "edited", by, at, decision.get("reason"), edited)
