"""What an object schema offers at its top level, seen through references and `allOf`. Reads raw Schema Objects."""

from dataclasses import dataclass
from typing import Final

from toolcrib.contracts import Json, JsonObject
from toolcrib.providers.openapi.document import Document
from toolcrib.providers.openapi.keywords import is_annotation
from toolcrib.providers.openapi.views import entries, members, texts

_MAX_DEPTH: Final = 16
_PLAIN: Final = frozenset(
    {"additionalProperties", "allOf", "deprecated", "description", "properties", "required", "type"}
)


@dataclass(frozen=True, slots=True)
class Shape:
    """The named properties of an object schema."""

    properties: dict[str, Json]
    """Raw schemas by name."""
    required: frozenset[str]
    plain: bool
    """Whether the properties say everything: no other composition, no open or bounded set of members."""


def shape_of(document: Document, schema: Json) -> Shape:
    """The shape of a schema; without properties and not plain if it is no object schema."""
    return _shape(document, schema, 0)


def _shape(document: Document, schema: Json, depth: int) -> Shape:
    found = document.resolve(schema)
    if found is None or depth > _MAX_DEPTH:
        return Shape({}, frozenset(), plain=False)
    properties: dict[str, Json] = dict(members(found.get("properties")))
    required = frozenset(texts(found.get("required")))
    plain = _is_plain(found)
    for member in entries(found.get("allOf")):
        part = _shape(document, member, depth + 1)
        plain = plain and part.plain and not (properties.keys() & part.properties.keys())
        properties = {**part.properties, **properties}
        required |= part.required
    return Shape(properties, required, plain)


def _is_plain(schema: JsonObject) -> bool:
    if schema.get("type", "object") != "object" or schema.get("additionalProperties", False) is not False:
        return False
    return all(keyword in _PLAIN or is_annotation(keyword) for keyword in schema)
