"""The writing end of a run's journal: numbers events, stamps them, and knows what is durable.

One process at a time owns a run, so numbers are given here without asking the store; its epoch fences this process if
another one has taken the run since.
"""

from collections.abc import Awaitable, Iterable, Sequence
from typing import Protocol

from toolcrib.contracts import CallFinished, CallStarted, Event, Run
from toolcrib.core.executor import Clock
from toolcrib.core.runs.journal.packed import PackedEntries
from toolcrib.infrastructure.store import Entry, RunChange


class Appends(Protocol):
    """The part of a journal that a log needs."""

    def append(
        self, run_id: str, epoch: int, events: Sequence[Entry], change: RunChange | None = None
    ) -> Awaitable[None]:
        """Add events to a run; durable when it is awaited."""
        ...


class RunLog:
    """Appends to one run.

    Args:
        journal: Where events go.
        run: The row as it was claimed, with epoch and number of the last event.
        clock: Time of the events.
        events: The events as they were claimed.
    """

    def __init__(self, journal: Appends, run: Run, clock: Clock, events: Sequence[Entry]) -> None:
        self.events = PackedEntries(events)
        """All events of the run so far."""
        self.open_calls: dict[str, CallStarted] = {}
        """Intents without an outcome yet, of whichever process."""
        self._journal = journal
        self._run = run
        self._clock = clock
        self._last = run.events
        for entry in events:
            self._follow(entry.event)

    def add(self, event: Event, change: RunChange | None = None) -> Awaitable[None]:
        """Append an event. Await the result where something must not happen before it is durable."""
        return self._append((self._entry(event),), change)

    def add_all(self, events: Iterable[Event]) -> Sequence[Entry]:
        """Append several events at once: all of them are kept, or none is. Returns them as they stand in the log."""
        entries = [self._entry(event) for event in events]
        self._append(entries)
        return entries

    def _entry(self, event: Event) -> Entry:
        run = self._run
        self._last += 1
        entry = Entry(run.run_id, self._last, self._clock.now(), run.realm, run.made_by, event)
        self.events.append(entry)
        self._follow(event)
        return entry

    def _append(self, entries: Sequence[Entry], change: RunChange | None = None) -> Awaitable[None]:
        return self._journal.append(self._run.run_id, self._run.epoch, entries, change)

    def _follow(self, event: Event) -> None:
        if isinstance(event, CallStarted):
            self.open_calls[event.position] = event
        elif isinstance(event, CallFinished):
            self.open_calls.pop(event.position, None)
