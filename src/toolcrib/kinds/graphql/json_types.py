"""What GraphQL's types are in JSON Schema 2020-12, as arguments and in answers. Loads graphql-core.

A custom scalar is open, unless its specification (`@specifiedBy`) or its name says that it is a well-known one.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from graphql import GraphQLEnumType, GraphQLList, GraphQLNonNull, GraphQLScalarType, is_leaf_type
from graphql import get_named_type as _named_type

from toolcrib.contracts import JsonSchema
from toolcrib.core.providers.imports import cut_text, plain

MAX_ENUM_VALUES: Final = 1_000
"""Values of an enum; a larger one is open text."""
MAX_NOTE: Final = 300
"""Characters of the description of an argument or a field."""

_INPUTS: Final[Mapping[str, JsonSchema]] = MappingProxyType(
    {
        "Boolean": {"type": "boolean"},
        "Float": {"type": "number"},
        "ID": {"type": ["string", "integer"]},
        "Int": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
        "String": {"type": "string"},
    }
)
_OUTPUTS: Final[Mapping[str, JsonSchema]] = MappingProxyType({**_INPUTS, "Int": {"type": "integer"}})
_ANY: Final[JsonSchema] = {"type": ["string", "number", "boolean", "object", "array"]}
"""Any JSON but null."""
_BIG: Final[JsonSchema] = {"type": ["integer", "string"]}
_FORMATS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Date": "date",
        "DateTime": "date-time",
        "DateTimeISO": "date-time",
        "Email": "email",
        "EmailAddress": "email",
        "GUID": "uuid",
        "ISO8601Date": "date",
        "ISO8601DateTime": "date-time",
        "URI": "uri",
        "URL": "uri",
        "UUID": "uuid",
        "timestamptz": "date-time",
        "uuid": "uuid",
    }
)
_SPECIFIED: Final = (
    ("rfc3339", "date-time"),
    ("date-time", "date-time"),
    ("local-date", "date"),
    ("rfc4122", "uuid"),
    ("rfc9562", "uuid"),
    ("rfc3986", "uri"),
)
"""What the address of a specification says, and the format that it means."""
_OTHERS: Final[Mapping[str, JsonSchema]] = MappingProxyType(
    {
        "BigInt": _BIG,
        "JSONObject": {"type": "object"},
        "Long": _BIG,
        "bigint": _BIG,
    }
)


def input_scalar(scalar: GraphQLScalarType) -> JsonSchema:
    """The schema of an argument that is not null."""
    known = _INPUTS.get(scalar.name)
    if known is not None:
        return dict(known)
    text_format = _format(scalar)
    found = {"type": "string", "format": text_format} if text_format else dict(_OTHERS.get(scalar.name, _ANY))
    return {**found, "description": _describe(scalar)}


def output_scalar(scalar: GraphQLScalarType) -> JsonSchema:
    """The schema of what comes back. Servers write custom scalars as they like, so only their format is told."""
    known = _OUTPUTS.get(scalar.name)
    if known is not None:
        return dict(known)
    text_format = _format(scalar)
    return {"format": text_format} if text_format else {}


def enum_schema(enum: GraphQLEnumType) -> JsonSchema:
    """The schema of an enum's values, as arguments and in answers."""
    if len(enum.values) > MAX_ENUM_VALUES:
        return {"type": "string", "description": f"A value of the enum {enum.name}."}
    found: JsonSchema = {"type": "string", "enum": list(enum.values)}
    notes = [note(enum.description)]
    notes += [
        f"{name}: {said}" if said else name
        for name, value in enum.values.items()
        if (said := _value_note(value.description, value.deprecation_reason))
    ]
    text = cut_text(" ".join(filter(None, notes)))
    return {**found, "description": text} if text else found


def note(description: str | None) -> str:
    """A description in short."""
    return cut_text(plain(description), MAX_NOTE)


def nullable(schema: JsonSchema) -> JsonSchema:
    """The schema of the same or null."""
    if not schema:
        return schema
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    kind: Any = schema.get("type")
    if kind is None:
        return schema
    kinds: list[str] = [kind] if isinstance(kind, str) else kind
    found: JsonSchema = {**schema, "type": [*kinds, "null"]}
    if "enum" in schema:
        found["enum"] = [*schema["enum"], None]
    return found


def is_infinite_choice(scalar: GraphQLScalarType) -> bool:
    """Whether a scalar is described as any JSON."""
    return scalar.name not in _INPUTS and scalar.name not in _OTHERS and not _format(scalar)


def _format(scalar: GraphQLScalarType) -> str | None:
    address = (scalar.specified_by_url or "").lower()
    said = next((found for part, found in _SPECIFIED if part in address), None)
    return said or _FORMATS.get(scalar.name)


def _describe(scalar: GraphQLScalarType) -> str:
    return note(scalar.description) or f"The scalar {scalar.name}, as the server writes it."


def _value_note(description: str | None, deprecation: str | None) -> str:
    return " ".join(filter(None, [note(description), "(deprecated)" if deprecation is not None else ""]))


def type_of(member: Any) -> Any:
    """The type of a field or an argument. The types of graphql-core are generic without end, so they are `Any` here."""
    return member.type


def named_type_of(member: Any) -> Any:
    """The same without lists and non-null marks."""
    return cast("Any", _named_type(type_of(member)))


def is_plain(member: Any) -> bool:
    """Whether a field is a scalar or an enum, or a list of these."""
    return is_leaf_type(named_type_of(member))


def is_list(type_: Any) -> bool:
    """Whether a type is a list that may be null."""
    return isinstance(type_, GraphQLList)


def is_non_null(type_: Any) -> bool:
    """Whether a type is marked as not null."""
    return isinstance(type_, GraphQLNonNull)


def inner_of(type_: Any) -> Any:
    """The type inside of a list or a non-null mark."""
    return type_.of_type
