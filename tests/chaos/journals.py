"""What a run has left in its journal, and what must be true of every one, however often its process was killed."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from toolcrib.contracts import (
    ApprovalDecided,
    ApprovalRequested,
    CallFinished,
    ChildStarted,
    ClientHandoff,
    ClientReturned,
    Event,
    ModelFinished,
    RunEvent,
    RunFinished,
    RunResumed,
    RunStarted,
    RunStatus,
)
from toolcrib.core.runs import trace_of
from toolcrib.infrastructure.store import open_store

_OPEN: tuple[RunStatus, ...] = ("queued", "running", "awaiting_approval", "awaiting_client")


async def journals(folder: Path) -> Sequence[Sequence[RunEvent]]:
    """The events of every run in the folder's store, parents before their children."""
    store = open_store(f"sqlite:///{folder}/crib.db")
    await store.open()
    try:
        runs = sorted(await store.journal.runs("default", limit=10_000), key=lambda run: run.created_at)
        return [await store.journal.events(run.run_id) for run in runs]
    finally:
        await store.close()


async def are_ended(folder: Path) -> bool:
    """Whether every run in the folder's store has come to its end."""
    store = open_store(f"sqlite:///{folder}/crib.db")
    await store.open()
    try:
        return not any([await store.journal.runs("default", status=status, limit=1) for status in _OPEN])
    finally:
        await store.close()


def check_log(events: Sequence[RunEvent]) -> None:
    """Numbers from 1 without gaps, one beginning, one end, and nothing that happens once stands there twice."""
    assert [entry.number for entry in events] == list(range(1, len(events) + 1))
    assert isinstance(events[0].event, RunStarted)
    assert isinstance(events[-1].event, RunFinished)
    counts = Counter(happens_once(entry.event) for entry in events)
    assert {key: count for key, count in counts.items() if count > 1 and key is not None} == {}


def crashes(events: Sequence[RunEvent]) -> int:
    """How many resumptions after a crash the run's trace tells."""
    told = [step for step in trace_of(events).steps if step.type == "resumption" and step.cause == "crash"]
    resumed = [entry for entry in events if isinstance(entry.event, RunResumed) and entry.event.cause == "crash"]
    assert len(told) == len(resumed)
    return len(told)


def happens_once(event: Event) -> tuple[str, str] | None:
    """What an event is a record of, if a run has one of it at most."""
    match event:
        case RunStarted() | RunFinished():
            return event.type, ""
        case (
            CallFinished()
            | ModelFinished()
            | ApprovalRequested()
            | ApprovalDecided()
            | ClientHandoff()
            | ClientReturned()
            | ChildStarted()
        ):
            return event.type, event.position
        case _:
            return None
