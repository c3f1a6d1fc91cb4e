"""Amazon's event stream as server-sent events.

Each message of Bedrock's stream holds one event of the model's own API, in base64, or an exception of Bedrock's.
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html
"""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import AsyncIterator
from typing import Any, Protocol

import orjson

from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm.base.errors import Fault, provider_error
from toolcrib.llm.base.json_values import load_object, obj, text

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
        raise provider_error(provider, Fault(why, (name,) if name else (), _STATUSES.get(name, 500)))
    try:
        return b64decode(text(load_object(message.payload, provider).get("bytes")), validate=True)
    except NotBase64:
        raise ModelError("bad_response", f"{provider} sent an event that is not base64") from None


def _why(payload: bytes) -> str:
    try:
        return text(obj(orjson.loads(payload)).get("message"))
    except orjson.JSONDecodeError:
        return payload.decode("utf-8", "replace")
