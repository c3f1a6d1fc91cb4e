"""Converts OData 4.01 filters (URL conventions, section 5.1.1) and orders to SQL over a table's searchable columns.

`odatapy` parses the text; this module decides its meaning. Values become bound parameters, and names must be fields of
the tool. Lambdas, paths, casts, patterns and geography are refused.

Comparisons follow OData, not SQL: null equals only null, and no comparison is unknown, so `not` always inverts it.
Text is compared by the database's collation; `contains`, `startswith` and `endswith` search for the literal text. An
order is a list like `created_at desc, id`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias, assert_never, cast

import sqlalchemy as sa
from odatapy.errors import UriParserException
from odatapy.server.uri.expression import (
    Binary,
    BinaryOperatorKind,
    Expression,
    ListExpression,
    Literal,
    Member,
    Method,
    MethodKind,
    Unary,
    UnaryOperatorKind,
)
from odatapy.server.uri.expression_parser import ExpressionParser

from toolcrib.contracts import InvalidInput
from toolcrib.kinds.entity.runtime.values import BoundField
from toolcrib.kinds.entity.shape import ColumnType

MAX_FIELDS: Final = 8
_ENTRY: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)(?:\s+(asc|desc))?\s*")


def read_order(text: str, fields: Mapping[str, BoundField], *, dialect: str) -> list[sa.ColumnElement[Any]]:
    """What rows are ordered by. Null comes before everything else, as in OData 4.01 (URL conventions, 5.1.5).

    Args:
        text: Fields, each with `asc` or `desc`, comma-separated.
        fields: Those of the tool.
        dialect: Name of the database's.

    Raises:
        InvalidInput: It is not a valid order, or names an unknown field.
    """
    entries = text.split(",")
    if len(entries) > MAX_FIELDS:
        raise InvalidInput(f"order_by names {len(entries)} fields, and {MAX_FIELDS} are the most; leave some out")
    return [_read_entry(entry, fields, dialect) for entry in entries]


def _read_entry(entry: str, fields: Mapping[str, BoundField], dialect: str) -> sa.ColumnElement[Any]:
    match = _ENTRY.fullmatch(entry)
    field = fields.get(match[1]) if match else None
    if match is None or field is None or not field.about.searchable:
        known = ", ".join(name for name, each in fields.items() if each.about.searchable)
        raise InvalidInput(f"order_by has {entry.strip()[:100]!r}, which is no field to order by; there are: {known}")
    descending = match[2] == "desc"
    ordered = field.compared.desc() if descending else field.compared.asc()
    if dialect != "postgresql" or not field.column.nullable:
        return ordered
    return ordered.nulls_last() if descending else ordered.nulls_first()


MAX_DEPTH: Final = 20
"""Parentheses inside of each other."""
MAX_TERMS: Final = 200
"""Parts of an expression: fields, values, operators."""

Condition: TypeAlias = sa.ColumnElement[bool]
Value: TypeAlias = sa.ColumnElement[Any]

_COMPARE: Final[Mapping[BinaryOperatorKind, Callable[[Value, Any], Condition]]] = {
    BinaryOperatorKind.GT: lambda left, right: left > right,
    BinaryOperatorKind.GE: lambda left, right: left >= right,
    BinaryOperatorKind.LT: lambda left, right: left < right,
    BinaryOperatorKind.LE: lambda left, right: left <= right,
}
_MIRRORED: Final = {
    BinaryOperatorKind.GT: BinaryOperatorKind.LT,
    BinaryOperatorKind.GE: BinaryOperatorKind.LE,
    BinaryOperatorKind.LT: BinaryOperatorKind.GT,
    BinaryOperatorKind.LE: BinaryOperatorKind.GE,
}
_ARITHMETIC: Final[Mapping[BinaryOperatorKind, Callable[[Any, Any], Any]]] = {
    BinaryOperatorKind.ADD: lambda left, right: left + right,
    BinaryOperatorKind.SUB: lambda left, right: left - right,
    BinaryOperatorKind.MUL: lambda left, right: left * right,
}
_NUMERIC: Final[tuple[ColumnType, ...]] = ("integer", "decimal", "number")
"""From the narrowest to the widest."""
_PARTS: Final[Mapping[MethodKind, tuple[str, frozenset[ColumnType]]]] = {
    MethodKind.YEAR: ("year", frozenset({"date", "datetime"})),
    MethodKind.MONTH: ("month", frozenset({"date", "datetime"})),
    MethodKind.DAY: ("day", frozenset({"date", "datetime"})),
    MethodKind.HOUR: ("hour", frozenset({"time", "datetime"})),
    MethodKind.MINUTE: ("minute", frozenset({"time", "datetime"})),
    MethodKind.SECOND: ("second", frozenset({"time", "datetime"})),
}
_TEXT_TO_TEXT: Final = {
    MethodKind.TOLOWER: sa.func.lower,
    MethodKind.TOUPPER: sa.func.upper,
    MethodKind.TRIM: sa.func.trim,
}
_SEARCHES: Final = (MethodKind.CONTAINS, MethodKind.STARTSWITH, MethodKind.ENDSWITH)
_OFFERED: Final = (*_SEARCHES, *_TEXT_TO_TEXT, MethodKind.LENGTH, *_PARTS, MethodKind.NOW)


@dataclass(frozen=True, slots=True)
class _Computed:
    """Something that the database computes of a row."""

    kind: ColumnType
    value: Value
    field: BoundField | None = None
    """The field, if the expression is just a field."""


@dataclass(frozen=True, slots=True)
class _Constant:
    """A literal value in the filter."""

    value: Any
    is_now: bool = False
    """It was reckoned from the present moment, so that a day is meant where a day is compared."""


_Operand: TypeAlias = _Computed | _Constant


def read_filter(text: str, fields: Mapping[str, BoundField], *, dialect: str, now: datetime) -> Condition:
    """The condition that a filter says.

    Args:
        text: `status eq 'open' and total gt 100`.
        fields: Those of the tool.
        dialect: Name of the database's.
        now: The present moment.

    Raises:
        InvalidInput: It is not a valid filter, or uses unknown names; the message lists the known ones.
    """
    _check_depth(text)
    try:
        parsed = ExpressionParser.parse_string(text)
    except UriParserException as problem:
        msg = f"filter {text[:200]!r} is no OData expression: {problem} Write e.g. name eq 'x' and size gt 1"
        raise InvalidInput(msg) from None
    except (ValueError, OverflowError, ArithmeticError) as problem:
        msg = f"filter {text[:200]!r} holds a value that is none: {problem}"
        raise InvalidInput(msg) from None
    return _Reading(fields, dialect, now).condition(parsed)


class _Reading:
    """Reads one filter."""

    def __init__(self, fields: Mapping[str, BoundField], dialect: str, now: datetime) -> None:
        self._fields = {name: field for name, field in fields.items() if field.about.searchable}
        self._dialect = dialect
        self._now = now
        self._terms = 0

    def condition(self, node: Expression) -> Condition:
        """What is true or false of a row; null counts as false."""
        self._count()
        match node:
            case Binary(operator=BinaryOperatorKind.AND):
                return sa.and_(*map(self.condition, _chain(node)))
            case Binary(operator=BinaryOperatorKind.OR):
                return sa.or_(*map(self.condition, _chain(node)))
            case Binary(operator=BinaryOperatorKind.IN):
                return self._in(node)
            case Binary() if node.operator.is_comparison:
                return self._comparison(node.operator, self.operand(node.left), self.operand(node.right))
            case Unary(operator=UnaryOperatorKind.NOT):
                return sa.not_(sa.func.coalesce(self.condition(node.operand), sa.false()))
            case Method() if node.method in _SEARCHES:
                return self._search(node)
            case Literal(value=bool()):
                return sa.true() if node.value else sa.false()
            case Member():
                return self._flag(node)
            case Method() if node.method not in _OFFERED:
                raise _not_offered(node)
            case _:
                raise InvalidInput(f"the filter has {_name(node)} where a condition is needed; compare it: … eq 1")

    def operand(self, node: Expression) -> _Operand:
        """What can be compared."""
        self._count()
        match node:
            case Member():
                field = self._field(node)
                return _Computed(field.about.type, field.compared, field)
            case Literal():
                return _Constant(node.value)
            case Method(method=MethodKind.NOW):
                return _Constant(self._now, is_now=True)
            case Method():
                return self._function(node)
            case Binary() if node.operator in _ARITHMETIC:
                return self._arithmetic(node.operator, self.operand(node.left), self.operand(node.right))
            case Unary(operator=UnaryOperatorKind.MINUS):
                return self._arithmetic(BinaryOperatorKind.SUB, _Constant(0), self.operand(node.operand))
            case _:
                raise InvalidInput(f"the filter has {_name(node)}, which is not offered here; use simple comparisons")

    def _count(self) -> None:
        self._terms += 1
        if self._terms > MAX_TERMS:
            raise InvalidInput(f"the filter has more than {MAX_TERMS} parts; write a shorter one")

    def _field(self, node: Member) -> BoundField:
        plain = not (node.lambda_expression or node.lambda_variable or node.count or node.is_it or node.root_uri_info)
        field = self._fields.get(node.path_str) if plain else None
        if field is None:
            msg = f"the filter names {node.path_str[:100]!r}, which is no field to filter by; there are: "
            raise InvalidInput(msg + (", ".join(self._fields) or "none"))
        return field

    def _flag(self, node: Member) -> Condition:
        field = self._field(node)
        if field.about.type != "boolean":
            raise InvalidInput(
                f"{field.name} is a {field.about.type} and no condition; compare it: {field.name} ne null"
            )
        return field.column.is_(sa.true())

    # Comparisons ------------------------------------------------------------------------------------------------------

    def _comparison(self, operator: BinaryOperatorKind, left: _Operand, right: _Operand) -> Condition:
        match left, right:
            case _Computed(), _Computed():
                return self._between(operator, left, right)
            case _Computed(), _Constant():
                return self._against(operator, left, right)
            case _Constant(), _Computed():
                return self._against(_MIRRORED.get(operator, operator), right, left)
            case _:
                raise InvalidInput("the filter compares two values with each other; one side must name a field")

    def _against(self, operator: BinaryOperatorKind, computed: _Computed, constant: _Constant) -> Condition:
        left = computed.value
        if constant.value is None:
            match operator:
                case BinaryOperatorKind.EQ:
                    return left.is_(None)
                case BinaryOperatorKind.NE:
                    return left.is_not(None)
                case _:
                    return sa.false()
        right = _bind_value(computed, constant)
        match operator:
            case BinaryOperatorKind.EQ:
                return left == right
            case BinaryOperatorKind.NE:
                return sa.or_(left != right, left.is_(None))
            case _:
                return _COMPARE[operator](_order_value(computed), right)

    def _between(self, operator: BinaryOperatorKind, left: _Computed, right: _Computed) -> Condition:
        both_numbers = left.kind in _NUMERIC and right.kind in _NUMERIC
        if left.kind != right.kind and not both_numbers:
            raise InvalidInput(f"the filter compares a {left.kind} with a {right.kind}; compare what is alike")
        match operator:
            case BinaryOperatorKind.EQ:
                return _order_value(left).is_not_distinct_from(_order_value(right))
            case BinaryOperatorKind.NE:
                return _order_value(left).is_distinct_from(_order_value(right))
            case _:
                return _COMPARE[operator](_order_value(left), _order_value(right))

    def _in(self, node: Binary) -> Condition:
        computed = self.operand(node.left)
        if not isinstance(computed, _Computed) or not isinstance(node.right, ListExpression):
            raise InvalidInput("'in' needs a field before it and a list of values after it: status in ('a','b')")
        items = [self.operand(item) for item in node.right.items]
        constants = [item for item in items if isinstance(item, _Constant)]
        if len(constants) < len(items):
            raise InvalidInput("the list after 'in' may hold values only; compare fields with eq")
        values = [_bind_value(computed, item) for item in constants if item.value is not None]
        found = computed.value.in_(values)
        return sa.or_(found, computed.value.is_(None)) if len(values) < len(items) else found

    # Functions --------------------------------------------------------------------------------------------------------

    def _search(self, node: Method) -> Condition:
        where, wanted = (self.operand(parameter) for parameter in node.parameters)
        if not isinstance(where, _Computed) or not isinstance(wanted, _Constant) or not isinstance(wanted.value, str):
            raise InvalidInput(f"{node.method.value} takes a field and a text in quotes: {node.method.value}(name,'x')")
        text = self._text(node.method, where)
        sought = wanted.value
        if not sought:
            return text.is_not(None)
        if self._dialect != "sqlite":
            found = {
                MethodKind.CONTAINS: text.contains,
                MethodKind.STARTSWITH: text.startswith,
                MethodKind.ENDSWITH: text.endswith,
            }
            return found[node.method](sought, autoescape=True)
        # SQLite's LIKE takes upper and lower case for the same.
        match node.method:
            case MethodKind.CONTAINS:
                return sa.func.instr(text, sought) > 0
            case MethodKind.STARTSWITH:
                return sa.func.substr(text, 1, len(sought)) == sought
            case _:
                return sa.func.substr(text, -len(sought)) == sought

    def _function(self, node: Method) -> _Computed:
        if node.method in _PARTS:
            return self._part(node)
        if node.method not in _TEXT_TO_TEXT and node.method is not MethodKind.LENGTH:
            raise _not_offered(node)
        inner = self.operand(node.parameters[0])
        if not isinstance(inner, _Computed):
            raise InvalidInput(f"{node.method.value} takes a field: {node.method.value}(name)")
        text = self._text(node.method, inner)
        if node.method is MethodKind.LENGTH:
            count = sa.func.length if self._dialect in {"sqlite", "postgresql"} else sa.func.char_length
            return _Computed("integer", count(text, type_=sa.Integer()))
        return _Computed("string", _TEXT_TO_TEXT[node.method](text, type_=sa.String()))

    def _text(self, method: MethodKind, computed: _Computed) -> Value:
        if computed.kind != "string":
            raise InvalidInput(f"{method.value} takes text, and this is a {computed.kind}")
        return _order_value(computed)

    def _part(self, node: Method) -> _Computed:
        part, kinds = _PARTS[node.method]
        inner = self.operand(node.parameters[0])
        if not isinstance(inner, _Computed) or inner.kind not in kinds:
            raise InvalidInput(f"{part} takes a field that is a {' or a '.join(sorted(kinds))}")
        moment = inner.value
        if self._dialect == "sqlite":
            return _Computed("integer", sa.extract(part, moment))
        if self._dialect == "postgresql" and getattr(moment.type, "timezone", False):
            moment = sa.func.timezone("UTC", moment, type_=sa.DateTime())
        return _Computed("integer", sa.cast(sa.func.floor(sa.extract(part, moment)), sa.Integer()))

    # Arithmetic -------------------------------------------------------------------------------------------------------

    def _arithmetic(self, operator: BinaryOperatorKind, left: _Operand, right: _Operand) -> _Operand:
        match left, right:
            case _Constant(), _Constant():
                return _fold_constants(operator, left, right)
            case _Computed(), _Constant():
                number = _number(right)
                return _Computed(_wider(left, right), _ARITHMETIC[operator](_numeric(left), number))
            case _Constant(), _Computed():
                number = _number(left)
                return _Computed(_wider(right, left), _ARITHMETIC[operator](number, _numeric(right)))
            case _Computed(), _Computed():
                kind = max(left.kind, right.kind, key=_rank)
                return _Computed(kind, _ARITHMETIC[operator](_numeric(left), _numeric(right)))
            case _:
                assert_never((left, right))


def _chain(node: Binary) -> Sequence[Expression]:
    """What `and` or `or` joins, of however many it is: they lean to the left."""
    found: list[Expression] = []
    rest: Expression = node
    while isinstance(rest, Binary) and rest.operator is node.operator:
        found.append(rest.right)
        rest = rest.left
    return [rest, *reversed(found)]


def _bind_value(computed: _Computed, constant: _Constant) -> Any:
    """A value as something that the database computes is compared with it."""
    value = constant.value
    if computed.kind in _NUMERIC and isinstance(value, float | Decimal):
        number = _number(constant)
        return number if computed.field is None else computed.field.cast_to_size(number)
    if constant.is_now and computed.kind == "date":
        return cast("datetime", value).date()
    if computed.field is not None:
        return computed.field.to_column_value(value)
    if computed.kind == "string" and isinstance(value, str) and "\x00" not in value:
        return value
    if computed.kind in _NUMERIC:
        return _number(constant)
    raise InvalidInput(f"the filter compares a {computed.kind} with {str(value)[:100]!r}; give a {computed.kind}")


def _order_value(computed: _Computed) -> Value:
    """What has an order as text has it: an enumeration by its words."""
    if computed.field is not None and isinstance(computed.field.column.type, sa.Enum):
        return sa.cast(computed.value, sa.String())
    return computed.value


def _fold_constants(operator: BinaryOperatorKind, left: _Constant, right: _Constant) -> _Constant:
    """Two values are one: numbers, or a moment and a duration."""
    match left.value, right.value:
        case datetime(), timedelta() if operator is not BinaryOperatorKind.MUL:
            operands = (left.value, right.value)
        case _:
            operands = (_exact(left), _exact(right))
    try:
        return _Constant(_ARITHMETIC[operator](*operands), is_now=left.is_now)
    except (OverflowError, ArithmeticError):
        raise InvalidInput("the filter reckons with values that are too large; give smaller ones") from None


def _exact(constant: _Constant) -> int | Decimal:
    number = _number(constant)
    return number if isinstance(number, int) else Decimal(str(number))


def _number(constant: _Constant) -> int | float | Decimal:
    value = constant.value
    finite = isinstance(value, int) or (isinstance(value, float | Decimal) and Decimal(value).is_finite())
    if isinstance(value, bool) or not finite:
        raise InvalidInput(f"the filter reckons with {str(value)[:100]!r}, which is no number; give a finite one")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise InvalidInput(f"the filter has the number {value}, and the largest has 64 bits; give a smaller one")
    return cast("int | float | Decimal", value)


def _numeric(computed: _Computed) -> Value:
    if computed.kind not in _NUMERIC:
        raise InvalidInput(f"the filter reckons with a {computed.kind}; add, sub and mul take numbers")
    return computed.value


def _wider(computed: _Computed, constant: _Constant) -> ColumnType:
    kind: ColumnType = "integer" if isinstance(constant.value, int) else "decimal"
    return max(computed.kind, kind, key=_rank)


def _rank(kind: ColumnType) -> int:
    return _NUMERIC.index(kind) if kind in _NUMERIC else -1


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


def _not_offered(node: Method) -> InvalidInput:
    offered = ", ".join(method.value for method in _OFFERED)
    return InvalidInput(f"the filter uses {node.method.value}, which is not offered; there are: {offered}")


def _name(node: Expression) -> str:
    match node:
        case Literal():
            return f"the value {node.text[:100]}"
        case Method():
            return f"{node.method.value}(…)"
        case Binary() | Unary():
            return f"'{node.operator.value}'"
        case _:
            return "a list" if isinstance(node, ListExpression) else "an expression"
