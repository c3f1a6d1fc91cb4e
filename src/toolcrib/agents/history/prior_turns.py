"""The earlier turns of a conversation, and the window of turns that a prompt shows.

A turn's run has ended, so it is read once from its journal; a deleted run counts as an empty turn. The window moves in
jumps and never back, so that prompts keep their beginning, which providers cache, for several turns.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias, cast

import msgspec
import orjson
from msgspec import Struct

from toolcrib.agents.history.variables import RecalledContext, opening, variables_of
from toolcrib.agents.model.context_window import room_key, shorten_turn, trim_results
from toolcrib.agents.model.tool_calls import (
    Calls,
    error_for_model,
    files_for_model,
    read_calls,
    refusal_key,
    text_for_model,
)
from toolcrib.contracts import (
    CallFinished,
    Json,
    JsonObject,
    ModelFinished,
    ModelStarted,
    ProgressMade,
    RunEvent,
    RunFinished,
    RunStarted,
    ToolEnvelope,
)
from toolcrib.core.runs import RunContext, clip_text, response_of, turn_run_id
from toolcrib.infrastructure.store import Journal
from toolcrib.llm import Message, Response, Text, Tool, ToolResult, assistant, decode_messages, decode_response
from toolcrib.llm import ToolCall as ModelToolCall
from toolcrib.llm.base.prices import estimate_tokens

Kept: TypeAlias = Callable[[str], Awaitable[bytes]]
"""Reads what a run has kept under a digest."""

_ASKED: Final = re.compile(r"t(\d+)\.llm")
_LONGEST_NOTE: Final = 300
_OPEN: Final = "this call has no result: the turn ended before it had one"
_TOOLS: Final = msgspec.json.Decoder(list[Tool])


class _Exchange(Struct):
    """One answer of the model, and what was said to it before that stands nowhere else."""

    messages: tuple[Message, ...] = ()
    tools: str | None = None
    answer: Response | None = None


class _Reading(Struct):
    """A journal, by what a transcript needs of it."""

    exchanges: dict[int, _Exchange] = msgspec.field(default_factory=dict[int, _Exchange])
    envelopes: dict[str, ToolEnvelope] = msgspec.field(default_factory=dict[str, ToolEnvelope])
    progress: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    started: RunStarted | None = None
    finished: RunFinished | None = None

    @property
    def shows_files(self) -> bool:
        """Whether the model was shown the files of results."""
        return self.started is not None and self.started.request.shows_files


async def transcript(events: Sequence[RunEvent], kept: Kept) -> tuple[Message, ...]:
    """The messages of a turn, from the user's to the model's last, or to a note of why there is none.

    Args:
        events: The journal of the turn's run, which has ended.
        kept: Reads the tools that the model was offered.
    """
    reading = _read(events)
    messages: tuple[Message, ...] = ()
    for number, exchange in sorted(reading.exchanges.items()):
        messages = (*messages, *exchange.messages)
        if exchange.answer is None:
            continue
        message = exchange.answer.message
        if message.calls:
            messages = (*messages, *await _messages_with_calls(number, message, exchange.tools, reading, kept))
        elif message.text.strip() or exchange.answer.problems or exchange.answer.stop == "pause":
            messages = (*messages, message)
    short = max((_count_short(reading, number) for number in reading.exchanges), default=0)
    return _with_ending(trim_results(messages, short) or _unsent(reading), reading.finished)


def _count_short(reading: _Reading, number: int) -> int:
    """How many messages had short results when the model was asked."""
    noted = reading.progress.get(room_key(number))
    return cast("JsonObject", noted)["messages"] if isinstance(noted, dict) else 0


def _read(events: Sequence[RunEvent]) -> _Reading:
    reading = _Reading()
    for entry in events:
        match entry.event:
            case RunStarted() as event:
                reading.started = event
            case RunFinished() as event:
                reading.finished = event
            case CallFinished() as event:
                reading.envelopes[event.position] = event.envelope
            case ProgressMade() as event:
                reading.progress[event.key] = event.data
            case ModelStarted() | ModelFinished() as event:
                _take(reading, event)
            case _:
                pass
    return reading


def _take(reading: _Reading, event: ModelStarted | ModelFinished) -> None:
    position_match = _ASKED.fullmatch(event.position)
    if position_match is None:
        return
    exchange = reading.exchanges.setdefault(int(position_match[1]), _Exchange())
    if isinstance(event, ModelFinished):
        exchange.answer = decode_response(orjson.dumps(event.response))
        return
    exchange.tools = event.tools
    if event.messages is not None:
        exchange.messages = decode_messages(orjson.dumps(event.messages))


async def _messages_with_calls(
    number: int, message: Message, tools: str | None, reading: _Reading, kept: Kept
) -> tuple[Message, ...]:
    """An answer with calls as it went back to the model, and their results."""
    calls = read_calls(message, number, parallel=True)
    if any(refusal_key(position) in reading.progress for position in calls.made.keys() - calls.refused.keys()):
        calls = read_calls(message, number, parallel=False)
    offered = await _tool_names(tools, calls, reading, kept)
    results = tuple(_result(position, call, calls, reading, offered) for position, call in calls.made.items())
    return calls.message, Message("user", results)


async def _tool_names(tools: str | None, calls: Calls, reading: _Reading, kept: Kept) -> list[str]:
    """Names of the tools that the model was offered, which only a refusal tells it again."""
    envelopes = [reading.envelopes[position] for position in calls.made if position in reading.envelopes]
    if tools is None or all(envelope.error is None for envelope in envelopes):
        return []
    return [tool.name for tool in _TOOLS.decode(await kept(tools))]


def _result(position: str, call: ModelToolCall, calls: Calls, reading: _Reading, offered: Sequence[str]) -> ToolResult:
    envelope, failure = reading.envelopes.get(position), calls.refused.get(position)
    if envelope is not None:
        text = text_for_model(envelope, called=call.name, offered=offered)
        files = files_for_model(envelope) if reading.shows_files else ()
        return ToolResult(call.id, call.name, text, is_error=envelope.error is not None, files=files)
    if failure is not None:
        return ToolResult(call.id, call.name, _dump(error_for_model(failure)), is_error=True)
    if position in reading.progress:
        noted = cast("JsonObject", reading.progress[position])
        looked: JsonObject = noted.get("told", noted)  # older releases did not write down what the model was told
        return ToolResult(call.id, call.name, _dump(looked), is_error="error" in looked)
    return ToolResult(call.id, call.name, _dump({"error": "UNKNOWN", "message": _OPEN}), is_error=True)


def _unsent(reading: _Reading) -> tuple[Message, ...]:
    """The user's message of a turn that no model was asked in."""
    if reading.started is None:
        return ()
    asked = reading.started.request
    return (opening(asked.input, RecalledContext(), asked.files),)


