"""Binary operators, and paths: `.name`, `[index]`, their optional forms, and the projection `[*]`.

A missing member is an error. `?.` gives null for the whole path if the value before it is null or lacks the member.
Types are not converted, except in text + number or boolean.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from toolcrib.contracts import Json
from toolcrib.contracts.base.errors import InvalidExpression
from toolcrib.core.expressions.suggestions import listing, shorten
from toolcrib.core.expressions.syntax import FieldAccess, Index
from toolcrib.core.expressions.values import (
    MAX_LIST,
    Evaluate,
    EvaluationScope,
    WorkCounter,
    check_list,
    check_number,
    check_text,
    contains,
    equal,
    is_list,
    is_number,
    is_object,
    kind,
    length,
    text,
)

Operator: TypeAlias = Callable[[Json, Json, WorkCounter], Json]
"""Left, right and the work so far to the result; raises `InvalidExpression` without a column."""

Arithmetic: TypeAlias = Callable[[int | float, int | float], int | float]


def _add(left: Json, right: Json, work: WorkCounter) -> Json:
    if is_number(left) and is_number(right):
        return check_number(left + right)
    if is_list(left) and is_list(right):
        work.charge(len(left) + len(right))
        return check_list(left + right)
    if isinstance(left, str) and _is_plain(right):
        return check_text(left + text(right, work))
    if isinstance(right, str) and _is_plain(left):
        return check_text(text(left, work) + right)
    raise _operand_error("+", left, right)


def _is_plain(value: Json) -> bool:
    return isinstance(value, str | int | float)


def _arithmetic(sign: str, calculate: Arithmetic) -> Operator:
    def apply(left: Json, right: Json, _: WorkCounter) -> Json:
        if not (is_number(left) and is_number(right)):
            raise _operand_error(sign, left, right)
        try:
            return check_number(calculate(left, right))
        except ZeroDivisionError:
            raise InvalidExpression("division by zero") from None
        except OverflowError:
            raise InvalidExpression("number would be beyond the range of JSON") from None

    return apply


def _divide(left: float, right: float) -> int | float:
    if isinstance(left, int) and isinstance(right, int) and left % right == 0:
        return left // right
    return left / right


def _remainder(left: float, right: float) -> int | float:
    """As in JavaScript, the result has the sign of the left side."""
    if isinstance(left, int) and isinstance(right, int):
        magnitude = abs(left) % abs(right)
        return -magnitude if left < 0 else magnitude
    return math.copysign(abs(left) % abs(right), left)


def _ordering(sign: str, holds: Callable[[Json, Json], bool]) -> Operator:
    def apply(left: Json, right: Json, _: WorkCounter) -> bool:
        if (is_number(left) and is_number(right)) or (isinstance(left, str) and isinstance(right, str)):
            return holds(left, right)
        raise _operand_error(sign, left, right)

    return apply


def _differ(left: Json, right: Json, work: WorkCounter) -> bool:
    return not equal(left, right, work)


def _is_in(left: Json, right: Json, work: WorkCounter) -> bool:
    return contains(right, left, work)


def _operand_error(sign: str, left: Json, right: Json) -> InvalidExpression:
    return InvalidExpression(f"cannot apply {sign!r} to {kind(left)} and {kind(right)}")


OPERATORS: dict[str, Operator] = {
    "==": equal,
    "===": equal,
    "!=": _differ,
    "!==": _differ,
    "<": _ordering("<", lambda left, right: left < right),
    "<=": _ordering("<=", lambda left, right: left <= right),
    ">": _ordering(">", lambda left, right: left > right),
    ">=": _ordering(">=", lambda left, right: left >= right),
    "in": _is_in,
    "+": _add,
    "-": _arithmetic("-", lambda left, right: left - right),
    "*": _arithmetic("*", lambda left, right: left * right),
    "/": _arithmetic("/", _divide),
    "%": _arithmetic("%", _remainder),
}
"""By sign. `&&`, `||` and `??` are not here: they may leave their right side unevaluated."""


ABSENT = object()
"""What an optional accessor gives when there is nothing; it ends the path with null and never leaves this module."""

Access: TypeAlias = Callable[[Json, EvaluationScope], Json]
"""A compiled accessor: from a value to what it has, or to `ABSENT`."""

Projection: TypeAlias = tuple[int, Sequence[Access]]
"""The column of a `[*]` and the accessors up to the next one."""


def field(step: FieldAccess) -> Access:
    """Read a member of an object, or the `length` of a list, string or object."""
    name, optional = step.name, step.optional

    def access(value: Json, _: EvaluationScope) -> Json:
        if is_object(value) and name in value:
            return value[name]
        if name == "length" and (number := length(value)) is not None:
            return number
        if optional and (value is None or is_object(value)):
            return ABSENT
        raise _no_field(step, value)

    return access


def _no_field(step: FieldAccess, value: Json) -> InvalidExpression:
    name, column = shorten(step.name), step.column
    if is_object(value):
        return InvalidExpression(f"no field {name!r} at column {column}; fields: {listing(name, value)}")
    hint = "; read it from each element with [*]" if is_list(value) else ""
    return InvalidExpression(f"cannot read field {name!r} of {kind(value)} at column {column}{hint}")


def index(step: Index, index_of: Evaluate) -> Access:
    """Read an element of a list or a character by its place (negative from the end), or a member by its name."""
    column, optional = step.column, step.optional

    def access(value: Json, evaluation: EvaluationScope) -> Json:
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

    def run(evaluation: EvaluationScope) -> Json:
        value = _follow(root(evaluation), steps, evaluation)
        return None if value is ABSENT else value

    return run


def projection(root: Evaluate, steps: Sequence[Access], projections: Sequence[Projection]) -> Evaluate:
    """A path with `[*]`: one flat list, whose cost is the elements times the accessors."""

    def run(evaluation: EvaluationScope) -> Json:
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


def _follow(value: Json, steps: Sequence[Access], evaluation: EvaluationScope) -> Json:
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


def _map(elements: Sequence[Json], steps: Sequence[Access], evaluation: EvaluationScope) -> list[Json]:
    results: list[Json] = []
    for position, element in enumerate(elements):
        try:
            value = _follow(element, steps, evaluation)
        except InvalidExpression as error:
            raise InvalidExpression(f"{error} (in element {position} of [*])") from None
        results.append(None if value is ABSENT else value)
    return results
