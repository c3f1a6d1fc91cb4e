"""State shared by all parts of a replay, and the comparison of an event with the recorded one.

An event is compared with the event of the same key in the same life. Events that a dying process had not written have
no counterpart. The table below lists everything that a replay takes from the recording; the code makes the rest again.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import zip_longest
from typing import Final, TypeAlias, cast

from toolcrib.contracts import (
    CANCEL,
    PLANNED_ANEW,
    CallFinished,
    CallStarted,
    Contract,
    Divergence,
    Event,
    Json,
    JsonObject,
    LimitReached,
    ModelDenied,
    ModelStarted,
    ProgressMade,
    Record,
    Run,
    RunEvent,
    RunFinished,
    RunSuspended,
    Signal,
    canonical,
)
from toolcrib.contracts.runs.events import CallDoubted
from toolcrib.core.engines.replay.ordering import EventOrder
from toolcrib.core.engines.replay.recording import (
    Key,
    RecordedFamily,
    RunSegment,
    in_order,
    key_of,
    lives_of,
    place_of,
    signal_taken,
)
from toolcrib.core.runs import StoredRun
from toolcrib.core.runs.journal.history import nested_facts

Path: TypeAlias = tuple[str, ...]

_ALLOWANCE: Final = ("seconds", "requests")
"""Of what may still be spent: seconds are read from a clock, and HTTP requests are counted inside the tools."""
_COUNTED: Final = ("tool_calls", "tokens", "spent_usd", "reserved_usd")
"""Facts of a decision that count what calls beside it have used by that moment. A store's speed decides which of them
come first. What a decision makes of the facts is compared, and so is what the whole run has used."""
_GIVEN: Final[Mapping[str, Sequence[Path]]] = {
    "run_started": [("request", "allowance")],
    "run_resumed": [("epoch",), ("cause",)],
    "run_suspended": [("wake_at",), *((part, field) for part in ("spent", "left") for field in _ALLOWANCE)],
    "run_finished": [("metadata",), ("warnings",)],
    "model_failed": [("message",)],
    "model_finished": [("duration_s",)],
    "call_finished": [
        ("traceback",),
        *(("envelope", field) for field in ("t_start", "t_end", "timings", "metadata", "requires_client_execution")),
    ],
    "call_doubted": [("envelope", field) for field in ("t_start", "t_end", "timings", "metadata")],
    "approval_requested": [("expires_at",)],
    "client_handoff": [
        ("envelope", field) for field in ("t_start", "t_end", "timings", "metadata", "cost_usd", "tainted", "attempts")
    ],
    "signal_awaited": [("wake_at",)],
}
"""By the event's type. Moments and durations are readings of clocks. What a nested run may spend is what its caller had
left at that very moment, in which calls beside it were being begun. `metadata` holds what tools and sandboxes say of
themselves, `traceback` what they raised. Older releases forgot of an ended call that a client performed it. Warnings
tell how tools stood then."""


_ASKED: Final = (ModelStarted, ModelDenied)
_ESTIMATED: Final[Sequence[Path]] = [("decision", "inputs", "input_tokens"), ("decision", "inputs", "cost_usd")]
"""What a request may use at most is expected by the lengths of those before it."""
_FIXES: Final = ("", ".fix1", ".fix2")


def old_plans(run: Run, events: Iterable[RunEvent]) -> frozenset[str] | None:
    """Positions of the model calls by which an older release has planned; null for a run of this one's."""
    if run.request.plan_format != 1 or run.request.kind not in {"agentic", "workflow"}:
        return None
    recorded = [entry.event for entry in events]
    anew = {event.key for event in recorded if isinstance(event, ProgressMade) and event.kind == PLANNED_ANEW}
    requests = {event.position for event in recorded if isinstance(event, _ASKED) and event.purpose == "planning"}
    return frozenset(f"{position}{fix}" for position in requests - anew for fix in _FIXES)


def with_recorded_values(recorded: Event, made: Event, planned: frozenset[str] | None = None) -> JsonObject:
    """An event that was made again, with what the world gave, and with what an older release has not written.

    Args:
        recorded: As it was.
        made: As it is now.
        planned: What `old_plans` says of its run.
    """
    expected, got = recorded.model_dump(mode="json"), made.model_dump(mode="json")
    of_plan = () if planned is None else _plan_paths(recorded, planned)
    for path in (*_GIVEN.get(recorded.type, ()), *_unwritten(recorded), *_older_costs(recorded, made), *of_plan):
        _take_over(expected, got, path)
    _take_over_counts(expected, got)
    return got


