"""The keywords of JSON Schema 2020-12 that a tool's schema may hold, and what makes the value of each one valid.

Everything else that a Schema Object can hold is an annotation of OpenAPI, or a mistake of the document.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias, cast

import jsonschema_rs

from toolcrib.contracts import Json

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

ANNOTATIONS: Final = frozenset(
    {
        "$comment",
        "$schema",
        "discriminator",
        "example",
        "examples",
        "externalDocs",
        "nullable",
        "readOnly",
        "title",
        "writeOnly",
        "xml",
    }
)
"""Dropped without a loss: they change nothing about what is valid, or the conversion has used them already."""

_TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_DROPPED_EXTENSION: Final = re.compile(r"x-")

Check: TypeAlias = Callable[[Any], bool]


def is_annotation(keyword: str) -> bool:
    """Whether a keyword can be left out without changing what the schema says."""
    return keyword in ANNOTATIONS or _DROPPED_EXTENSION.match(keyword) is not None


def is_valid(keyword: str, value: Json) -> bool:
    """Whether a keyword that holds no schema is known and its value allowed."""
    check = _CHECKS.get(keyword)
    return check is not None and check(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


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
        return value in _TYPES
    return _are_names(value) and bool(value) and set(cast("list[str]", value)) <= _TYPES


@cache
def _compiles(pattern: str) -> bool:
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern})
    except (jsonschema_rs.ValidationError, ValueError):
        return False
    return True


_CHECKS: Final[Mapping[str, Check]] = {
    "const": lambda _: True,
    "contentEncoding": _is_text,
    "contentMediaType": _is_text,
    "default": lambda _: True,
    "dependentRequired": _are_dependencies,
    "deprecated": _is_flag,
    "description": _is_text,
    "enum": lambda value: isinstance(value, list),
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
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "pattern": lambda value: isinstance(value, str) and _compiles(value),
    "required": _are_names,
    "type": _is_type,
    "uniqueItems": _is_flag,
}
