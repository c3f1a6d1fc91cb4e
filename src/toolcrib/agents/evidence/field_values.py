"""Types of fields by name, from tools' schemas, and conversion of text in plans to numbers.

A field such as a condition's `value` accepts texts and numbers; the type of the field that the condition names
decides.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Literal, TypeAlias, cast

from toolcrib.agents.evidence import Leaf, Lists, Step, as_number, leaves_of
from toolcrib.agents.evidence.plan_schema import composing, replace_at
from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.core.registry import LABELS

Kind: TypeAlias = Literal["number", "text", "day"]
Kinds: TypeAlias = Mapping[str, Kind]
"""What a field holds, by its name; fields of other or of several kinds are not in it."""

_NUMBERS = frozenset({"number", "integer"})
_SHORTEST = 3
"""Letters of a name."""


def kinds_of(schemas: Iterable[JsonSchema]) -> Kinds:
    """What the fields hold that these schemas describe."""
    found = defaultdict[str, set[Kind | None]](set)
    for schema in schemas:
        for name, field in property_schemas(schema):
            found[name].add(_kind(field, schema))
    return {name: kind for name, kinds in found.items() if len(kinds) == 1 and (kind := next(iter(kinds))) is not None}


def property_names(schema: JsonSchema) -> list[str]:
    """The name of every property in a schema."""
    return [name for name, _ in property_schemas(schema)]


def value_names(schema: JsonSchema) -> set[str]:
    """What people call the values that a schema names, fields and the words of comparisons left out."""
    fields = frozenset(property_names(schema))
    return {name for name in _names(schema, fields) if len(name) >= _SHORTEST and not name.isupper()}


def enum_words(schema: Json) -> set[str]:
    """Every word of a closed vocabulary in a schema: conditions name their fields by such words."""
    if isinstance(schema, list):
        return {word for item in cast("list[Json]", schema) for word in enum_words(item)}
    if not isinstance(schema, dict):
        return set()
    node = cast("JsonObject", schema)
    own = {word for word in node.get("enum", ()) if isinstance(word, str)}
    return own.union(*(enum_words(item) for item in node.values()))


def _names(node: Json, fields: Collection[str]) -> Iterator[str]:
    if isinstance(node, list):
        for item in cast("list[Json]", node):
            yield from _names(item, fields)
    elif isinstance(node, dict):
        inner = cast("JsonObject", node)
        labels: Mapping[str, str] = inner.get(LABELS, {})
        words = (word for word in inner.get("enum", ()) if isinstance(word, str) and word not in fields)
        yield from (labels.get(word, word.replace("_", " ")) for word in words)
        for name, item in inner.items():
            if name not in {"enum", LABELS}:
                yield from _names(item, fields)


def with_numbers(step: Step, lists: Lists, kinds: Kinds) -> JsonObject:
    """The step's input, where texts that are numbers are numbers if their field wants them."""
    result: Json = step.input
    for leaf in leaves_of(step, lists):
        number = as_number(leaf.value) if isinstance(leaf.value, str) else None
        if number is not None and _wants_number(leaf, kinds):
            whole = number == number.to_integral_value()
            result = replace_at(result, leaf.path, int(number) if whole else float(number))
    return cast("JsonObject", result)


def _wants_number(leaf: Leaf, kinds: Kinds) -> bool:
    types = {kind for part in leaf.parts for kind in types_of(part)}
    if _NUMBERS.isdisjoint(types):
        return False
    return "string" not in types or kinds.get(leaf.name) == "number"


def property_schemas(node: Json) -> Iterator[tuple[str, Json]]:
    """Every property in a schema, with its name."""
    if isinstance(node, list):
        for item in cast("list[Json]", node):
            yield from property_schemas(item)
    elif isinstance(node, dict):
        inner = cast("JsonObject", node)
        if isinstance(inner.get("properties"), dict):
            yield from cast("JsonObject", inner["properties"]).items()
        for item in inner.values():
            yield from property_schemas(item)


def _kind(field: Json, root: JsonSchema) -> Kind | None:
    parts = composing(field, root)
    types = {kind for part in parts for kind in types_of(part)} - {"null"}
    if types and types <= _NUMBERS:
        return "number"
    if types != {"string"} or any("enum" in part or "const" in part for part in parts):
        return None
    formats = {part.get("format") for part in parts} - {None}
    return "text" if not formats else "day" if formats <= {"date", "date-time"} else None


def types_of(part: JsonSchema) -> list[str]:
    """The JSON types that a schema names."""
    types = part.get("type", [])
    return [types] if isinstance(types, str) else list(types)
