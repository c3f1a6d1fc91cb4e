"""What all parts of a replay share: which life of which run is being replayed, and what of it was made again.

Each event that the code makes is held against the recorded one of the same key in the same life. What a dying process
had made and not written down yet has no counterpart: it is lost here too.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from toolcrib.contracts import (
    CANCEL,
    CallFinished,
    CallStarted,
    Divergence,
    Event,
    Json,
    JsonObject,
    LimitReached,
    ModelStarted,
    RunEvent,
    RunFinished,
    Signal,
    canonical,
)
from toolcrib.core.engines.replay.given import adopted, differences, old_plans, reworded
from toolcrib.core.engines.replay.ordering import Score
from toolcrib.core.engines.replay.recording import (
    Key,
    Life,
    RecordedFamily,
    in_order,
    key_of,
    lives_of,
    place_of,
    signal_taken,
)
from toolcrib.core.runs import StoredRun

ASKED: Final[ContextVar[ModelStarted | None]] = ContextVar("ASKED", default=None)
"""The attempt of a model call that this part of a program has just begun."""


@dataclass(slots=True)
class Part:
    """One run in a replay."""

    recorded: StoredRun
    lives: Sequence[Life]
    played: int = 0
    """Lives that were replayed, or are being so."""
    life: Life | None = None
    """The one that is being replayed."""
    open: dict[Key, list[RunEvent]] = field(default_factory=dict[Key, list[RunEvent]])
    """What the life has yet to make again."""
    intents: dict[str, CallStarted] = field(default_factory=dict[str, CallStarted])
    """The calls that it has started, as they were made again, by position."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Nobody replays it at the moment."""
    excused: bool = False
    """It could not find something out, and nobody wrote down why: its end is taken as it was."""

    planned: frozenset[str] | None = field(init=False)
    """Where an older release has planned."""

    def __post_init__(self) -> None:
        self.planned = old_plans(self.recorded.run, self.recorded.events)
        self.over.set()

    @property
    def next(self) -> Life | None:
        """The life that comes next."""
        return self.lives[self.played] if self.played < len(self.lives) else None

    def begin(self, life: Life) -> None:
        """Replay a life."""
        self.life, self.played = life, life.number + 1
        self.intents.clear()
        self.over.clear()
        for entry in life.events:
            self.open.setdefault(key_of(entry.event), []).append(entry)

    def end(self) -> None:
        """Have done with it."""
        self.life = None
        self.over.set()

    @property
    def missing(self) -> RunEvent | None:
        """The first event that was not made again."""
        left = [entry for entries in self.open.values() for entry in entries]
        return min(left, key=lambda entry: entry.number, default=None)


