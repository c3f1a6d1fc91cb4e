"""Evaluates conditions and orders that `grammar` has read on objects in memory.

It means what `statements` says in SQL: texts are compared by their code points, and `tolower` and `toupper` change the
letters A to Z only.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cmp_to_key
from heapq import nsmallest
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final, Generic, TypeVar, cast

from toolcrib.infrastructure.queries.grammar import (
    PARTS,
    Arithmetic,
    Comparator,
    Comparison,
    Computed,
    Condition,
    Either,
    Every,
    FieldOf,
    FieldType,
    FilterConstant,
    Flag,
    FunctionOf,
    Inverse,
    Membership,
    Operand,
    OrderKey,
    TextSearch,
    is_fraction,
    number_of,
    plain_value,
    read_value,
    refused_value,
)

T = TypeVar("T")
Test = Callable[[T], bool]

_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)
_UPPER: Final = str.maketrans(ascii_lowercase, ascii_uppercase)
_COMPARE: Final[Mapping[Comparator, Callable[[Any, Any], bool]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}
_CALCULATE: Final = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
_SEARCH: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "contains": operator.contains,
    "startswith": str.startswith,
    "endswith": str.endswith,
}
_TEXT: Final[Mapping[str, Callable[[str], Any]]] = {
    "tolower": lambda text: text.translate(_LOWER),
    "toupper": lambda text: text.translate(_UPPER),
    "trim": lambda text: text.strip(" "),
    "length": len,
}


@dataclass(frozen=True, slots=True)
class Field(Generic[T]):
    """A field of things that can be queried."""

    type: FieldType
    text: str
    """What it says, for the documentation."""
    of: Callable[[T], Any]
    """Its value; null if there is none. Moments are in UTC."""
    choices: tuple[str, ...] = ()
    """All values that it can have; empty for any."""
    nullable: bool = True
    """Whether it can be null."""

    def read(self, name: str, value: Any) -> Any:
        """A value to compare it with.

        Raises:
            InvalidInput: It is not one of the field.
        """
        made = read_value(name, self.type, value)
        if self.choices and made not in self.choices:
            raise refused_value(name, value, f"one of {', '.join(self.choices)}")
        if isinstance(made, datetime):
            return made.replace(tzinfo=UTC) if made.tzinfo is None else made.astimezone(UTC)
        return made


def types_of(fields: Mapping[str, Field[T]]) -> Mapping[str, FieldType]:
    """The types of fields, as `grammar` asks for them."""
    return {name: field.type for name, field in fields.items()}


def compile_test(condition: Condition, fields: Mapping[str, Field[T]]) -> Test[T]:
    """What tells whether a condition is met.

    Args:
        condition: The condition.
        fields: By name; those that the condition was read with.

    Raises:
        InvalidInput: A value is not one of its field.
    """
    match condition:
        case Every():
            every = [compile_test(part, fields) for part in condition.parts]
            return lambda row: all(test(row) for test in every)
        case Either():
            either = [compile_test(part, fields) for part in condition.parts]
            return lambda row: any(test(row) for test in either)
        case Inverse():
            inner = compile_test(condition.part, fields)
            return lambda row: not inner(row)
        case Flag():
            flag = fields[condition.of.name].of
            return lambda row: flag(row) is True
        case Membership():
            return _membership(condition, fields)
        case TextSearch():
            return _search(condition, fields)
        case Comparison():
            return _comparison(condition, fields)


def _comparison(condition: Comparison, fields: Mapping[str, Field[T]]) -> Test[T]:
    left, word = _value(condition.left, fields), condition.operator
    if not isinstance(condition.right, FilterConstant):
        right = _value(condition.right, fields)
        return lambda row: _compare(word, left(row), right(row))
    wanted = _bound(condition.left, condition.right, fields)
    if condition.left.type == "strings":
        return lambda row: (wanted in left(row)) is (word == "eq")
    return lambda row: _compare(word, left(row), wanted)


def _compare(word: Comparator, left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is right if word == "eq" else word == "ne" and left is not right
    return _COMPARE[word](left, right)


def _membership(condition: Membership, fields: Mapping[str, Field[T]]) -> Test[T]:
    value = _value(condition.of, fields)
    wanted = [_bound(condition.of, each, fields) for each in condition.values]
    if condition.of.type == "strings":
        return lambda row: any(each in wanted for each in value(row))
    return lambda row: value(row) in wanted


def _search(condition: TextSearch, fields: Mapping[str, Field[T]]) -> Test[T]:
    value, found, sought = _value(condition.of, fields), _SEARCH[condition.method], condition.text
    if condition.of.type == "strings":
        return lambda row: any(found(each, sought) for each in value(row))

    def test(row: T) -> bool:
        text = value(row)
        return text is not None and found(text, sought)

    return test


def _value(operand: Operand, fields: Mapping[str, Field[T]]) -> Callable[[T], Any]:
    match operand:
        case FilterConstant():
            number = number_of(operand)
            return lambda _row: number
        case FieldOf():
            return fields[operand.name].of
        case FunctionOf():
            inner = _value(operand.of, fields)
            compute = _part(operand.name) if operand.name in PARTS else _TEXT[operand.name]
            return lambda row: None if (value := inner(row)) is None else compute(value)
        case Arithmetic():
            left, right, calculate = _value(operand.left, fields), _value(operand.right, fields), operand.operator
            return lambda row: _calculate(calculate, left(row), right(row))


def _part(name: str) -> Callable[[Any], int]:
    return operator.attrgetter(name)


def _calculate(calculation: str, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
    return _CALCULATE[calculation](left, right)


def _bound(computed: Computed, constant: FilterConstant, fields: Mapping[str, Field[T]]) -> Any:
    if constant.value is None:
        return None
    if is_fraction(computed, constant):
        number = number_of(constant)
        return float(number) if computed.type == "number" else number
    if constant.is_now and computed.type == "date":
        return constant.value.date()
    if not isinstance(computed, FieldOf):
        return plain_value(computed, constant)
    return fields[computed.name].read(computed.name, constant.value)


def values_of(order: Sequence[OrderKey], fields: Mapping[str, Field[T]], row: T) -> tuple[Any, ...]:
    """The values by which a row has its place in an order."""
    return tuple(fields[key.field].of(row) for key in order)


def sort_page(
    rows: Iterable[T],
    order: Sequence[OrderKey],
    fields: Mapping[str, Field[T]],
    *,
    after: Sequence[Any] | None,
    limit: int,
) -> list[T]:
    """The first rows in an order, or the first ones behind a place in it.

    Args:
        rows: All that are meant.
        order: What they are ordered by; the last key differs for each row.
        fields: By name.
        after: The values of the row in front of the page; null for the beginning.
        limit: At most so many.
    """

    def compare(one: Sequence[Any], other: Sequence[Any]) -> int:
        for key, left, right in zip(order, one, other, strict=True):
            if left == right:
                continue
            lesser = left is None or (right is not None and left < right)
            return -1 if lesser is not key.descending else 1
        return 0

    placed = ((values_of(order, fields, row), row) for row in rows)
    found = placed if after is None else (pair for pair in placed if compare(pair[0], cast("Any", after)) > 0)
    key = cmp_to_key(compare)
    return [row for _, row in nsmallest(limit, found, key=lambda pair: key(pair[0]))]
