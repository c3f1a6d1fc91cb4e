"""Converts a JSON Schema to the strict form that a provider enforces, if one with the same meaning exists.

Both dialects require closed objects and support only part of JSON Schema; OpenAI's also requires every property. A
schema qualifies if it suffices to close objects that do not say otherwise, drop annotations and rewrite equivalent
keywords. Making a property required or dropping a constraint would change the meaning; such a schema is sent without
strictness.
https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Literal, TypeAlias, cast

import orjson
from msgspec import Struct

StrictDialect: TypeAlias = Literal["openai", "anthropic"]
"""Whose rules a strictly enforced schema must follow."""


class _Rules(Struct, frozen=True):
    keywords: frozenset[str]
    formats: frozenset[str]
    all_required: bool
    recursion: bool
    max_depth: int = 10
    max_properties: int = 5000


_KEYWORDS = frozenset({"$ref", "const", "description", "enum", "format", "pattern", "title", "type"})
_NUMBERS = frozenset({"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"})
_LENGTHS = frozenset({"maxItems", "minItems"})
_FORMATS = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"})
_RULES: dict[str, _Rules] = {
    "openai": _Rules(keywords=_KEYWORDS | _NUMBERS | _LENGTHS, formats=_FORMATS, all_required=True, recursion=True),
    "anthropic": _Rules(keywords=_KEYWORDS, formats=_FORMATS | {"uri"}, all_required=False, recursion=False),
}
_ANNOTATIONS = frozenset(
    {"$comment", "$id", "$schema", "default", "deprecated", "examples", "readOnly", "writeOnly"},
)
_CHOICES = frozenset({"allOf", "anyOf", "oneOf"})
_OF_OBJECTS = frozenset({"properties", "required", "additionalProperties", "discriminator"})


class _NotStrictError(Exception):
    """The schema has no strict form."""


def strict_schema(schema: dict[str, Any], dialect: StrictDialect) -> dict[str, Any] | None:
    """The strict form of an object schema, or None if it has none. Equal schemas are worked on once."""
    strict = _strict_json(orjson.dumps(schema), dialect)
    return None if strict is None else orjson.loads(strict)


@lru_cache(maxsize=1024)
def _strict_json(schema: bytes, dialect: StrictDialect) -> bytes | None:
    rules = _RULES[dialect]
    content: dict[str, Any] = orjson.loads(schema)
    try:
        root = _Walk(rules).schema(content, 0)
    except _NotStrictError:
        return None
    if root.get("type") != "object" or not (rules.recursion or _is_finite(content)):
        return None
    return orjson.dumps(root)


class _Walk:
    """One pass over one schema."""

    def __init__(self, rules: _Rules) -> None:
        self._rules = rules
        self._properties = 0
        self._keywords: dict[str, Callable[[Any, int], dict[str, Any]]] = {
            "allOf": self._all_of,
            "anyOf": self._any_of,
            "oneOf": self._any_of,
            "items": lambda value, depth: {"items": self.schema(value, depth + 1)},
            "$defs": lambda value, depth: {"$defs": self._each(value, depth)},
        }

    def schema(self, value: Any, depth: int) -> dict[str, Any]:
        if not isinstance(value, dict) or depth > self._rules.max_depth:
            raise _NotStrictError
        schema = cast("dict[str, Any]", value)
        _refuse_unclear(schema)
        strict: dict[str, Any] = {}
        for keyword, content in schema.items():
            if keyword in self._rules.keywords:
                strict[keyword] = content
            elif keyword in self._keywords:
                strict.update(self._keywords[keyword](content, depth))
            elif keyword not in _ANNOTATIONS and keyword not in _OF_OBJECTS:
                raise _NotStrictError
        if "format" in strict and strict["format"] not in self._rules.formats:
            raise _NotStrictError
        if _has_type(schema, "object"):
            strict.update(self._object(schema, depth))
        return _reference_alone(strict)

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or schema.get("additionalProperties", False) is not False:
            raise _NotStrictError
        names = set(cast("dict[str, Any]", properties))
        required: list[str] = schema.get("required", [])
        self._properties += len(names)
        if self._properties > self._rules.max_properties or not names.issuperset(required):
            raise _NotStrictError
        if self._rules.all_required and len(names) != len(required):
            raise _NotStrictError
        return {"properties": self._each(properties, depth), "required": required, "additionalProperties": False}

    def _each(self, schemas: Any, depth: int) -> dict[str, Any]:
        if not isinstance(schemas, dict):
            raise _NotStrictError
        return {name: self.schema(schema, depth + 1) for name, schema in cast("dict[str, Any]", schemas).items()}

    def _any_of(self, value: Any, depth: int) -> dict[str, Any]:
        if not isinstance(value, list):
            raise _NotStrictError
        return {"anyOf": [self.schema(branch, depth) for branch in cast("list[Any]", value)]}

    def _all_of(self, value: Any, depth: int) -> dict[str, Any]:
        """All of one is any of one."""
        if not isinstance(value, list) or len(cast("list[Any]", value)) != 1:
            raise _NotStrictError
        return self._any_of(value, depth)


def _refuse_unclear(schema: dict[str, Any]) -> None:
    """Every place needs a shape, and one choice at most.

    One-of is any-of only if a discriminator tells the branches.
    """
    if not schema.keys() & {"type", "$ref", "enum", "const", *_CHOICES} or len(schema.keys() & _CHOICES) > 1:
        raise _NotStrictError
    if "oneOf" in schema and "discriminator" not in schema:
        raise _NotStrictError
    if _has_type(schema, "array") and "items" not in schema:
        raise _NotStrictError
    if "properties" in schema and not _has_type(schema, "object"):
        raise _NotStrictError


def _has_type(schema: dict[str, Any], name: str) -> bool:
    types = schema.get("type")
    return types == name or (isinstance(types, list) and name in types)


def _reference_alone(schema: dict[str, Any]) -> dict[str, Any]:
    """A `$ref` must stand alone; with neighbours it moves into an any-of of one, which means the same."""
    if "$ref" not in schema or len(schema) == 1:
        return schema
    if "anyOf" in schema:
        raise _NotStrictError
    rest = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
    return {"anyOf": [{"$ref": schema["$ref"]}], **rest}


def _is_finite(schema: dict[str, Any]) -> bool:
    """Whether no definition refers to itself, directly or through others.

    References beside `#/$defs/` count as such.
    """
    definitions = cast("dict[str, Any]", schema.get("$defs", {}))
    prefix = "#/$defs/"

    def finite(name: str, above: frozenset[str]) -> bool:
        if not name.startswith(prefix) or name in above or name.removeprefix(prefix) not in definitions:
            return False
        inside = _references(definitions[name.removeprefix(prefix)])
        return all(finite(reference, above | {name}) for reference in inside)

    return all(finite(reference, frozenset()) for reference in _references(schema))


def _references(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            if name == "$ref" and isinstance(inner, str):
                yield inner
            else:
                yield from _references(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _references(inner)
