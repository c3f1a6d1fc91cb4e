"""Reads filters and orders: the grammar of OData 4.01 (URL conventions, section 5.1.1), with types, as a tree.

`odatapy` parses the text; this module decides its meaning and refuses what is not offered. `statements` makes SQL of
the tree, `rows` evaluates it in memory, and both mean the same. Names must be fields. Lambdas, paths, casts, patterns
and geography are refused.

Comparisons follow OData, not SQL: null equals only null, and no comparison is unknown, so `not` always inverts it. A
field of type `strings` is a list of texts: a comparison is true if it is true of one of them, and `ne` if it is `eq` to
none. An order is a list like `created_at desc, name`.
"""

import base64
import binascii
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, assert_never, cast
from uuid import UUID

from toolcrib.contracts import InvalidInput, Json

if TYPE_CHECKING:
    from odatapy.server.uri.expression import Binary, Expression, Member, Method

FieldType: TypeAlias = Literal[
    "array",
    "boolean",
    "bytes",
    "date",
    "datetime",
    "decimal",
    "integer",
    "json",
    "number",
    "string",
    "strings",
    "time",
    "uuid",
]

MAX_FIELDS: Final = 8
"""Fields of an order."""
MAX_DEPTH: Final = 20
"""Parentheses inside of each other."""
MAX_TERMS: Final = 200
"""Parts of an expression: fields, values, operators."""

_ENTRY: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)(?:\s+(asc|desc))?\s*")
_LARGEST: Final = 2**63 - 1
_UNWRITABLE: Final = "\x00"

Comparator: TypeAlias = Literal["eq", "ne", "gt", "ge", "lt", "le"]
Calculation: TypeAlias = Literal["add", "sub", "mul"]
SearchMethod: TypeAlias = Literal["contains", "startswith", "endswith"]
FunctionName: TypeAlias = Literal[
    "tolower", "toupper", "trim", "length", "year", "month", "day", "hour", "minute", "second"
]


@dataclass(frozen=True, slots=True)
class FieldOf:
    """The value of a field."""

    name: str
    type: FieldType


@dataclass(frozen=True, slots=True)
class FunctionOf:
    """A function of a value."""

    name: FunctionName
    of: "Computed"
    type: FieldType


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A number made of two."""

    operator: Calculation
    left: "Operand"
    right: "Operand"
    type: FieldType


@dataclass(frozen=True, slots=True)
class FilterConstant:
    """A value that stands in the filter."""

    value: Any
    is_now: bool = False
    """It was reckoned from the present moment, so that a day is meant where a day is compared."""


Computed: TypeAlias = FieldOf | FunctionOf | Arithmetic
"""What is computed of a row."""
Operand: TypeAlias = Computed | FilterConstant


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether two values compare so."""

    operator: Comparator
    left: Computed
    right: Operand


@dataclass(frozen=True, slots=True)
class Membership:
    """Whether a value is among others; null may be one of them."""

    of: Computed
    values: tuple[FilterConstant, ...]


@dataclass(frozen=True, slots=True)
class TextSearch:
    """Whether a text holds another one, as it is written."""

    method: SearchMethod
    of: Computed
    text: str


@dataclass(frozen=True, slots=True)
class Flag:
    """Whether a field is true."""

    of: FieldOf


@dataclass(frozen=True, slots=True)
class Every:
    """Whether all conditions are met; true of none."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Either:
    """Whether one of the conditions is met; false of none."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Inverse:
    """Whether a condition is not met."""

    part: "Condition"


Condition: TypeAlias = Comparison | Membership | TextSearch | Flag | Every | Either | Inverse


@dataclass(frozen=True, slots=True)
class OrderKey:
    """What rows are ordered by. Null comes before everything else (OData 4.01, URL conventions, 5.1.5)."""

    field: str
    descending: bool = False


def equal(name: str, value: Json) -> Condition:
    """The condition that a text field has a value."""
    return Comparison("eq", FieldOf(name, "string"), FilterConstant(value))


def read_order(text: str, fields: Mapping[str, FieldType], *, parameter: str = "order_by") -> tuple[OrderKey, ...]:
    """What rows are ordered by.

    Args:
        text: Fields, each with `asc` or `desc`, comma-separated.
        fields: The types of the fields that there are.
        parameter: Where the text stands, for messages.

    Raises:
        InvalidInput: It is not a valid order, or names an unknown field.
    """
    entries = text.split(",")
    if len(entries) > MAX_FIELDS:
        raise InvalidInput(f"{parameter} names {len(entries)} fields, and {MAX_FIELDS} are the most; leave some out")
    return tuple(_read_entry(entry, fields, parameter) for entry in entries)