def _older_costs(recorded: Event, made: Event) -> Sequence[Path]:
    """Costs in which an older release has counted what was reserved for calls that were cut off, or unknown as 0."""
    match recorded, made:
        case RunFinished(), RunFinished():
            written = recorded.as_read()
            return [("cost_usd",), ("cost_unknown",)] if written is not None and "cut_off" not in written else []
        case CallFinished(envelope=old), CallFinished(envelope=new):
            told = {"cost_unknown", "cut_off_usd"} & nested_facts(new).keys() - old.metadata.keys()
            return [("envelope", "cost_usd")] if told else []
        case _:
            return ()


def _plan_paths(recorded: Event, planned: frozenset[str]) -> Sequence[Path]:
    """What an older release asked for a plan, and what it expected the next requests to use by that."""
    match recorded:
        case ModelStarted(position=position) if position in planned:
            return [(name,) for name in ("system", "messages", "tools", "history", "request_hash", "decision")]
        case ModelDenied(position=position) if position in planned:
            return [("decision", "inputs")]
        case ModelStarted() if planned:
            return _ESTIMATED
        case LimitReached(limit="max_total_tokens" | "max_cost_usd"):
            return [("value",), ("message",)]
        case _:
            return ()


def with_old_wording(made: JsonObject, limits: Mapping[str, str]) -> JsonObject:
    """An event with what limits said then in place of what they say now."""
    return cast("JsonObject", _replace_texts(made, limits)) if limits else made


def _replace_texts(value: Json, limits: Mapping[str, str]) -> Json:
    if isinstance(value, dict):
        return {name: _replace_texts(item, limits) for name, item in cast("JsonObject", value).items()}
    if isinstance(value, list):
        return [_replace_texts(item, limits) for item in cast("list[Json]", value)]
    for now, then in limits.items() if isinstance(value, str) else ():
        value = cast("str", value).replace(now, then)
    return value


def differences(expected: Json, got: Json, path: str = "") -> Iterator[tuple[str, Json, Json]]:
    """Where two JSON values are not the same: the path, what was expected, what came."""
    if isinstance(expected, dict) and isinstance(got, dict):
        wanted, found = cast("JsonObject", expected), cast("JsonObject", got)
        names = (*wanted, *(extra for extra in found if extra not in wanted))
        pairs = [(f"{path}.{name}" if path else name, wanted.get(name), found.get(name)) for name in names]
    elif isinstance(expected, list) and isinstance(got, list):
        both = zip_longest(cast("list[Json]", expected), cast("list[Json]", got))
        pairs = [(f"{path}[{place}]", one, other) for place, (one, other) in enumerate(both)]
    else:
        pairs = []
    inner = [found for place, one, other in pairs for found in differences(one, other, place)]
    yield from inner
    if not inner and (expected != got or isinstance(expected, bool) != isinstance(got, bool)):
        yield path, expected, got  # also where one of them has null for what the other has not


def _unwritten(recorded: Event) -> Iterator[Path]:
    """The fields that there were none of when an event was written; none of one that was not read but made here."""
    written = recorded.as_read()
    if written is None:
        return
    for name, value in recorded.model_dump(mode="json").items():
        if name not in written:
            yield (name,)
        elif isinstance(getattr(recorded, name, None), Contract | Record):
            part = _as_object(written[name])
            yield from ((name, inner) for inner in value if inner not in part)


def _take_over(source: JsonObject, target: JsonObject, path: Path) -> None:
    """Put what one object has at a path there in the other one, if both have something there."""
    for name in path[:-1]:
        source, target = source.get(name) or {}, target.get(name) or {}
    if path[-1] in source and path[-1] in target:
        target[path[-1]] = source[path[-1]]


def _take_over_counts(source: JsonObject, target: JsonObject) -> None:
    """Let the decisions in one object, also those of errors, have counted what the same ones in the other one had."""
    for name, part in target.items():
        recorded, made = _as_object(source.get(name)), _as_object(part)
        had, has = _as_object(recorded.get("inputs")), _as_object(made.get("inputs"))
        if name not in {"decision", "details"} or not had or not has:
            _take_over_counts(recorded, made)
            continue
        counted = {count: had[count] for count in _COUNTED if count in had}
        made["inputs"] = {fact: value for fact, value in has.items() if fact not in _COUNTED} | counted


def _as_object(value: Json) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


ASKED: Final[ContextVar[ModelStarted | None]] = ContextVar("ASKED", default=None)
"""The attempt of a model call that this part of a program has just begun."""


