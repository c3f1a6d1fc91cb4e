"""Facts about the values that match several JSON Schemas at once: types, bounds, properties and items.

Facts are upper bounds: every matching value has them, and unknown keywords add none. `Side` resolves references within
one document.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, TypeAlias, cast

from toolcrib.contracts import Json, JsonObject, JsonSchema, canonical, resolve_pointer

Values: TypeAlias = tuple[Json, ...]
"""Schemas, all of which a value meets."""

ALL_KINDS: Final = frozenset({"null", "boolean", "object", "array", "string", "integer", "fraction"})
"""The types of JSON Schema, with numbers in two disjoint halves."""
NUMBERS: Final = frozenset({"integer", "fraction"})
UNIONS: Final = ("anyOf", "oneOf")
_NAMING: Final = (*UNIONS, "if", "then", "else", "dependentSchemas", "$dynamicRef", "patternProperties")
"""Keywords by which more properties may be known than `properties` tells."""
_NOTHING: Final[JsonSchema] = {"not": {}}
_MOST_FOLLOWED: Final = 200


class Side:
    """One document, and what its references lead to.

    Args:
        root: The schema; references are JSON pointers into it (RFC 6901).
    """

    def __init__(self, root: Json) -> None:
        self.root = root

    def parts(self, nodes: Iterable[Json]) -> tuple[JsonSchema, ...]:
        """The schemas without what composes them: references and `allOf` are followed, each once."""
        found: dict[int, JsonSchema] = {}
        waiting = list(nodes)[::-1]
        while waiting:
            node = waiting.pop()
            if node is False:
                return (_NOTHING,)
            if not isinstance(node, dict) or id(cast("JsonSchema", node)) in found:
                continue
            schema = cast("JsonSchema", node)
            found[id(schema)] = schema
            composed = schema.get("allOf")
            waiting += reversed(cast("list[Json]", composed) if isinstance(composed, list) else [])
            if "$ref" in schema:
                waiting.append(self.target(schema["$ref"]))
        return tuple(found.values())

    def target(self, reference: Json) -> Json:
        """What a reference leads to; null if it leads out of the document, or nowhere."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            return None
        return resolve_pointer(self.root, reference)


