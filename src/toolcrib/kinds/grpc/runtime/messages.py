"""Arguments to the bytes of a message and back, as ProtoJSON says, with the names of the `.proto` file.

The classes are made of the descriptors at hand; no generated code is needed. In what comes back, fields without
presence are written also where they have their default. A message inside an `Any` that nothing describes is kept as
its type and its bytes.
"""

import base64
from collections.abc import Iterator
from typing import Any, Final

from google.protobuf import any_pb2, json_format, struct_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from toolcrib.contracts import Json, JsonObject
from toolcrib.kinds.grpc.importer import VALUE, is_wrapped

_ANY: Final = any_pb2.Any.DESCRIPTOR.full_name
_MAX_WORDS: Final = 500


class UnsendableMessage(ValueError):
    """The arguments cannot become the request."""


class UnreadableMessage(ValueError):
    """The bytes are not the message that they should be, or one that JSON cannot say."""


class Codec:
    """Reads and writes the messages of one method.

    Args:
        pool: Describes both.
        request: Full name of the message that is sent.
        response: Full name of the message that comes back.

    Raises:
        KeyError: The pool has no such message.
    """

    def __init__(self, pool: DescriptorPool, request: str, response: str) -> None:
        self._pool = pool
        self._request = GetMessageClass(pool.FindMessageTypeByName(request))
        self._response = GetMessageClass(pool.FindMessageTypeByName(response))
        self._is_wrapped = is_wrapped(request)

    def write(self, arguments: JsonObject) -> bytes:
        """The request's bytes.

        Raises:
            UnsendableMessage: The arguments are no such message.
        """
        given: Any = arguments.get(VALUE) if self._is_wrapped else arguments
        try:
            message = json_format.ParseDict(given, self._request(), descriptor_pool=self._pool)
            return message.SerializeToString()
        except (json_format.Error, EncodeError, TypeError, ValueError, AttributeError, RecursionError) as problem:
            raise UnsendableMessage(_words(problem)) from None

    def read(self, data: bytes) -> Json:
        """What a response says.

        Raises:
            UnreadableMessage: The bytes are no such message, or JSON cannot say what they do.
        """
        try:
            message = self._response.FromString(data)
        except DecodeError:
            name = self._response.DESCRIPTOR.full_name
            raise UnreadableMessage(f"{len(data)} bytes came back that are no {name}; import the tool again") from None
        try:
            for unknown in list(_unknown(message, self._pool)):
                _seal(unknown)
            return json_format.MessageToDict(
                message,
                always_print_fields_with_no_presence=True,
                preserving_proto_field_name=True,
                descriptor_pool=self._pool,
            )
        except (json_format.Error, DecodeError, TypeError, ValueError, OverflowError, RecursionError) as problem:
            raise UnreadableMessage(f"the answer cannot be written as JSON: {_words(problem)}") from None


def _unknown(message: Message, pool: DescriptorPool) -> Iterator[Message]:
    """The `Any`s inside a message whose type nothing describes; those inside of known ones are unpacked for it."""
    if message.DESCRIPTOR.full_name == _ANY:
        yield from _unknown_any(message, pool)
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in _messages(value):
                yield from _unknown(inner, pool)


def _unknown_any(message: Any, pool: DescriptorPool) -> Iterator[Message]:
    if not message.type_url:
        return
    try:
        described = pool.FindMessageTypeByName(message.type_url.rpartition("/")[2])
    except KeyError:
        yield message
        return
    inner = GetMessageClass(described).FromString(message.value)
    lost = list(_unknown(inner, pool))
    for unknown in lost:
        _seal(unknown)
    if lost:
        message.value = inner.SerializeToString()


def _messages(value: Any) -> Iterator[Message]:
    """The messages of a field: one, a list of them, or the values of a map."""
    if isinstance(value, Message):
        yield value
    elif hasattr(value, "values"):
        yield from (inner for inner in value.values() if isinstance(inner, Message))
    else:
        yield from value


def _seal(unknown: Any) -> None:
    """Put type and bytes, as JSON can say them, in the place of a message that cannot be read."""
    kept = struct_pb2.Struct()
    kept.update({"type_url": unknown.type_url, "value": base64.b64encode(unknown.value).decode()})
    unknown.type_url = f"type.googleapis.com/{kept.DESCRIPTOR.full_name}"
    unknown.value = kept.SerializeToString()


def _words(problem: Exception) -> str:
    return str(problem)[:_MAX_WORDS]