def _read_entry(entry: str, fields: Mapping[str, FieldType], parameter: str) -> OrderKey:
    match = _ENTRY.fullmatch(entry)
    if match is None or match[1] not in fields or fields[match[1]] == "strings":
        shown = entry.strip()[:100]
        known = [name for name, kind in fields.items() if kind != "strings"]
        msg = f"{parameter} has {shown!r}, which is no field to order by; there are: {', '.join(known)}"
        raise InvalidInput(msg + _nearest(shown.split(" ")[0], known))
    return OrderKey(match[1], match[2] == "desc")


def read_filter(text: str, fields: Mapping[str, FieldType], *, now: datetime) -> Condition:
    """The condition that a filter says.

    Args:
        text: `status eq 'open' and total gt 100`.
        fields: The types of the fields that there are.
        now: The present moment.

    Raises:
        InvalidInput: It is not a valid filter, or uses unknown names; the message lists the known ones.
    """
    from odatapy.errors import UriParserException  # noqa: PLC0415 - a quarter of a second, paid by the first filter
    from odatapy.server.uri.expression_parser import ExpressionParser  # noqa: PLC0415 - likewise

    _check_depth(text)
    try:
        text.encode()
        parsed = ExpressionParser.parse_string(text)
    except UriParserException as problem:
        msg = f"filter {text[:200]!r} is no OData expression: {problem} Write e.g. name eq 'x' and size gt 1"
        raise InvalidInput(msg) from None
    except (ValueError, OverflowError, ArithmeticError) as problem:
        msg = f"filter {text[:200]!r} holds an invalid value: {problem}"
        raise InvalidInput(msg) from None
    return _Reader(fields, now).condition(parsed)


_MIRRORED: Final[Mapping[Comparator, Comparator]] = {
    "eq": "eq",
    "ne": "ne",
    "gt": "lt",
    "ge": "le",
    "lt": "gt",
    "le": "ge",
}
_CALCULATIONS: Final[Mapping[Calculation, Callable[[Any, Any], Any]]] = {
    "add": lambda left, right: left + right,
    "sub": lambda left, right: left - right,
    "mul": lambda left, right: left * right,
}
NUMERIC: Final[tuple[FieldType, ...]] = ("integer", "decimal", "number")
"""From the narrowest to the widest."""
PARTS: Final[Mapping[str, frozenset[FieldType]]] = {
    "year": frozenset({"date", "datetime"}),
    "month": frozenset({"date", "datetime"}),
    "day": frozenset({"date", "datetime"}),
    "hour": frozenset({"time", "datetime"}),
    "minute": frozenset({"time", "datetime"}),
    "second": frozenset({"time", "datetime"}),
}
"""Functions that take a part of a moment, with the types that have it."""
_TEXT_TO_TEXT: Final = ("tolower", "toupper", "trim")
_SEARCHES: Final = ("contains", "startswith", "endswith")
_OFFERED: Final = (*_SEARCHES, *_TEXT_TO_TEXT, "length", *PARTS, "now")


