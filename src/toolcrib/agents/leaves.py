"""The values in a planned step's input, each with what its schema, its neighbours and the reference lists say of it.

A walk over data and schemas: it judges nothing and changes nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from toolcrib.agents.labels import paired
from toolcrib.agents.plan import composing
from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.providers import ReferenceList

Path: TypeAlias = tuple[str | int, ...]
Lists: TypeAlias = Mapping[str, ReferenceList]
"""Reference lists by the name of the property whose values they are."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step that is not skipped."""

    id: str
    input: JsonObject
    schema: JsonSchema
    writes: bool
    for_each: str | None = None


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value in a step's input."""

    path: Path
    value: Json
    name: str
    """The property that it is a value of, also where a pair names that property."""
    parts: Sequence[JsonSchema]
    listed: ReferenceList | None
    removable: Path
    """The smallest thing around it that may be left out; empty if there is none."""
    around: JsonObject
    """The object that it stands in, nearest first: in a condition, what is compared and how."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a walk through an input is."""

    step: Step
    lists: Lists
    path: Path
    name: str
    listed: ReferenceList | None
    removable: Path
    around: JsonObject


def leaves_of(step: Step, lists: Lists) -> Iterator[Leaf]:
    """Every value of a step's input that is no object and no list."""
    yield from _walk(step.input, step.schema, _Place(step, lists, (), "", None, (), {}))


def _walk(value: Json, node: Json, at: _Place) -> Iterator[Leaf]:
    parts = composing(node, at.step.schema)
    if isinstance(value, dict):
        yield from _walk_object(cast("JsonObject", value), parts, at)
    elif isinstance(value, list):
        items: Json = next((part["items"] for part in parts if "items" in part), None)
        elements = cast("list[Json]", value)
        for place, element in enumerate(elements):
            path = (*at.path, place)
            may_go = path if not at.step.writes or len(elements) > 1 else at.removable
            yield from _walk(element, items, replace(at, path=path, removable=may_go))
    else:
        yield Leaf(at.path, value, at.name, parts, at.listed, at.removable, at.around)


def _walk_object(value: JsonObject, parts: Sequence[JsonSchema], at: _Place) -> Iterator[Leaf]:
    required = {name for part in parts for name in part.get("required", ())}
    pair = paired(value, at.lists)
    in_condition = bool(at.path) and isinstance(at.path[-1], int) and not at.step.writes
    subject = _subject(value, parts, at.step.schema) if in_condition else None
    for name, item in value.items():
        schema = _property(parts, name)
        path = (*at.path, name)
        may_go = at.removable if in_condition or name in required else path
        closed = any(item in part.get("enum", ()) for part in composing(schema, at.step.schema))
        listed = at.lists.get(name, None if closed else pair)
        meant = subject if subject is not None and item != subject else name
        yield from _walk(item, schema, _Place(at.step, at.lists, path, meant, listed, may_go, value))


def _property(parts: Sequence[JsonSchema], name: str) -> Json:
    return next((part["properties"][name] for part in parts if name in part.get("properties", ())), None)


def _subject(value: JsonObject, parts: Sequence[JsonSchema], root: JsonSchema) -> str | None:
    """What a condition is about: its first member from a closed vocabulary, such as `{"property": "amount", …}`."""
    for name, item in value.items():
        schema = _property(parts, name)
        if isinstance(item, str) and any(item in part.get("enum", ()) for part in composing(schema, root)):
            return item
    return None
