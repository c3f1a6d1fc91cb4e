"""Stream messages of a run: the journal's events, and between them what models are generating and tools are yielding.

Each message has a place. A subscriber that resumes after a place gets exactly what follows, without gaps or
repetitions. The text of a run in another process is available when the answer or output is complete.

A place is `N`, the number of the last complete event, followed by `~M.T.H` for each active model request: `M` is the
number of its `model_started`, and `T` and `H` are the sent characters of its text and of its thinking. For a call whose
tool yields its output, `M` is the number of its `call_started`, `T` the sent characters or elements, and `H` the
attempt that they are of. `17` and `17~16.120.0` are places.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Coroutine, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import orjson

from toolcrib.contracts import (
    WAITING,
    ApprovalPending,
    ApprovalRequested,
    CallFinished,
    CallStarted,
    ClientHandoff,
    HandoffPending,
    InvalidInput,
    Json,
    JsonObject,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    ProgressMade,
    Purpose,
    RunEvent,
    RunFinished,
    RunResult,
    RunStatus,
    StreamDone,
    StreamEvent,
    StreamFailed,
    TextDelta,
    ThinkingDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolEnvelope,
    ToolError,
    ToolLog,
    ToolOutput,
    ToolProgress,
    approval_id,
    approval_signal,
)
from toolcrib.contracts.base.envelope import YIELDED
from toolcrib.contracts.runs.events import CallDoubted
from toolcrib.contracts.runs.stream import ToolCallInDoubt, iteration_of
from toolcrib.contracts.workflows import STEP_SETTLED, SettledStep, StepEnded
from toolcrib.core.executor import Clock, Progress
from toolcrib.core.runs.models.live import CallBuffer, TokenBuffer, TokenHub
from toolcrib.core.runs.views.result import result_of
from toolcrib.infrastructure.store import Journal
from toolcrib.llm import Response, Thinking, decode_response

BEGINNING: Final = "0"
"""The place before everything."""
_PLACE: Final = re.compile(r"(0|[1-9][0-9]{0,8})((?:~[1-9][0-9]{0,8}\.[0-9]{1,9}\.[0-9]{1,9})*)")


class StreamMessage(NamedTuple):
    """A message to a subscriber."""

    place: str
    """Where the subscriber is once it has it."""
    event: StreamEvent


@dataclass(slots=True)
class _Speaking:
    """A model call that has no end yet."""

    number: int
    position: str
    purpose: Purpose
    text: int = 0
    """Characters that were told."""
    thinking: int = 0


@dataclass(slots=True)
class _Calling:
    """A call that has no end yet."""

    number: int
    position: str
    call_id: str
    name: str
    attempt: int = 0
    """Of which output was told; 0 before."""
    sent: int = 0
    """Characters or elements of its output that were told."""
    progress: Progress | None = None
    """What was told last."""
    logged: int = 0
    """Log messages of the attempt that were told."""

    def begin(self, attempt: int) -> None:
        """Turn to an attempt; the output of the one before is void."""
        if attempt > self.attempt:
            self.attempt, self.sent, self.logged = attempt, 0, 0

    def more(self, output: str | list[Json]) -> ToolOutput | None:
        """What was not told of an output so far: a text or a list; null if there is nothing."""
        offset = self.sent
        if len(output) <= offset:
            return None
        self.sent, rest = len(output), output[offset:]
        return ToolOutput(
            number=self.number,
            position=self.position,
            iteration=iteration_of(self.position),
            call_id=self.call_id,
            attempt=self.attempt,
            offset=offset,
            text=rest if isinstance(rest, str) else None,
            items=None if isinstance(rest, str) else rest,
        )


class MessageProjector:
    """Tells a run from a place on.

    Args:
        before: The events of the run up to the place, or more.
        place: Where the subscriber is.

    Raises:
        InvalidInput: This run has no such place.
    """

    def __init__(self, before: Iterable[RunEvent] = (), place: str = BEGINNING) -> None:
        self.number = 0
        """Of the last event that was told to its end."""
        self.ended = False
        self._speaking: dict[str, _Speaking] = {}
        self._calling: dict[str, _Calling] = {}
        self._started: set[str] = set()
        """Positions of the calls that have begun."""
        number, offsets = _parse(place)
        entries = [entry for entry in before if entry.number <= number]
        for entry in entries:
            if not isinstance(entry.event, RunFinished):  # who was told the end is told it again
                list(self.tell(entry))
        by_number = {speaking.number: speaking for speaking in self._speaking.values()}
        calls = {calling.number: calling for calling in self._calling.values()}
        if len(entries) != number or not offsets.keys() <= by_number.keys() | calls.keys():
            msg = f"this run's stream has no place {place!r}; send the id of one of its messages, or none to see it all"
            raise InvalidInput(msg)
        for active, (first, second) in offsets.items():
            if active in calls:
                calls[active].sent, calls[active].attempt = first, second
            else:
                by_number[active].text, by_number[active].thinking = first, second

    @property
    def place(self) -> str:
        """Where the subscriber is."""
        speeches = (speaking for speaking in self._speaking.values() if speaking.text or speaking.thinking)
        calls = (calling for calling in self._calling.values() if calling.sent)
        parts = (
            *(f"~{call.number}.{call.text}.{call.thinking}" for call in speeches),
            *(f"~{call.number}.{call.sent}.{call.attempt}" for call in calls),
        )
        return str(self.number) + "".join(parts)

    def tell(self, entry: RunEvent) -> Iterator[StreamMessage]:
        """What the next event of the journal adds."""
        if isinstance(entry.event, ModelFinished):
            yield from self._rest(entry.event)
        elif isinstance(entry.event, CallFinished):
            yield from self._end_output(entry.event.envelope)
        message = self._read(entry)
        self.number = entry.number
        if message is not None:
            yield StreamMessage(self.place, message)

    def hear(self, speeches: Mapping[int, TokenBuffer]) -> Iterator[StreamMessage]:
        """What models have said since, in calls that are told to have begun."""
        for speaking in list(self._speaking.values()):
            speech = speeches.get(speaking.number)
            if speech is not None:
                for delta in self._new_deltas(speaking, thinking=speech.thinking, text=speech.text):
                    yield StreamMessage(self.place, delta)

    def see(self, calls: Mapping[int, CallBuffer]) -> Iterator[StreamMessage]:
        """What tools have yielded since, in calls that are told to have begun."""
        for calling in self._calling.values():
            buffer = calls.get(calling.number)
            if buffer is not None and buffer.attempt >= calling.attempt:
                calling.begin(buffer.attempt)
                if (more := calling.more(buffer.text or list(buffer.items))) is not None:
                    yield StreamMessage(self.place, more)

    def progress(self, calls: Mapping[int, CallBuffer]) -> Iterator[StreamMessage]:
        """What calls that are told to have begun have logged, and how far they have come, if that was not told."""
        for calling in self._calling.values():
            buffer = calls.get(calling.number)
            yield from () if buffer is None else self._logged(calling, buffer)
            progress = None if buffer is None else buffer.progress
            if progress is not None and progress is not calling.progress:
                calling.progress = progress
                told = ToolProgress(
                    number=calling.number,
                    position=calling.position,
                    iteration=iteration_of(calling.position),
                    call_id=calling.call_id,
                    name=calling.name,
                    done=progress.done,
                    total=progress.total,
                    message=progress.message,
                )
                yield StreamMessage(self.place, told)

    def _logged(self, calling: _Calling, buffer: CallBuffer) -> Iterator[StreamMessage]:
        calling.begin(buffer.attempt)
        new = buffer.lines[calling.logged :] if buffer.attempt == calling.attempt else []
        calling.logged += len(new)
        number, position, call_id, name = calling.number, calling.position, calling.call_id, calling.name
        for level, message in new:
            told = ToolLog(
                number=number,
                position=position,
                iteration=iteration_of(position),
                call_id=call_id,
                name=name,
                level=level,
                message=message,
            )
            yield StreamMessage(self.place, told)

    def pause(self, run_id: str, status: RunStatus) -> StreamMessage:
        """That the run waits."""
        return StreamMessage(self.place, StreamDone(number=self.number, result=RunResult(run_id=run_id, status=status)))

    # Inside -----------------------------------------------------------------------------------------------------------

    def _read(self, entry: RunEvent) -> StreamEvent | None:
        number = entry.number
        match entry.event:
            case ModelStarted() as event:
                self._speaking[event.position] = _Speaking(number, event.position, event.purpose)
            case ModelFinished() | ModelFailed() as event:
                self._speaking.pop(event.position, None)
            case CallStarted() as event:
                return self._begin_call(number, event)
            case CallFinished(envelope=envelope):
                self._calling.pop(envelope.position, None)
                return ToolCallEnd(number=number, iteration=iteration_of(envelope.position), envelope=envelope)
            case CallDoubted(envelope=envelope):
                return _in_doubt(number, envelope)
            case ApprovalRequested() as event:
                return _pending(entry.run_id, number, event)
            case ClientHandoff(envelope=envelope):
                return HandoffPending(number=number, iteration=iteration_of(envelope.position), envelope=envelope)
            case ProgressMade(kind=kind) as event if kind == STEP_SETTLED:
                return _step(number, SettledStep.model_validate(event.data))
            case RunFinished() as event:
                return self._end(entry, event)
            case _:
                pass
        return None

    def _begin_call(self, number: int, event: CallStarted) -> ToolCallStart | None:
        """That a call has begun; null if that was told, and it is repeated after a crash."""
        self._calling[event.position] = _Calling(number, event.position, event.call_id, event.name)
        if event.position in self._started:
            return None
        self._started.add(event.position)
        return ToolCallStart(
            number=number,
            position=event.position,
            iteration=iteration_of(event.position),
            call_id=event.call_id,
            name=event.name,
            input=event.input,
        )

    def _end_output(self, envelope: ToolEnvelope) -> Iterator[StreamMessage]:
        """What was not told of an output that was yielded."""
        calling = self._calling.get(envelope.position)
        kind = envelope.metadata.get(YIELDED)
        fits = isinstance(envelope.output, str if kind == "text" else list)  # a list that was cut can become a text
        if calling is not None and envelope.ok and kind is not None and fits:
            calling.begin(envelope.attempts)
            if (more := calling.more(envelope.output)) is not None:
                yield StreamMessage(self.place, more)

    def _end(self, entry: RunEvent, event: RunFinished) -> StreamEvent:
        self.ended = True
        self._speaking.clear()
        self._calling.clear()
        result = result_of(entry.run_id, event)
        if event.status != "completed" and event.error is not None:
            return StreamFailed(number=entry.number, error=event.error, result=result)
        return StreamDone(number=entry.number, result=result)

    def _rest(self, event: ModelFinished) -> Iterator[StreamMessage]:
        """What was not heard of an answer."""
        response, speaking = decode_response(orjson.dumps(event.response)), self._speaking[event.position]
        for delta in self._new_deltas(speaking, thinking=_thinking(response), text=response.message.text):
            yield StreamMessage(self.place, delta)

    def _new_deltas(self, speaking: _Speaking, *, thinking: str, text: str) -> Iterator[ThinkingDelta | TextDelta]:
        place: JsonObject = {
            "number": speaking.number,
            "position": speaking.position,
            "iteration": iteration_of(speaking.position),
            "purpose": speaking.purpose,
        }
        if len(thinking) > speaking.thinking:
            offset, speaking.thinking = speaking.thinking, len(thinking)
            yield ThinkingDelta(**place, offset=offset, text=thinking[offset:])
        if len(text) > speaking.text:
            offset, speaking.text = speaking.text, len(text)
            yield TextDelta(**place, offset=offset, text=text[offset:])


def _pending(run_id: str, number: int, event: ApprovalRequested) -> ApprovalPending:
    return ApprovalPending(
        number=number,
        position=event.position,
        iteration=iteration_of(event.position),
        approval_id=approval_id(run_id, approval_signal(event.position, event.number)),
        name=event.name,
        input=event.input,
        expires_at=event.expires_at,
    )


def _in_doubt(number: int, failed: ToolEnvelope) -> ToolCallInDoubt:
    failure = cast("ToolError", failed.error)
    return ToolCallInDoubt(
        number=number,
        position=failed.position,
        iteration=iteration_of(failed.position),
        call_id=failed.call_id,
        name=failed.name,
        error=failure,
    )


def _step(number: int, settled: SettledStep) -> StepEnded:
    fields = {name: getattr(settled, name) for name in SettledStep.model_fields.keys() & StepEnded.model_fields.keys()}
    return StepEnded(number=number, **fields)


def _thinking(response: Response) -> str:
    """The shown reasoning of an answer, as its deltas add up to it."""
    return "".join(part.text for part in response.message.parts if isinstance(part, Thinking))


def _parse(place: str) -> tuple[int, dict[int, tuple[int, int]]]:
    """Number and offsets of a place.

    Raises:
        InvalidInput: It is none.
    """
    found = _PLACE.fullmatch(place)
    if found is None:
        msg = (
            f"{place[:100]!r} is not a place in a stream; send the id of one of its messages, such as 17 or 17~16.120.0"
        )
        raise InvalidInput(msg)
    calls = (tuple(map(int, part.split("."))) for part in found[2].split("~")[1:])
    return int(found[1]), {number: (text, thinking) for number, text, thinking in calls}


LOOK_S: Final = 0.2
"""Seconds between looks into the journal."""
SOON_S: Final = 0.04
"""The same after a model has begun or ended, which the journal tells in a moment."""
SOON: Final = 5
"""Such looks."""


async def listen(
    journal: Journal, live: TokenHub, clock: Clock, run_id: str, place: str = BEGINNING
) -> AsyncGenerator[StreamMessage | None]:
    """What there is to tell of a run from a place on, until it has ended or waits; null at moments without news.

    Args:
        journal: Where the events are.
        live: What models are saying, and tools are yielding.
        clock: Time between looks into the journal; what models are saying is told as it comes.
        run_id: A run that exists.
        place: Where the subscriber is: of the last message that it has.

    Raises:
        InvalidInput: The run has no such place.
    """
    with live.watch(run_id) as news:
        narration, soon = MessageProjector(await journal.events(run_id) if place != BEGINNING else (), place), 0
        while True:
            run = await journal.run(run_id)
            for message in _read_on(narration, await journal.events(run_id, after=narration.number), live, run_id):
                yield message
            if narration.ended:
                return
            if run.status in WAITING and narration.number >= run.events:
                yield narration.pause(run_id, run.status)
                return
            speaking = live.active(run_id)
            pause = clock.sleep(SOON_S if soon else LOOK_S)
            async with aclosing(_hear(narration, live, run_id, news, pause)) as messages:
                async for message in messages:
                    yield message
            soon = SOON if speaking != live.active(run_id) else max(soon - 1, 0)
            yield None


def _read_on(
    narration: MessageProjector, entries: Iterable[RunEvent], live: TokenHub, run_id: str
) -> Iterator[StreamMessage]:
    """What further events add, and what is shown of calls that run; the last progress of one comes before its end."""
    for entry in entries:
        if isinstance(entry.event, CallFinished):
            yield from narration.progress(live.calls(run_id))
        yield from narration.tell(entry)
    yield from narration.see(live.calls(run_id))
    yield from narration.progress(live.calls(run_id))


async def _hear(
    narration: MessageProjector, live: TokenHub, run_id: str, news: asyncio.Event, pause: Coroutine[Any, Any, None]
) -> AsyncGenerator[StreamMessage]:
    """What is said and yielded until it is time for the journal: after a pause, or when one begins or ends."""
    speaking, waiting = live.active(run_id), asyncio.ensure_future(pause)
    waiting.add_done_callback(lambda _: news.set())
    try:
        while not waiting.done() and speaking == live.active(run_id):
            news.clear()
            for message in narration.hear(live.speeches(run_id)):
                yield message
            for message in narration.see(live.calls(run_id)):
                yield message
            await news.wait()
    finally:
        waiting.cancel()