class _Reader:
    """Reads one filter."""

    def __init__(self, fields: Mapping[str, FieldType], now: datetime) -> None:
        self._fields = fields
        self._now = now
        self._terms = 0

    def condition(self, node: "Expression") -> Condition:
        """What is true or false of a row; null counts as false."""
        from odatapy.server.uri.expression import Binary, Literal, Member, Method, Unary  # noqa: PLC0415 - as above

        self._count()
        match node:
            case Binary():
                return self._binary(node)
            case Unary() if node.operator.value == "not":
                return Inverse(self.condition(node.operand))
            case Method() if node.method.value in _SEARCHES:
                return self._search(node)
            case Literal(value=bool()):
                return Every(()) if node.value else Either(())
            case Member():
                return self._flag(node)
            case Method() if node.method.value not in _OFFERED:
                raise _not_offered(node)
            case _:
                raise _no_condition(node)

    def _binary(self, node: "Binary") -> Condition:
        match node.operator.value:
            case "and":
                return Every(tuple(map(self.condition, _chain(node))))
            case "or":
                return Either(tuple(map(self.condition, _chain(node))))
            case "in":
                return self._in(node)
            case "eq" | "ne" | "gt" | "ge" | "lt" | "le":
                return self._comparison(node.operator.value, self.operand(node.left), self.operand(node.right))
            case _:
                raise _no_condition(node)

    def operand(self, node: "Expression") -> Operand:
        """What can be compared."""
        from odatapy.server.uri.expression import Binary, Literal, Member, Method, Unary  # noqa: PLC0415 - as above

        self._count()
        match node:
            case Member():
                return self._field(node)
            case Literal():
                return FilterConstant(node.value)
            case Method() if node.method.value == "now":
                return FilterConstant(self._now, is_now=True)
            case Method():
                return self._function(node)
            case Binary() if node.operator.value in _CALCULATIONS:
                return _calculate(node.operator.value, self.operand(node.left), self.operand(node.right))
            case Unary() if node.operator.value == "-":
                return _calculate("sub", FilterConstant(0), self.operand(node.operand))
            case _:
                raise InvalidInput(f"the filter has {_name(node)}, which is not offered here; use simple comparisons")

    def _count(self) -> None:
        self._terms += 1
        if self._terms > MAX_TERMS:
            raise InvalidInput(f"the filter has more than {MAX_TERMS} parts; write a shorter one")

    def _field(self, node: "Member") -> FieldOf:
        plain = not (node.lambda_expression or node.lambda_variable or node.count or node.is_it or node.root_uri_info)
        name = node.path_str
        if not plain or name not in self._fields:
            msg = f"the filter names {name[:100]!r}, which is no field to filter by; there are: "
            raise InvalidInput(msg + (", ".join(self._fields) or "none") + _nearest(name, self._fields))
        return FieldOf(name, self._fields[name])

    def _flag(self, node: "Member") -> Condition:
        field = self._field(node)
        if field.type != "boolean":
            raise InvalidInput(f"{field.name} is a {field.type} and no condition; compare it: {field.name} ne null")
        return Flag(field)

    def _comparison(self, operator: Comparator, left: Operand, right: Operand) -> Condition:
        if isinstance(left, FilterConstant):
            if isinstance(right, FilterConstant):
                raise InvalidInput("the filter compares two values with each other; one side must name a field")
            return self._comparison(_MIRRORED[operator], right, left)
        if not isinstance(right, FilterConstant):
            _check_alike(left, right)
        if "strings" in {left.type, "" if isinstance(right, FilterConstant) else right.type}:
            _check_list(left, operator, right)
        return Comparison(operator, left, right)

    def _in(self, node: "Binary") -> Condition:
        from odatapy.server.uri.expression import ListExpression  # noqa: PLC0415 - as above

        computed = self.operand(node.left)
        if isinstance(computed, FilterConstant) or not isinstance(node.right, ListExpression):
            raise InvalidInput("'in' needs a field before it and a list of values after it: status in ('a','b')")
        items = [self.operand(item) for item in node.right.items]
        constants = tuple(item for item in items if isinstance(item, FilterConstant))
        if len(constants) < len(items):
            raise InvalidInput("the list after 'in' may hold values only; compare fields with eq")
        return Membership(computed, constants)

    def _search(self, node: "Method") -> Condition:
        method = cast("SearchMethod", node.method.value)
        where, wanted = (self.operand(parameter) for parameter in node.parameters)
        sought = wanted.value if isinstance(wanted, FilterConstant) else None
        if isinstance(where, FilterConstant) or not isinstance(sought, str):
            raise InvalidInput(f"{method} takes a field and a text in quotes: {method}(name,'x')")
        if where.type != "strings":
            _check_text(method, where)
        read_value(method, "string", sought)
        return TextSearch(method, where, sought)

    def _function(self, node: "Method") -> Computed:
        name = node.method.value
        if name in PARTS:
            inner = self.operand(node.parameters[0])
            if isinstance(inner, FilterConstant) or inner.type not in PARTS[name]:
                raise InvalidInput(f"{name} takes a field that is a {' or a '.join(sorted(PARTS[name]))}")
            return FunctionOf(cast("FunctionName", name), inner, "integer")
        if name not in _TEXT_TO_TEXT and name != "length":
            raise _not_offered(node)
        inner = self.operand(node.parameters[0])
        if isinstance(inner, FilterConstant):
            raise InvalidInput(f"{name} takes a field: {name}(name)")
        _check_text(name, inner)
        return FunctionOf(cast("FunctionName", name), inner, "integer" if name == "length" else "string")


