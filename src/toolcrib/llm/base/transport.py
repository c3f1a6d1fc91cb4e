"""The port through which model calls reach a provider, and its HTTP implementation.

It knows no wire format and no retry.
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
        raise ModelError("stream_cut", f"the connection broke in mid-answer: {error}") from error


def _model_error(error: NetworkError) -> ModelError:
    match error:
        case TimedOut():
            return ModelError("timeout", f"the model did not answer in time: {error}")
        case TooLarge():
            return ModelError("bad_response", f"the model's answer is too large: {error}")
        case _:
            return ModelError("connection", f"the model was not reached: {error}")
