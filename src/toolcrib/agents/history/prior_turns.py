"""The earlier turns of a conversation, and the window of turns that a prompt shows.

A turn's run has ended, so it is read once from its journal; a deleted run counts as an empty turn. The window moves in
jumps and never back, so that prompts keep their beginning, which providers cache, for several turns.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Final, NamedTuple, cast

from msgspec import Struct

from toolcrib.agents.history.transcript import transcript
from toolcrib.agents.history.variables import variables_of
from toolcrib.agents.model.context_window import trim_message
from toolcrib.contracts import Json, JsonObject, ProgressMade, RunFinished, RunStarted
from toolcrib.core.runs import RunContext, turn_run_id
from toolcrib.infrastructure.store import Journal
from toolcrib.llm import Message
from toolcrib.llm.base.prices import estimate_tokens


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
    asked: Json = None
    """Input of its run."""
    notes: Mapping[str, Json] = {}
    """What it has written down, by key."""
    tainted: bool = False
    """Whether it had read what outsiders can write."""

    @cached_property
    def short(self) -> tuple[Message, ...]:
        """The messages with short results."""
        return tuple(map(trim_message, self.messages))

    @cached_property
    def size(self) -> Size:
        """Estimated tokens."""
        return Size(estimate_tokens(self.messages), estimate_tokens(self.short))

    @property
    def told(self) -> JsonObject:
        """The variables that the model was told in it."""
        return {**_object(_object(self.notes.get(RECALLED)).get("variables")), **variables_of(self.asked)}

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
        asked = started.request.input if isinstance(started, RunStarted) else None
        ended = events[-1].event if events else None
        tainted = isinstance(ended, RunFinished) and ended.tainted
        return Turn(await transcript(events, self._context.read_blob), asked, notes, tainted)


def _object(value: Json) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}
