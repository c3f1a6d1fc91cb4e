"""The types of `google.protobuf` that JSON writes in a way of their own (protobuf.dev, ProtoJSON Format)."""

from collections.abc import Mapping
from typing import Final

from toolcrib.contracts import JsonSchema

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
    """The schema of a type that is written in a way of its own; null for any other."""
    if not full_name.startswith(_PREFIX):
        return None
    name = full_name.removeprefix(_PREFIX)
    return _OBJECTS.get(name, _OTHERS.get(name))


def is_wrapped(full_name: str) -> bool:
    """Whether messages of this type are written as something else than an object."""
    return full_name.startswith(_PREFIX) and full_name.removeprefix(_PREFIX) in _OTHERS
