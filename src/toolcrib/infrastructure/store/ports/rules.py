"""The decisions both stores share, as pure functions: what may follow in a log, and where a change leaves a run.

No I/O, no state. An implementation supplies the row and stores what comes out.
"""

from collections.abc import Container, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from toolcrib.contracts import (
    CANCEL,
    ENDED,
    WAITING,
    Conflict,
    Event,
    Fenced,
    InvalidInput,
    NotFound,
    Run,
    RunStatus,
    ToolcribError,
)
from toolcrib.infrastructure.store.ports.ports import Definition, Entry, Lease, RunChange

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


class Standing(Struct, frozen=True):
    """Where a run that no process owns stands."""

    status: RunStatus
    waiting_for: tuple[str, ...] = ()
    wake_at: datetime | None = None
    claimable_at: datetime | None = None
    """From when on a process may claim it; null if only a signal can make it so, or it has ended."""


READY: Final = Standing("queued", claimable_at=AT_ONCE)
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


def first_entry(run: Run, event: Event) -> Entry:
    """Event number 1 of a new run."""
    return Entry(run.run_id, 1, run.created_at, run.realm, run.made_by, event)


def check_numbers(run_id: str, events: Sequence[Entry]) -> None:
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


def settle(change: RunChange, signals: Container[str]) -> Standing:
    """Where `change` leaves a run for which `signals` have arrived already.

    Raises:
        InvalidInput: The change says `running`, which only a claim does.
    """
    if change.status == "running":
        msg = "a run becomes running when a process claims it, not by a change"
        raise InvalidInput(msg)
    if change.status in ENDED:
        return Standing(change.status)
    waits = change.status in WAITING or change.waiting_for or change.wake_at
    if not waits or any(name in signals for name in (CANCEL, *change.waiting_for)):
        return READY
    return Standing(change.status, change.waiting_for, change.wake_at, claimable_at=change.wake_at)


def wakes(signal: str, status: RunStatus, waiting_for: Container[str]) -> bool:
    """Whether a signal ends the wait of a run: one that it waits for, or the one that ends every run."""
    return signal in waiting_for or (signal == CANCEL and status in WAITING)


def refusal(run_id: str, *, asked: int, epoch: int, status: RunStatus, last: int, first: int | None) -> ToolcribError:
    """Why an append did not fit the run's row.

    Args:
        run_id: The run.
        asked: The epoch of the append.
        epoch: The epoch of the row.
        status: The status of the row.
        last: The number of the last event.
        first: The number of the first event appended; null if there was none.
    """
    if asked != epoch:
        return Fenced(
            f"run {run_id} is at epoch {epoch}, and this is epoch {asked}: another process has it; stop working on it"
        )
    if status in ENDED:
        return Conflict(f"run {run_id} is {status}; nothing follows its last event, number {last}")
    return Conflict(f"run {run_id}: event {first} cannot follow event {last}; the next number is {last + 1}")


def taken(run_id: str) -> Conflict:
    """The error for an id that is not new."""
    return Conflict(f"a run {run_id} exists; make a new id")


def no_run(run_id: str, pruned_before: datetime | None = None) -> NotFound:
    """The error for an id that names no run.

    Args:
        run_id: The id.
        pruned_before: The moment until which runs were taken out of the store; null if none ever were.
    """
    pruned = "" if pruned_before is None else f"; runs that ended before {pruned_before:%Y-%m-%d} may have been pruned"
    return NotFound(f"no run {run_id}; list the realm's runs for the ids there are{pruned}")
