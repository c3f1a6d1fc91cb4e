"""Rules that both stores share, as pure functions: state changes of runs, approvals, and references to other data.

The search for references is conservative: anything that looks like a run id or digest counts as one.
"""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

from msgspec import Struct

from toolcrib.contracts import (
    CANCEL,
    ENDED,
    WAITING,
    Approval,
    ApprovalDecided,
    ApprovalRequested,
    ApprovalStatus,
    ApprovalWithdrawn,
    Conflict,
    Event,
    Fenced,
    InvalidInput,
    Json,
    JsonObject,
    NotFound,
    Run,
    RunEvent,
    RunFinished,
    RunStatus,
    Signal,
    ToolcribError,
    approval_id,
    approval_signal,
    is_approval_signal,
)
from toolcrib.infrastructure.store.ports.store import Definition, Lease, RunChange

AT_ONCE: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""`claimable_at` of a run that anyone may take now, whatever the clocks say."""


def require_newest(definition: Definition, newest: int, after: int | None, *, listed: bool) -> None:
    """Refuse a change that was made to a revision which is not the newest any more, and a new name that is not new.

    Raises:
        Conflict: Names both.
    """
    if after == 0 and not listed:
        return
    if after == 0:
        msg = f"{definition.kind} {definition.name!r} exists; read it and change it, or take another name"
        raise Conflict(msg)
    if after not in {None, newest}:
        msg = (
            f"{definition.kind} {definition.name!r} has revision {newest} and this change was made to revision "
            f"{after}; read it again and repeat the change"
        )
        raise Conflict(msg)


def require_unchanged(realm: str, last: int, seen: int) -> None:
    """Refuse what was decided on definitions that have changed since.

    Raises:
        Conflict: Something has.
    """
    if last != seen:
        msg = f"the definitions of realm {realm!r} have changed while this was decided; nothing was saved, so try again"
        raise Conflict(msg)


class LogState(Struct, frozen=True):
    """Where a run that no process owns stands."""

    status: RunStatus
    waiting_for: tuple[str, ...] = ()
    wake_at: datetime | None = None
    claimable_at: datetime | None = None
    """From when on a process may claim it; null if only a signal can make it so, or it has ended."""


READY: Final = LogState("queued", claimable_at=AT_ONCE)
"""A run that waits for nothing but a process."""


def check_new(run: Run, lease: Lease | None) -> None:
    """Refuse to create a run that has a past.

    Raises:
        InvalidInput: Status and epoch are not those of a new run, with or without an owner.
    """
    status, epoch = ("queued", 0) if lease is None else ("running", 1)
    if run.status != status or run.epoch != epoch:
        msg = f"run {run.run_id} is {run.status} at epoch {run.epoch}; a run is created {status}, at epoch {epoch}"
        raise InvalidInput(msg)


def first_entry(run: Run, event: Event) -> RunEvent:
    """Event number 1 of a new run."""
    return RunEvent(run.run_id, 1, run.created_at, run.realm, run.made_by, event)


def check_numbers(run_id: str, events: Sequence[RunEvent]) -> None:
    """Refuse events that belong to another run or leave a gap between each other.

    Raises:
        InvalidInput: An event names another run.
        Conflict: A number is not its predecessor's plus one.
    """
    number = events[0].number if events else 0
    for event in events:
        if event.run_id != run_id:
            msg = f"event {event.number} of run {event.run_id} was appended to run {run_id}"
            raise InvalidInput(msg)
        if event.number != number:
            msg = f"run {run_id}: event {event.number} follows event {number - 1}; numbers may leave no gap"
            raise Conflict(msg)
        number += 1


def settle(change: RunChange, signals: Container[str]) -> LogState:
    """Where `change` leaves a run for which `signals` have arrived already.

    Raises:
        InvalidInput: The change says `running`, which only a claim does.
    """
    if change.status == "running":
        msg = "a run becomes running when a process claims it, not by a change"
        raise InvalidInput(msg)
    if change.status in ENDED:
        return LogState(change.status)
    waits = change.status in WAITING or change.waiting_for or change.wake_at
    if not waits or any(name in signals for name in (CANCEL, *change.waiting_for)):
        return READY
    return LogState(change.status, change.waiting_for, change.wake_at, claimable_at=change.wake_at)


def wakes(signal: str, status: RunStatus, waiting_for: Container[str]) -> bool:
    """Whether a signal ends the wait of a run: one that it waits for, or the one that ends every run."""
    return signal in waiting_for or (signal == CANCEL and status in WAITING)


def refusal(
    run_id: str, *, own_epoch: int, epoch: int, status: RunStatus, last: int, first: int | None
) -> ToolcribError:
    """Why an append did not fit the run's row.

    Args:
        run_id: The run.
        own_epoch: The epoch of the append.
        epoch: The epoch of the row.
        status: The status of the row.
        last: The number of the last event.
        first: The number of the first event appended; null if there was none.
    """
    if own_epoch != epoch:
        return Fenced(
            f"run {run_id} is at epoch {epoch}, and this is epoch {own_epoch}: another process has it; "
            "stop working on it"
        )
    if status in ENDED:
        return Conflict(f"run {run_id} is {status}; nothing follows its last event, number {last}")
    return Conflict(f"run {run_id}: event {first} cannot follow event {last}; the next number is {last + 1}")


def id_conflict(run_id: str) -> Conflict:
    """The error for an id that is not new."""
    return Conflict(f"a run {run_id} already exists; use a new id")


def no_run(run_id: str, pruned_before: datetime | None = None) -> NotFound:
    """The error for an id that names no run.

    Args:
        run_id: The id.
        pruned_before: The moment until which runs were taken out of the store; null if none ever were.
    """
    pruned = "" if pruned_before is None else f"; runs that ended before {pruned_before:%Y-%m-%d} may have been pruned"
    return NotFound(f"no run {run_id}; list the realm's runs to see their ids{pruned}")


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


OF_APPROVALS: Final = frozenset({"approval_requested", "approval_decided", "approval_withdrawn", "run_finished"})
"""Types of the events that begin or change rows of the inbox; see `approval_from_event` and `change_from_event`."""


def approval_from_event(entry: RunEvent) -> Approval | None:
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


def change_from_event(entry: RunEvent) -> Answered | Withdrawn | None:
    """What an event changes in the rows that there are."""
    match entry.event:
        case ApprovalDecided() as event:
            decision = None if event.decision is None else event.decision.model_dump(mode="json")
            return _make_answered(approval_signal(event.position, event.number), decision, event.made_by, entry.at)
        case ApprovalWithdrawn() as event:
            return Withdrawn(approval_signal(event.position, event.number), event.reason)
        case RunFinished():
            return Answered(None, "cancelled", reason=_ENDED)
        case _:
            return None


def answer_from_signal(signal: Signal) -> Answered | None:
    """What a signal decides; its payload is a decision, and empty if the time is over."""
    if not is_approval_signal(signal.name):
        return None
    return _make_answered(signal.name, signal.payload or None, signal.made_by, signal.at)


def _make_answered(signal: str, decision: dict[str, Any] | None, by: str, at: datetime) -> Answered:
    if decision is None:
        return Answered(signal, "expired", by, at)
    if not decision.get("approved"):
        return Answered(signal, "rejected", by, at, decision.get("reason"))
    edited = decision.get("edited_input")
    return Answered(signal, "approved" if edited is None else "edited", by, at, decision.get("reason"), edited)


_DIGEST: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_RUN_ID: Final = "run_id"


def runs_named_in(value: Json) -> Iterator[str]:
    """The values of all fields called `run_id` or `…_run_id`, at any depth."""
    if isinstance(value, dict):
        for name, inner in cast("JsonObject", value).items():
            if isinstance(inner, str) and (name == _RUN_ID or name.endswith(f"_{_RUN_ID}")):
                yield inner
            else:
                yield from runs_named_in(inner)
    elif isinstance(value, list):
        for inner in cast("list[Json]", value):
            yield from runs_named_in(inner)


def digests_named_in(texts: Iterable[str | None]) -> Iterator[str]:
    """Everything in the texts that could be the digest of a blob."""
    for text in texts:
        if text is not None:
            yield from _DIGEST.findall(text)
