"""Live enums: schemas closed by the valid values that a system has right now.

A reference list says which properties it applies to. In every schema that the model sees and that its calls must
meet, these properties become enums, with what people call the values beside them. So an unknown stage is refused
before any call.
"""

from collections.abc import Iterable, Mapping
from typing import cast

from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.providers import ReferenceList
from toolcrib.registry import LABELS

_MOST_VALUES = 500
"""A longer list is context, not an enum: providers refuse larger ones."""


def narrow(schema: JsonSchema, enums: Mapping[str, ReferenceList]) -> JsonSchema:
    """The schema with every listed property closed to its list's values; the given schema if nothing applies.

    Args:
        schema: JSON Schema of a tool's input.
        enums: Reference lists by property name.
    """
    usable = {name: values for name, values in enums.items() if 0 < len(values.items) <= _MOST_VALUES}
    return cast("JsonSchema", _narrowed(schema, usable)) if usable else schema


def enums_of(lists: Iterable[tuple[tuple[str, ...], ReferenceList]]) -> dict[str, ReferenceList]:
    """Reference lists by the property names that they apply to."""
    return {name: values for names, values in lists for name in names}


def shown_to_models(schema: Json) -> Json:
    """The schema as a model gets it: labels in descriptions, where every provider accepts them."""
    if isinstance(schema, list):
        return [shown_to_models(item) for item in cast("list[Json]", schema)]
    if not isinstance(schema, dict):
        return schema
    node = cast("JsonObject", schema)
    shown = {name: shown_to_models(item) for name, item in node.items() if name != LABELS}
    if LABELS in node:
        labels = cast("Mapping[str, str]", node[LABELS])
        meaning = "; ".join(f"{value} = {label}" for value, label in labels.items())
        shown["description"] = f"{node.get('description', '')} One of: {meaning}".strip()
    return shown


def _narrowed(node: Json, enums: Mapping[str, ReferenceList]) -> Json:
    if isinstance(node, list):
        return [_narrowed(item, enums) for item in cast("list[Json]", node)]
    if not isinstance(node, dict):
        return node
    result: JsonObject = {}
    for name, item in cast("JsonObject", node).items():
        if name == "properties" and isinstance(item, dict):
            result[name] = {
                key: _closed(part, enums[key]) if key in enums else _narrowed(part, enums)
                for key, part in cast("JsonObject", item).items()
            }
        else:
            result[name] = _narrowed(item, enums)
    return result


def _closed(node: Json, values: ReferenceList) -> JsonSchema:
    kept = {name: item for name, item in cast("JsonObject", node).items() if name not in ("type", "enum", "pattern")}
    labels = {str(item.value): item.label for item in values.items if item.label != str(item.value)}
    return {**kept, "enum": [item.value for item in values.items], **({LABELS: labels} if labels else {})}
