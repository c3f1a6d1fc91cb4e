"""The port through which model requests reach a provider, its HTTP implementation, and a parser of server-sent events.

It knows no wire format and does not retry. The parser follows the WHATWG rules as far as model providers use them: any
line end, comments, a byte order mark, several `data` lines per event. Event names are dropped, because providers
repeat them in the payload. Chunks may end anywhere, even inside a UTF-8 sequence.
https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from toolcrib.contracts.base.errors import ModelError
from toolcrib.infrastructure.net import (
    ConnectionFailed,
    HttpResponse,
    HttpSession,
    HttpStream,
    NetworkError,
    TimedOut,
    Timeouts,
    TooLarge,
)

MAX_EVENT_BYTES = 4 * 1024 * 1024
"""How large one event may become."""

_BOM = b"\xef\xbb\xbf"


class SseParser:
    """The parser of one stream.

    Args:
        max_event_bytes: The cap on one event, and on a line that does not end.
    """

    __slots__ = ("_after_cr", "_data", "_max", "_size", "_started", "_tail")

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_event_bytes
        self._tail = b""
        self._data: list[bytes] = []
        self._size = 0
        self._started = False
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The payloads of the events that this chunk completes.

        Raises:
            ModelError: `bad_response`, an event exceeds the cap.
        """
        if not chunk:
            return []
        if self._after_cr or b"\r" in chunk:
            chunk = self._normalise_lines(chunk)
        buffer = self._tail + chunk if self._tail else chunk
        if not self._started:
            if _BOM.startswith(buffer[:3]) and len(buffer) < len(_BOM):
                self._tail = buffer
                return []
            self._started = True
            buffer = buffer.removeprefix(_BOM)
        lines = buffer.split(b"\n")
        self._tail = lines.pop()
        events = self._events(lines)
        if self._size + len(self._tail) > self._max:
            raise self._too_large()
        return events

    def close(self) -> list[bytes]:
        """The payload of an event that lacks only its closing empty line; an unfinished line is dropped."""
        data, self._data, self._tail = self._data, [], b""
        return [b"\n".join(data)] if data else []

    def _events(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        for line in lines:
            if not line:
                if self._data:
                    events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                    self._data, self._size = [], 0
            elif line.startswith(b"data:"):
                value = line[6:] if line[5:6] == b" " else line[5:]
                self._size += len(value)
                if self._size > self._max:
                    raise self._too_large()
                self._data.append(value)
        return events

    def _normalise_lines(self, chunk: bytes) -> bytes:
        """One kind of line end. A CR LF cut between two chunks must not become two line ends."""
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
            if not chunk:
                return chunk
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _too_large(self) -> ModelError:
        return ModelError(
            "bad_response",
            f"the model's stream has an event of more than {self._max} bytes, so it is not a model's answer; "
            "check base_url",
        )


MAX_RESPONSE_BYTES = 8 * 1024 * 1024
"""The largest answer that is read."""


class Transport(Protocol):
    """Carries requests. Any status is an answer.

    Redirects are answers too, because a credential must not follow one.
    """

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], timeouts: Timeouts) -> HttpResponse:
        """Send and read the whole answer.

        Raises:
            ModelError: `timeout`, `connection`, or `bad_response` if the answer is too large.
            EgressDenied: The address may not be reached.
        """
        ...

    def stream(
        self, url: str, body: bytes, headers: Mapping[str, str], timeouts: Timeouts
    ) -> AbstractAsyncContextManager[HttpStream]:
        """Send and read the answer as it arrives; raises as `post`, inside the context too."""
        ...


class HttpTransport:
    """The transport over our one HTTP client.

    Args:
        session: Its policy decides what may be reached.
        max_response_bytes: The largest answer that is read, streams included.
    """

    def __init__(self, session: HttpSession, *, max_response_bytes: int = MAX_RESPONSE_BYTES) -> None:
        self._session = session
        self._max = max_response_bytes

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], timeouts: Timeouts) -> HttpResponse:
        """See `Transport.post`."""
        try:
            return await self._session.request(
                "POST",
                url,
                headers=headers,
                body=body,
                timeout=timeouts,
                max_bytes=self._max,
                follow_redirects=False,
            )
        except NetworkError as error:
            raise _model_error(error) from error

    @asynccontextmanager
    async def stream(
        self, url: str, body: bytes, headers: Mapping[str, str], timeouts: Timeouts
    ) -> AsyncGenerator[HttpStream]:
        """See `Transport.stream`. A connection that breaks after the answer began is `stream_cut`."""
        opened = self._session.stream(
            "POST", url, headers=headers, body=body, timeout=timeouts, max_bytes=self._max, follow_redirects=False
        )
        try:
            async with opened as stream:
                yield HttpStream(stream.status, stream.headers, stream.url, _until_cut(stream.chunks))
        except NetworkError as error:
            raise _model_error(error) from error


async def _until_cut(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        async for chunk in chunks:
            yield chunk
    except ConnectionFailed as error:
        raise ModelError("stream_cut", f"the connection broke during the answer: {error}") from error


def _model_error(error: NetworkError) -> ModelError:
    match error:
        case TimedOut():
            return ModelError("timeout", f"the model did not answer in time: {error}")
        case TooLarge():
            return ModelError("bad_response", f"the model's answer is too large: {error}")
        case _:
            return ModelError("connection", f"the model could not be reached: {error}")
