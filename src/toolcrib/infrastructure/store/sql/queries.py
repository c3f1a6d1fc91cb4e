"""Filters and orders over the rows of one table: what `ports.queried_fields` names, as columns."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.exc import DataError

from toolcrib.contracts import InvalidInput
from toolcrib.infrastructure.queries.grammar import Comparison, Condition, Every, FieldOf, FilterConstant, Membership
from toolcrib.infrastructure.queries.rows import Field
from toolcrib.infrastructure.queries.statements import to_clause, to_order, to_seek
from toolcrib.infrastructure.store.database.session import Row, Session
from toolcrib.infrastructure.store.ports.queried_fields import StoreQuery
from toolcrib.infrastructure.store.sql.rows import to_micros

T = TypeVar("T")
Column = sa.ColumnElement[Any]


class _StoredField:
    """A field that is a column, or is computed of some; moments are microseconds there."""

    def __init__(self, name: str, field: Field[Any], column: Column, dialect: str) -> None:
        self._name = name
        self._field = field
        self._dialect = dialect
        self.compared = self.ordered = column
        self.nullable = field.nullable

    @property
    def moment(self) -> Column:
        """The moment that the microseconds stand for."""
        seconds = self.compared // 1_000_000
        if self._dialect == "sqlite":
            return sa.func.datetime(seconds, "unixepoch", type_=sa.String())
        return sa.func.to_timestamp(seconds, type_=sa.DateTime(timezone=True))

    def to_column_value(self, value: Any) -> Any:
        """A value as the column has it."""
        return self.stored(self._field.read(self._name, value))

    def stored(self, value: Any) -> Any:
        """A value of the field as the column has it."""
        return to_micros(value) if isinstance(value, datetime) else value

    def cast_to_size(self, value: Any) -> Any:
        """A number as it is compared: integers with fractions too."""
        return float(value)


class QueriedTable(Generic[T]):
    """Reads pages of a table, and counts its rows.

    Args:
        table: Has a column `realm`.
        fields: By name.
        columns: Those that are not called like their field.
        read: Makes what a row stands for.
        hints: What else is true of all rows that meet a condition, said as an index says it.
    """

    def __init__(
        self,
        table: sa.Table,
        fields: Mapping[str, Field[T]],
        columns: Mapping[str, Column],
        read: Callable[[Row], T],
        hints: Callable[[Condition], list[sa.ColumnElement[bool]]] = lambda _: [],
    ) -> None:
        self._table = table
        self._read = read
        self._hints = hints
        self._fields = {
            dialect: {
                name: _StoredField(name, field, columns[name] if name in columns else table.c[name], dialect)
                for name, field in fields.items()
            }
            for dialect in ("sqlite", "postgresql")
        }

    def page(self, session: Session, realm: str, query: StoreQuery) -> list[T]:
        """What meets the condition, in order.

        Raises:
            InvalidInput: The filter reckons with numbers that the database does not have.
        """
        dialect = session.connection.dialect.name
        fields = self._fields[dialect]
        statement = sa.select(self._table).where(*self._where(realm, query.condition, dialect))
        if query.after is not None:
            place = [fields[key.field].stored(value) for key, value in zip(query.order, query.after, strict=True)]
            statement = statement.where(to_seek(query.order, fields, place))
        statement = statement.order_by(*to_order(query.order, fields, dialect=dialect)).limit(query.limit)
        return [self._read(dict(row)) for row in _execute(session, statement).mappings()]

    def count(self, session: Session, realm: str, condition: Condition) -> int:
        """How many rows meet a condition.

        Raises:
            InvalidInput: As `page` raises.
        """
        where = self._where(realm, condition, session.connection.dialect.name)
        statement = sa.select(sa.func.count()).select_from(self._table).where(*where)
        return cast("int", _execute(session, statement).scalar_one())

    def _where(self, realm: str, condition: Condition, dialect: str) -> list[sa.ColumnElement[bool]]:
        met = to_clause(condition, self._fields[dialect], dialect=dialect)
        return [self._table.c.realm == realm, met, *self._hints(condition)]


def _execute(session: Session, statement: sa.Select[Any]) -> sa.CursorResult[Any]:
    try:
        return session.connection.execute(statement)
    except DataError:
        raise InvalidInput("the filter reckons with numbers that are too large; give smaller ones") from None


def values_required(condition: Condition, name: str) -> set[Any] | None:
    """The values that a field can have where a condition is met; null if it may be any."""
    match condition:
        case Comparison("eq", FieldOf(field), FilterConstant(value)) if field == name:
            return {value}
        case Membership(FieldOf(field), values) if field == name:
            return {each.value for each in values}
        case Every(parts):
            found = (values_required(part, name) for part in parts)
            return next((each for each in found if each is not None), None)
        case _:
            return None
