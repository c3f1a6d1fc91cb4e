"""What models of this process's runs are generating, and tools are yielding, for followers.

Kept in memory while a request or a call lasts; the whole answer or output is in the event that ends it. A model
streams only if its run has a follower, because a stream costs many times as much as a whole answer; the journal is the
same. Each piece wakes the followers. A slow follower gets missed pieces as one.
"""

import asyncio
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from toolcrib.contracts import Json, ModelError
from toolcrib.core.executor import LogLine, Progress
from toolcrib.core.runs.journal.log import RunLog
from toolcrib.llm import Done, Event, Request, Response, TextChunk, ThinkingChunk
from toolcrib.llm.models.model import LanguageModel


class TokenBuffer:
    """The answer of one attempt of a model call, as far as it has come.

    Args:
        tell: Called after each piece.
    """

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._text: list[str] = []
        self._thinking: list[str] = []

    @property
    def text(self) -> str:
        """The text so far."""
        return _join_pieces(self._text)

    @property
    def thinking(self) -> str:
        """The shown reasoning so far."""
        return _join_pieces(self._thinking)

    def hear(self, event: Event) -> None:
        """Take the next piece."""
        if isinstance(event, TextChunk):
            self._text.append(event.text)
        elif isinstance(event, ThinkingChunk):
            self._thinking.append(event.text)
        self._tell()


MOST_LINES: Final = 1_000
"""Log messages of one attempt of a call that followers see."""


class CallBuffer:
    """One attempt of a call, as far as it has come: a `LiveCall`. Made in the event loop, filled in by any one thread.

    Args:
        attempt: Its number.
        tell: Wakes the followers; called in the event loop.
    """

    def __init__(self, attempt: int, tell: Callable[[], None]) -> None:
        self.attempt = attempt
        self.progress: Progress | None = None
        """The newest. It wakes nobody: followers look for it several times a second."""
        self.lines: list[LogLine] = []
        """What was logged; as with progress, it wakes nobody."""
        self.items: list[Json] = []
        """What was yielded, unless it is text."""
        self._texts: list[str] = []
        self._joined = ""
        self._joined_pieces = 0
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._is_telling = False

    @property
    def text(self) -> str:
        """The text so far; read in the event loop only."""
        pieces = self._texts[self._joined_pieces :]
        self._joined_pieces += len(pieces)
        self._joined += "".join(pieces)
        return self._joined

    def add_text(self, text: str) -> None:
        """See `LiveCall`."""
        self._texts.append(text)
        self._wake()

    def add_item(self, item: Json) -> None:
        """See `LiveCall`."""
        self.items.append(item)
        self._wake()

    def report(self, progress: Progress) -> None:
        """See `LiveCall`."""
        self.progress = progress

    def log(self, line: LogLine) -> None:
        """See `LiveCall`."""
        if len(self.lines) < MOST_LINES:
            self.lines.append(line)
        elif len(self.lines) == MOST_LINES:
            self.lines.append(LogLine("warning", f"further messages are left out: {MOST_LINES} is the limit of a call"))

    def end(self) -> None:
        """Forget what was yielded: the envelope has it."""
        self.items, self._texts, self._joined, self._joined_pieces = [], [], "", 0

    def _wake(self) -> None:
        """Wake the followers, once for all pieces that come before the event loop has time for it."""
        if not self._is_telling:
            self._is_telling = True
            with suppress(RuntimeError):  # the loop is closed, and the thread of the tool still runs
                self._loop.call_soon_threadsafe(self._tell_once)

    def _tell_once(self) -> None:
        self._is_telling = False
        self._tell()


OpenBuffer: TypeAlias = Callable[[RunLog], AbstractContextManager[TokenBuffer | None] | None]
"""Opens the speech of an attempt, by the log whose last event begins it; null if nobody watches the run."""


def no_subscribers(_: RunLog) -> None:
    """Nobody watches."""


_MOST_ENDED: Final = 64
"""Ended calls of one run whose last progress is kept."""


