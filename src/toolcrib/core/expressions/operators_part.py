"""The binary operators that need both sides. Numbers stay numbers: no conversion but text + number or boolean."""

import math
from collections.abc import Callable
from typing import TypeAlias

from toolcrib.contracts import Json
from toolcrib.contracts.base.errors import InvalidExpression
from toolcrib.core.expressions.bounds import Work
from toolcrib.core.expressions.values import (
    checked_list,
    checked_number,
    checked_text,
    contains,
    equal,
    is_list,
    is_number,
    kind,
    text,
)

Operator: TypeAlias = Callable[[Json, Json, Work], Json]
"""Left, right and the work so far to the result; raises `InvalidExpression` without a column."""

Arithmetic: TypeAlias = Callable[[int | float, int | float], int | float]


def _add(left: Json, right: Json, work: Work) -> Json:
    if is_number(left) and is_number(right):
        return checked_number(left + right)
    if is_list(left) and is_list(right):
        work.charge(len(left) + len(right))
        return checked_list(left + right)
    if isinstance(left, str) and _is_plain(right):
        return checked_text(left + text(right, work))
    if isinstance(right, str) and _is_plain(left):
        return checked_text(text(left, work) + right)
    raise _refused("+", left, right)


def _is_plain(value: Json) -> bool:
    return isinstance(value, str | int | float)


def _arithmetic(sign: str, calculate: Arithmetic) -> Operator:
    def apply(left: Json, right: Json, _: Work) -> Json:
        if not (is_number(left) and is_number(right)):
            raise _refused(sign, left, right)
        try:
            return checked_number(calculate(left, right))
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
    def apply(left: Json, right: Json, _: Work) -> bool:
        if (is_number(left) and is_number(right)) or (isinstance(left, str) and isinstance(right, str)):
            return holds(left, right)
        raise _refused(sign, left, right)

    return apply


def _differ(left: Json, right: Json, work: Work) -> bool:
    return not equal(left, right, work)


def _is_in(left: Json, right: Json, work: Work) -> bool:
    return contains(right, left, work)


def _refused(sign: str, left: Json, right: Json) -> InvalidExpression:
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
