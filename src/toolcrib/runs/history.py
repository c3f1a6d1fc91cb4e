"""What a run's journal already knows, by position: the memory that makes a program resumable."""

from collections.abc import Iterable
from datetime import datetime
from typing import TypeAlias

from toolcrib.contracts import (
    ApprovalDecided,
    ApprovalRequested,
    ApprovalWithdrawn,
    CallFinished,
    CallStarted,
    ChildStarted,
    ClientHandoff,
    ClientReturned,
    FailedCall,
    Json,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    ProgressMade,
    RunEvent,
    RunResumed,
    RunSuspended,
    SignalAwaited,
    SignalReceived,
    ToolEnvelope,
)
from toolcrib.store import Entry

Logged: TypeAlias = Entry | RunEvent
"""An event with its number and time, as it comes from a claim or from a reading of the log."""


class History:
    """An index over the events of a run as they were when this process took it."""

    def __init__(self, events: Iterable[Logged]) -> None:
        self.envelopes: dict[str, ToolEnvelope] = {}
        self.intents: dict[str, CallStarted] = {}
        self.answers: dict[str, ModelFinished] = {}
        self.attempts: dict[str, int] = {}
        """Attempts of model calls that were sent, by position."""
        self.failures: dict[str, ModelFailed] = {}
        """Last failures of model calls after which no other attempt was planned."""
        self.approvals: dict[str, ApprovalRequested] = {}
        """The last request of each call."""
        self.decisions: dict[str, ApprovalDecided] = {}
        """On the last requests."""
        self.withdrawn: set[str] = set()
        """Positions whose last request holds no longer."""
        self.handoffs: dict[str, ClientHandoff] = {}
        self.returns: dict[str, ClientReturned] = {}
        self.awaited: dict[str, SignalAwaited] = {}
        self.received: dict[str, SignalReceived] = {}
        self.children: dict[str, ChildStarted] = {}
        self.failed: dict[str, FailedCall] = {}
        """How calls failed for which a fallback was started, by position."""
        self.progress: dict[str, Json] = {}
        """What was told, by key."""
        self.active_s = 0.0
        """Seconds in which the run was worked on, waiting excluded."""
        self._read(list(events))

    def ask(self, request: ApprovalRequested) -> None:
        """A person is asked; what was answered before was to another request."""
        self.approvals[request.position] = request
        self.decisions.pop(request.position, None)
        self.withdrawn.discard(request.position)

    def _read(self, events: list[Logged]) -> None:
        since: datetime | None = None
        for entry in events:
            self._take(entry)
            # What passed before a process took the run up again was nobody's work.
            if since is not None and not isinstance(entry.event, RunResumed):
                self.active_s += max((entry.at - since).total_seconds(), 0.0)
            since = None if isinstance(entry.event, RunSuspended) else entry.at

    def _take(self, entry: Logged) -> None:
        match entry.event:
            case CallStarted() as event:
                self.intents[event.position] = event
            case CallFinished() as event:
                self.envelopes[event.position] = event.envelope
            case ModelStarted() as event:
                self.attempts[event.position] = event.attempt
            case ModelFinished() as event:
                self.answers[event.position] = event
            case ModelFailed(retry_in_s=None) as event:
                self.failures[event.position] = event
            case ChildStarted() as event:
                self.children[event.child_run_id] = event
                if event.instead_of is not None:
                    self.failed[event.position] = event.instead_of
            case ProgressMade() as event:
                self.progress[event.key] = event.data
            case _:
                self._take_wait(entry)

    def _take_wait(self, entry: Logged) -> None:
        match entry.event:
            case ApprovalRequested() as event:
                self.ask(event)
            case ApprovalDecided() as event:
                self.decisions[event.position] = event
            case ApprovalWithdrawn() as event:
                self.withdrawn.add(event.position)
            case ClientHandoff() as event:
                self.handoffs[event.position] = event
            case ClientReturned() as event:
                self.returns[event.position] = event
            case SignalAwaited() as event:
                self.awaited[event.name] = event
            case SignalReceived() as event:
                self.received[event.name] = event
            case _:
                pass
