"""A column of a database as a field of a tool: its type, its JSON Schema, and what is said about it.

What JSON cannot hold as it is becomes text: decimals in digits, moments in ISO 8601, bytes in base64. A type that has
no such form is `None`, and the caller leaves the column out.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, cast

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from toolcrib.contracts import JsonSchema
from toolcrib.kinds.entity.shape import ColumnType

_MOST_WORDS: Final = 500
"""Characters of what is said about a column."""
_MOST_VALUES: Final = 100
"""Values of an enumeration that a schema lists."""
_FORMATS: Final[dict[ColumnType, JsonSchema]] = {
    "array": {"type": "array"},
    "boolean": {"type": "boolean"},
    "bytes": {"type": "string", "contentEncoding": "base64"},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string"},
    "decimal": {"type": "string"},
    "integer": {"type": "integer"},
    "json": {},
    "number": {"type": "number"},
    "string": {"type": "string"},
    "time": {"type": "string"},
    "uuid": {"type": "string", "format": "uuid"},
}

# In this order: a type is the first that it is an instance of.
_KINDS: Final[tuple[tuple[type, ColumnType], ...]] = (
    (sa.Boolean, "boolean"),
    (sa.Enum, "string"),
    (sa.Integer, "integer"),
    (sa.Float, "number"),
    (sa.Numeric, "decimal"),
    (sa.DateTime, "datetime"),
    (sa.Date, "date"),
    (sa.Time, "time"),
    (sa.Uuid, "uuid"),
    (sa.JSON, "json"),
    (sa.LargeBinary, "bytes"),
    (sa.types.BINARY, "bytes"),
    (sa.types.VARBINARY, "bytes"),
    (sa.ARRAY, "array"),
    (sa.String, "string"),
)
_AS_TEXT: Final = frozenset({"CIDR", "CITEXT", "INET", "MACADDR", "MACADDR8"})
"""Types of PostgreSQL that are text to everybody else."""


@dataclass(frozen=True, slots=True)
class FieldType:
    """What a column is to a tool."""

    type: ColumnType
    items: ColumnType | None = None


def field_type(column_type: TypeEngine[Any]) -> FieldType | None:
    """What a column of this type is to a tool; null if a tool cannot have it."""
    bare: object = getattr(column_type, "impl_instance", column_type)  # of a type that an application made
    found: list[ColumnType] = [kind for known, kind in _KINDS if isinstance(cast("object", bare), known)]
    if not found:
        return FieldType("string") if type(bare).__name__.upper() in _AS_TEXT else None
    if not isinstance(bare, sa.ARRAY):
        return FieldType(found[0])
    array = cast("sa.ARRAY[Any]", bare)
    element = field_type(array.item_type)
    return None if element is None or array.dimensions not in {None, 1} else FieldType("array", element.type)


def written_schema(column: sa.Column[Any], kind: FieldType, *, new: bool) -> JsonSchema:
    """The schema of a value that is given for a column, of a row that is new or of one that is there."""
    schema = dict(_FORMATS[kind.type])
    if kind.items is not None:
        schema["items"] = dict(_FORMATS[kind.items])
    if kind.type == "decimal":
        schema["type"] = ["string", "number"]
    values = enum_values(column.type)
    length = getattr(column.type, "length", None)
    if values:
        schema["enum"] = list(values)
    elif kind.type == "string" and isinstance(length, int):
        schema["maxLength"] = length
    if column.nullable:
        _allow_null(schema)
    words = describe_column(column, kind, new=new)
    return {**schema, "description": words} if words else schema


def read_schema(column: sa.Column[Any], kind: FieldType) -> JsonSchema:
    """The schema of a value that is read from a column: what its type promises, not what its constraints do."""
    schema: JsonSchema = {"type": _FORMATS[kind.type]["type"]} if kind.type != "json" else {}
    if column.nullable or kind.type == "number":  # a number that is not finite is null
        _allow_null(schema)
    words = comment_of(column)
    return {**schema, "description": words} if words else schema


def enum_values(column_type: TypeEngine[Any]) -> tuple[str, ...]:
    """The values that a column may have, as the database has them; empty for any."""
    return tuple(column_type.enums) if isinstance(column_type, sa.Enum) and column_type.enums else ()


def comment_of(column: sa.Column[Any]) -> str:
    """What the author of a column says about it; its name, if that says more than the field's."""
    words = column.doc or column.info.get("description") or column.comment
    words = words or ("" if column.name.isascii() else f"Column {column.name}")
    return " ".join(str(words).split())[:_MOST_WORDS]


def describe_column(column: sa.Column[Any], kind: FieldType, *, new: bool) -> str:
    """All that a caller has to know about a column to give a value for it."""
    keys = [f"Key of {target}." for key in column.foreign_keys if (target := _target(key))]
    parts = [_sentence(comment_of(column)), *keys, _form(column, kind), "Unique." if column.unique else ""]
    return " ".join(filter(None, [*parts, _default(column) if new else ""]))


def _allow_null(schema: JsonSchema) -> None:
    if "type" in schema:
        given = schema["type"]
        schema["type"] = [*([given] if isinstance(given, str) else given), "null"]
    if "enum" in schema:
        schema["enum"] = [*schema["enum"], None]


def _sentence(words: str) -> str:
    return words if not words or words.endswith((".", "!", "?")) else f"{words}."


def _target(key: sa.ForeignKey) -> str:
    return key.target_fullname


def _form(column: sa.Column[Any], kind: FieldType) -> str:
    match kind.type:
        case "decimal":
            scale = getattr(column.type, "scale", None)
            digits = "" if scale is None else f" with at most {scale} digits behind the point"
            return f"A decimal number{digits}, as text."
        case "datetime" if getattr(column.type, "timezone", False):
            return "Date and time with an offset, such as 2026-01-31T12:00:00Z."
        case "datetime":
            return "Date and time without an offset, such as 2026-01-31T12:00:00."
        case "time":
            return "Time of day, such as 12:30:00."
        case _:
            return ""


def _default(column: sa.Column[Any]) -> str:
    """What a row gets that is made without a value."""
    default = column.default
    if isinstance(default, sa.ColumnDefault) and default.is_scalar:
        return f"Default: {_word(column, default.arg)}."[:_MOST_WORDS]
    if column.server_default is None:
        return "" if default is None else "Filled in if it is left out."
    return "The database fills it in if it is left out."


def _word(column: sa.Column[Any], default: object) -> object:
    """A default as the database has it."""
    if not isinstance(default, Enum):
        return default
    return default.name if default.name in enum_values(column.type) else default.value
