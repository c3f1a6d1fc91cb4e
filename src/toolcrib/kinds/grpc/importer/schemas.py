"""Message types as JSON Schema 2020-12 in the ProtoJSON format, with descriptions from comments in `.proto` files.

Fields have the names of the `.proto` file. Each message or enum is one definition under its full name, so types may be
recursive. Outputs always contain fields without presence, because the runtime writes them. Types of `google.protobuf`
with a special JSON form have it. Comments are available only if the server keeps them, or if the descriptor set was
made with `--include_source_info`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from google.api import field_behavior_pb2
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)

from toolcrib.contracts import InvalidDefinition, Json, JsonSchema
from toolcrib.core.providers.imports import cut_text

VALUE: Final = "value"
"""The one argument of a method whose request is written as something else than an object."""

INTEGER_TEXT: Final[JsonSchema] = {"type": "string", "pattern": "^-?[0-9]{1,20}$"}
"""How 64-bit integers are written, which not every reader of JSON can hold."""
INTEGER_64: Final[JsonSchema] = {"anyOf": [{"type": "integer"}, INTEGER_TEXT]}
NUMBER: Final[JsonSchema] = {
    "anyOf": [{"type": "number"}, {"type": "string", "enum": ["NaN", "Infinity", "-Infinity"]}]
}
BYTES: Final[JsonSchema] = {"type": "string", "contentEncoding": "base64"}

_PREFIX: Final = "google.protobuf."
_OBJECTS: Final[Mapping[str, JsonSchema]] = {
    "Any": {
        "type": "object",
        "description": "A message of any type, with its fields beside @type.",
        "properties": {"@type": {"type": "string", "description": "As type.googleapis.com/package.Message."}},
    },
    "Empty": {"type": "object", "properties": {}, "additionalProperties": False},
    "Struct": {"type": "object"},
}
_OTHERS: Final[Mapping[str, JsonSchema]] = {
    "BoolValue": {"type": "boolean"},
    "BytesValue": BYTES,
    "DoubleValue": NUMBER,
    "Duration": {
        "type": "string",
        "pattern": "^-?[0-9]{1,12}(\\.[0-9]{1,9})?s$",
        "description": "Seconds with the suffix s, as 3.5s.",
    },
    "FieldMask": {
        "type": "string",
        "description": "Paths of fields in lowerCamelCase, separated by commas, as user.displayName,photo.",
    },
    "FloatValue": NUMBER,
    "Int32Value": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "Int64Value": INTEGER_64,
    "ListValue": {"type": "array"},
    "StringValue": {"type": "string"},
    "Timestamp": {"type": "string", "format": "date-time", "description": "RFC 3339, as 2026-01-31T12:00:00Z."},
    "UInt32Value": {"type": "integer", "minimum": 0, "maximum": 2**32 - 1},
    "UInt64Value": INTEGER_64,
    "Value": {},
}


def well_known(full_name: str) -> JsonSchema | None:
    """The schema of a type with a special JSON form; null for other types."""
    if not full_name.startswith(_PREFIX):
        return None
    name = full_name.removeprefix(_PREFIX)
    return _OBJECTS.get(name, _OTHERS.get(name))


def is_wrapped(full_name: str) -> bool:
    """Whether messages of this type are written as something else than an object."""
    return full_name.startswith(_PREFIX) and full_name.removeprefix(_PREFIX) in _OTHERS


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


Direction: TypeAlias = Literal["input", "output"]

MAX_DEFINITIONS: Final = 1_000
"""Types in one schema."""

_NULL: Final = "google.protobuf.NullValue"
_INT32: Final[JsonSchema] = {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}
_UINT32: Final[JsonSchema] = {"type": "integer", "minimum": 0, "maximum": 2**32 - 1}
_SCALARS: Final[Mapping[int, JsonSchema]] = {
    FieldDescriptor.CPPTYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.CPPTYPE_DOUBLE: NUMBER,
    FieldDescriptor.CPPTYPE_FLOAT: NUMBER,
    FieldDescriptor.CPPTYPE_INT32: _INT32,
    FieldDescriptor.CPPTYPE_UINT32: _UINT32,
    FieldDescriptor.CPPTYPE_STRING: {"type": "string"},
}
_64_BITS: Final = frozenset({FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64})
_KEYS: Final[Mapping[int, JsonSchema]] = {
    FieldDescriptor.CPPTYPE_BOOL: {"enum": ["true", "false"]},
    FieldDescriptor.CPPTYPE_STRING: {},
}
"""Names of a map's members; those of all other types are integers."""