class Stage:
    """The state of one replay.

    Args:
        recording: What is replayed.
    """

    def __init__(self, recording: RecordedFamily) -> None:
        self.recording = recording
        self.parts = {run_id: Part(recorded, lives_of(recorded)) for run_id, recorded in recording.runs.items()}
        self.score = Score(list(in_order(recording.runs.values())))
        self._limits: dict[str, str] = {}
        """What limits say of an estimate that depends on the plans of an older release, as it was then."""
        self._lines: dict[tuple[str, int], bytes] = {}

    def life(self, run_id: str) -> Life:
        """The life of a run that is being replayed."""
        life = self.parts[run_id].life
        if life is None:
            msg = f"run {run_id} is not being replayed at the moment"
            raise LookupError(msg)
        return life

    def outcome(self, run_id: str, position: str) -> tuple[RunEvent, CallFinished] | None:
        """How a call has ended in the life that is being replayed."""
        entry = self.life(run_id).find("call_finished", position)
        return None if entry is None or not isinstance(entry.event, CallFinished) else (entry, entry.event)

    def make(self, run_id: str, event: Event) -> asyncio.Future[None]:
        """The code makes an event; durable if it was so then, else it is lost and nobody ever hears of it."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        part = self.parts[run_id]
        if self.score.stopped or part.life is None:
            return done
        if isinstance(event, ModelStarted):
            ASKED.set(event)
        if isinstance(event, CallStarted):
            part.intents[event.position] = event
        entry = self._counterpart(part, event)
        if entry is not None:
            self._hold_against(part, entry, event)
            done.set_result(None)
        elif part.life.halts:
            self._diverge(part, self._first_open(part), _named(event), None, event.model_dump(mode="json"))
        return done

    def take(self, entry: RunEvent) -> None:
        """Take an event as the world gave it."""
        part = self.parts[entry.run_id]
        entries = part.open.get(key_of(entry.event), [])
        if entry in entries:
            entries.remove(entry)
        self._note(entry, entry.event.model_dump(mode="json"))

    def check_complete(self, run_id: str) -> None:
        """Tell of the first event of a life that was not made again, if one is missing."""
        part = self.parts[run_id]
        missing = part.missing
        if missing is not None:
            expected = missing.event.model_dump(mode="json")
            self._diverge(part, missing, _named(missing.event), expected, None)

    def signals(self, run_id: str) -> dict[str, Signal]:
        """What somebody had left for a run by now, as far as the run has taken notice of it."""
        life = self.life(run_id)
        return {name: signal for name, signal in life.signals.items() if self._is_there(life, name, signal)}

    def events(self, run_id: str) -> Sequence[RunEvent]:
        """What the journal of a run has by now."""
        return [entry for entry in self.parts[run_id].recorded.events if self.score.is_made(entry)]

    def digests(self, run_ids: Sequence[str]) -> tuple[str, str]:
        """What was made of these runs, and what was recorded of them, each as one hash."""
        made, recorded = sha256(), sha256()
        for run_id in run_ids:
            for entry in self.parts[run_id].recorded.events:
                made.update(self._lines.get((run_id, entry.number), b""))
                recorded.update(_line(entry, entry.event.model_dump(mode="json")))
        return f"sha256:{made.hexdigest()}", f"sha256:{recorded.hexdigest()}"

    # Inside -----------------------------------------------------------------------------------------------------------

    def _counterpart(self, part: Part, event: Event) -> RunEvent | None:
        entries = part.open.get(key_of(event))
        return entries.pop(0) if entries else None

    def _hold_against(self, part: Part, entry: RunEvent, event: Event) -> None:
        expected = entry.event.model_dump(mode="json")
        excused = part.excused and isinstance(event, RunFinished)
        if part.planned is not None and isinstance(event, LimitReached):
            self._limits[event.message] = expected["message"]
        got = expected if excused else reworded(adopted(entry.event, event, part.planned), self._limits)
        found = list(differences(expected, got))
        first = next((one for one in found if one[0].startswith("error")), next(iter(found), None))
        if first is not None:
            path, wanted, came = first
            place = place_of(entry.event)
            self._diverge(part, entry, f"{place}.{path}" if place else path, wanted, came)
            return
        self._note(entry, got)
        life = part.life
        if life is not None and life.was_left and part.missing is life.events[-1]:
            self.take(life.events[-1])

    def _note(self, entry: RunEvent, made: JsonObject) -> None:
        self._lines[entry.run_id, entry.number] = _line(entry, made)
        self.score.made(entry)

    def _first_open(self, part: Part) -> RunEvent:
        life = part.life
        return part.missing or (life.events[-1] if life else part.recorded.events[-1])

    def _diverge(self, part: Part, entry: RunEvent, field: str, expected: Json, got: Json) -> None:
        run_id = part.recorded.run.run_id
        self.score.stop(Divergence(run_id=run_id, event=entry.number, field=field, expected=expected, got=got))

    def _is_there(self, life: Life, name: str, signal: Signal) -> bool:
        if name in life.taken_before:
            return True
        taken = next(_taking(life, name), None)
        if taken is None:
            return False
        asked_here = any(life.find(*key) is not None for key in _questions(taken.event))
        return self.score.is_next(taken) or (not asked_here and signal.at < life.began_at)


def _taking(life: Life, name: str) -> Iterator[RunEvent]:
    """The events of a life in which a signal was taken up, or which it has brought about."""
    for entry in life.events:
        if signal_taken(entry.event) == name or (name == CANCEL and entry.event is life.end):
            yield entry


def _questions(event: Event) -> Iterator[Key]:
    """The events that tell that a signal was looked for before it was there."""
    match event.type:
        case "approval_decided":
            yield "approval_requested", event.position, event.number
        case "client_returned":
            yield "client_handoff", event.position
        case "signal_received":
            yield "signal_awaited", event.name, event.position or ""
        case _:
            pass


def _named(event: Event) -> str:
    """An event as a field, for who is told that there is another one, or none."""
    place = place_of(event)
    return f"{event.type} {place}" if place else event.type


def _line(entry: RunEvent, event: JsonObject) -> bytes:
    return sha256(canonical([entry.run_id, entry.number, entry.at.isoformat(), event])).digest()
