"""JSON Schema for OpenAI's strict mode, or the finding that a schema has no strict form of the same meaning.

Strict mode wants every object closed and every property required, and knows part of JSON Schema only. A schema
qualifies if closing objects that do not say otherwise, dropping annotations and rewriting equivalents is all that it
takes. Making an optional property required, or opening a closed choice, would change what a model can say: such a
schema stays as it is, and is sent without strict mode.
https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

import orjson

_MAX_DEPTH = 10
_MAX_PROPERTIES = 5000

_ANNOTATIONS = frozenset({"$comment", "$id", "$schema", "default", "deprecated", "examples", "readOnly", "writeOnly"})
_PLAIN = frozenset(
    {"$ref", "const", "description", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "maximum", "maxItems"}
    | {"minimum", "minItems", "multipleOf", "pattern", "title", "type"}
)
_CHOICES = frozenset({"allOf", "anyOf", "oneOf"})
_HANDLED = frozenset({"properties", "required", "additionalProperties", "discriminator"})
_FORMATS = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"})


class _NotStrictError(Exception):
    """The schema has no strict form."""


def strict_schema(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The strict form of an object schema, or None if it has none. Equal schemas are worked on once."""
    strict = _strict_json(orjson.dumps(schema))
    return None if strict is None else orjson.loads(strict)


@lru_cache(maxsize=1024)
def _strict_json(schema: bytes) -> bytes | None:
    walk = _Walk()
    try:
        root = walk.schema(orjson.loads(schema), 0)
    except _NotStrictError:
        return None
    return orjson.dumps(root) if root.get("type") == "object" else None


class _Walk:
    """One pass over one schema."""

    def __init__(self) -> None:
        self._properties = 0
        self._keywords: dict[str, Callable[[Any, int], dict[str, Any]]] = {
            "allOf": self._all_of,
            "anyOf": self._any_of,
            "oneOf": self._one_of,
            "items": lambda value, depth: {"items": self.schema(value, depth + 1)},
            "$defs": lambda value, depth: {"$defs": self._each(value, depth)},
        }

    def schema(self, value: Any, depth: int) -> dict[str, Any]:
        if not isinstance(value, dict) or depth > _MAX_DEPTH:
            raise _NotStrictError
        schema = cast("dict[str, Any]", value)
        _refuse_unclear(schema)
        strict: dict[str, Any] = self._object(schema, depth) if _has_type(schema, "object") else {}
        for keyword, content in schema.items():
            if keyword in _PLAIN:
                strict[keyword] = content
            elif keyword in self._keywords:
                strict.update(self._keywords[keyword](content, depth))
            elif keyword not in _ANNOTATIONS and keyword not in _HANDLED:
                raise _NotStrictError
        if strict.get("format", "date") not in _FORMATS:
            raise _NotStrictError
        return _reference_alone(strict)

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or schema.get("additionalProperties", False) is not False:
            raise _NotStrictError
        names = set(cast("dict[str, Any]", properties))
        self._properties += len(names)
        if names != set(schema.get("required", ())) or self._properties > _MAX_PROPERTIES:
            raise _NotStrictError
        return {
            "properties": self._each(properties, depth),
            "required": schema.get("required", []),
            "additionalProperties": False,
        }

    def _each(self, schemas: Any, depth: int) -> dict[str, Any]:
        if not isinstance(schemas, dict):
            raise _NotStrictError
        return {name: self.schema(schema, depth + 1) for name, schema in cast("dict[str, Any]", schemas).items()}

    def _any_of(self, value: Any, depth: int) -> dict[str, Any]:
        if not isinstance(value, list):
            raise _NotStrictError
        return {"anyOf": [self.schema(branch, depth) for branch in cast("list[Any]", value)]}

    def _one_of(self, value: Any, depth: int) -> dict[str, Any]:
        """With a discriminator the branches exclude each other, so any-of means the same."""
        return self._any_of(value, depth)

    def _all_of(self, value: Any, depth: int) -> dict[str, Any]:
        """One branch only: any-of one means the same."""
        if not isinstance(value, list) or len(cast("list[Any]", value)) != 1:
            raise _NotStrictError
        return self._any_of(value, depth)


def _refuse_unclear(schema: dict[str, Any]) -> None:
    """Strict mode wants a shape in every place, and only one choice in each."""
    if not schema.keys() & {"type", "$ref", "enum", "const", *_CHOICES} or len(schema.keys() & _CHOICES) > 1:
        raise _NotStrictError
    if "oneOf" in schema and "discriminator" not in schema:
        raise _NotStrictError
    if _has_type(schema, "array") and "items" not in schema:
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
