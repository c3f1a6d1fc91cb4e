"""Runs as server-sent events (WHATWG HTML, section 9.2): the raw journal, or a readable stream. And files in ranges.

Events are read from the store, whichever process drives the run, so a client can reconnect with its last event id
without missing any. Text that a model is still writing is available only in the process that drives the run.
"""

import mimetypes
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from math import inf
from typing import Any, Final, NamedTuple

from fastapi import Response
from fastapi.responses import StreamingResponse

from toolcrib.contracts import WAITING, Run, RunResult, StreamDone, StreamEvent, ToolCallEnd
from toolcrib.core.executor import Clock
from toolcrib.core.runs import StreamMessage, without_traceback
from toolcrib.crib import ActingCrib
from toolcrib.infrastructure.store import Journal
from toolcrib.interfaces.server.views.run_views import with_addresses

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
                yield _message(entry.event.type, after, without_traceback(entry).model_dump_json())
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
    messages = _narration(stream, crib.clock, run_id)
    return event_stream(_after(await anext(messages), messages))


async def _narration(stream: AsyncGenerator[StreamMessage | None], clock: Clock, run_id: str) -> AsyncGenerator[str]:
    spoken = -inf
    async with aclosing(stream):
        async for news in stream:
            if news is not None:
                yield _message(news.event.type, news.place, _shown(news.event, run_id).model_dump_json())
                spoken = clock.monotonic()
            elif clock.monotonic() - spoken >= KEEP_ALIVE_S:
                yield ": keep-alive\n\n"
                spoken = clock.monotonic()


def _shown(event: StreamEvent, run_id: str) -> StreamEvent:
    """A message with the addresses of the attachments that it names."""
    if not isinstance(event, ToolCallEnd):
        return event
    return event.model_copy(update={"envelope": with_addresses(event.envelope, run_id)})


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
        partial=run.partial,
        error=run.error,
        warnings=run.warnings,
        usage=run.usage,
        tokens=run.tokens,
        cost_usd=run.cost_usd,
        cost_unknown=run.cost_unknown,
    )


_TYPE: Final = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}(; ?charset=[A-Za-z0-9_.:-]{1,40})?")
_ONE_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.IGNORECASE)
PARTIAL: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"application/octet-stream": {}}, "description": "All bytes, with the type of the attachment."},
    206: {"content": {"application/octet-stream": {}}, "description": "The range that was asked for."},
    304: {"description": "The client has them."},
    416: {"description": "The range begins after the end."},
}


class RangeRequest(NamedTuple):
    """Headers of a request for a part of a file (RFC 9110, sections 13 and 14)."""

    byte_range: str | None = None
    if_range: str | None = None
    if_none_match: str | None = None


def file_response(payload: bytes, digest: str, content_type: str | None, asked: RangeRequest) -> Response:
    """Bytes that others have made, to be saved and never shown: whole, or the one range that was asked for.

    A type that is not well formed becomes `application/octet-stream`. More than one range gets the whole.

    Args:
        payload: All bytes.
        digest: Their SHA-256 in hex, which is the ETag and part of the file's name.
        content_type: As it was told with them.
        asked: What the client wants of them.
    """
    media_type = content_type if content_type and _TYPE.fullmatch(content_type) else "application/octet-stream"
    extension = mimetypes.guess_extension(media_type.partition(";")[0]) or ".bin"
    tag, total = f'"{digest}"', len(payload)
    headers = {
        "accept-ranges": "bytes",
        "cache-control": "private, no-cache",
        "content-disposition": f'attachment; filename="{digest[:16]}{extension}"',
        "content-security-policy": "default-src 'none'; sandbox",
        "etag": tag,
        "x-content-type-options": "nosniff",
    }
    known = {part.strip().removeprefix("W/") for part in (asked.if_none_match or "").split(",")}
    if known & {tag, "*"}:
        return Response(status_code=304, headers=headers)
    span = _span(asked.byte_range, total) if asked.if_range in {None, tag} else None
    if span is None:
        return Response(payload, headers=headers, media_type=media_type)
    if not span:
        return Response(status_code=416, headers={**headers, "content-range": f"bytes */{total}"})
    headers["content-range"] = f"bytes {span.start}-{span.stop - 1}/{total}"
    return Response(payload[span.start : span.stop], 206, headers=headers, media_type=media_type)


def _span(wanted: str | None, total: int) -> range | None:
    """The bytes that a range means; empty if it begins after the end, null if it is none or not one."""
    found = _ONE_RANGE.fullmatch((wanted or "").replace(" ", ""))
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        return range(max(0, total - int(found[2])), total)
    first, last = int(found[1]), int(found[2]) if found[2] else total - 1
    if last < first <= total - 1:
        return None
    return range(first, min(last + 1, total)) if first < total else range(0)
