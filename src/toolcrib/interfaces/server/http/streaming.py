"""Runs as server-sent events (WHATWG HTML, section 9.2): the raw journal, or a readable stream.

Events are read from the store, whichever process drives the run, so a client can reconnect with its last event id
without missing any. Text that a model is still writing is available only in the process that drives the run.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from math import inf
from typing import Final

from fastapi.responses import StreamingResponse

from toolcrib.contracts import WAITING, Run, RunResult, StreamDone
from toolcrib.core.executor import Clock
from toolcrib.core.runs import StreamMessage
from toolcrib.crib import ActingCrib
from toolcrib.infrastructure.store import Journal

POLL_S: Final = 0.2
"""Seconds between looks into the journal."""
KEEP_ALIVE_S: Final = 15.0
"""Seconds of silence after which a comment keeps the connection open."""


async def follow(journal: Journal, clock: Clock, run_id: str, after: int) -> AsyncIterator[str]:
    """The events with numbers above `after`, as they come; `done` once the run has ended or waits.

    Args:
        journal: Where the events are.
        clock: Time between looks.
        run_id: A run that exists.
        after: Number of the last event that the subscriber has.
    """
    spoken = clock.monotonic()
    while True:
        run = await journal.run(run_id)
        if run.events > after:
            for entry in await journal.events(run_id, after=after):
                after = entry.number
                yield _message(entry.event.type, after, entry.model_dump_json())
            spoken = clock.monotonic()
        if (run.ended or run.status in WAITING) and after >= run.events:
            done = StreamDone(number=run.events, result=_result(run))
            yield _message(done.type, run.events, done.model_dump_json())
            return
        if clock.monotonic() - spoken >= KEEP_ALIVE_S:
            yield ": keep-alive\n\n"
            spoken = clock.monotonic()
        await clock.sleep(POLL_S)


def event_stream(messages: AsyncIterator[str]) -> StreamingResponse:
    """A response that sends messages as they come, without caching and buffering."""
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(messages, media_type="text/event-stream", headers=headers)


async def start_stream(crib: ActingCrib, run_id: str, place: str, *, drive: bool = False) -> StreamingResponse:
    """The stream of a run from a message id on, as a response that has started.

    Args:
        crib: Has the run; the crib of who follows.
        run_id: The run.
        place: Where the subscriber is.
        drive: Whether this process drives the run as well; the run continues after the client has left.

    Raises:
        NotFound: There is no such run.
        PermissionDenied: It belongs to another principal, and the caller has no grant to read it.
        InvalidInput: The run has no such place.
    """
    stream = crib.executions.follow_closely(run_id, after=place, drive=drive)
    messages = _narration(stream, crib.clock)
    return event_stream(_after(await anext(messages), messages))


async def _narration(stream: AsyncGenerator[StreamMessage | None], clock: Clock) -> AsyncGenerator[str]:
    spoken = -inf
    async with aclosing(stream):
        async for news in stream:
            if news is not None:
                yield _message(news.event.type, news.place, news.event.model_dump_json())
                spoken = clock.monotonic()
            elif clock.monotonic() - spoken >= KEEP_ALIVE_S:
                yield ": keep-alive\n\n"
                spoken = clock.monotonic()


async def _after(first: str, rest: AsyncGenerator[str]) -> AsyncIterator[str]:
    async with aclosing(rest):
        yield first
        async for message in rest:
            yield message


def _message(kind: str, number: int | str, data: str) -> str:
    return f"id: {number}\nevent: {kind}\ndata: {data}\n\n"


def _result(run: Run) -> RunResult:
    return RunResult(
        run_id=run.run_id,
        status=run.status,
        stop_reason=run.stop_reason,
        output=run.output,
        error=run.error,
        warnings=run.warnings,
        usage=run.usage,
        tokens=run.tokens,
        cost_usd=run.cost_usd,
        cost_unknown=run.cost_unknown,
    )
