"""Shapes: the possible forms of a value, each given by a schema or built here, and their JSON Schema.

A shape is an upper bound: every value has one of its forms. Schemas are read as their authors mean them: an object
with declared properties has no others, unless the schema says so. Publishing uses the JSON Schema as a workflow's
output schema if the author gives none; what is unknown stays open.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from toolcrib.contracts import InvalidDefinition, Json, JsonObject, JsonSchema, canonical
from toolcrib.core.registry import compile_schema
from toolcrib.core.registry.schema.value_facts import ALL_KINDS, NUMBERS, UNIONS, Facts, Side, kind_of, type_names

_MOST_FORMS: Final = 32


class Form(ABC):
    """One form that a value may have."""

    kinds: frozenset[str]
    """The types that it may be of, as `registry.facts` names them."""
    values: frozenset[bytes] | None = None
    """The only values, in canonical form; null if they are not known."""
    why_null: str | None = None
    """Why there may be nothing, if a step may be left out."""

    @property
    @abstractmethod
    def required(self) -> frozenset[str]:
        """Members that an object certainly has."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """Members that an object has or may have, as far as they are known."""

    @abstractmethod
    def member(self, name: str) -> "Shape | None":
        """What an object has under a name; null if it certainly has nothing."""

    @abstractmethod
    def item(self, index: int | None) -> "Shape":
        """What a list has at a place; null for any."""


Shape: TypeAlias = tuple[Form, ...]
"""The forms that a value may have; none if there is no value."""


@dataclass(frozen=True, eq=False)
class Made(Form):
    """A form that follows from an expression, or from how workflows run."""

    kinds: frozenset[str] = ALL_KINDS
    values: frozenset[bytes] | None = None
    members: Mapping[str, Shape] | None = None
    """All members of an object; null if they are not known."""
    optional: frozenset[str] = frozenset()
    """Those of them that it need not have."""
    items: Shape | None = None
    why_null: str | None = None

    @property
    def required(self) -> frozenset[str]:
        """All members but the optional ones."""
        return frozenset(self.members or ()) - self.optional

    @property
    def names(self) -> Sequence[str]:
        """All members."""
        return tuple(self.members or ())

    def member(self, name: str) -> Shape | None:
        """Anything, if the members are not known."""
        if self.members is None:
            return ANYTHING
        return self.members.get(name)

    def item(self, index: int | None) -> Shape:
        """The same at each place."""
        del index
        return ANYTHING if self.items is None else self.items


class Described(Form):
    """A form that a schema describes.

    Args:
        side: The document.
        parts: Schemas in it, all of which the value meets; none of them has a union that is not looked at.
    """

    def __init__(self, side: Side, parts: tuple[JsonSchema, ...]) -> None:
        self._side = side
        self._facts = Facts(parts, closed=True)
        self.parts = parts
        self.kinds = self._facts.types
        self.values = None if self._facts.values is None else frozenset(self._facts.values)
        self.refuses_others = self._facts.describes_objects and False in self._facts.values_for("additionalProperties")
        """Whether an object with a member that is not declared is none of these."""

    @property
    def required(self) -> frozenset[str]:
        """Members that the schema requires."""
        return self._facts.required

    @property
    def names(self) -> Sequence[str]:
        """Members that the schema declares."""
        return self._facts.names

    def member(self, name: str) -> Shape | None:
        """What the schema says of it."""
        nodes = self._facts.property(name)
        return None if False in nodes else shape_of_nodes(self._side, nodes)

    def item(self, index: int | None) -> Shape:
        """What the schema says of the place, or of all."""
        return shape_of_nodes(self._side, self._facts.item(index))


ANYTHING: Final[Shape] = (Made(),)
"""Nothing is known."""


def of_kinds(*kinds: str) -> Shape:
    """A value of one of these types, of which no more is known."""
    return (Made(frozenset(kinds)),)


BOOLEAN: Final = of_kinds("boolean")
INTEGER: Final = of_kinds("integer")
NUMBER: Final = of_kinds(*NUMBERS)
STRING: Final = of_kinds("string")


def schema_shape(schema: JsonSchema | None) -> Shape:
    """What a schema describes; null, and what is no schema, describe nothing."""
    if schema is None:
        return ANYTHING
    try:
        compile_schema(schema)
    except InvalidDefinition:
        return ANYTHING
    return shape_of_nodes(Side(schema), (schema,))


def shape_of_nodes(side: Side, nodes: Iterable[Json]) -> Shape:
    """What schemas of one document describe together, with a form for each alternative of their unions."""
    waiting = [side.parts(nodes)]
    found: list[Form] = []
    while waiting:
        parts = waiting.pop()
        place = next(
            (at for at, part in enumerate(parts) if any(isinstance(part.get(key), list) for key in UNIONS)), None
        )
        if place is None or len(found) + len(waiting) >= _MOST_FORMS:
            found.append(Described(side, parts) if parts else ANYTHING[0])
            continue
        keyword = next(key for key in UNIONS if isinstance(parts[place].get(key), list))
        without = {key: value for key, value in parts[place].items() if key != keyword}
        around = (*parts[:place], without, *parts[place + 1 :])
        branches = cast("list[Json]", parts[place][keyword])
        waiting.extend((*around, *side.parts([branch])) for branch in reversed(branches))
    return tuple(form for form in found if form.kinds)


def constant(value: Json) -> Shape:
    """A value that is known."""
    if isinstance(value, dict):
        members = {name: constant(member) for name, member in cast("JsonObject", value).items()}
        return object_shape(members)
    if isinstance(value, list):
        return list_shape(union_of(constant(item) for item in cast("list[Json]", value)))
    return (Made(frozenset({kind_of(value)}), frozenset({canonical(value)})),)


def object_shape(members: Mapping[str, Shape], optional: Iterable[str] = ()) -> Shape:
    """An object with these members and no others; some of them may be missing."""
    return (Made(frozenset({"object"}), members=members, optional=frozenset(optional)),)


def list_shape(items: Shape) -> Shape:
    """A list of such items."""
    return (Made(frozenset({"array"}), items=items),)


def union_of(shapes: Iterable[Shape]) -> Shape:
    """A value of one of several shapes."""
    found = tuple(dict.fromkeys(form for shape in shapes for form in shape))
    return found if len(found) <= _MOST_FORMS else of_kinds(*kinds_in(found))


def or_null(shape: Shape, why: str | None = None) -> Shape:
    """The same, or nothing."""
    return (*shape, Made(frozenset({"null"}), why_null=why))


def items_in(shape: Shape) -> Shape:
    """An element of the list that a value is; anything if it is none."""
    return union_of(form.item(None) for form in shape if "array" in form.kinds) or ANYTHING


def kinds_in(shape: Shape) -> frozenset[str]:
    """The types that a value may be of."""
    return frozenset[str]().union(*(form.kinds for form in shape))


def article(noun: str) -> str:
    """A noun with the article that it has."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def spoken(shape: Shape) -> str:
    """The types of a value in words: `an array or null`."""
    return " or ".join(name if name == "null" else article(name) for name in type_names(kinds_in(shape)))


