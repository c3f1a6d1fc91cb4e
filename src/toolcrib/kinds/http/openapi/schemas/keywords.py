"""The keywords of JSON Schema 2020-12 that a tool's schema may contain, and the repair of invalid values and defaults.

`repair_value` accepts what real documents contain: numbers and booleans as text, types of other languages, patterns
between slashes. `drop_wrong_defaults` removes defaults that their own schema refuses. `shape_of` finds the top-level
properties of an object schema through references and `allOf`. All other fields of a Schema Object are annotations of
OpenAPI, or mistakes.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

import jsonschema_rs

from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.core.providers.imports import Losses
from toolcrib.kinds.http.openapi.read.documents import Library
from toolcrib.kinds.http.openapi.read.nodes import Node, child

SCHEMA_KEYWORDS: Final = frozenset(
    {
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""The value is a schema."""

LIST_KEYWORDS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""The value is a list of schemas, not empty."""

MAP_KEYWORDS: Final = frozenset({"dependentSchemas", "patternProperties", "properties"})
"""The value is an object of schemas."""

ANNOTATIONS: Final = frozenset({"$comment", "$schema", "$vocabulary", "externalDocs", "title", "xml"})
"""Annotations, which do not affect validity."""

RESOLVED: Final = frozenset({"$anchor", "$dynamicAnchor", "$id", "$recursiveAnchor", "id"})
"""They serve references, which are resolved."""

CONTAINERS: Final = frozenset({"$defs", "definitions"})
"""Their members are taken where something refers to them."""

TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_OTHER_TYPES: Final[Mapping[str, JsonObject]] = {
    **{name: {"type": "boolean"} for name in ("bool", "flag")},
    **{name: {"type": "integer"} for name in ("int", "int32", "int64", "long", "short")},
    **{name: {"type": "number"} for name in ("float", "double", "decimal", "numeric")},
    **{name: {"type": "string"} for name in ("str", "text", "char", "varchar")},
    **{name: {"type": "string", "format": "date-time"} for name in ("datetime", "date-time", "timestamp")},
    **{
        name: {"type": "string", "format": name} for name in ("date", "email", "password", "time", "uri", "url", "uuid")
    },
    **{name: {"type": "string", "format": "binary"} for name in ("binary", "file")},
    "byte": {"type": "string", "format": "byte"},
    **{name: {"type": "object"} for name in ("dict", "dictionary", "hash", "hashmap", "map", "struct")},
    **{name: {"type": "array"} for name in ("list", "set", "tuple")},
    "none": {"type": "null"},
    **{name: {} for name in ("any", "anytype", "mixed", "*")},
}
_DELIMITED: Final = re.compile(r"/(\^.*|.*\$)/([gimsuy]*)", re.DOTALL)
_MOST_PATTERN: Final = 4_000

Check: TypeAlias = Callable[[Any], bool]


def is_valid(keyword: str, value: Json) -> bool:
    """Whether a keyword that holds no schema is known and its value allowed."""
    check = _CHECKS.get(keyword)
    return check is not None and check(value)


def is_known(keyword: str) -> bool:
    """Whether a keyword that holds no schema is one of 2020-12."""
    return keyword in _CHECKS


def repair_value(keyword: str, value: Json) -> Json:
    """A value that the keyword allows in place of one that it does not, or null."""
    check = _CHECKS[keyword]
    if keyword == "pattern" and isinstance(value, str):
        return _bare_pattern(value)
    if check is _is_flag and isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    if check in {_is_number, _is_count, _is_positive}:
        number = _number(value)
        return number if number is not None and check(number) else None
    if check is _are_names and isinstance(value, list):
        names = [name for name in cast("list[Json]", value) if isinstance(name, str)]
        return list(dict.fromkeys(names)) or None
    return str(value) if check is _is_text and isinstance(value, int | float) else None


def other_type(name: str) -> JsonObject | None:
    """The keywords that mean the type of another language, or one in another case; null if it is not known."""
    plain = name.strip().lower()
    return {"type": plain} if plain in TYPES else _OTHER_TYPES.get(plain)


@lru_cache(maxsize=4096)
def compiles(pattern: str) -> bool:
    """Whether a regular expression is one of ECMA 262 that matches in linear time."""
    if len(pattern) > _MOST_PATTERN:
        return False
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions())
    except (jsonschema_rs.ValidationError, ValueError):
        return False
    return True


def _bare_pattern(pattern: str) -> str | None:
    """The pattern between the slashes of JavaScript's notation."""
    match = _DELIMITED.fullmatch(pattern)
    if match is None:
        return None
    bare = ("(?i)" if "i" in match[2] else "") + match[1]
    return bare if compiles(bare) else None


def _number(value: Json) -> Json:
    try:
        number = float(value) if isinstance(value, str | float) else None
        return int(number) if number is not None and number.is_integer() else number
    except (ValueError, OverflowError):
        return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _are_names(value: object) -> bool:
    if not isinstance(value, list):
        return False
    names = cast("list[object]", value)
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _are_dependencies(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        _are_names(names) for names in cast("Mapping[str, object]", value).values()
    )


def _is_type(value: object) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return _are_names(value) and bool(value) and set(cast("list[str]", value)) <= TYPES


