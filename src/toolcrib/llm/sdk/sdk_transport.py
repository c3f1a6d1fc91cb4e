"""A transport whose requests are addressed and signed by an SDK client and sent by another transport.

The client gets our HTTP client (`_http`), does not retry, and is used only through its documented raw `post`. A
Bedrock stream, an Amazon event stream, is converted to the server-sent events that its wire expects: each message has
one event of the model's API in base64, or an exception of Bedrock.
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html
"""

import asyncio
import json
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeAlias

import orjson

from toolcrib.contracts.base.errors import ModelError, ToolcribError
from toolcrib.infrastructure.net import HttpResponse, HttpStream, Timeouts
from toolcrib.llm.base.errors import ErrorBody, provider_error
from toolcrib.llm.base.json_values import load_object, obj, text
from toolcrib.llm.base.transport import Transport
from toolcrib.llm.sdk.cloud_addresses import SdkSettings

EVENT_STREAM = "application/vnd.amazon.eventstream"

_STATUSES = {
    "internalServerException": 500,
    "modelStreamErrorException": 500,
    "modelTimeoutException": 504,
    "serviceUnavailableException": 503,
    "throttlingException": 429,
    "validationException": 400,
}


class _Message(Protocol):
    @property
    def headers(self) -> dict[str, Any]: ...

    @property
    def payload(self) -> bytes: ...


async def as_server_sent(chunks: AsyncIterator[bytes], provider: str) -> AsyncIterator[bytes]:
    """The events of a stream, each as one server-sent event.

    Raises:
        ModelError: A message is an exception, or the bytes are no such stream.
    """
    from botocore import eventstream  # noqa: PLC0415 - an optional package

    buffer: Any = eventstream.EventStreamBuffer()
    async for chunk in chunks:
        buffer.add_data(chunk)
        try:
            messages = list[_Message](buffer)
        except eventstream.ParserError as error:
            raise ModelError("bad_response", f"{provider} sent a damaged event stream: {error}") from None
        for message in messages:
            yield b"data: " + _event(message, provider) + b"\n\n"


def _event(message: _Message, provider: str) -> bytes:
    if message.headers.get(":message-type") != "event":
        name = text(message.headers.get(":exception-type")) or text(message.headers.get(":error-code"))
        why = text(message.headers.get(":error-message")) or _why(message.payload)
        raise provider_error(provider, ErrorBody(why, (name,) if name else (), _STATUSES.get(name, 500)))
    try:
        return b64decode(text(load_object(message.payload, provider).get("bytes")), validate=True)
    except NotBase64:
        raise ModelError("bad_response", f"{provider} sent an event that is not base64") from None


def _why(payload: bytes) -> str:
    try:
        return text(obj(orjson.loads(payload)).get("message"))
    except orjson.JSONDecodeError:
        return payload.decode("utf-8", "replace")


class SdkAnswer(Protocol):
    """What is used of `httpx2.Response`."""

    @property
    def status_code(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names in lower case when iterated."""
        ...

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        """The body as it arrives."""
        ...

    async def aclose(self) -> None:
        """Let go of the connection."""
        ...


Post: TypeAlias = Callable[[str, dict[str, Any], Timeouts], Awaitable[SdkAnswer]]
"""Sends a body to a path, signed, and waits for the headers of the answer. Any status is an answer."""

Connect: TypeAlias = Callable[[Transport, SdkSettings], Post]
"""Makes an SDK's client over a transport."""


class SdkTransport:
    """The `Transport` of one place.

    Args:
        inner: Carries what the client made; its policy and limits hold.
        connect: Makes the client, when it is first needed and when the key has changed.
        settings: What the client is made from.
    """

    def __init__(self, inner: Transport, connect: Connect, settings: SdkSettings) -> None:
        self._inner = inner
        self._connect = connect
        self._settings = settings
        self._made: tuple[str | None, Post] | None = None
        self._making = asyncio.Lock()

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], timeouts: Timeouts) -> HttpResponse:
        """See `Transport.post`. The headers are the client's own.

        Raises:
            InvalidSettings: The SDK is not installed.
            ModelError: As `Transport.post`, and `auth` if there is no credential.
        """
        try:
            async with asyncio.timeout(timeouts.total_s), self.stream(url, body, headers, timeouts) as stream:
                return HttpResponse(stream.status, stream.headers, await stream.read(), stream.url)
        except TimeoutError:
            raise ModelError("timeout", f"the model did not answer within {timeouts.total_s} s") from None

    @asynccontextmanager
    async def stream(
        self, url: str, body: bytes, headers: Mapping[str, str], timeouts: Timeouts
    ) -> AsyncGenerator[HttpStream]:
        """See `Transport.stream`; raises as `post`."""
        send = await self._client()
        answer = await send(url.removeprefix(self._settings.base_url), json.loads(body), timeouts)
        found = _lower_case(answer)
        chunks = answer.aiter_bytes()
        if found.get("content-type", "").startswith(EVENT_STREAM):
            found["content-type"] = "text/event-stream"
            chunks = as_server_sent(chunks, self._settings.provider)
        try:
            yield HttpStream(answer.status_code, found, url, chunks)
        finally:
            await answer.aclose()

    async def _client(self) -> Post:
        """The client for the present key, made in a thread, because loading an SDK takes seconds."""
        async with self._making:
            key = self._settings.key()
            if self._made is None or self._made[0] != key:
                self._made = key, await asyncio.to_thread(self._connect, self._inner, self._settings)
            return self._made[1]


def connection_error(settings: SdkSettings, error: Exception) -> ToolcribError:
    """What an SDK's failure without an answer means; its cause is ours, because the connection is."""
    if isinstance(error.__cause__, ToolcribError):
        return error.__cause__
    return ModelError("connection", f"{settings.provider} was not reached: {error}")


def credential_error(settings: SdkSettings, error: Exception) -> ModelError:
    """What it means that an SDK found nothing to sign a request with."""
    return ModelError("auth", f"{settings.provider}: no usable credential: {error}")


def _lower_case(answer: SdkAnswer) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers.items()}
