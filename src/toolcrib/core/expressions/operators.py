"""Paths: `.name`, `[index]`, their optional forms and the projection `[*]`. Strict: what is not there is an error.

`?.` gives null for the whole path when the value before it is null or does not have what is asked for.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from toolcrib.contracts import Json
from toolcrib.contracts.base.errors import InvalidExpression
from toolcrib.core.expressions.bounds import MAX_LIST
from toolcrib.core.expressions.evaluation import Evaluate, Evaluation
from toolcrib.core.expressions.suggestions import listing, shorten
from toolcrib.core.expressions.syntax import Field, Index
from toolcrib.core.expressions.values import is_list, is_object, kind, length

ABSENT = object()
"""What an optional accessor gives when there is nothing; it ends the path with null and never leaves this module."""

Access: TypeAlias = Callable[[Json, Evaluation], Json]
"""A compiled accessor: from a value to what it has, or to `ABSENT`."""

Projection: TypeAlias = tuple[int, Sequence[Access]]
"""The column of a `[*]` and the accessors up to the next one."""


def field(step: Field) -> Access:
    """Read a member of an object, or the `length` of a list, string or object."""
    name, optional = step.name, step.optional

    def access(value: Json, _: Evaluation) -> Json:
        if is_object(value) and name in value:
            return value[name]
        if name == "length" and (number := length(value)) is not None:
            return number
        if optional and (value is None or is_object(value)):
            return ABSENT
        raise _no_field(step, value)

    return access


def _no_field(step: Field, value: Json) -> InvalidExpression:
    name, column = shorten(step.name), step.column
    if is_object(value):
        return InvalidExpression(f"no field {name!r} at column {column}; fields: {listing(name, value)}")
    hint = "; read it from each element with [*]" if is_list(value) else ""
    return InvalidExpression(f"cannot read field {name!r} of {kind(value)} at column {column}{hint}")


def index(step: Index, index_of: Evaluate) -> Access:
    """Read an element of a list or a character by its place (negative from the end), or a member by its name."""
    column, optional = step.column, step.optional

    def access(value: Json, evaluation: Evaluation) -> Json:
        key = index_of(evaluation)
        if is_object(value) and isinstance(key, str):
            if key in value:
                return value[key]
        elif (is_list(value) or isinstance(value, str)) and isinstance(key, int) and not isinstance(key, bool):
            if -len(value) <= key < len(value):
                return value[key]
        elif not (optional and value is None):
            raise InvalidExpression(f"cannot read an element by {kind(key)} of {kind(value)} at column {column}")
        if optional:
            return ABSENT
        raise _no_element(key, value, column)

    return access


def _no_element(key: Json, value: Json, column: int) -> InvalidExpression:
    if is_object(value):
        name = shorten(key)
        return InvalidExpression(f"no field {name!r} at column {column}; fields: {listing(name, value)}")
    return InvalidExpression(f"no element {key} at column {column}; the {kind(value)} has {len(value)}")


def path(root: Evaluate, steps: Sequence[Access]) -> Evaluate:
    """A path without projection."""

    def run(evaluation: Evaluation) -> Json:
        value = _follow(root(evaluation), steps, evaluation)
        return None if value is ABSENT else value

    return run


def projection(root: Evaluate, steps: Sequence[Access], projections: Sequence[Projection]) -> Evaluate:
    """A path with `[*]`: one flat list, whose cost is the elements times the accessors."""

    def run(evaluation: Evaluation) -> Json:
        start = _follow(root(evaluation), steps, evaluation)
        if start is ABSENT:
            return None
        values, produced = [start], 0
        for column, following in projections:
            elements = _elements(values, column, produced)
            produced += len(elements)
            evaluation.charge(len(elements) * (1 + len(following)))
            values = _map(elements, following, evaluation)
        return values

    return run


def _follow(value: Json, steps: Sequence[Access], evaluation: Evaluation) -> Json:
    for step in steps:
        value = step(value, evaluation)
        if value is ABSENT:
            break
    return value


def _elements(values: Sequence[Json], column: int, produced: int) -> list[Json]:
    elements: list[Json] = []
    for value in values:
        if not is_list(value):
            raise InvalidExpression(f"[*] at column {column} needs a list, got {kind(value)}")
        if produced + len(elements) + len(value) > MAX_LIST:
            raise InvalidExpression(f"[*] at column {column} gives more than {MAX_LIST:,} elements")
        elements.extend(value)
    return elements


def _map(elements: Sequence[Json], steps: Sequence[Access], evaluation: Evaluation) -> list[Json]:
    results: list[Json] = []
    for position, element in enumerate(elements):
        try:
            value = _follow(element, steps, evaluation)
        except InvalidExpression as error:
            raise InvalidExpression(f"{error} (in element {position} of [*])") from None
        results.append(None if value is ABSENT else value)
    return results
