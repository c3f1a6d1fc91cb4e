"""A recorded family of runs, divided into lives: the work of one process on one run.

A life begins when a process claims the run, and ends when it halts or the process dies; then another life follows,
without the memory of the first. Data only: nothing is executed here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from heapq import heappop, heappush
from typing import TypeAlias

from msgspec import Struct

from toolcrib.contracts import (
    CANCEL,
    ApprovalDecided,
    ApprovalRequested,
    ApprovalWithdrawn,
    CallFinished,
    CallStarted,
    ChildStarted,
    ClientHandoff,
    ClientReturned,
    Event,
    LimitReached,
    ModelDenied,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    ProgressMade,
    RunEvent,
    RunFinished,
    RunResumed,
    RunStarted,
    RunSuspended,
    Signal,
    SignalAwaited,
    SignalReceived,
    approval_signal,
)
from toolcrib.contracts.runs.events import CallDoubted
from toolcrib.core.runs import StoredRun, client_signal

Key: TypeAlias = tuple[str | int, ...]
"""What tells an event from the others of a life."""


class RecordedFamily(Struct, frozen=True):
    """A run that nobody called, and all that are nested in it, by their ids."""

    run_id: str
    runs: Mapping[str, StoredRun]


class RunSegment(Struct):
    """What one process did with one run at one time."""

    run_id: str
    number: int
    """0 for the first of the run."""
    before: Sequence[RunEvent]
    """What the journal had when it began."""
    events: Sequence[RunEvent]
    signals: Mapping[str, Signal]
    """All of the run."""

    @property
    def epoch(self) -> int:
        """How often the run had been taken."""
        first = self.events[0].event
        return first.epoch if isinstance(first, RunResumed) else 1

    @property
    def began_at(self) -> datetime:
        """When the run was taken; of the first life, when it was created."""
        return self.events[0].at

    @property
    def halts(self) -> bool:
        """Whether it came to a halt of its own; else its process died or was stopped, or it still goes on."""
        return isinstance(self.events[-1].event, RunSuspended | RunFinished) and not self.was_left

    @property
    def was_left(self) -> bool:
        """Whether its process was stopped in good order, and left the run to another one."""
        last = self.events[-1].event
        return isinstance(last, RunSuspended) and last.status == "queued"

    @property
    def end(self) -> RunFinished | None:
        """The run's end, if it came in this life."""
        last = self.events[-1].event
        return last if isinstance(last, RunFinished) else None

    @property
    def refused(self) -> bool:
        """Whether the run was never admitted: it has ended without a program, and so has counted nothing."""
        return self.end is not None and self.number == 0 and len(self.events) == 2 and self.end.cost_usd is None

    @property
    def cancelled_at_once(self) -> bool:
        """Whether it was cancelled before it was taken, so that its program did not begin."""
        own = self.events[1:]
        if not own or self.end is None or self.end.stop_reason != "cancelled":
            return False
        first = own[0].event
        return (isinstance(first, SignalReceived) and first.name == CANCEL) or CANCEL in self.taken_before

    @property
    def taken_before(self) -> frozenset[str]:
        """Names of the signals that earlier lives have taken up."""
        return frozenset(name for entry in self.before if (name := signal_taken(entry.event)) is not None)

    def find(self, *key: str | int) -> RunEvent | None:
        """The event of a key, as `key_of` makes it."""
        return next((entry for entry in self.events if key_of(entry.event) == key), None)


def lives_of(recorded: StoredRun) -> list[RunSegment]:
    """The lives of a run, in order."""
    starts = [index for index, entry in enumerate(recorded.events) if isinstance(entry.event, RunStarted | RunResumed)]
    ends = [*starts[1:], len(recorded.events)]
    return [
        RunSegment(recorded.run.run_id, number, recorded.events[:start], recorded.events[start:end], _signals(recorded))
        for number, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]


def in_order(runs: Iterable[StoredRun]) -> Iterator[RunEvent]:
    """The events of several runs by time; those of one run by number, whatever its clock said."""
    heads: list[tuple[datetime, int, str, int]] = []
    logs = {recorded.run.run_id: recorded for recorded in runs}
    latest: dict[str, datetime] = {}

    def push(run_id: str, place: int) -> None:
        recorded = logs[run_id]
        if place < len(recorded.events):
            moment = max(recorded.events[place].at, latest.get(run_id, recorded.events[place].at))
            latest[run_id] = moment
            heappush(heads, (moment, -recorded.run.request.depth, run_id, place))

    for run_id in logs:
        push(run_id, 0)
    while heads:
        _, _, run_id, place = heappop(heads)
        yield logs[run_id].events[place]
        push(run_id, place + 1)


def signal_taken(event: Event) -> str | None:
    """Name of the signal that an event says was taken up, if it is one."""
    match event:
        case ApprovalDecided():
            return approval_signal(event.position, event.number)
        case ClientReturned():
            return client_signal(event.position)
        case SignalReceived(payload=payload) if payload is not None:
            return event.name
        case _:
            return None


def key_of(event: Event) -> Key:
    """What tells an event from the others of a life: its type, and where or of what it is."""
    match event:
        case ModelStarted() | ModelFailed():
            return event.type, event.position, event.attempt
        case ApprovalRequested() | ApprovalDecided() | ApprovalWithdrawn():
            return event.type, event.position, event.number
        case (
            CallStarted()
            | CallFinished()
            | CallDoubted()
            | ClientHandoff()
            | ClientReturned()
            | ModelFinished()
            | ModelDenied()
        ):
            return event.type, event.position
        case SignalAwaited() | SignalReceived():
            return event.type, event.name, event.position or ""
        case ChildStarted():
            return event.type, event.child_run_id
        case ProgressMade():
            return event.type, event.key
        case LimitReached():
            return event.type, event.limit
        case _:
            return (event.type,)


def place_of(event: Event) -> str:
    """Where in its run an event belongs, for people: a position or a name; empty for the run itself."""
    key = key_of(event)
    return str(key[1]) if len(key) > 1 else ""


def _signals(recorded: StoredRun) -> Mapping[str, Signal]:
    """What was left for a run, and what it has taken up if that was not kept."""
    found = dict(recorded.signals)
    for entry in recorded.events:
        name = signal_taken(entry.event)
        if name is not None and name not in found:
            found[name] = Signal(name=name, payload=_payload(entry.event), made_by=_maker(entry.event), at=entry.at)
    return found


def _payload(event: Event) -> dict[str, object]:
    match event:
        case ApprovalDecided(decision=decision):
            return {} if decision is None else decision.model_dump(mode="json")
        case ClientReturned(result=result):
            return result.model_dump(mode="json")
        case SignalReceived(payload=payload):
            return payload or {}
        case _:
            return {}


def _maker(event: Event) -> str:
    return event.made_by if isinstance(event, ApprovalDecided | ClientReturned | SignalReceived) else ""