def _is_pattern(value: object) -> bool:
    return isinstance(value, str) and _DELIMITED.fullmatch(value) is None and compiles(value)


_CHECKS: Final[Mapping[str, Check]] = {
    "const": lambda _: True,
    "contentEncoding": _is_text,
    "contentMediaType": _is_text,
    "dependentRequired": _are_dependencies,
    "deprecated": _is_flag,
    "exclusiveMaximum": _is_number,
    "exclusiveMinimum": _is_number,
    "format": _is_text,
    "maxContains": _is_count,
    "maxItems": _is_count,
    "maxLength": _is_count,
    "maxProperties": _is_count,
    "maximum": _is_number,
    "minContains": _is_count,
    "minItems": _is_count,
    "minLength": _is_count,
    "minProperties": _is_count,
    "minimum": _is_number,
    "multipleOf": _is_positive,
    "pattern": _is_pattern,
    "required": _are_names,
    "type": _is_type,
    "uniqueItems": _is_flag,
}


_SCALARS: Final[dict[str, type]] = {"string": str, "boolean": bool}


def drop_wrong_defaults(schema: JsonSchema, definitions: dict[str, JsonSchema], place: str, losses: Losses) -> None:
    """Remove, in place, each default that its schema refuses.

    Args:
        schema: As converted.
        definitions: The targets of its references.
        place: Its position in the document.
        losses: Takes the defaults that are removed.
    """
    for found, where in list(_with_default(schema, place)):
        if not _fits(found, definitions):
            wrong = found.pop("default")
            why = f"its own schema refuses {str(wrong)[:60]!r}"
            losses.add_dropped(child(where, "default"), "invalid", "keyword default", why)


def _with_default(schema: Json, place: str) -> Iterator[tuple[JsonSchema, str]]:
    if not isinstance(schema, dict):
        return
    found = cast("JsonSchema", schema)
    if "default" in found:
        yield found, place
    for keyword, value in found.items():
        here = child(place, keyword)
        if keyword in SCHEMA_KEYWORDS:
            yield from _with_default(value, here)
        elif keyword in LIST_KEYWORDS:
            for index, entry in enumerate(value):
                yield from _with_default(entry, child(here, index))
        elif keyword in MAP_KEYWORDS:
            for name, member in value.items():
                yield from _with_default(member, child(here, name))


def _fits(schema: JsonSchema, definitions: dict[str, JsonSchema]) -> bool:
    value = schema["default"]
    kind = schema.get("type")
    if isinstance(kind, str) and kind in _SCALARS and schema.keys() <= {"type", "default", "description"}:
        return isinstance(value, _SCALARS[kind])
    whole = {**schema, "$defs": definitions}
    options = jsonschema_rs.RegexOptions()
    return jsonschema_rs.Draft202012Validator(whole, offline=True, pattern_options=options).is_valid(value)


_MOST_PARTS: Final = 64
_MAX_HOPS: Final = 16
_PLAIN: Final = ANNOTATIONS | {
    "additionalProperties",
    "allOf",
    "deprecated",
    "description",
    "example",
    "examples",
    "properties",
    "required",
    "type",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """The named properties of an object schema."""

    properties: dict[str, Node]
    """Schemas by name."""
    required: frozenset[str]
    plain: bool
    """Whether the properties say everything: no other composition, no open or bounded set of members."""


def follow_references(library: Library, schema: Node) -> Node:
    """A schema, or the target of its references; a null node if there is none."""
    for _ in range(_MAX_HOPS):
        reference = schema.object.get("$ref")
        if reference is None:
            return schema
        found = library.find(reference, schema.base)
        if found is None:
            break
        schema = found
    return Node(None, schema.place, schema.base)


def shape_of(library: Library, schema: Node) -> Shape:
    """The shape of a schema; without properties and not plain if it is not an object schema."""
    return _shape(library, schema, set())


def _shape(library: Library, schema: Node, seen: set[str]) -> Shape:
    """The shape; a part that was seen before says nothing new, so that no composition takes more than its size."""
    found = follow_references(library, schema)
    if not isinstance(found.value, dict) or found.place in seen or len(seen) > _MOST_PARTS:
        return Shape({}, frozenset(), plain=False)
    seen.add(found.place)
    properties = {name: member for name, member in found.get("properties").members() if _is_property(name, member)}
    required = frozenset(entry.value for entry in found.get("required").entries() if isinstance(entry.value, str))
    required |= {name for name, member in properties.items() if member.object.get("required") in (True, "true")}
    plain = _is_plain(found) and (found is schema or not (schema.object.keys() - {"$ref", "description"}))
    for member in found.get("allOf").entries():
        part = _shape(library, member, seen)
        plain = plain and part.plain and not (properties.keys() & part.properties.keys())
        properties = {**part.properties, **properties}
        required |= part.required
    return Shape(properties, required, plain)


def _is_property(name: str, member: Node) -> bool:
    return isinstance(member.value, bool) or not name.startswith("x-") or isinstance(member.value, dict)


def _is_plain(schema: Node) -> bool:
    source = schema.object
    if source.get("type", "object") != "object" or source.get("additionalProperties", False) is not False:
        return False
    return all(keyword in _PLAIN or keyword.startswith("x-") for keyword in source)