def _with_ending(messages: tuple[Message, ...], finished: RunFinished | None) -> tuple[Message, ...]:
    """The messages, ended by the model's answer, or by what the run put out instead and why."""
    if not messages or finished is None:
        return messages
    *before, last = messages
    answered = last.role == "assistant" and not last.calls
    put_out = response_of(finished.output_or_partial) or ""
    is_final = finished.status == "completed" and finished.stop_reason == "final_answer"
    if is_final:
        return messages if answered else (*messages, assistant(put_out or _dump(finished.output)))
    is_said = any(message.text.strip() == put_out for message in messages)
    note = "\n\n".join(filter(None, ("" if is_said else put_out, _note(finished))))
    if answered:
        return (*before, msgspec.structs.replace(last, parts=(*last.parts, Text(f"\n\n{note}"))))
    return (*messages, assistant(note))


def _note(finished: RunFinished) -> str:
    why = finished.stop_reason.replace("_", " ")
    if finished.error is not None:
        why = f"{why}: {clip_text(finished.error.message, _LONGEST_NOTE)}"
    return f"(This turn ended before its answer, {finished.status.replace('_', ' ')}, {why}.)"


def _dump(value: Json) -> str:
    return orjson.dumps(value).decode()


class Window(NamedTuple):
    """The turns that a prompt shows; turns are counted from 1."""

    first: int = 1
    """The first turn that is shown."""
    short: int = 1
    """Turns before this one are shown with short results."""


class Size(NamedTuple):
    """Estimated tokens of a turn."""

    whole: int
    short: int
    """With short results."""


def move_window(
    window: Window, sizes: Mapping[int, Size], upcoming: int, *, most_turns: int | None, room: int | None
) -> Window:
    """The window for the next turn.

    Args:
        window: As the turn before had it.
        sizes: Of every turn from the window's first to the last one.
        upcoming: The next turn.
        most_turns: Turns that are shown at most; null for any number.
        room: Tokens that they may have; null for any number.
    """
    first, short = window
    if most_turns is not None and upcoming - first > most_turns:
        first = upcoming - (most_turns + 1) // 2
    if room is None or _total(Window(first, short), sizes, upcoming) <= room:
        return Window(first, max(first, short))
    goal = room // 2
    while short < upcoming and _total(Window(first, short), sizes, upcoming) > goal:
        short += 1
    while first < upcoming and _total(Window(first, short), sizes, upcoming) > goal:
        first += 1
    return Window(first, max(first, short))