class MessageSchemas:
    """Schemas of the message types of one pool, in one direction.

    Args:
        direction: The direction of the call.
        comments: By full name.
    """

    def __init__(self, direction: Direction, comments: Mapping[str, str]) -> None:
        self._is_input = direction == "input"
        self._comments = comments
        self._definitions: dict[str, JsonSchema] = {}
        self._uses: dict[str, dict[str, Descriptor | EnumDescriptor]] = {}
        self.left_out: dict[str, list[str]] = {}
        """Names of fields that only the other side writes, by message."""

    def of(self, message: Descriptor) -> JsonSchema:
        """The schema of a message by itself, with what it uses in `$defs`.

        A request that is no object is the one argument `value`.

        Raises:
            InvalidDefinition: It uses too many types.
        """
        known = well_known(message.full_name)
        if known is not None:
            wrapped = self._is_input and is_wrapped(message.full_name)
            return {"type": "object", "properties": {VALUE: known}, "required": [VALUE]} if wrapped else dict(known)
        schema = dict(self._definition(message))
        definitions = dict(self._type_schemas(message))
        return {**schema, "$defs": definitions} if definitions else schema

    def type_names(self, message: Descriptor) -> Iterator[str]:
        """The message's full name, and those of all types that its schema holds."""
        yield message.full_name
        if well_known(message.full_name) is None:
            self._definition(message)
            yield from (name for name, _ in self._type_schemas(message))

    def _type_schemas(self, message: Descriptor) -> Iterator[tuple[str, JsonSchema]]:
        """What a message uses, itself only if it is used in turn."""
        seen: set[str] = set()
        waiting = list(self._uses[message.full_name].values())
        while waiting:
            used = waiting.pop(0)
            if used.full_name in seen:
                continue
            seen.add(used.full_name)
            if len(seen) > MAX_DEFINITIONS:
                msg = f"{message.full_name} holds more than {MAX_DEFINITIONS} types, too many for a tool"
                raise InvalidDefinition(msg)
            yield used.full_name, self._definition(used)
            waiting += self._uses[used.full_name].values()

    def _definition(self, found: Descriptor | EnumDescriptor) -> JsonSchema:
        name = found.full_name
        if name not in self._definitions:
            self._uses[name] = {}
            self._definitions[name] = self._enum(found) if isinstance(found, EnumDescriptor) else self._message(found)
        return self._definitions[name]

    def _message(self, message: Descriptor) -> JsonSchema:
        fields = [field for field in message.fields if not (self._is_input and _is_output_only(field))]
        names = [field.name for field in fields]
        if len(fields) < len(message.fields):
            self.left_out[message.full_name] = [field.name for field in message.fields if field.name not in names]
        schema: JsonSchema = {"type": "object", **self._description_of(message.full_name)}
        schema["properties"] = {field.name: self._property(field) for field in fields}
        required = [field.name for field in fields if self._is_there(field)]
        members = [[field.name for field in oneof.fields if field.name in names] for oneof in message.oneofs]
        choices: list[Json] = [_at_most_one(choice) for choice in members if len(choice) > 1]
        if required:
            schema["required"] = required
        if choices:
            schema["allOf"] = choices
        return {**schema, "additionalProperties": False} if self._is_input else schema

    def _enum(self, enum: EnumDescriptor) -> JsonSchema:
        about = [self._comments.get(enum.full_name, "")]
        about += [
            f"{value.name}: {text}"
            for value in enum.values
            if (text := self._comments.get(f"{enum.full_name}.{value.name}"))
        ]
        names: JsonSchema = {"type": "string", "enum": [value.name for value in enum.values]}
        described: JsonSchema = {"description": text} if (text := cut_text(" ".join(filter(None, about)))) else {}
        if self._is_input or enum.is_closed:
            return {**names, **described}
        return {"anyOf": [names, {"type": "integer"}], **described}

    def _property(self, field: FieldDescriptor) -> JsonSchema:
        schema = self._many(field) if field.is_repeated else self._one(field, field)
        schema = {**schema, **self._description_of(field.full_name)}
        if field.GetOptions().deprecated:
            schema["deprecated"] = True
        default = _default(field)
        return schema if default is None or not self._is_input else {**schema, "default": default}

    def _many(self, field: FieldDescriptor) -> JsonSchema:
        entry = field.message_type
        if entry is None or not entry.GetOptions().map_entry:
            return {"type": "array", "items": self._one(field, field)}
        key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        names = _KEYS.get(key.cpp_type, {"pattern": INTEGER_TEXT["pattern"]})
        schema: JsonSchema = {"type": "object", "additionalProperties": self._one(value, field)}
        return {**schema, "propertyNames": names} if names else schema

    def _one(self, field: FieldDescriptor, owner: FieldDescriptor) -> JsonSchema:
        """A single value of a field, which a type uses that has the field or a map of such values."""
        used = field.message_type or field.enum_type
        if used is not None:
            return self._reference(used, owner)
        if field.type == FieldDescriptor.TYPE_BYTES:
            return BYTES
        if field.cpp_type in _64_BITS:
            return INTEGER_64 if self._is_input else INTEGER_TEXT
        return _SCALARS[field.cpp_type]

    def _reference(self, used: Descriptor | EnumDescriptor, owner: FieldDescriptor) -> JsonSchema:
        if used.full_name == _NULL:
            return {"type": "null"}
        known = well_known(used.full_name)
        if known is not None:
            return known
        holder = owner.containing_type
        if holder is not None:
            self._uses[holder.full_name][used.full_name] = used
        return {"$ref": f"#/$defs/{used.full_name}"}

    def _description_of(self, full_name: str) -> JsonSchema:
        text = cut_text(self._comments.get(full_name, ""))
        return {"description": text} if text else {}

    def _is_there(self, field: FieldDescriptor) -> bool:
        """Whether a field has to be given, or is always given back."""
        if field.is_required:
            return True
        if self._is_input:
            return field_behavior_pb2.REQUIRED in _behaviours(field)
        return not field.has_presence


def _behaviours(field: FieldDescriptor) -> list[int]:
    """What the API's author says of the field (AIP-203)."""
    options: Any = field.GetOptions()  # the stubs know no FieldDescriptor as the key of an extension
    return list(options.Extensions[field_behavior_pb2.field_behavior])


def _is_output_only(field: FieldDescriptor) -> bool:
    return not field.is_required and field_behavior_pb2.OUTPUT_ONLY in _behaviours(field)


def _at_most_one(names: list[str]) -> JsonSchema:
    """One member of a oneof, or none."""
    given: list[Json] = [{"required": [name]} for name in names]
    return {"oneOf": [*given, {"not": {"anyOf": given}}]}


def _default(field: FieldDescriptor) -> Json:
    """The default of proto2 as JSON; null if there is none, or if giving it would be a choice."""
    value = field.default_value
    if not field.has_default_value or field.containing_oneof is not None or isinstance(value, bytes):
        return None
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    return value if not isinstance(value, float) or abs(value) < float("inf") else None
