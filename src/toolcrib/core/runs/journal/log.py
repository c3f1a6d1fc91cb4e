"""The writer of a run's journal: numbers events, and knows which are durable; and a journal for calls without a run.

One process owns a run, so it numbers events without asking the store; its epoch stops it when another process claims
the run. Older events are kept as compressed JSON, about 0.2 kB each instead of 4 kB, because they are rarely read
before the run ends. Without a run, a call cannot wait, go to a client or nest.
"""

import zlib
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import Final, NoReturn, Protocol, overload

import msgspec

from toolcrib.contracts import (
    ApprovalDecision,
    ApprovalRequested,
    CallFinished,
    CallStarted,
    ClientResult,
    Conflict,
    Event,
    FailedCall,
    JsonObject,
    Limits,
    Principal,
    Run,
    RunEvent,
    RunResult,
    ToolEnvelope,
    ToolRevision,
    read_event,
)
from toolcrib.core.executor import CallContext, CallerQuestion, Clock, Lanes
from toolcrib.core.policy import Budget, CallPolicy
from toolcrib.infrastructure.store import RunChange

PACK: Final = 256
"""Events that are packed together."""
KEPT: Final = 1_024
"""Events at the end that are kept as they are, at least."""

_ROWS: Final = msgspec.msgpack.Decoder(list[tuple[str, int, datetime, str, str, bytes]])


class PackedEntries(Sequence[RunEvent]):
    """A list to which events are added at its end.

    Args:
        entries: What it begins with.
    """

    __slots__ = ("_packs", "recent")

    def __init__(self, entries: Iterable[RunEvent] = ()) -> None:
        self._packs: list[bytes] = []
        self.recent = list(entries)
        """Those at the end, which are not packed: who adds to them calls `pack` when there are too many."""
        self.pack()

    def append(self, entry: RunEvent) -> None:
        """Add the next event."""
        self.recent.append(entry)
        self.pack()

    def pack(self) -> None:
        """Pack the oldest events while more are kept as they are than need be."""
        while len(self.recent) >= KEPT + PACK:
            self._packs.append(_pack(self.recent[:PACK]))
            del self.recent[:PACK]

    def __len__(self) -> int:
        return len(self._packs) * PACK + len(self.recent)

    def __iter__(self) -> Iterator[RunEvent]:
        return iter(self.recent) if not self._packs else self._unpacked()

    def _unpacked(self) -> Iterator[RunEvent]:
        for pack in self._packs:
            yield from _unpack(pack)
        yield from self.recent

    @overload
    def __getitem__(self, place: int) -> RunEvent: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[RunEvent]: ...
    def __getitem__(self, place: int | slice) -> RunEvent | Sequence[RunEvent]:
        if not self._packs:
            return self.recent[place]
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if place < 0:
            place += len(self)
        pack, within = divmod(place, PACK)
        if 0 <= pack < len(self._packs):
            return _unpack(self._packs[pack])[within]
        if not 0 <= place < len(self):
            raise IndexError(place)
        return self.recent[place - len(self._packs) * PACK]


def _pack(entries: Sequence[RunEvent]) -> bytes:
    rows = [(entry.run_id, entry.number, entry.at, entry.realm, entry.made_by, entry.event.text) for entry in entries]
    return zlib.compress(msgspec.msgpack.encode(rows), level=1)


def _unpack(pack: bytes) -> Sequence[RunEvent]:
    rows = _ROWS.decode(zlib.decompress(pack))
    return [RunEvent(*row[:5], read_event(row[5])) for row in rows]