@dataclass(slots=True)
class ReplayedRun:
    """One run in a replay."""

    recorded: StoredRun
    lives: Sequence[RunSegment]
    played: int = 0
    """Lives that were replayed, or are being so."""
    life: RunSegment | None = None
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
    def next(self) -> RunSegment | None:
        """The life that comes next."""
        return self.lives[self.played] if self.played < len(self.lives) else None

    def begin(self, life: RunSegment) -> None:
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


class ReplayState:
    """The state of one replay.

    Args:
        recording: What is replayed.
    """

    def __init__(self, recording: RecordedFamily) -> None:
        self.recording = recording
        self.parts = {run_id: ReplayedRun(recorded, lives_of(recorded)) for run_id, recorded in recording.runs.items()}
        self.score = EventOrder(list(in_order(recording.runs.values())))
        self._limits: dict[str, str] = {}
        """What limits say of an estimate that depends on the plans of an older release, as it was then."""
        self._lines: dict[tuple[str, int], bytes] = {}

    def life(self, run_id: str) -> RunSegment:
        """The life of a run that is being replayed."""
        life = self.parts[run_id].life
        if life is None:
            msg = f"run {run_id} is not being replayed at the moment"
            raise LookupError(msg)
        return life

    def outcome(self, run_id: str, position: str) -> tuple[RunEvent, CallFinished] | None:
        """How a call has ended in the life that is being replayed, or how it failed before somebody was asked of it."""
        for entry in self.life(run_id).events:
            event = entry.event
            if isinstance(event, CallDoubted) and event.position == position and not self.score.is_made(entry):
                return entry, CallFinished(position=position, envelope=event.envelope)
        entry = self.life(run_id).find("call_finished", position)
        return None if entry is None or not isinstance(entry.event, CallFinished) else (entry, entry.event)

    def suspends(self, run_id: str) -> bool:
        """Whether a run was suspended after all that was made again of it, and did not hear of somebody just then."""
        life = self.parts[run_id].life
        if life is None:
            return True
        *before, last = life.events
        return isinstance(last.event, RunSuspended) and all(map(self.score.is_made, reversed(before)))

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
            self._diverge(part, self._first_open(part), _describe_event(event), None, event.model_dump(mode="json"))
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
            self._diverge(part, missing, _describe_event(missing.event), expected, None)

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

    def _counterpart(self, part: ReplayedRun, event: Event) -> RunEvent | None:
        entries = part.open.get(key_of(event))
        return entries.pop(0) if entries else None

    def _hold_against(self, part: ReplayedRun, entry: RunEvent, event: Event) -> None:
        expected = entry.event.model_dump(mode="json")
        excused = part.excused and isinstance(event, RunFinished)
        if part.planned is not None and isinstance(event, LimitReached):
            self._limits[event.message] = expected["message"]
        got = (
            expected
            if excused
            else with_old_wording(with_recorded_values(entry.event, event, part.planned), self._limits)
        )
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
        self.score.mark_made(entry)

    def _first_open(self, part: ReplayedRun) -> RunEvent:
        life = part.life
        return part.missing or (life.events[-1] if life else part.recorded.events[-1])

    def _diverge(self, part: ReplayedRun, entry: RunEvent, field: str, expected: Json, got: Json) -> None:
        run_id = part.recorded.run.run_id
        self.score.stop(Divergence(run_id=run_id, event=entry.number, field=field, expected=expected, got=got))

    def _is_there(self, life: RunSegment, name: str, signal: Signal) -> bool:
        if name in life.taken_before:
            return True
        entry = next(_taking(life, name), None)
        if entry is None:
            return False
        questions = list(_questions(entry.event))
        if self.score.is_next(entry) or any(life.find(*key) is not None for key in questions):
            return self.score.is_next(entry)
        earlier = self.parts[life.run_id].lives[: life.number]
        asked_before = any(one.find(*key) is not None for one in earlier for key in questions)
        return signal.at < life.began_at or not asked_before  # it was there as soon as it was looked for


def _taking(life: RunSegment, name: str) -> Iterator[RunEvent]:
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


def _describe_event(event: Event) -> str:
    """An event as a field, for who is told that there is another one, or none."""
    place = place_of(event)
    return f"{event.type} {place}" if place else event.type


def _line(entry: RunEvent, event: JsonObject) -> bytes:
    return sha256(canonical([entry.run_id, entry.number, entry.at.isoformat(), event])).digest()
