"""How much work one value is for a schema: a bound, because composition doubles it at each level.

`{"allOf": [A, A]}` evaluates `A` twice at the same place, so forty such levels of a few bytes each are 2^40
evaluations. A validator cannot be stopped in the middle, so such a schema is refused before it meets a value. Nothing
is said here about what a schema means.
"""

from collections.abc import Iterator
from typing import Final, cast
from urllib.parse import unquote

from toolcrib.contracts import InvalidDefinition, Json, JsonSchema, pointed

MOST_EVALUATIONS: Final = 20_000
"""Schemas that one value may have to meet at one place, each as often as it is composed."""

_DEEPEST: Final = 200
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLES: Final = ("else", "if", "not", "then")
_REFERENCES: Final = ("$dynamicRef", "$ref")
_NAMES: Final = ("$anchor", "$dynamicAnchor", "$id")


def check_composition(schema: JsonSchema) -> None:
    """Refuse a schema that is too much work for one value.

    Args:
        schema: A schema that has been compiled.

    Raises:
        InvalidDefinition: Some place of it composes more than `MOST_EVALUATIONS` schemas, or 200 inside each other; or
            a reference is of a form whose work cannot be counted.
    """
    composition = _Composition(schema)
    for node in composition.nodes:
        composition.count(node)


class _Composition:
    """The counts of one schema's parts; a part that is composed of itself counts once."""

    def __init__(self, schema: JsonSchema) -> None:
        self._root = schema
        self._counts: dict[int, int] = {}
        self.nodes = list(_objects(schema))
        self._has_resources = any(isinstance(node.get("$id"), str) for node in self.nodes[1:])
        self._named = {
            name.removesuffix("#"): node
            for node in self.nodes
            for keyword in _NAMES
            if isinstance(name := node.get(keyword), str)
        }

    def count(self, node: JsonSchema, depth: int = 0) -> int:
        """Evaluations of one value by a part."""
        known = self._counts.get(id(node))
        if known is not None:
            return known
        if depth > _DEEPEST:
            raise InvalidDefinition(f"more than {_DEEPEST} schemas are composed inside each other; use fewer levels")
        self._counts[id(node)] = 0
        total = 1 + sum(self.count(part, depth + 1) for part in self._composed(node))
        if total > MOST_EVALUATIONS:
            raise InvalidDefinition(
                f"one value would be checked against more than {MOST_EVALUATIONS} schemas, because allOf, anyOf, oneOf "
                "and references multiply; compose fewer of them"
            )
        self._counts[id(node)] = total
        return total

    def _composed(self, node: JsonSchema) -> Iterator[JsonSchema]:
        """The parts that the same value must be checked against."""
        for keyword in _LISTS:
            yield from _schemas(node.get(keyword))
        yield from _schemas([node.get(keyword) for keyword in _SINGLES])
        dependent = node.get("dependentSchemas")
        if isinstance(dependent, dict):
            yield from _schemas(list(cast("JsonSchema", dependent).values()))
        for keyword in _REFERENCES:
            if isinstance(reference := node.get(keyword), str):
                yield from _schemas([self._target(reference)])

    def _target(self, reference: str) -> Json:
        """What a reference leads to: a pointer (RFC 6901), an anchor, or a part with an `$id`.

        One that leads nowhere is data that looks like a reference, since the schema has been compiled; unless parts
        have ids of their own, by which references can be written in more ways than are followed here.
        """
        base, _, fragment = unquote(reference).partition("#")
        node: Json = self._named.get(base) if base else self._root
        if fragment and not fragment.startswith("/"):
            node = self._named.get(fragment)
        elif fragment:
            node = pointed(node, fragment)
        if node is None and self._has_resources:
            raise InvalidDefinition(f"reference {reference!r} cannot be followed; refer to '#/$defs/NAME'")
        return node


def _schemas(found: Json) -> Iterator[JsonSchema]:
    if isinstance(found, list):
        yield from (cast("JsonSchema", item) for item in cast("list[Json]", found) if isinstance(item, dict))


def _objects(schema: JsonSchema) -> Iterator[JsonSchema]:
    """Every object in the schema, whatever it is there for."""
    waiting: list[Json] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield cast("JsonSchema", node)
            waiting += cast("JsonSchema", node).values()
        elif isinstance(node, list):
            waiting += cast("list[Json]", node)