def _calculate(operator: Calculation, left: Operand, right: Operand) -> Operand:
    match left, right:
        case FilterConstant(), FilterConstant():
            return _fold_constants(operator, left, right)
        case FilterConstant(), _:
            _require_numeric(right)
            return Arithmetic(operator, FilterConstant(number_of(left)), right, _wider(right, left))
        case _, FilterConstant():
            _require_numeric(left)
            return Arithmetic(operator, left, FilterConstant(number_of(right)), _wider(left, right))
        case _, _:
            _require_numeric(left)
            _require_numeric(right)
            return Arithmetic(operator, left, right, max(left.type, right.type, key=_rank))
        case _:
            assert_never((left, right))


def _chain(node: "Binary") -> Sequence["Expression"]:
    """What `and` or `or` joins, of however many it is: they lean to the left."""
    found: list[Expression] = []
    rest: Any = node
    while getattr(rest, "operator", None) is node.operator:
        found.append(rest.right)
        rest = rest.left
    return [rest, *reversed(found)]


def _check_alike(left: Computed, right: Computed) -> None:
    both_numbers = left.type in NUMERIC and right.type in NUMERIC
    if left.type != right.type and not both_numbers:
        raise InvalidInput(f"the filter compares a {left.type} with a {right.type}; compare what is alike")


def _check_list(left: Computed, operator: Comparator, right: Operand) -> None:
    if operator not in {"eq", "ne"} or not isinstance(right, FilterConstant) or not isinstance(right.value, str):
        name = left.name if isinstance(left, FieldOf) else "it"
        raise InvalidInput(
            f"{name} is a list of texts; write {name} eq 'x', {name} in ('x','y') or contains({name},'x')"
        )


def _check_text(method: str, computed: Computed) -> None:
    if computed.type != "string":
        raise InvalidInput(f"{method} takes text, and this is a {computed.type}")


def plain_value(computed: Computed, constant: FilterConstant) -> Any:
    """A value to compare with what a function or a calculation brings.

    Raises:
        InvalidInput: It is of another type.
    """
    value = constant.value
    if computed.type == "string" and isinstance(value, str) and _UNWRITABLE not in value:
        return value
    if computed.type in NUMERIC:
        return number_of(constant)
    raise InvalidInput(f"the filter compares a {computed.type} with {str(value)[:100]!r}; give a {computed.type}")


def is_fraction(computed: Computed, constant: FilterConstant) -> bool:
    """Whether a number with a fraction is compared with a number, which may be an integer."""
    return computed.type in NUMERIC and isinstance(constant.value, float | Decimal)


def _fold_constants(operator: Calculation, left: FilterConstant, right: FilterConstant) -> FilterConstant:
    """Two values are one: numbers, or a moment and a duration."""
    match left.value, right.value:
        case datetime(), timedelta() if operator != "mul":
            operands = (left.value, right.value)
        case _:
            operands = (_exact(left), _exact(right))
    try:
        return FilterConstant(_CALCULATIONS[operator](*operands), is_now=left.is_now)
    except (OverflowError, ArithmeticError):
        raise InvalidInput("the filter reckons with values that are too large; give smaller ones") from None


def _exact(constant: FilterConstant) -> int | Decimal:
    number = number_of(constant)
    return number if isinstance(number, int) else Decimal(str(number))


def number_of(constant: FilterConstant) -> int | float | Decimal:
    """The number that a value is.

    Raises:
        InvalidInput: It is none, or larger than databases have.
    """
    value = constant.value
    finite = isinstance(value, int) or (isinstance(value, float | Decimal) and Decimal(value).is_finite())
    if isinstance(value, bool) or not finite:
        raise InvalidInput(f"the filter reckons with {str(value)[:100]!r}, which is no number; give a finite one")
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise InvalidInput(f"the filter has the number {value}, and the largest has 64 bits; give a smaller one")
    return cast("int | float | Decimal", value)


def _require_numeric(computed: Computed) -> None:
    if computed.type not in NUMERIC:
        raise InvalidInput(f"the filter reckons with a {computed.type}; add, sub and mul take numbers")


