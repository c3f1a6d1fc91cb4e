"""A model that speaks slowly, and subscribers that put together what they are told."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from tests.unit.runs.house import House, StandingClock
from toolcrib.contracts import (
    ModelError,
    StreamDone,
    StreamEvent,
    StreamFailed,
    TextDelta,
    ThinkingDelta,
    ToolCallEnd,
    ToolCallStart,
)
from toolcrib.core.runs import BEGINNING, StreamMessage, listen
from toolcrib.llm import Cost, Event, Message, Request, Response, ScriptedModel, Text, Thinking, TokenUsage

WORD_S = 0.03
"""Seconds from one word to the next."""


def thought(thinking: str, text: str) -> Message:
    """An answer with reasoning that is shown."""
    return Message("assistant", (Thinking(thinking), Text(text)))


class SlowModel:
    """Speaks word by word, with pauses; its first attempts break off in the middle.

    Args:
        clock: Time.
        script: Answers in order.
        broken: After how many pieces each of the first attempts breaks off.
    """

    name = "scripted:slow"

    def __init__(self, clock: StandingClock, script: Iterable[Message | str], broken: Sequence[int] = ()) -> None:
        self.streamed = 0
        """Attempts that were streamed."""
        self._clock = clock
        self._answers = list(script)
        self._broken = list(broken)

    async def request(self, request: Request) -> Response:
        """The next answer, whole."""
        if self._broken:
            self._broken.pop(0)
            raise _CUT
        return await ScriptedModel([self._answers.pop(0)]).request(request)

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """The next answer, slowly."""
        self.streamed += 1
        most = self._broken.pop(0) if self._broken else None
        answer = self._answers[0] if most is not None else self._answers.pop(0)
        pieces = 0
        async for event in ScriptedModel([answer]).stream(request):
            if pieces == most:
                raise _CUT
            pieces += 1
            yield event
            await self._clock.sleep(WORD_S)

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        """Nothing."""
        return Cost(Decimal(0), "scripted")


_CUT = ModelError("stream_cut", "the line is dead")


@dataclass
class Heard:
    """What a subscriber has put together."""

    texts: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    """Number and text of each model call, by position."""
    thoughts: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    calls: list[str] = field(default_factory=list[str])
    """Beginnings and ends of calls."""
    others: list[str] = field(default_factory=list[str])
    """The types of all other messages."""
    last: StreamEvent | None = None

    def take(self, event: StreamEvent) -> None:
        """Put the next message to the others; deltas must follow on each other."""
        self.last = event
        if isinstance(event, TextDelta | ThinkingDelta):
            heard = self.texts if isinstance(event, TextDelta) else self.thoughts
            number, text = heard.get(event.position, (0, ""))
            if event.number > number:
                text = ""
            assert event.number >= number
            assert event.offset == len(text)
            assert event.text
            heard[event.position] = event.number, text + event.text
        elif isinstance(event, ToolCallStart | ToolCallEnd):
            position = event.position if isinstance(event, ToolCallStart) else event.envelope.position
            self.calls.append(f"{event.type} {position}")
        else:
            self.others.append(event.type)

    @property
    def total(self) -> object:
        """What every subscriber must have heard in the end, however often it was cut off."""
        last = None if self.last is None else self.last.model_dump()
        return self.texts, self.thoughts, self.calls, [kind for kind in self.others if kind != "done"], last


def heard(messages: Iterable[StreamMessage]) -> Heard:
    """What messages add up to."""
    found = Heard()
    for message in messages:
        found.take(message.event)
    return found


class Subscriber:
    """Follows a run in one process's house, and leaves and comes back as often as it is told to.

    Args:
        house: Whose process it asks.
        run_id: The run.
        before: What it has heard already.
    """

    def __init__(self, house: House, run_id: str, before: Iterable[StreamMessage] = ()) -> None:
        self.messages = list(before)
        self._house = house
        self._run_id = run_id

    async def follow(self, *, at_a_time: int | None = None, place: str = BEGINNING) -> Heard:
        """Listen until the end, or leave after some messages and come back at once, again and again."""
        house, is_over = self._house, False
        while not is_over:
            place, count = self.messages[-1].place if self.messages else place, 0
            messages = listen(house.store.journal, house.engine.live, house.clock, self._run_id, place)
            async for told in messages:
                if told is None:
                    continue
                self.messages.append(told)
                count += 1
                if count == at_a_time:
                    break
            await messages.aclose()
            is_over = isinstance(self.messages[-1].event, StreamDone | StreamFailed)
        return heard(self.messages)