class Appends(Protocol):
    """The part of a journal that a log needs."""

    def append(
        self, run_id: str, epoch: int, events: Sequence[RunEvent], change: RunChange | None = None
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

    def __init__(self, journal: Appends, run: Run, clock: Clock, events: Sequence[RunEvent]) -> None:
        self.events = PackedEntries(events)
        """All events of the run so far."""
        self.open_calls: dict[str, CallStarted] = {}
        """Intents without an outcome yet, of whichever process."""
        self._journal = journal
        self._recent = self.events.recent
        self._run = run.run_id, run.epoch, run.realm, run.made_by
        self._now = clock.now
        self._last = run.events
        for entry in events:
            self._follow(entry.event)

    def add(self, event: Event, change: RunChange | None = None) -> Awaitable[None]:
        """Append an event. Await the result where something must not happen before it is durable."""
        run_id, epoch, realm, made_by = self._run
        self._last = number = self._last + 1
        entry = RunEvent(run_id, number, self._now(), realm, made_by, event)
        self._recent.append(entry)
        if len(self._recent) == KEPT + PACK:
            self.events.pack()
        if event.type == "call_started":
            self.open_calls[event.position] = event
        elif event.type == "call_finished":
            self.open_calls.pop(event.position, None)
        return self._journal.append(run_id, epoch, (entry,), change)

    def add_all(self, events: Iterable[Event]) -> Sequence[RunEvent]:
        """Append several events at once: all of them are kept, or none is. Returns them as they stand in the log."""
        run_id, epoch, realm, made_by = self._run
        entries = [
            RunEvent(run_id, number, self._now(), realm, made_by, event)
            for number, event in enumerate(events, self._last + 1)
        ]
        self._last += len(entries)
        for entry in entries:
            self.events.append(entry)
            self._follow(entry.event)
        self._journal.append(run_id, epoch, entries)
        return entries

    def number_of(self, position: str) -> int:
        """The number of the last event that began the call at a position."""
        events = reversed(self.events)
        return next(
            entry.number
            for entry in events
            if isinstance(entry.event, CallStarted) and entry.event.position == position
        )

    def _follow(self, event: Event) -> None:
        if isinstance(event, CallStarted):
            self.open_calls[event.position] = event
        elif isinstance(event, CallFinished):
            self.open_calls.pop(event.position, None)


class NullJournal:
    """Lets a call be judged, and refuses all that needs a run."""

    async def fence(self) -> None:
        """Nobody else has a call that is not made."""

    async def intend(self, intent: CallStarted) -> None:
        """Refuse: a call without a run leaves no record."""
        raise _no_run(intent.name)

    async def confirm(self, request: ApprovalRequested) -> ApprovalDecision | None:
        """Refuse: nothing could be resumed."""
        raise _no_run(request.name)

    async def ask_caller(self, position: str, question: CallerQuestion) -> str | None:
        """Nobody is asked: nothing could be resumed."""
        del position, question
        return None

    async def hand_off(self, prepared: ToolEnvelope) -> ClientResult:
        """Refuse: nothing could be resumed."""
        raise _no_run(prepared.name)

    def find_client_call(self, position: str) -> ToolEnvelope | None:
        """Nothing was before."""
        return None

    async def spawn(
        self,
        position: str,
        tool: ToolRevision,
        arguments: JsonObject,
        *,
        attempt: int = 1,
        instead_of: FailedCall | None = None,
        timeout_s: float | None = None,
    ) -> RunResult:
        """Refuse: there is no parent."""
        raise _no_run(tool.name)

    def live_call(self, position: str, attempt: int) -> NoReturn:
        """Refuse: there is nothing to follow."""
        raise _no_run(position)

    def keep_traceback(self, position: str, text: str) -> None:
        """Forget it."""

    def find_failed_call(self, position: str) -> FailedCall | None:
        """Nothing was before."""
        return None


def outside_call(principal: Principal, *, test: bool = False) -> CallContext:
    """The context of a call from outside any run, which can be judged but not made.

    Args:
        principal: Who calls.
        test: The call is its test of a tool, which may then be a draft of its own.
    """
    limits = _default_limits()
    return CallContext(
        principal=principal,
        policy=CallPolicy(tester=principal.id if test else None),
        budget=Budget(limits),
        journal=NullJournal(),
        lanes=Lanes(limits.max_parallel_calls),
        run_id="",
    )


@cache
def _default_limits() -> Limits:
    return Limits()


def _no_run(name: str) -> Conflict:
    return Conflict(f"tool {name!r} was called outside a run; start a run for it")