def _wider(computed: Computed, constant: FilterConstant) -> FieldType:
    kind: FieldType = "integer" if isinstance(constant.value, int) else "decimal"
    return max(computed.type, kind, key=_rank)


def _rank(kind: FieldType) -> int:
    return NUMERIC.index(kind) if kind in NUMERIC else -1


def _check_depth(text: str) -> None:
    """The parser descends for each parenthesis, so it is not given too many."""
    depth = deepest = 0
    for index, part in enumerate(text.split("'")):
        if index % 2:
            continue
        for character in part:
            depth += (character in "([") - (character in ")]")
            deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise InvalidInput(f"the filter has parentheses {deepest} deep, and {MAX_DEPTH} are the most; write it flatter")


def _nearest(name: str, known: Mapping[str, object] | Sequence[str]) -> str:
    close = get_close_matches(name, list(known), n=1)
    return f"; nearest: {close[0]}" if close else ""


def _not_offered(node: "Method") -> InvalidInput:
    return InvalidInput(f"the filter uses {node.method.value}, which is not offered; there are: {', '.join(_OFFERED)}")


def _no_condition(node: "Expression") -> InvalidInput:
    return InvalidInput(f"the filter has {_name(node)} where a condition is needed; compare it: … eq 1")


def _name(node: "Expression") -> str:
    from odatapy.server.uri.expression import Binary, ListExpression, Literal, Method, Unary  # noqa: PLC0415 - as above

    match node:
        case Literal():
            return f"the value {node.text[:100]}"
        case Method():
            return f"{node.method.value}(…)"
        case Binary() | Unary():
            return f"'{node.operator.value}'"
        case _:
            return "a list" if isinstance(node, ListExpression) else "an expression"


# Values ---------------------------------------------------------------------------------------------------------------


def read_value(name: str, kind: FieldType, value: Json) -> Any:
    """A value of a field's type, from JSON or from a filter.

    Raises:
        InvalidInput: It is of another type; the message names the field.
    """
    try:
        return _READERS[kind](value)
    except (ValueError, InvalidOperation, OverflowError, binascii.Error):
        raise refused_value(name, value, _WANTED[kind]) from None


def refused_value(name: str, value: Json, wanted: str) -> InvalidInput:
    """What to say of a value that is not what a field takes."""
    return InvalidInput(f"{name} takes {wanted}, and {str(value)[:100]!r} is none; correct it")


def _text(value: Json) -> str:
    if not isinstance(value, str) or _UNWRITABLE in value:
        raise ValueError
    return value


def _integer(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST:
        raise ValueError
    return value


def _number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not math.isfinite(value):
        raise ValueError
    return float(value)


def _decimal(value: Json) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError  # noqa: TRY004 - all of them are the same refusal
    made = Decimal(str(value))
    if not made.is_finite():
        raise ValueError
    return made


def _boolean(value: Json) -> bool:
    if not isinstance(value, bool):
        raise ValueError  # noqa: TRY004 - as above
    return value


def _date(value: Json) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    return date.fromisoformat(_text(value))


def _time(value: Json) -> time:
    made = value if isinstance(value, time) else time.fromisoformat(_text(value))
    return made.replace(tzinfo=None)


def _datetime(value: Json) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - the field decides about an offset
    return datetime.fromisoformat(_text(value))


def _uuid(value: Json) -> UUID:
    return value if isinstance(value, UUID) else UUID(_text(value))


def _bytes(value: Json) -> bytes:
    return base64.b64decode(_text(value), validate=True)


_READERS: Final[Mapping[FieldType, Callable[[Json], Any]]] = {
    "boolean": _boolean,
    "bytes": _bytes,
    "date": _date,
    "datetime": _datetime,
    "decimal": _decimal,
    "integer": _integer,
    "number": _number,
    "string": _text,
    "strings": _text,
    "time": _time,
    "uuid": _uuid,
}
_WANTED: Final[Mapping[FieldType, str]] = {
    "boolean": "true or false",
    "bytes": "bytes in base64",
    "date": "a date such as 2026-01-31",
    "datetime": "a moment such as 2026-01-31T12:00:00Z",
    "decimal": "a decimal number",
    "integer": "an integer of 64 bits",
    "number": "a finite number",
    "string": "text without the character U+0000",
    "strings": "text without the character U+0000",
    "time": "a time of day such as 12:30:00",
    "uuid": "a UUID",
}
