"""Lists the values in a planned step's input, each with facts from its schema, neighbours and reference lists.

It decides and changes nothing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, cast

from toolcrib.agents.evidence.plan_schema import composing
from toolcrib.agents.evidence.word_matching import list_named_in
from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.core.providers import ReferenceList

Path: TypeAlias = tuple[str | int, ...]
Lists: TypeAlias = Mapping[str, ReferenceList]
"""Reference lists by the name of the property whose values they are."""

_LITERAL: Final = re.compile(r"'((?:[^']|'')*)'|(\d{4}-\d\d-\d\d(?:T[\d:.]+Z?)?)|(?<![\w.-])(-?\d+(?:\.\d+)?)(?![\w.])")
_COMPARED: Final = re.compile(
    r"([A-Za-z_][\w./]*)\s*(,|\s(?:eq|ne|gt|ge|lt|le|in|like)\b|[=<>!:~]+)[\s(]*$", re.IGNORECASE
)
_EXPRESSION: Final = re.compile(r"[\w)]\s+(?:eq|ne|gt|ge|lt|le|in)\s+[\w'(]|[=<>]|\w\([\w.]+,\s*'", re.IGNORECASE)
_IDENTIFYING: Final = re.compile(r"(?:^|_)(?:ids?|uuid|guid|key)$|[a-z](?:Ids?|ID|Key)$")


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
    compared: bool = False
    """It stands in a condition."""
    operator: str = ""
    """Of a literal in a filter expression."""
    in_pair: bool = False
    """It stands in a condition that names its field and its comparison beside the value."""

    @property
    def choices(self) -> tuple[Json, ...]:
        """The values that its schema allows, if it names them."""
        return next((tuple(part["enum"]) for part in self.parts if "enum" in part), ())

    @property
    def comparison(self) -> str:
        """How it is compared, in the words of the tool's own schema; empty if nothing says it, or it is set."""
        if not self.compared:
            return ""
        if isinstance(self.path[-1], str) and self.path[-1] != self.name and len(self.path) > 1:
            beside = [
                item
                for item in self.around.values()
                if isinstance(item, str) and item not in {self.value, self.name} and "${" not in item
            ]
            return beside[0] if beside else str(self.path[-1])
        return self.operator

    @property
    def identifies(self) -> bool:
        """Whether it names one record: by its field, or because it is a code or an address."""
        if self.listed is not None or self.choices or isinstance(self.value, bool | float):
            return False
        if _IDENTIFYING.search(self.name):
            return True
        text = self.value if isinstance(self.value, str) else ""
        return "@" in text and not re.search(r"\s", text)


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
    compared: bool = False
    in_pair: bool = False


def leaves_of(step: Step, lists: Lists) -> Iterator[Leaf]:
    """Every value of a step's input that is no object and no list; of a filter expression, each of its literals."""
    for leaf in _walk(step.input, step.schema, _Place(step, lists, (), "", None, (), {})):
        literals = list(_literals(leaf, lists)) if isinstance(leaf.value, str) else []
        yield from literals or (leaf,)


def is_reference(value: Json) -> bool:
    """Whether a value comes from an earlier step, all of it or a part."""
    return isinstance(value, str) and "${" in value


def _literals(leaf: Leaf, lists: Lists) -> Iterator[Leaf]:
    """The values inside a filter expression such as `status eq 'open' and total gt 500`."""
    text = str(leaf.value)
    if leaf.choices or leaf.listed is not None or not _EXPRESSION.search(text):
        return
    for found in _LITERAL.finditer(text):
        field = _COMPARED.search(text[: found.start()])
        name = field[1] if field else leaf.name
        value: Json = found[0] if found[1] is None else found[1].replace("''", "'")
        if found[3] is not None:
            value = float(found[3]) if "." in found[3] else int(found[3])
        yield replace(
            leaf,
            value=value,
            name=name,
            listed=lists.get(name),
            parts=(),
            compared=True,
            removable=(),
            operator=field[2].strip() if field else "",
        )


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
        leaf = Leaf(at.path, value, at.name, parts, at.listed, at.removable, at.around, at.compared)
        yield replace(leaf, in_pair=at.in_pair)


def _walk_object(value: JsonObject, parts: Sequence[JsonSchema], at: _Place) -> Iterator[Leaf]:
    required = {name for part in parts for name in part.get("required", ())}
    pair = list_named_in(value, at.lists)
    in_list = bool(at.path) and isinstance(at.path[-1], int) and not at.step.writes
    subject = _subject(value, parts, at.step.schema) if in_list else None
    in_condition = subject is not None
    nested = _compares(value, at)
    for name, item in value.items():
        schema = _property(parts, name)
        path = (*at.path, name)
        may_go = at.removable if in_condition or name in required else path
        closed = any(item in part.get("enum", ()) for part in composing(schema, at.step.schema))
        listed = at.lists.get(name, at.listed or (None if closed else pair))
        field_name = subject if subject is not None and item != subject else at.name if nested or at.listed else name
        place = _Place(at.step, at.lists, path, field_name, listed, may_go, value, in_condition or nested, in_condition)
        yield from _walk(item, schema, place)


def _compares(value: JsonObject, at: _Place) -> bool:
    """Whether an object compares a field of its own name, as in `{"amount": {"gt": 5}}`: it holds plain values only."""
    named = len(at.path) > 1 and isinstance(at.path[-1], str) and not at.step.writes
    return named and not any(isinstance(item, dict | list) for item in value.values())


def _property(parts: Sequence[JsonSchema], name: str) -> Json:
    return next((part["properties"][name] for part in parts if name in part.get("properties", ())), None)


def _subject(value: JsonObject, parts: Sequence[JsonSchema], root: JsonSchema) -> str | None:
    """What a condition is about: its first member from a closed vocabulary, such as `{"property": "amount", …}`.

    A condition also has a member that is none of such a vocabulary: what is compared with.
    """
    named = [
        item
        for name, item in value.items()
        if isinstance(item, str)
        and any(item in part.get("enum", ()) for part in composing(_property(parts, name), root))
    ]
    return named[0] if named and len(named) < len(value) else None