def is_known(shape: Shape) -> bool:
    """Whether anything is known of it."""
    return all(form.kinds != ALL_KINDS or form.values is not None for form in shape)


def is_only(kinds: frozenset[str], kind: str) -> bool:
    """Whether types are this one alone."""
    return kinds == frozenset({kind})


_DEEPEST: Final = 5
_MOST_MEMBERS: Final = 100
_FOLLOWED: Final = frozenset({"$ref", "$dynamicRef", "$defs", "definitions", "$schema", "$id", "allOf"})
"""Keywords that mean something else, or nothing, in another document."""


def schema_of(shape: Shape) -> JsonSchema | None:
    """The schema of a shape; null if nothing can be said."""
    return _of_shape(shape, 0) or None


def _of_shape(shape: Shape, depth: int) -> JsonSchema:
    schemas: list[JsonSchema] = []
    for form in shape:
        schema = _of_form(form, depth)
        if not schema:
            return {}
        if schema not in schemas:
            schemas.append(schema)
    return _either(schemas)


def _either(schemas: Sequence[JsonSchema]) -> JsonSchema:
    match schemas:
        case []:
            return {}
        case [only]:
            return only
        case _:
            return {"anyOf": list(schemas)}


def _of_form(form: Form, depth: int) -> JsonSchema:
    if form.kinds == ALL_KINDS:
        return {}
    types = type_names(form.kinds)
    typed: JsonSchema = {"type": types[0] if len(types) == 1 else list(types)}
    if depth < _DEEPEST and isinstance(form, Made):
        return {**typed, **_inside(form, depth)}
    if isinstance(form, Described) and len(form.parts) == 1 and not _follows(form.parts[0]):
        return dict(form.parts[0])
    return typed


def _inside(form: Made, depth: int) -> JsonObject:
    if form.items is not None:
        items = _of_shape(form.items, depth + 1)
        return {"items": items} if items else {}
    if form.members is None or len(form.members) > _MOST_MEMBERS:
        return {}
    members = {name: _of_shape(member, depth + 1) for name, member in form.members.items()}
    return {"properties": members, "required": sorted(form.required)}


def _follows(node: object) -> bool:
    """Whether a schema leads somewhere in its document."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        match found:
            case dict():
                if _FOLLOWED & found.keys():
                    return True
                waiting += found.values()
            case list():
                waiting += found
            case _:
                pass
    return False
