"""The arguments of a root field as GraphQL variables and as a tool's input schema; GraphQL types as JSON Schema.

Each input object or enum is one definition under its name, so types may be recursive. A list must be written as a
list, and null is accepted only where the type is nullable. A custom scalar accepts any value, unless its specification
(`@specifiedBy`) or its name identifies a well-known one. Loads graphql-core.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, cast

from graphql import (
    ConstValueNode,
    GraphQLArgument,
    GraphQLDefaultInput,
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNamedType,
    GraphQLNonNull,
    GraphQLScalarType,
    Undefined,
    is_leaf_type,
    is_required_argument,
    is_required_input_field,
    value_from_ast_untyped,
)
from graphql import get_named_type as _named_type
from graphql.language import (
    BooleanValueNode,
    EnumValueNode,
    FloatValueNode,
    IntValueNode,
    ListValueNode,
    NullValueNode,
    ObjectValueNode,
    StringValueNode,
)

from toolcrib.contracts import InvalidDefinition, Json, JsonSchema
from toolcrib.core.providers.imports import Losses, cut_text, plain

MAX_ENUM_VALUES: Final = 1_000
"""Values of an enum; a larger one is open text."""
MAX_NOTE: Final = 300
"""Characters of the description of an argument or a field."""

_MAX_READ: Final = 5_000
"""Maximum number of characters of a description that are searched for a short one."""

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
    """The schema of an output. Servers write custom scalars in various ways, so only the format is given."""
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
        f"{name}: {value_note}" if value_note else name
        for name, value in enum.values.items()
        if (value_note := _value_note(value.description, value.deprecation_reason))
    ]
    text = cut_text(" ".join(filter(None, notes)))
    return {**found, "description": text} if text else found


def note(description: str | None) -> str:
    """A description in short."""
    return cut_text(prose(description, _MAX_READ), MAX_NOTE)


def prose(description: str | None, limit: int | None = None) -> str:
    """A description as plain text, up to a number of characters; lone surrogates are removed."""
    return plain((description or "")[:limit].encode(errors="replace").decode())


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
    specified = next((found for part, found in _SPECIFIED if part in address), None)
    return specified or _FORMATS.get(scalar.name)


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


MAX_ARGUMENTS: Final = 500
"""Arguments of one field."""
MAX_INPUT_TYPES: Final = 50
"""Input types that the schema of one tool describes; those that are further away are open objects."""

_REFERENCE: Final = "#/$defs/"
_INT: Final = range(-(2**31), 2**31)
_EXACT: Final = 2**53
"""Up to here every reader of JSON has the same number."""


class InputSchemas:
    """Describes the arguments of fields. What was described once is used again."""

    def __init__(self) -> None:
        self._described: dict[str, JsonSchema] = {}

    def of(self, place: str, field: GraphQLField, losses: Losses) -> JsonSchema:
        """The schema of a field's arguments.

        Args:
            place: `Query.deals`.
            field: The field.
            losses: Takes what the schema does not say.

        Raises:
            InvalidDefinition: The field has too many arguments.
        """
        if len(field.args) > MAX_ARGUMENTS:
            msg = f"{place} has {len(field.args)} arguments and {MAX_ARGUMENTS} is the most; give SDL with fewer"
            raise InvalidDefinition(msg)
        schema: JsonSchema = {
            "type": "object",
            "properties": {name: _described_input(argument) for name, argument in field.args.items()},
            "additionalProperties": False,
        }
        required = [name for name, argument in field.args.items() if is_required_argument(argument)]
        if required:
            schema["required"] = required
        definitions = self._definitions(place, field, losses)
        return {**schema, "$defs": definitions} if definitions else schema

    def _definitions(self, place: str, field: GraphQLField, losses: Losses) -> JsonSchema:
        waiting = deque(_named_types(field.args))
        found: dict[str, JsonSchema] = {}
        while waiting:
            named = waiting.popleft()
            if named.name in found:
                continue
            if isinstance(named, GraphQLScalarType):
                if is_infinite_choice(named):
                    losses.add_changed(place, "unsupported", f"scalar {named.name}", "taken as any JSON value")
                continue
            if len(found) >= MAX_INPUT_TYPES and isinstance(named, GraphQLInputObjectType):
                why = f"open objects: the arguments need more than {MAX_INPUT_TYPES} input types"
                losses.add_changed(place, "bound", "input types", why)
                found[named.name] = {"type": "object", "description": f"A {named.name} of the server's schema."}
                continue
            found[named.name] = self._describe(named)
            if isinstance(named, GraphQLInputObjectType):
                waiting += (inside for inside in _named_types(named.fields) if inside.name not in found)
        return found

    def _describe(self, named: GraphQLNamedType) -> JsonSchema:
        if named.name not in self._described:
            described = enum_schema(named) if isinstance(named, GraphQLEnumType) else _input_object(named)
            self._described[named.name] = described
        return self._described[named.name]


def variable_type(argument: GraphQLArgument) -> str:
    """The type of the variable that an argument gets: nullable where the server has a default for it."""
    type_ = type_of(argument)
    if is_non_null(type_) and not is_required_argument(argument):
        return str(inner_of(type_))
    return str(type_)


def _named_types(members: Mapping[str, Any]) -> Iterator[GraphQLNamedType]:
    return (named_type_of(member) for member in members.values())


def _input_object(named: Any) -> JsonSchema:
    fields: Mapping[str, GraphQLInputField] = named.fields
    schema: JsonSchema = {"type": "object"}
    if text := note(named.description):
        schema["description"] = text
    if named.is_one_of:
        # Exactly one field, which is not null (GraphQL, OneOf Input Objects).
        properties = {name: _with_notes(_bare(type_of(field)), field) for name, field in fields.items()}
        return {
            **schema,
            "properties": properties,
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        }
    schema["properties"] = {name: _described_input(field) for name, field in fields.items()}
    schema["additionalProperties"] = False
    required = [name for name, field in fields.items() if is_required_input_field(field)]
    return {**schema, "required": required} if required else schema


def _described_input(member: GraphQLArgument | GraphQLInputField) -> JsonSchema:
    schema = _with_notes(_typed(type_of(member)), member)
    try:
        default = _default_of(member)
    except (ValueError, OverflowError, RecursionError):
        return schema  # the server has it, and knows what it means
    return schema if default is Undefined else {**schema, "default": default}


def _with_notes(schema: JsonSchema, member: GraphQLArgument | GraphQLInputField) -> JsonSchema:
    found = dict(schema)
    text = note(member.description)
    if member.deprecation_reason is not None:
        found["deprecated"] = True
        text = " ".join(filter(None, [text, f"Deprecated: {note(member.deprecation_reason)}"]))
    if text:
        found["description"] = text
    return found


def _typed(type_: Any) -> JsonSchema:
    return _bare(inner_of(type_)) if is_non_null(type_) else nullable(_bare(type_))


def _bare(type_: Any) -> JsonSchema:
    """The schema of a value that is not null."""
    if is_list(type_):
        return {"type": "array", "items": _typed(inner_of(type_))}
    if isinstance(type_, GraphQLScalarType):
        return input_scalar(type_)
    return {"$ref": f"{_REFERENCE}{type_.name}"}


def _default_of(member: GraphQLArgument | GraphQLInputField) -> Json:
    """The default as JSON; `Undefined` if there is none, or it is not written in the schema."""
    default: GraphQLDefaultInput | None = member.default
    if default is None or default.literal is None:
        return Undefined
    return _literal(type_of(member), default.literal)


def _literal(type_: Any, node: ConstValueNode) -> Json:
    """A literal as JSON that fits the type.

    Raises:
        ValueError: It does not fit.
    """
    if is_non_null(type_):
        found = _literal(inner_of(type_), node)
        if found is None:
            raise ValueError(str(type_))
        return found
    if isinstance(node, NullValueNode):
        return None
    if is_list(type_):
        nodes = node.values if isinstance(node, ListValueNode) else [node]
        return [_literal(inner_of(type_), item) for item in nodes]
    if isinstance(type_, GraphQLInputObjectType):
        return _object_literal(type_, node)
    if isinstance(type_, GraphQLEnumType):
        if isinstance(node, EnumValueNode) and node.value in type_.values:
            return node.value
        raise ValueError(type_.name)
    return _scalar_literal(type_, node)


def _object_literal(type_: GraphQLInputObjectType, node: ConstValueNode) -> Json:
    given = {field.name.value: field.value for field in node.fields} if isinstance(node, ObjectValueNode) else None
    if given is None or not given.keys() <= type_.fields.keys():
        raise ValueError(type_.name)
    found = {name: _literal(type_of(type_.fields[name]), value) for name, value in given.items()}
    if type_.is_one_of and (len(found) != 1 or None in found.values()):
        raise ValueError(type_.name)
    if any(is_required_input_field(field) and name not in found for name, field in type_.fields.items()):
        raise ValueError(type_.name)
    return found


def _scalar_literal(type_: GraphQLScalarType, node: ConstValueNode) -> Json:
    name = type_.name
    if name == "Int" and isinstance(node, IntValueNode) and int(node.value) in _INT:
        return int(node.value)
    if name == "Float" and isinstance(node, IntValueNode | FloatValueNode) and isfinite(float(node.value)):
        return float(node.value)
    if name == "Boolean" and isinstance(node, BooleanValueNode):
        return node.value
    if name == "String" and isinstance(node, StringValueNode):
        return node.value
    if name == "ID" and isinstance(node, StringValueNode | IntValueNode):
        return node.value
    if is_infinite_choice(type_):
        value: Any = value_from_ast_untyped(node)
        if isinstance(value, str | bool) or (isinstance(value, int | float) and abs(value) <= _EXACT):
            return value
    raise ValueError(name)
