"""What an object schema offers at its top level, seen through references and `allOf`. Reads raw Schema Objects."""

from dataclasses import dataclass
from typing import Final

from toolcrib.kinds.http.openapi.read.library import Library
from toolcrib.kinds.http.openapi.read.nodes import Node
from toolcrib.kinds.http.openapi.schemas.keywords import ANNOTATIONS

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


def followed(library: Library, schema: Node) -> Node:
    """A schema, or what its references lead to; a null node if that is nothing."""
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
    """The shape of a schema; without properties and not plain if it is no object schema."""
    return _shape(library, schema, set())


def _shape(library: Library, schema: Node, seen: set[str]) -> Shape:
    """The shape; a part that was seen before says nothing new, so that no composition takes more than its size."""
    found = followed(library, schema)
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
