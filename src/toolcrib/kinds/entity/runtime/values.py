"""Converts values between JSON and a database by the type of the field. A refusal names the field.

Times are UTC. A time with an offset is converted, also for columns that store no offset.
"""

import base64
import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import partial
from typing import Any, Final, cast
from uuid import UUID

import sqlalchemy as sa

from toolcrib.contracts import InvalidInput, Json
from toolcrib.infrastructure.queries.grammar import FieldType, read_value, refused_value
from toolcrib.kinds.entity.shape import ColumnType, EntityColumn


class BoundField:
    """One field of a tool, bound to its column.

    Args:
        name: The field's.
        about: What the tool knows of it.
        column: In the table.
        dialect: Name of the database's.
    """

    def __init__(self, name: str, about: EntityColumn, column: sa.Column[Any], dialect: str) -> None:
        self.name = name
        self.about = about
        self.column = column
        self._keeps_offset = bool(getattr(column.type, "timezone", False)) and dialect != "sqlite"
        self._is_told_offset = bool(getattr(column.type, "timezone", False))
        self._is_sqlite = dialect == "sqlite"
        self._is_short = dialect == "postgresql" and isinstance(column.type, sa.REAL)

    @property
    def read(self) -> sa.ColumnElement[Any]:
        """The column as it is selected: in the form that the database has it, where Python's is of no use to JSON.

        SQLite keeps anything in any column, so that of a type which is text in JSON is read as it is.
        """
        if isinstance(self.column.type, sa.Enum):
            return sa.type_coerce(self.column, sa.String()).label(self.name)
        if self._is_sqlite and isinstance(self.column.type, _LOOSE):
            return sa.type_coerce(self.column, sa.types.NullType()).label(self.name)
        return self.column.label(self.name)

    @property
    def compared(self) -> sa.ColumnElement[Any]:
        """The column as values are compared with it.

        Moments in SQLite are text, which others write shorter or with a T: all get the form in which values are bound.
        """
        if not self._is_sqlite or not isinstance(self.column.type, sa.DateTime):
            return self.column
        spaced = sa.func.replace(sa.type_coerce(self.column, sa.String()), "T", " ", type_=sa.String())
        rest = sa.func.substr(" 00:00:00.000000", sa.func.length(spaced) - 9, type_=sa.String())
        return sa.type_coerce(spaced + rest, self.column.type)

    @property
    def ordered(self) -> sa.ColumnElement[Any]:
        """The column as text has an order: an enumeration by its words."""
        is_enumeration = isinstance(self.column.type, sa.Enum)
        return sa.cast(self.compared, sa.String()) if is_enumeration else self.compared

    @property
    def moment(self) -> sa.ColumnElement[Any]:
        """The column as parts of a moment are taken of it."""
        return self.compared

    @property
    def nullable(self) -> bool:
        """Whether it can be null."""
        return bool(self.column.nullable)

    def to_column_value(self, value: Json) -> Any:
        """A value for the column.

        Raises:
            InvalidInput: It is not one.
        """
        if value is None:
            return sa.null()
        return self.cast_to_size(self._convert(self.about.type, value))

    def cast_to_size(self, value: Any) -> Any:
        """A value of as many bits as the column has, so that it equals what is shown of it."""
        return sa.cast(value, self.column.type) if self._is_short and isinstance(value, float | Decimal) else value

    def to_stored(self, value: Json) -> Any:
        """A value that is to be stored: also what some databases would cut or round in silence is refused.

        Raises:
            InvalidInput: It is not one of the column's.
        """
        made = self.to_column_value(value)
        scale = getattr(self.column.type, "scale", None)
        if isinstance(made, Decimal) and scale is not None and made != round(made, scale):
            raise self.refusal(value, f"a number with at most {scale} digits behind the point")
        return made

    def to_json(self, value: Any) -> Json:
        """A value of the column as JSON."""
        if value is None:
            return None
        if self.about.type == "array":
            return [self._value_to_json(self.about.items or "string", item) for item in value]
        return self._value_to_json(self.about.type, self._parse_text(value))

    def _parse_text(self, value: Any) -> Any:
        """What text in SQLite says, if it is of the column's type; others may have written anything."""
        reader = _LOOSE_READERS.get(self.about.type)
        if not self._is_sqlite or reader is None or not isinstance(value, str):
            return value
        try:
            return reader(value)
        except ValueError:
            return value

    def _convert(self, kind: ColumnType, value: Json) -> Any:
        if kind == "array":
            if not isinstance(value, list):
                raise self.refusal(value, "a list")
            return [self._convert(self.about.items or "string", item) for item in cast("list[Json]", value)]
        if kind == "json":
            return value
        return self._fit_column(read_value(self.name, kind, value))

    def _fit_column(self, made: Any) -> Any:
        """What the column itself asks of a value that is well formed."""
        match made:
            case datetime():
                return self._moment(made)
            case str() if isinstance(self.column.type, sa.Enum) and made not in self.column.type.enums:
                raise self.refusal(made, f"one of {', '.join(map(str, self.column.type.enums))}")
            case UUID() if not getattr(self.column.type, "as_uuid", True):
                return str(made)
            case _:
                return made

    def _moment(self, moment: datetime) -> datetime:
        utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None and self._is_told_offset else moment
        utc = utc.astimezone(UTC) if utc.tzinfo is not None else utc
        return utc if self._keeps_offset else utc.replace(tzinfo=None)

    def _value_to_json(self, kind: ColumnType, value: Any) -> Json:
        match value:
            case datetime():
                return self._moment_text(value)
            case date() | time():
                return value.isoformat()
            case bytes():
                return base64.b64encode(value).decode()
            case Decimal() if kind == "decimal":
                return format(value, "f")
            case float() if not math.isfinite(value):
                return None
            case int() | float() if kind == "decimal":
                return self._decimal_text(value)
            case int() | float() if kind in _TEXTS:
                return str(value)
            case str() | int() | float():
                return value
            case _ if kind == "json":
                return value
            case _:
                return str(value)

    def _moment_text(self, value: datetime) -> str:
        if not self._is_told_offset:
            return value.isoformat()
        utc = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return f"{utc.replace(tzinfo=None).isoformat()}Z"

    def _decimal_text(self, value: float) -> str:
        """SQLite keeps decimals as binary numbers; the shortest text that means the same one is what was written."""
        made = Decimal(repr(value))
        scale: int | None = getattr(self.column.type, "scale", None)
        return format(made if scale is None else round(made, scale), "f")

    def refusal(self, value: Json, wanted: str) -> InvalidInput:
        """What to say of a value that is not what the field takes."""
        return refused_value(self.name, value, wanted)


def fields_of(
    columns: Mapping[str, EntityColumn], table: "sa.Table[Any]", dialect: str
) -> tuple[dict[str, BoundField], list[str]]:
    """The fields of a tool with their columns, and the columns that the table has no more."""
    found: dict[str, BoundField] = {}
    missing: list[str] = []
    for name, about in columns.items():
        column = table.columns.get(about.column or name)
        if column is None:
            missing.append(about.column or name)
        else:
            found[name] = BoundField(name, about, column, dialect)
    return found, missing


_LOOSE: Final = (sa.DateTime, sa.Date, sa.Time, sa.Numeric, sa.JSON)
"""Types whose values may be something else in SQLite."""
_LOOSE_READERS: Final[Mapping[ColumnType, Callable[[str], Any]]] = {
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "json": partial(json.loads, parse_constant=lambda _: None),
    "time": time.fromisoformat,
}
_TEXTS: Final[frozenset[ColumnType]] = frozenset({"date", "datetime", "string", "time"})


def searchable_types(fields: Mapping[str, BoundField]) -> Mapping[str, FieldType]:
    """The types of the fields that filters and orders may name."""
    return {name: field.about.type for name, field in fields.items() if field.about.searchable}