def _total(window: Window, sizes: Mapping[int, Size], upcoming: int) -> int:
    shown = range(window.first, upcoming)
    return sum(sizes[turn].short if turn < window.short else sizes[turn].whole for turn in shown)


RECALLED: Final = "recall"
"""Key under which a turn writes down what it has shown."""
SUMMARIZED: Final = "recall.summary"
"""Key under which it writes down the summary that it has shown."""


class Summary(Struct, frozen=True):
    """What a conversation had come to."""

    turns: int
    """How many turns, from the first on, it is of."""
    digest: str
    """Of its text."""

    @classmethod
    def of(cls, noted: Json) -> "Summary | None":
        """What a turn has written down, if it had one."""
        fields = cast("JsonObject", noted) if isinstance(noted, dict) else {}
        return cls(fields["turns"], fields["summary"]) if fields.get("summary") else None


class Turn(Struct, frozen=True, dict=True):
    """A turn that has ended."""

    messages: tuple[Message, ...] = ()
    input: Json = None
    """Input of its run."""
    notes: Mapping[str, Json] = {}
    """What it has written down, by key."""
    tainted: bool = False
    """Whether it had read what outsiders can write."""

    @cached_property
    def short(self) -> tuple[Message, ...]:
        """The messages with short results, and with words in place of files."""
        return tuple(map(shorten_turn, self.messages))

    @cached_property
    def size(self) -> Size:
        """Estimated tokens."""
        return Size(estimate_tokens(self.messages), estimate_tokens(self.short))

    @property
    def variables(self) -> JsonObject:
        """The variables that the model was told in it."""
        return {**_object(_object(self.notes.get(RECALLED)).get("variables")), **variables_of(self.input)}

    @property
    def found(self) -> tuple[str, ...]:
        """Names of the hidden tools that the model had found before it, and in it."""
        keys = (RECALLED, *(key for key in self.notes if key != RECALLED))
        names: list[list[str]] = [_object(self.notes.get(key)).get("found", []) for key in keys]
        return tuple(name for found in names for name in found)

    @property
    def window(self) -> Window | None:
        """What it has shown of the turns before it, if it came so far."""
        noted = _object(self.notes.get(RECALLED))
        return Window(noted["first"], noted["short"]) if "first" in noted else None


class PriorTurns:
    """Reads turns.

    Args:
        journal: Has their runs.
        context: The run whose turn comes next.
    """

    def __init__(self, journal: Journal, context: RunContext) -> None:
        self.upcoming = context.request.turn or 1
        self._journal = journal
        self._context = context
        self._turns: dict[int, Turn] = {}

    async def turn(self, place: int) -> Turn:
        """The turn at a place, from 1."""
        if place not in self._turns:
            self._turns[place] = await self._read(place)
        return self._turns[place]

    async def is_tainted(self, first: int) -> bool:
        """Whether outsiders may have written something of what is shown from a turn on, or of what led to it."""
        for place in range(self.upcoming - 1, 0, -1):
            turn = await self.turn(place)
            if turn.tainted or _object(turn.notes.get(RECALLED)).get("tainted"):
                return True
            if RECALLED in turn.notes and place <= first:
                break
        return False

    async def window(self) -> Window:
        """What was shown last."""
        for place in range(self.upcoming - 1, 0, -1):
            if (window := (await self.turn(place)).window) is not None:
                return window
        return Window()

    async def summary(self) -> Summary | None:
        """The summary that was shown last."""
        for place in range(self.upcoming - 1, 0, -1):
            notes = (await self.turn(place)).notes
            if SUMMARIZED in notes:
                return Summary.of(notes[SUMMARIZED])
        return None

    async def tools_found(self) -> tuple[str, ...]:
        """Names of the hidden tools that the model has found so far, in order."""
        names: tuple[str, ...] = ()
        for place in range(self.upcoming - 1, 0, -1):
            turn = await self.turn(place)
            names = (*turn.found, *names)
            if RECALLED in turn.notes:
                break
        return tuple(dict.fromkeys(names))

    async def _read(self, place: int) -> Turn:
        run_id = turn_run_id(self._context.request.conversation_id or "", place)
        events = await self._journal.events(run_id)
        notes = {entry.event.key: entry.event.data for entry in events if isinstance(entry.event, ProgressMade)}
        started = events[0].event if events else None
        run_input = started.request.input if isinstance(started, RunStarted) else None
        ended = events[-1].event if events else None
        tainted = isinstance(ended, RunFinished) and ended.tainted
        return Turn(await transcript(events, self._context.read_blob), run_input, notes, tainted)


def _object(value: Json) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}
