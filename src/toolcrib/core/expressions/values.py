"""JSON values in expressions: kinds, truth, equality and text; and the limits of sources, values and work.

Limits of the source are checked when it is compiled, the others during evaluation. Values other than JSON cannot be
read.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

import orjson

from toolcrib.contracts import Json, JsonObject
from toolcrib.contracts.base.errors import InvalidExpression

MAX_SOURCE = 2_000
"""Characters of one expression."""

MAX_NODES = 300
"""Nodes of one syntax tree."""

MAX_DEPTH = 40
"""Levels of one syntax tree, and of the parser's recursion."""

MAX_STRING = 262_144
"""Characters of a string that an expression or a template makes."""

MAX_LIST = 100_000
"""Elements of a list that an expression makes; for projections, of all `[*]` of one path together."""

MAX_INTEGER = 2**63
"""The largest magnitude of an integer that an expression makes."""

MAX_WORK = 1_000_000
"""List elements and object members that one evaluation may touch."""


@dataclass(slots=True)
class WorkCounter:
    """Counts the elements that one evaluation touches, and stops it at the limit."""

    remaining: int = MAX_WORK

    def charge(self, elements: int) -> None:
        """Count elements that are about to be touched.

        Raises:
            InvalidExpression: The evaluation would touch more than `MAX_WORK`.
        """
        self.remaining -= elements
        if self.remaining < 0:
            raise InvalidExpression(
                f"evaluation touches more than {MAX_WORK:,} list elements and object members; select less data first"
            )


def is_object(value: Json) -> TypeGuard[JsonObject]:
    """Whether it is a JSON object."""
    return isinstance(value, dict)


def is_list(value: Json) -> TypeGuard[list[Json]]:
    """Whether it is a JSON array."""
    return isinstance(value, list)


def is_number(value: Json) -> TypeGuard[int | float]:
    """Whether it is a JSON number; a boolean is none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def kind(value: Json) -> str:
    """What to call the value in a message."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "list"
        case dict():
            return "object"
        case _:
            return "a value that is not JSON"


def length(value: Json) -> int | None:
    """Characters of a string, elements of a list, members of an object; no other value has a length."""
    return len(value) if isinstance(value, str) or is_list(value) or is_object(value) else None


def is_true(value: Json) -> bool:
    """JavaScript's truth: `false`, `null`, `0` and `""` are not true; lists and objects are, even empty ones."""
    return is_list(value) or is_object(value) or bool(value)


def is_false(value: Json) -> bool:
    """The opposite of `is_true`."""
    return not is_true(value)


def is_not_null(value: Json) -> bool:
    """Whether it is anything but null."""
    return value is not None


def equal(left: Json, right: Json, work: WorkCounter) -> bool:
    """Deep equality without conversion: `1` is `1.0`, but neither is `true`. Not recursive; elements count as work."""
    pairs: list[tuple[Json, Json]] = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if is_list(one) and is_list(other):
            if len(one) != len(other):
                return False
            work.charge(len(one))
            pairs.extend(zip(one, other, strict=True))
        elif is_object(one) and is_object(other):
            work.charge(len(one))
            if one.keys() != other.keys():
                return False
            pairs.extend((value, other[key]) for key, value in one.items())
        elif isinstance(one, bool) != isinstance(other, bool) or one != other:
            return False
    return True


def contains(container: Json, item: Json, work: WorkCounter) -> bool:
    """Whether a list has the element, an object the member, a string the text.

    Raises:
        InvalidExpression: The container is of another kind, or the item cannot be in it.
    """
    if is_list(container):
        work.charge(len(container))
        return any(equal(element, item, work) for element in container)
    if isinstance(container, str | dict) and isinstance(item, str):
        return item in container
    raise InvalidExpression(f"cannot look for {kind(item)} in {kind(container)}")


def text(value: Json, work: WorkCounter) -> str:
    """A string as it is, anything else as compact JSON.

    Raises:
        InvalidExpression: It is longer than `MAX_STRING` characters, or not JSON.
    """
    return check_text(value) if isinstance(value, str) else json_text(value, work)


def json_text(value: Json, work: WorkCounter) -> str:
    """The value as compact JSON.

    Raises:
        InvalidExpression: It is longer than `MAX_STRING` characters, or not JSON.
    """
    if _least_length(value, work) > MAX_STRING:
        raise _too_long()
    try:
        return check_text(orjson.dumps(value).decode())
    except orjson.JSONEncodeError as error:
        raise InvalidExpression(f"{kind(value)} cannot be written as JSON: {error}") from None


def _least_length(value: Json, work: WorkCounter) -> int:
    """A lower bound of the JSON's length, found without building it and no further than the limit."""
    least = 0
    values: list[Json] = [value]
    while values and least <= MAX_STRING:
        one = values.pop()
        least += 1
        if isinstance(one, str):
            least += len(one)
        elif is_list(one):
            work.charge(len(one))
            values.extend(one)
        elif is_object(one):
            work.charge(len(one))
            least += sum(len(key) for key in one)
            values.extend(one.values())
    return least


def check_text(value: str) -> str:
    """The string, if it is not too long.

    Raises:
        InvalidExpression: It is longer than `MAX_STRING` characters.
    """
    if len(value) > MAX_STRING:
        raise _too_long()
    return value


def check_list(value: list[Json]) -> list[Json]:
    """The list, if it is not too long.

    Raises:
        InvalidExpression: It has more than `MAX_LIST` elements.
    """
    if len(value) > MAX_LIST:
        raise InvalidExpression(f"list would have {len(value):,} elements; at most {MAX_LIST:,} are allowed")
    return value


def check_number(value: float) -> int | float:
    """The number, if it is not too large.

    Raises:
        InvalidExpression: It is an integer beyond 2**63 or not a finite number.
    """
    if isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise InvalidExpression("integer would be beyond 2**63")
    elif not math.isfinite(value):
        raise InvalidExpression("number would be beyond the range of JSON")
    return value


def _too_long() -> InvalidExpression:
    return InvalidExpression(f"text would be longer than {MAX_STRING:,} characters")


class EvaluationScope(WorkCounter):
    """One evaluation: the names it may read and the work it may still do."""

    __slots__ = ("scope",)

    def __init__(self, scope: Mapping[str, Json]) -> None:
        super().__init__()
        self.scope = scope


Evaluate: TypeAlias = Callable[[EvaluationScope], Json]
"""A compiled node."""
