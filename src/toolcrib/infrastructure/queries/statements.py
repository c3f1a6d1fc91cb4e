"""Makes SQL of the conditions and orders that `grammar` has read. Values become bound parameters.

Text is compared by the database's collation; `contains`, `startswith` and `endswith` search for the literal text.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, Protocol, TypeAlias, cast

import sqlalchemy as sa

from toolcrib.infrastructure.queries.grammar import (
    PARTS,
    Arithmetic,
    Calculation,
    Comparator,
    Comparison,
    Computed,
    Condition,
    Either,
    Every,
    FieldOf,
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
)

Clause: TypeAlias = sa.ColumnElement[bool]
Value: TypeAlias = sa.ColumnElement[Any]


class SqlField(Protocol):
    """A field that is a column."""

    @property
    def compared(self) -> Value:
        """The column as values are compared with it."""
        ...

    @property
    def ordered(self) -> Value:
        """The column as it has an order."""
        ...

    @property
    def moment(self) -> Value:
        """The column as parts of a moment are taken of it."""
        ...

    @property
    def nullable(self) -> bool:
        """Whether it can be null."""
        ...

    def to_column_value(self, value: Any) -> Any:
        """A value for the column.

        Raises:
            InvalidInput: It is not one.
        """
        ...

    def cast_to_size(self, value: Any) -> Any:
        """A number of as many bits as the column has."""
        ...


_COMPARE: Final[Mapping[Comparator, Callable[[Value, Any], Clause]]] = {
    "gt": lambda left, right: left > right,
    "ge": lambda left, right: left >= right,
    "lt": lambda left, right: left < right,
    "le": lambda left, right: left <= right,
}
_CALCULATE: Final[Mapping[Calculation, Callable[[Any, Any], Any]]] = {
    "add": lambda left, right: left + right,
    "sub": lambda left, right: left - right,
    "mul": lambda left, right: left * right,
}
_TEXT_TO_TEXT: Final = {"tolower": sa.func.lower, "toupper": sa.func.upper, "trim": sa.func.trim}


def to_clause(condition: Condition, fields: Mapping[str, SqlField], *, dialect: str) -> Clause:
    """A condition as SQL.

    Args:
        condition: The condition.
        fields: By name; those that the condition was read with.
        dialect: Name of the database's.

    Raises:
        InvalidInput: A value is not one of its field.
    """
    return _Statement(fields, dialect).clause(condition)


def to_order(order: Sequence[OrderKey], fields: Mapping[str, SqlField], *, dialect: str) -> list[Value]:
    """What rows are ordered by, as SQL; null is the least of all."""
    return [_ordered(fields[key.field], dialect, descending=key.descending) for key in order]


def _ordered(field: SqlField, dialect: str, *, descending: bool) -> Value:
    ordered = field.compared.desc() if descending else field.compared.asc()
    if dialect != "postgresql" or not field.nullable:
        return ordered
    return ordered.nulls_last() if descending else ordered.nulls_first()


def to_seek(order: Sequence[OrderKey], fields: Mapping[str, SqlField], after: Sequence[Any]) -> Clause:
    """Whether a row comes after another one in an order.

    Args:
        order: What rows are ordered by; the last key differs for each row.
        fields: By name.
        after: The values of the other row, one for each key, as the columns have them.
    """
    columns = [fields[key.field] for key in order]
    if len({key.descending for key in order}) == 1 and not any(column.nullable for column in columns):
        ours, theirs = sa.tuple_(*(column.compared for column in columns)), tuple(after)
        return ours < theirs if order[0].descending else ours > theirs  # as an index can find it
    same: list[Clause] = []
    ways: list[Clause] = []
    for key, column, plain in zip(order, columns, after, strict=True):
        value = sa.literal(plain) if isinstance(plain, bool) else plain
        ways.append(sa.and_(*same, _beyond(column.compared, value, descending=key.descending)))
        same.append(column.compared.is_(None) if value is None else column.compared == value)
    return sa.or_(*ways)


def _beyond(column: Value, value: Any, *, descending: bool) -> Clause:
    if value is None:
        return sa.false() if descending else column.is_not(None)
    return sa.or_(column < value, column.is_(None)) if descending else column > value


def _listed(computed: Computed, value: Any) -> Any:
    """A value in a list: SQLAlchemy gives it the type of the column, and PostgreSQL would round a fraction for it."""
    is_rounded = computed.type == "integer" and isinstance(value, float | Decimal)
    return sa.literal(float(value)) if is_rounded else value


class _Statement:
    """Makes one clause."""

    def __init__(self, fields: Mapping[str, SqlField], dialect: str) -> None:
        self._fields = fields
        self._dialect = dialect

    def clause(self, condition: Condition) -> Clause:
        match condition:
            case Every():
                return sa.and_(sa.true(), *map(self.clause, condition.parts))
            case Either():
                return sa.or_(sa.false(), *map(self.clause, condition.parts))
            case Inverse():
                return sa.not_(sa.func.coalesce(self.clause(condition.part), sa.false()))
            case Flag():
                return self._fields[condition.of.name].compared.is_(sa.true())
            case Membership():
                return self._membership(condition)
            case TextSearch():
                return self._search(condition)
            case Comparison(operator, left, right):
                if isinstance(right, FilterConstant):
                    return self._against(operator, left, right)
                return self._between(operator, left, right)

    def _against(self, operator: Comparator, computed: Computed, constant: FilterConstant) -> Clause:
        left = self._value(computed)
        if constant.value is None:
            match operator:
                case "eq":
                    return left.is_(None)
                case "ne":
                    return left.is_not(None)
                case _:
                    return sa.false()
        right = self._bound(computed, constant)
        match operator:
            case "eq":
                return left == right
            case "ne":
                return sa.or_(left != right, left.is_(None))
            case _:
                return _COMPARE[operator](self._with_order(computed), right)

    def _between(self, operator: Comparator, one: Computed, other: Computed) -> Clause:
        left, right = self._with_order(one), self._with_order(other)
        match operator:
            case "eq":
                return left.is_not_distinct_from(right)
            case "ne":
                return left.is_distinct_from(right)
            case _:
                return _COMPARE[operator](left, right)

    def _membership(self, condition: Membership) -> Clause:
        value = self._value(condition.of)
        given = [each for each in condition.values if each.value is not None]
        found = value.in_([_listed(condition.of, self._bound(condition.of, each)) for each in given])
        return sa.or_(found, value.is_(None)) if len(given) < len(condition.values) else found

    def _search(self, condition: TextSearch) -> Clause:
        text, sought = self._with_order(condition.of), condition.text
        if not sought:
            return text.is_not(None)
        if self._dialect != "sqlite":
            found = {"contains": text.contains, "startswith": text.startswith, "endswith": text.endswith}
            return found[condition.method](sought, autoescape=True)
        # SQLite's LIKE takes upper and lower case for the same.
        match condition.method:
            case "contains":
                return sa.func.instr(text, sought) > 0
            case "startswith":
                return sa.func.substr(text, 1, len(sought)) == sought
            case "endswith":
                return sa.func.substr(text, -len(sought)) == sought

    def _value(self, operand: Operand) -> Value:
        """What the database computes."""
        match operand:
            case FilterConstant():
                return cast("Value", number_of(operand))
            case FieldOf():
                return self._fields[operand.name].compared
            case Arithmetic():
                return _CALCULATE[operand.operator](self._value(operand.left), self._value(operand.right))
            case FunctionOf() if operand.name in PARTS:
                return self._part(operand.name, operand.of)
            case FunctionOf(name="length"):
                count = sa.func.length if self._dialect in {"sqlite", "postgresql"} else sa.func.char_length
                return count(self._with_order(operand.of), type_=sa.Integer())
            case FunctionOf():
                return _TEXT_TO_TEXT[operand.name](self._with_order(operand.of), type_=sa.String())

    def _with_order(self, computed: Computed) -> Value:
        return self._fields[computed.name].ordered if isinstance(computed, FieldOf) else self._value(computed)

    def _part(self, part: str, inner: Computed) -> Value:
        moment = self._fields[inner.name].moment if isinstance(inner, FieldOf) else self._value(inner)
        if self._dialect == "sqlite":
            return sa.extract(part, moment)
        if self._dialect == "postgresql" and getattr(moment.type, "timezone", False):
            moment = sa.func.timezone("UTC", moment, type_=sa.DateTime())
        return sa.cast(sa.func.floor(sa.extract(part, moment)), sa.Integer())

    def _bound(self, computed: Computed, constant: FilterConstant) -> Any:
        """A value as something that the database computes is compared with it."""
        field = self._fields[computed.name] if isinstance(computed, FieldOf) else None
        if is_fraction(computed, constant):
            number = number_of(constant)
            return number if field is None else field.cast_to_size(number)
        if constant.is_now and computed.type == "date":
            return constant.value.date()
        value = plain_value(computed, constant) if field is None else field.to_column_value(constant.value)
        return sa.literal(value) if isinstance(value, bool) else value  # SQLAlchemy puts no bare one in an order
