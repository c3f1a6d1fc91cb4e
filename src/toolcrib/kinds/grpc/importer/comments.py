"""What the authors of `.proto` files wrote about their types, by full name.

Comments stand apart from what they are about, under a path of field numbers (descriptor.proto, `SourceCodeInfo`). Few
servers keep them; a descriptor set has them if it was made with `--include_source_info`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)

_Path: TypeAlias = tuple[int, ...]
_Named: TypeAlias = Iterator[tuple[_Path, str]]

_MESSAGE, _ENUM, _SERVICE = (
    FileDescriptorProto.MESSAGE_TYPE_FIELD_NUMBER,
    FileDescriptorProto.ENUM_TYPE_FIELD_NUMBER,
    FileDescriptorProto.SERVICE_FIELD_NUMBER,
)
_FIELD, _NESTED, _NESTED_ENUM = (
    DescriptorProto.FIELD_FIELD_NUMBER,
    DescriptorProto.NESTED_TYPE_FIELD_NUMBER,
    DescriptorProto.ENUM_TYPE_FIELD_NUMBER,
)
_VALUE: Final = EnumDescriptorProto.VALUE_FIELD_NUMBER
_METHOD: Final = ServiceDescriptorProto.METHOD_FIELD_NUMBER


def read_comments(files: Iterable[FileDescriptorProto]) -> dict[str, str]:
    """Comments with single spaces; of an enum's value under the enum's name and the value's."""
    found: dict[str, str] = {}
    for file in files:
        if file.HasField("source_code_info"):
            found |= _of_file(file)
    return found


def _of_file(file: FileDescriptorProto) -> dict[str, str]:
    texts = {
        tuple(location.path): " ".join(f"{location.leading_comments} {location.trailing_comments}".split())
        for location in file.source_code_info.location
    }
    return {name: texts[path] for path, name in _names(file) if texts.get(path)}


def _names(file: FileDescriptorProto) -> _Named:
    prefix = f"{file.package}." if file.package else ""
    yield from _messages(file.message_type, (_MESSAGE,), prefix)
    yield from _enums(file.enum_type, (_ENUM,), prefix)
    for index, service in enumerate(file.service):
        yield (_SERVICE, index), prefix + service.name
        for number, method in enumerate(service.method):
            yield (_SERVICE, index, _METHOD, number), f"{prefix}{service.name}.{method.name}"


def _messages(messages: Sequence[DescriptorProto], path: _Path, prefix: str) -> _Named:
    for index, message in enumerate(messages):
        here, name = (*path, index), prefix + message.name
        yield here, name
        for number, field in enumerate(message.field):
            yield (*here, _FIELD, number), f"{name}.{field.name}"
        yield from _messages(message.nested_type, (*here, _NESTED), f"{name}.")
        yield from _enums(message.enum_type, (*here, _NESTED_ENUM), f"{name}.")


def _enums(enums: Sequence[EnumDescriptorProto], path: _Path, prefix: str) -> _Named:
    for index, enum in enumerate(enums):
        yield (*path, index), prefix + enum.name
        for number, value in enumerate(enum.value):
            yield (*path, index, _VALUE, number), f"{prefix}{enum.name}.{value.name}"
