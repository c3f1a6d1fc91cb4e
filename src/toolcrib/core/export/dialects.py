"""Dialects of JSON Schema that vendors accept for the arguments of a tool, and what in a schema breaks their rules.

https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use
https://ai.google.dev/api/caching#Schema
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from toolcrib.contracts import JsonSchema
from toolcrib.llm.base.json_values import arr, obj

SchemaDialect: TypeAlias = Literal["openai", "openai_strict", "anthropic", "gemini"]
DIALECTS: Final[tuple[SchemaDialect, ...]] = get_args(SchemaDialect)


@dataclass(frozen=True, slots=True)
class DialectRules:
    """What a vendor accepts."""

    keywords: frozenset[str] | None = None
    """All that it knows; null if it takes any."""
    formats: frozenset[str] | None = None
    """Of texts; null if it takes any."""
    root_refused: frozenset[str] = frozenset()
    """Keywords that the whole schema must not have."""
    property_names: re.Pattern[str] = re.compile(r"(?s).*")
    is_closed: bool = False
    """Whether an object says `additionalProperties: false` and requires every property."""
    is_openapi: bool = False
    """Whether types are upper case and single, null is `nullable`, and values of `enum` are texts."""


_UNIONS = frozenset({"$ref", "allOf", "anyOf", "enum", "not", "oneOf"})
_BASIC = frozenset({"anyOf", "description", "enum", "format", "items", "pattern", "properties", "required", "title"})
_BOUNDS = frozenset({"maxItems", "maximum", "minItems", "minimum", "type"})
_STRICT = frozenset({"$defs", "$ref", "additionalProperties", "const", "exclusiveMaximum", "exclusiveMinimum"})
_OPENAPI = frozenset({"default", "maxLength", "maxProperties", "minLength", "minProperties", "nullable"})

RULES: Final[dict[SchemaDialect, DialectRules]] = {
    "openai": DialectRules(root_refused=_UNIONS),
    "openai_strict": DialectRules(
        keywords=_BASIC | _BOUNDS | _STRICT | {"multipleOf"},
        formats=frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"}),
        root_refused=_UNIONS,
        is_closed=True,
    ),
    "anthropic": DialectRules(
        root_refused=_UNIONS - {"enum", "not"}, property_names=re.compile(r"[a-zA-Z0-9_.-]{1,64}")
    ),
    "gemini": DialectRules(
        keywords=_BASIC | _BOUNDS | _OPENAPI | {"propertyOrdering"},
        formats=frozenset({"date-time", "double", "enum", "float", "int32", "int64"}),
        root_refused=_UNIONS,
        is_openapi=True,
    ),
}


def lint_schema(schema: JsonSchema, dialect: SchemaDialect) -> list[str]:
    """What a vendor would refuse in the schema of a tool's arguments; empty if nothing.

    Args:
        schema: As it would be sent.
        dialect: `openai` (functions without strictness), `openai_strict`, `anthropic` or `gemini`.

    Returns:
        One sentence for each problem, which begins with its place: `properties.amount: …`.

    Example:
        from toolcrib.core.export import lint_schema, translate_schema

        schema = search_deals.definition.input_schema
        print(lint_schema(schema, "openai_strict"))
        print(lint_schema(translate_schema(schema, "openai_strict").schema, "openai_strict"))  # []
    """
    rules = RULES[dialect]
    found = [f"(root): {keyword!r} is not allowed at the top" for keyword in sorted(rules.root_refused & schema.keys())]
    if str(schema.get("type")).lower() != "object":
        found.insert(0, "(root): the type must be 'object'")
    return [*found, *_problems(schema, rules, "")]


def _problems(schema: Any, rules: DialectRules, path: str) -> Iterator[str]:
    place = path or "(root)"
    if not isinstance(schema, dict):
        if rules.keywords is not None:
            yield f"{place}: a schema must be an object, not {schema!r}"
        return
    node = obj(schema)
    yield from (f"{place}: {problem}" for problem in _of_node(node, rules))
    for name, part in obj(node.get("properties")).items():
        here = child(path, f"properties.{name}")
        if rules.property_names.fullmatch(name) is None:
            yield f"{here}: the name must match {rules.property_names.pattern}; rename the property"
        yield from _problems(part, rules, here)
    for name, part in obj(node.get("$defs")).items():
        yield from _problems(part, rules, child(path, f"$defs.{name}"))
    if "items" in node:
        yield from _problems(node["items"], rules, child(path, "items"))
    for place_of, part in enumerate(arr(node.get("anyOf"))):
        yield from _problems(part, rules, child(path, f"anyOf.{place_of}"))


def _of_node(node: dict[str, Any], rules: DialectRules) -> Iterator[str]:
    if rules.keywords is None:
        return
    yield from (f"the keyword {keyword!r} is not supported" for keyword in sorted(node.keys() - rules.keywords))
    kinds = [str(kind).lower() for kind in arr(node.get("type")) or [node.get("type")]]
    if not node.keys() & {"type", "anyOf", "enum", "const", "$ref"}:
        yield "it must say its type"
    if "format" in node and node["format"] not in (rules.formats or ()):
        yield f"the format {node['format']!r} is not supported"
    if "array" in kinds and "items" not in node:
        yield "a list must say the type of its items"
    if rules.is_closed and "object" in kinds:
        yield from _open_object(node)
    if rules.is_openapi:
        yield from _not_openapi(node)


def _open_object(node: dict[str, Any]) -> Iterator[str]:
    if node.get("additionalProperties") is not False:
        yield "an object must say additionalProperties: false"
    if set(arr(node.get("required"))) != obj(node.get("properties")).keys():
        yield "an object must require all its properties and no other"


def _not_openapi(node: dict[str, Any]) -> Iterator[str]:
    kind = node.get("type")
    if kind is not None and (not isinstance(kind, str) or not kind.isupper()):
        yield f"the type {kind!r} must be one, in upper case"
    if not all(isinstance(value, str) for value in arr(node.get("enum"))):
        yield "the values of an enum must be texts"


def child(path: str, name: str) -> str:
    """The place of a part."""
    return f"{path}.{name}" if path else name
