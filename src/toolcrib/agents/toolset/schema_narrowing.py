"""Adds the current valid values of reference lists to schemas, as enums with labels.

A list names the properties that it applies to. They become enums in every schema that the model sees and that its
calls must match, so an unknown value is refused before any call.
"""

from collections.abc import Iterable, Mapping
from typing import cast

from toolcrib.contracts import Json, JsonObject, JsonSchema, ToolDefinition
from toolcrib.core.providers import ReferenceList
from toolcrib.core.registry import LABELS
from toolcrib.kinds.http.shape import HttpImplementation

_NULL: JsonSchema = {"type": "null"}
_REPLACED = frozenset({"$ref", "const", "enum", "format", "maxLength", "minLength", "pattern", "type"})
"""What a property says about its values, until a list says which there are."""
_MOST_VALUES = 500
"""A longer list is checked, but not shown: providers refuse larger enums."""


def narrow(schema: JsonSchema, enums: Mapping[str, ReferenceList]) -> JsonSchema:
    """The schema with every listed property closed to its list's values; the given schema if nothing applies.

    Args:
        schema: JSON Schema of a tool's input.
        enums: Reference lists by property name.
    """
    usable = {name: values for name, values in enums.items() if values.items}
    return cast("JsonSchema", _narrow_node(schema, usable)) if usable else schema


def without_cursor(definition: ToolDefinition) -> JsonSchema:
    """A tool's input schema without the argument that picks one page, since the runtime follows the pages."""
    schema, implementation = definition.input_schema, definition.implementation
    if not isinstance(implementation, HttpImplementation) or implementation.paging is None:
        return schema
    cursor = implementation.paging.start_argument
    properties = {name: item for name, item in schema.get("properties", {}).items() if name != cursor}
    return {**schema, "properties": properties}


def enums_of(lists: Iterable[ReferenceList]) -> dict[str, ReferenceList]:
    """Reference lists by the property names that they apply to."""
    return {name: values for values in lists for name in values.applies_to}


def schema_for_models(schema: Json) -> Json:
    """The schema as a model gets it: labels in descriptions, where every provider accepts them."""
    if isinstance(schema, list):
        return [schema_for_models(item) for item in cast("list[Json]", schema)]
    if not isinstance(schema, dict):
        return schema
    node = cast("JsonObject", schema)
    shown = {name: schema_for_models(item) for name, item in node.items() if name != LABELS}
    values = cast("list[Json]", node["enum"]) if isinstance(node.get("enum"), list) else []
    description = node.get("description", "")
    if len(values) > _MOST_VALUES:
        del shown["enum"]
        shown["type"] = _types_of(values)
        shown["description"] = (
            f"{description} One of {len(values)} values; another is refused with the closest.".strip()
        )
    elif LABELS in node:
        labels = cast("Mapping[str, str]", node[LABELS])
        meaning = "; ".join(f"{value} = {label}" for value, label in labels.items())
        shown["description"] = f"{description} One of: {meaning}".strip()
    return shown


def _types_of(values: Iterable[Json]) -> list[str]:
    """The JSON types of some values, which are texts, numbers, booleans or null."""
    return sorted({_type_of(value) for value in values})


def _type_of(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case _:
            return "number"


def _narrow_node(node: Json, enums: Mapping[str, ReferenceList]) -> Json:
    if isinstance(node, list):
        return [_narrow_node(item, enums) for item in cast("list[Json]", node)]
    if not isinstance(node, dict):
        return node
    result: JsonObject = {}
    for name, item in cast("JsonObject", node).items():
        if name == "properties" and isinstance(item, dict):
            result[name] = {
                key: _with_values(part, enums[key]) if key in enums else _narrow_node(part, enums)
                for key, part in cast("JsonObject", item).items()
            }
        else:
            result[name] = _narrow_node(item, enums)
    return result


def _with_values(node: Json, values: ReferenceList) -> Json:
    """The property's schema with the list's values only; a list of them, and null, stay what they were."""
    if not isinstance(node, dict):
        return {"enum": [item.value for item in values.items]}
    schema = cast("JsonObject", node)
    if "items" in schema:
        return {**schema, "items": _with_values(schema["items"], values)}
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            return {
                **schema,
                keyword: [part if part == _NULL else _with_values(part, values) for part in schema[keyword]],
            }
    if "properties" in schema:
        inner = cast("JsonObject", schema["properties"])
        return {**schema, "properties": {name: _with_values(part, values) for name, part in inner.items()}}
    kept = {name: item for name, item in schema.items() if name not in _REPLACED}
    labels = {str(item.value): item.label for item in values.items if item.label != str(item.value)}
    nothing = [None] if "null" in schema.get("type", ()) or None in schema.get("enum", ()) else []
    enum = [*(item.value for item in values.items), *nothing]
    return {**kept, "enum": enum, **({LABELS: labels} if labels else {})}
