"""What people call values: a model may write labels where a call carries ids.

`spoken` lets a schema's labelled values be said by label too; `translated` puts the values in their place, also in
pairs such as `{"property": "stage", "value": "Negotiation"}`. A label that two values share stays as it is, and is then
refused with both of them named.
"""

from collections import Counter
from collections.abc import Mapping
from typing import cast

from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.core.providers import ReferenceList, resolve
from toolcrib.core.registry import LABELS


def spoken(schema: JsonSchema) -> JsonSchema:
    """The schema, where a labelled value may be written as its label, if no other value has the same."""
    return cast("JsonSchema", _spoken(schema))


def translated(value: Json, lists: Mapping[str, ReferenceList]) -> Json:
    """The value with labels in place of which the values stand.

    Args:
        value: What a model wrote.
        lists: Reference lists by the name of the property whose values they are.
    """
    if isinstance(value, list):
        return [translated(item, lists) for item in cast("list[Json]", value)]
    if not isinstance(value, dict):
        return value
    node = cast("JsonObject", value)
    pair = paired(node, lists)
    return {name: _valued(item, lists.get(name, pair), lists) for name, item in node.items()}


def paired(node: JsonObject, lists: Mapping[str, ReferenceList]) -> ReferenceList | None:
    """The list of the property that an object names as a value, as filters do; null if it names none."""
    return next((lists[item] for item in node.values() if isinstance(item, str) and item in lists), None)


def _valued(value: Json, values: ReferenceList | None, lists: Mapping[str, ReferenceList]) -> Json:
    if values is not None and isinstance(value, str):
        found = resolve(values, value)
        return value if found is None else found.value
    if values is not None and isinstance(value, list):
        return [_valued(item, values, lists) for item in cast("list[Json]", value)]
    if values is not None and isinstance(value, dict):
        inner = cast("JsonObject", value)
        return {name: _valued(item, lists.get(name, values), lists) for name, item in inner.items()}
    return translated(value, lists)


def _spoken(node: Json) -> Json:
    if isinstance(node, list):
        return [_spoken(item) for item in cast("list[Json]", node)]
    if not isinstance(node, dict):
        return node
    schema = {name: _spoken(item) if name != LABELS else item for name, item in cast("JsonObject", node).items()}
    if LABELS in schema:
        counts = Counter(cast("Mapping[str, str]", schema[LABELS]).values())
        own = [label for label, count in counts.items() if count == 1 and label not in schema["enum"]]
        schema["enum"] = [*schema["enum"], *own]
    return schema
