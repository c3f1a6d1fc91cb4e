"""Reads and writes the rows of one table, inside the caller's transaction.

Updates and deletions name the version of the row that the caller saw. The row is locked, compared and written, so of
two calls that saw the same version one fails, and no change is lost.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa

from toolcrib.contracts import ErrorCode, InvalidInput, Json, JsonObject, Reason, canonical, digest
from toolcrib.core.executor import CallFailed, error
from toolcrib.kinds.entity.runtime.values import BoundField
from toolcrib.kinds.entity.shape import ROW_VERSION, EntityImplementation

_DIGITS: Final = 16
"""Characters of a row's hash: enough to make collisions for one row improbable."""


class Rows:
    """Access to the rows of a tool's table.

    Args:
        connection: In a transaction.
        table: The tool's.
        fields: Those of the tool.
        tool: Its name, for messages.
        implementation: What it is made of.
        now: The present moment.
        mark: Unique mark of the call; the new version of a row without a counter is derived from it.
    """

    def __init__(
        self,
        connection: sa.Connection,
        table: "sa.Table[Any]",
        fields: Mapping[str, BoundField],
        *,
        tool: str,
        implementation: EntityImplementation,
        now: datetime,
        mark: str,
    ) -> None:
        self._connection = connection
        self._table = table
        self._fields = fields
        self._tool = tool
        self._implementation = implementation
        self._now = now
        self._mark = mark

    def get(self, key: JsonObject) -> JsonObject:
        """The row with a key.

        Raises:
            CallFailed: There is none.
        """
        found = self._row(key)
        if found is None:
            raise self._no_row(key)
        return found

    def search(
        self, condition: sa.ColumnElement[bool] | None, order: Sequence[sa.ColumnElement[Any]], *, skip: int, top: int
    ) -> list[JsonObject]:
        """Rows that meet a condition, in an order that is the same each time."""
        names = self._implementation.key or [name for name, field in self._fields.items() if field.about.searchable]
        keys = [self._fields[name].column for name in names]
        statement = self._select().order_by(*order, *keys).offset(skip or None).limit(top)
        statement = statement if condition is None else statement.where(condition)
        return [self._to_json(row) for row in self._connection.execute(statement).mappings()]

    def count(self, condition: sa.ColumnElement[bool] | None) -> int:
        """How many rows meet a condition."""
        statement = sa.select(sa.func.count()).select_from(self._table)
        statement = statement if condition is None else statement.where(condition)
        return self._connection.execute(statement).scalar_one()

    def create(self, given: JsonObject) -> JsonObject:
        """Make a row, and read it as the database has it then."""
        values = self._column_values(given)
        counter = self._counter()
        if counter is not None and self._implementation.version_by == "tool" and _starts_empty(counter):
            values[counter.column.name] = self._next(counter, None)
        made = self._connection.execute(sa.insert(self._table).values(values)).inserted_primary_key
        columns = [column.name for column in self._table.primary_key.columns]
        key = dict(zip(columns, made or (), strict=False))
        names = {field.column.name: name for name, field in self._fields.items()}
        return self.get({names[column]: self._fields[names[column]].to_json(key[column]) for column in columns})

    def update(self, key: JsonObject, version: Json, given: JsonObject) -> JsonObject:
        """Change a row that is as it was seen, and read it again.

        Raises:
            CallFailed: There is no such row, or it has changed since.
        """
        if not given:
            raise InvalidInput("there is nothing to change; give at least one field with its new value")
        values = self._column_values(given)
        counter = self._counter()
        self._hold(key, version)
        if counter is not None and self._implementation.version_by == "tool":
            values[counter.column.name] = self._next(counter, self._fields[counter.name].to_column_value(version))
        self._connection.execute(sa.update(self._table).where(self._is(key)).values(values))
        return self.get(key)

    def delete(self, key: JsonObject, version: Json) -> None:
        """Delete a row that is as it was seen.

        Raises:
            CallFailed: There is no such row, or it has changed since.
        """
        self._hold(key, version)
        self._connection.execute(sa.delete(self._table).where(self._is(key)))

    def _hold(self, key: JsonObject, version: Json) -> None:
        """Lock a row, and see to it that it is as the caller has seen it."""
        field = self._implementation.version_field
        if self._connection.dialect.name == "sqlite":
            # It locks the whole file, and does so before it reads if the first statement is one that writes.
            column = self._fields[self._implementation.key[0]].column
            self._connection.execute(sa.update(self._table).where(sa.false()).values({column.name: column}))
        present = self._row(key, locked=True)
        if present is None:
            raise self._no_row(key)
        if field is not None and present[field] != self._as_shown(field, version):
            message = (
                f"tool {self._tool!r}: the row {_key_text(key)} has been changed since it was read: its {field} is "
                f"{present[field]!r}, not {version!r}. Read it again, and call again with what is still wanted"
            )
            details = {"field": field, "present": present[field], "seen": version}
            raise CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.STALE_VERSION, message, **details))

    def _as_shown(self, name: str, version: Json) -> Json:
        """A version as rows show it, however the caller has written it."""
        field = self._fields.get(name)
        return version if field is None or version is None else field.to_json(field.to_column_value(version))

    def _counter(self) -> BoundField | None:
        """The column that is the version, if one is."""
        return self._fields.get(self._implementation.version_field or "")

    def _next(self, counter: BoundField, version: Any) -> Any:
        """The version after the one that was seen; the first one if none was."""
        match counter.about.type:
            case "integer":
                return version + 1 if isinstance(version, int) else 1
            case "datetime":
                return counter.to_column_value(max(self._now, _after(version)).isoformat())
            case kind:
                fresh = digest(f"{self._mark} {version}".encode())[:32]
                return counter.to_column_value(str(UUID(fresh)) if kind == "uuid" else fresh)

    def _column_values(self, given: JsonObject) -> dict[str, Any]:
        return {self._fields[name].column.name: self._fields[name].to_stored(value) for name, value in given.items()}

    def _row(self, key: JsonObject, *, locked: bool = False) -> JsonObject | None:
        statement = self._select().where(self._is(key))
        statement = statement.with_for_update() if locked else statement
        found = self._connection.execute(statement).mappings().one_or_none()
        return None if found is None else self._to_json(found)

    def _select(self) -> sa.Select[Any]:
        return sa.select(*(field.read for field in self._fields.values()))

    def _is(self, key: JsonObject) -> sa.ColumnElement[bool]:
        return sa.and_(
            *(self._fields[name].compared == self._fields[name].to_column_value(value) for name, value in key.items())
        )

    def _to_json(self, row: Mapping[Any, Any]) -> JsonObject:
        shown: JsonObject = {name: field.to_json(row[name]) for name, field in self._fields.items()}
        if self._implementation.version_field == ROW_VERSION and ROW_VERSION not in shown:
            shown[ROW_VERSION] = digest(canonical(shown))[:_DIGITS]
        return shown

    def _no_row(self, key: JsonObject) -> CallFailed:
        message = f"tool {self._tool!r}: there is no row {_key_text(key)} in {self._table.name}; search for it first"
        return CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.NOT_FOUND, message, key=key))


def _key_text(key: JsonObject) -> str:
    return ", ".join(f"{name}={str(value)[:100]!r}" for name, value in key.items())


def _starts_empty(counter: BoundField) -> bool:
    """Whether a new row gets its first version here and not from the database."""
    return counter.column.default is None and counter.column.server_default is None


def _after(version: Any) -> datetime:
    """A moment after the one that was seen, by the smallest step that databases keep."""
    if not isinstance(version, datetime):
        return datetime.min.replace(tzinfo=UTC)
    aware = version.replace(tzinfo=UTC) if version.tzinfo is None else version
    return aware + timedelta(microseconds=1)