@dataclass(slots=True)
class _Audience:
    watchers: list[asyncio.Event] = field(default_factory=list[asyncio.Event])
    speeches: dict[int, TokenBuffer] = field(default_factory=dict[int, TokenBuffer])
    calls: dict[int, CallBuffer] = field(default_factory=dict[int, CallBuffer])
    ended: dict[int, CallBuffer] = field(default_factory=dict[int, CallBuffer])
    """Calls whose last progress followers may not have been told."""

    def tell(self) -> None:
        """Wake those who watch."""
        for news in self.watchers:
            news.set()


class TokenHub:
    """The hub: who watches which run, and what its models are saying."""

    def __init__(self) -> None:
        self._runs: dict[str, _Audience] = {}

    @contextmanager
    def watch(self, run_id: str) -> Generator[asyncio.Event]:
        """Have the model calls of a run streamed that begin meanwhile; the event is set when there is news of them."""
        audience, news = self._runs.setdefault(run_id, _Audience()), asyncio.Event()
        audience.watchers.append(news)
        try:
            yield news
        finally:
            audience.watchers = [other for other in audience.watchers if other is not news]
            self._forget(run_id)

    def speeches(self, run_id: str) -> Mapping[int, TokenBuffer]:
        """What is being said in a run, by the number of the `model_started` that it belongs to."""
        audience = self._runs.get(run_id)
        return audience.speeches if audience is not None else {}

    def calls(self, run_id: str) -> Mapping[int, CallBuffer]:
        """What calls of a run are showing, by the number of their `call_started`; also some that have ended."""
        audience = self._runs.get(run_id)
        return {**audience.ended, **audience.calls} if audience is not None else {}

    def active(self, run_id: str) -> frozenset[int]:
        """The numbers of all model requests and calls of a run that are being told of."""
        audience = self._runs.get(run_id)
        return frozenset((*audience.speeches, *audience.calls)) if audience is not None else frozenset()

    @contextmanager
    def call(self, run_id: str, number: int, attempt: int) -> Generator[CallBuffer]:
        """Let those who watch a run, or will before it ends, see an attempt of a call."""
        audience = self._runs.setdefault(run_id, _Audience())
        buffer = audience.calls[number] = CallBuffer(attempt, audience.tell)
        audience.tell()
        try:
            yield buffer
        finally:
            del audience.calls[number]
            if buffer.progress is not None or buffer.lines:
                buffer.end()
                audience.ended[number] = buffer
                if len(audience.ended) > _MOST_ENDED:
                    del audience.ended[next(iter(audience.ended))]
            audience.tell()
            self._forget(run_id)

    @contextmanager
    def speech(self, run_id: str, number: int) -> Generator[TokenBuffer | None]:
        """Let those who watch a run hear a model call; null if nobody does when it begins."""
        audience = self._runs.get(run_id)
        if audience is None or not audience.watchers:
            yield None
            return
        audience.speeches[number] = TokenBuffer(audience.tell)
        audience.tell()
        try:
            yield audience.speeches[number]
        finally:
            del audience.speeches[number]
            audience.tell()
            self._forget(run_id)

    def _forget(self, run_id: str) -> None:
        audience = self._runs.get(run_id)
        if audience is not None and not (audience.watchers or audience.speeches or audience.calls):
            del self._runs[run_id]

    def open(self, run_id: str, log: RunLog) -> AbstractContextManager[TokenBuffer | None] | None:
        """The speech of the model call that begins with the last event of a run; null if nobody watches the run."""
        return self.speech(run_id, log.events[-1].number) if run_id in self._runs else None


async def answer(model: LanguageModel, request: Request, speech: TokenBuffer | None) -> Response:
    """A model's whole answer, spoken aloud if there is a speech for it.

    Raises:
        ModelError: As the model raises, or its stream ends without a last event.
    """
    if speech is None:
        return await model.request(request)
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            if isinstance(event, Done):
                return event.response
            speech.hear(event)
    raise ModelError("stream_cut", f"the stream of {model.name} ended before its answer did")


def _join_pieces(pieces: list[str]) -> str:
    pieces[:] = ["".join(pieces)]
    return pieces[0]