class Facts:
    """What holds for every value that meets all parts.

    Args:
        parts: As `Side.parts` finds them.
        closed: An object that declares properties and says nothing of others has no others.
    """

    def __init__(self, parts: Sequence[JsonSchema], *, closed: bool = False) -> None:
        self.parts = parts
        self._closed = closed

    @cached_property
    def types(self) -> frozenset[str]:
        """The kinds that a value may be of; empty if there is no value."""
        if _NOTHING in self.parts:
            return frozenset()
        kinds = ALL_KINDS
        for part in self.parts:
            kinds &= kinds_of(part.get("type"))
        return kinds if self.values is None else kinds & {kind_of(value) for value in self.values.values()}

    @cached_property
    def values(self) -> dict[bytes, Json] | None:
        """The only values, by their canonical form; null if there are too many to be listed."""
        found: dict[bytes, Json] | None = None
        for part in self.parts:
            for listed in enumerations(part):
                kept = {canonical(value): value for value in listed}
                found = kept if found is None else {key: found[key] for key in found if key in kept}
        return found

    def numbers(self) -> list[float]:
        """The listed values that are numbers."""
        listed = (self.values or {}).values()
        return [value for value in listed if isinstance(value, int | float) and not isinstance(value, bool)]

    def values_for(self, keyword: str) -> list[Any]:
        """What the parts say for a keyword."""
        return [part[keyword] for part in self.parts if keyword in part]

    @cached_property
    def required(self) -> frozenset[str]:
        """Properties that an object has."""
        return frozenset(name for names in self.values_for("required") for name in cast("list[str]", names or []))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Declared properties."""
        return tuple(dict.fromkeys(name for part in self.parts for name in properties_of(part)))

    @cached_property
    def describes_objects(self) -> bool:
        """Whether a property that is not declared is none: others are, and no other keyword may know it."""
        has_properties = bool(self.names) or False in self.values_for("additionalProperties")
        return has_properties and not any(key in part for part in self.parts for key in _NAMING)

    def property(self, name: str | None, *, beside: Iterable[str] = ()) -> Values:
        """What the value of a property meets.

        Args:
            name: The property; null stands for any that no part declares.
            beside: Patterns that its name does not match.
        """
        found: list[Json] = []
        is_declared = False
        for part in self.parts:
            declared = properties_of(part)
            if name is not None and name in declared:
                found.append(declared[name])
                is_declared = True
            elif not patterns_of(part) <= set(beside):
                is_declared = True
            elif "additionalProperties" in part:
                found.append(part["additionalProperties"])
                is_declared = True
        if not is_declared and self._closed and self.describes_objects:
            return (False,)
        return tuple(found)

    def item(self, index: int | None) -> Values:
        """What the item of a list meets; null stands for those behind all that are described one by one."""
        found: list[Json] = []
        for part in self.parts:
            first = items_of(part)
            if index is not None and index < len(first):
                found.append(first[index])
            elif "items" in part:
                found.append(part["items"])
        return tuple(found)


def properties_of(part: JsonSchema) -> JsonObject:
    """The declared properties."""
    found = part.get("properties")
    return cast("JsonObject", found) if isinstance(found, dict) else {}


def patterns_of(part: JsonSchema) -> frozenset[str]:
    """Patterns of names whose properties are described."""
    return frozenset(cast("JsonObject", part.get("patternProperties") or {}))


def items_of(part: JsonSchema) -> Sequence[Json]:
    """The items that are described one by one."""
    found = part.get("prefixItems")
    return cast("list[Json]", found) if isinstance(found, list) else ()


def branches_of(part: JsonSchema, keyword: str) -> Sequence[Json]:
    """The alternatives of a union."""
    found = part.get(keyword)
    return cast("list[Json]", found) if isinstance(found, list) else ()


def enumerations(part: JsonSchema) -> Iterator[Sequence[Json]]:
    """The lists of values that a part allows: of `enum`, and of `const`."""
    if isinstance(part.get("enum"), list):
        yield part["enum"]
    if "const" in part:
        yield [part["const"]]


def kinds_of(declared: Json) -> frozenset[str]:
    """The kinds that `type` allows; all if it is absent."""
    if declared is None:
        return ALL_KINDS
    names = cast("list[str]", declared if isinstance(declared, list) else [declared])
    return ALL_KINDS & {kind for name in names for kind in (NUMBERS if name == "number" else {name})}


def kind_of(value: Json) -> str:
    """The kind of a value; 2.0 is an integer, as JSON Schema says."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "fraction"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def type_names(kinds: frozenset[str]) -> tuple[str, ...]:
    """Kinds as `type` names them, in order."""
    if "fraction" in kinds:
        kinds = kinds - NUMBERS | {"number"}
    return tuple(sorted(kinds))


def are_disjoint(side: Side, branches: Sequence[Json]) -> bool:
    """Whether no value can meet two of the schemas, as far as their types and their fixed properties tell."""
    facts = [Facts(side.parts([branch])) for branch in branches]
    return all(_apart(side, one, other) for index, one in enumerate(facts) for other in facts[:index])


def _apart(side: Side, one: Facts, other: Facts) -> bool:
    if not one.types & other.types:
        return True
    if one.values is not None and other.values is not None and not one.values.keys() & other.values.keys():
        return True
    if len(one.types | other.types) > 1 or "object" not in one.types:
        return False
    for name in one.required & other.required:
        first, second = (Facts(side.parts(facts.property(name))).values for facts in (one, other))
        if first is not None and second is not None and not first.keys() & second.keys():
            return True
    return False


def has_resources(root: Json) -> bool:
    """Whether parts have an `$id` of their own, from which their references would have to be followed."""
    return any(isinstance(node.get("$id"), str) for node in _objects(root) if node is not root)


def is_same(a: Side, x: Json, b: Side, y: Json) -> bool:
    """Whether two schemas are equal to the letter, with all that their references lead to, if that is not too much."""
    followed: set[str] = set()
    waiting = [(x, y)]
    while waiting:
        left, right = waiting.pop()
        if canonical(left) != canonical(right):
            return False
        for reference in _references(left):
            if reference not in followed:
                followed.add(reference)
                if len(followed) > _MOST_FOLLOWED:
                    return False
                ends = a.target(reference), b.target(reference)
                if None in ends:
                    return False
                waiting.append(ends)
    return True


def _references(node: Json) -> Iterator[str]:
    for schema in _objects(node):
        for keyword in ("$ref", "$dynamicRef"):
            if isinstance(schema.get(keyword), str):
                yield schema[keyword]


def _objects(node: Json) -> Iterator[JsonObject]:
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            schema = cast("JsonObject", found)
            yield schema
            waiting += schema.values()
        elif isinstance(found, list):
            waiting += cast("list[Json]", found)
