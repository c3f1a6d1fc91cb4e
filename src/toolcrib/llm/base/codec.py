"""Messages and responses as bytes for the journal.

The format is ours and carries a version, because stored bytes outlive releases: `{"schema_version": 1, "messages":
[...]}` and `{"schema_version": 1, "response": {...}}`. A later version reads all earlier ones; unknown fields are
ignored, an unknown version is refused. Tool arguments and opaque blocks are stored as JSON *text*, so a store that
reorders or renumbers JSON (jsonb does) cannot change them.
"""

import re
from typing import TypeVar

import msgspec
from msgspec import Struct

from toolcrib.contracts import JsonObject, digest
from toolcrib.contracts.base.errors import InvalidInput, ModelError
from toolcrib.llm.base.messages import Message, Request, Response

SCHEMA_VERSION = 1
"""The version that this release writes."""


class _StoredMessages(Struct, frozen=True):
    schema_version: int
    messages: tuple[Message, ...]


class _StoredResponse(Struct, frozen=True):
    schema_version: int
    response: Response


class _Version(Struct, frozen=True):
    schema_version: int = 0


_Stored = TypeVar("_Stored", _StoredMessages, _StoredResponse)
_HALF = re.compile(r"[\ud800-\udfff]")
_encoder = msgspec.json.Encoder()
_canonical = msgspec.json.Encoder(order="deterministic")
_messages_decoder = msgspec.json.Decoder(_StoredMessages)
_response_decoder = msgspec.json.Decoder(_StoredResponse)
_version_decoder = msgspec.json.Decoder(_Version)


def encode_messages(messages: tuple[Message, ...]) -> bytes:
    """A conversation as stored bytes."""
    return _encoder.encode(_StoredMessages(SCHEMA_VERSION, messages))


def check_characters(response: Response, model: str) -> None:
    """Refuse an answer that no journal could keep: with half of a character that UTF-16 writes as a pair.

    Args:
        response: The answer.
        model: The model's name, for the message.

    Raises:
        ModelError: It holds one; kind `bad_response`.
    """
    said = (text for part in response.message.parts for text in msgspec.structs.astuple(part) if isinstance(text, str))
    for text in (response.raw_stop, response.id, *response.problems, *said):
        if not text.isascii() and _HALF.search(text):
            raise ModelError("bad_response", f"the answer of {model} holds half of a character, which no text may")


def messages_as_json(messages: tuple[Message, ...]) -> JsonObject:
    """What `encode_messages` writes, as a JSON value."""
    return msgspec.to_builtins(_StoredMessages(SCHEMA_VERSION, messages))


def response_as_json(response: Response) -> JsonObject:
    """What `encode_response` writes, as a JSON value."""
    return msgspec.to_builtins(_StoredResponse(SCHEMA_VERSION, response))


def hash_request(model: str, request: Request) -> str:
    """The hash of all that a model is asked, whoever makes the connection: equal requests have equal ones.

    Args:
        model: Name of the model, as its provider is asked for it.
        request: What it is asked.
    """
    asked = msgspec.structs.asdict(request)
    del asked["timeouts"]
    return "sha256:" + digest(_canonical.encode({**asked, "tools": request.tools.tools, "model": model}))


def decode_messages(data: bytes | str) -> tuple[Message, ...]:
    """The conversation that `encode_messages` wrote, in this or an earlier release.

    Raises:
        InvalidInput: The bytes are damaged or of a later version.
    """
    return _decode(_messages_decoder, data).messages


def encode_response(response: Response) -> bytes:
    """A response as stored bytes."""
    return _encoder.encode(_StoredResponse(SCHEMA_VERSION, response))


def decode_response(data: bytes | str) -> Response:
    """The response that `encode_response` wrote, in this or an earlier release.

    Raises:
        InvalidInput: The bytes are damaged or of a later version.
    """
    return _decode(_response_decoder, data).response


def _decode(decoder: "msgspec.json.Decoder[_Stored]", data: bytes | str) -> _Stored:
    try:
        stored = decoder.decode(data)
    except msgspec.DecodeError as error:
        _refuse_other_version(data)
        raise InvalidInput(f"stored model messages are damaged: {error}") from error
    if stored.schema_version != SCHEMA_VERSION:
        _refuse_other_version(data)
    return stored


def _refuse_other_version(data: bytes | str) -> None:
    try:
        version = _version_decoder.decode(data).schema_version
    except msgspec.DecodeError:
        return
    if version != SCHEMA_VERSION:
        raise InvalidInput(
            f"stored model messages have schema_version {version}, this release reads {SCHEMA_VERSION}; "
            "read them with the release that wrote them, or a later one"
        )
