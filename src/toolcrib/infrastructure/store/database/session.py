"""A connection for operations: SQLAlchemy Core statements, compiled once and run through the driver.

It knows no table, and of a database only its `Dialect`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeAlias, TypeVar

import sqlalchemy as sa

from toolcrib.infrastructure.store.database.dialect import Dialect, Mark

T = TypeVar("T")
Statement: TypeAlias = sa.UpdateBase | sa.Select[Any]
Parameters: TypeAlias = Mapping[str, Any]
Row: TypeAlias = dict[str, Any]
Prepared: TypeAlias = dict[Statement, tuple[str, Parameters]]
"""Statements as the driver takes them, with the values that stand in the statement itself."""


class TouchesRuns:
    """An operation on the rows of some runs. A commit locks those of all its operations first, always in one order.

    So no two processes wait for each other, whatever their commits have gathered.

    Args:
        run_ids: Ids of the runs.
    """

    def __init__(self, *run_ids: str) -> None:
        self.run_ids = {*run_ids}


class OnRuns(TouchesRuns, Generic[T]):
    """An operation on the rows of some runs that is a function."""

    def __init__(self, work: Callable[["Session"], T], *run_ids: str) -> None:
        super().__init__(*run_ids)
        self._work = work

    def __call__(self, session: "Session") -> T:
        """Do it."""
        return self._work(session)


class TakesTurns:
    """An operation that one process after the other does, for each of its names. A commit locks all names first too.

    Args:
        names: What nobody else may use until it is durable: pieces of a name each.
    """

    def __init__(self, *names: Sequence[str]) -> None:
        self.names = {"/".join(name) for name in names}


class InTurn(TakesTurns, Generic[T]):
    """One that is a function."""

    def __init__(self, work: Callable[["Session"], T], *names: Sequence[str]) -> None:
        super().__init__(*names)
        self._work = work

    def __call__(self, session: "Session") -> T:
        """Do it."""
        return self._work(session)


class Session:
    """A connection that runs prepared statements; inside a job, the transaction that the job is part of.

    Args:
        connection: Used by nobody else at the same time.
        dialect: What its database does in its own way.
        prepared: The statements that are known; shared by all sessions of a database.
    """

    def __init__(self, connection: sa.Connection, dialect: Dialect, prepared: Prepared) -> None:
        self.connection = connection
        self.closed = False
        self._dialect = dialect
        self._driver = connection.connection
        self._commit = self._driver.commit
        self._cursor = self._driver.cursor()
        self._prepared = prepared
        self._deferred: dict[Statement, list[Parameters]] = {}

    def run(self, statement: Statement, parameters: Parameters) -> int:
        """Run a statement with parameters named as in the statement; returns how many rows it changed."""
        text, constants = self._prepared.get(statement) or self._prepare(statement)
        self._cursor.execute(text, {**constants, **parameters} if constants else parameters)
        return self._cursor.rowcount

    def rows(self, statement: Statement, parameters: Parameters) -> list[Row]:
        """Run a statement that returns rows."""
        self.run(statement, parameters)
        names = [column[0] for column in self._cursor.description or ()]
        return [dict(zip(names, values, strict=True)) for values in self._cursor.fetchall()]

    def row(self, statement: Statement, parameters: Parameters) -> Row | None:
        """Run a statement that returns one row or none."""
        found = self.rows(statement, parameters)
        return found[0] if found else None

    def defer(self, statement: Statement, rows: Sequence[Parameters]) -> None:
        """Add rows that nobody reads before the commit, or before `flush`: they go to the database in one piece."""
        if rows:
            self._deferred.setdefault(statement, []).extend(rows)

    def flush(self) -> None:
        """Write the deferred rows."""
        for statement, rows in self._deferred.items():
            text, _ = self._prepared.get(statement) or self._prepare(statement)
            if len(rows) == 1:
                self._cursor.execute(text, rows[0])
            else:
                self._cursor.executemany(text, rows)
        self._deferred.clear()

    def lock(self, name: str) -> None:
        """Until the transaction has ended, keep other processes waiting that lock the same: what is read stays true."""
        self._dialect.lock(self._cursor, name)

    def lock_runs(self, run_ids: Iterable[str]) -> None:
        """Until the transaction has ended, keep other processes from changing the rows of these runs."""
        self._dialect.lock_runs(self._cursor, sorted(run_ids))

    def time(self) -> int | None:
        """See `Dialect.time`."""
        return self._dialect.time(self._cursor)

    def compact(self) -> None:
        """See `Dialect.compact`."""
        self._dialect.compact(self._cursor)

    def begin(self) -> Mark | None:
        """Start a transaction that may write; see `Dialect.begin`."""
        return self._dialect.begin(self._cursor)

    def is_committed(self, mark: Mark) -> bool:
        """See `Dialect.is_committed`."""
        return self._dialect.is_committed(self._cursor, mark)

    def is_lost(self, error: Exception | None = None) -> bool:
        """Whether it leads nowhere any more; see `Dialect.is_lost`."""
        return self.closed or self._dialect.is_lost(self.connection, error)

    def commit(self) -> None:
        """Make everything since `begin` durable."""
        if self._deferred:
            self.flush()
        self._commit()

    def rollback(self) -> None:
        """Undo everything since `begin`; a lost connection has undone it."""
        self._deferred.clear()
        if (
            self.connection.invalidated
        ):  # SQLAlchemy has seen that it is lost, and has let go of the driver's connection
            return
        with suppress(*self._dialect.failures):
            self._driver.rollback()

    def close(self) -> None:
        """Let go of the connection."""
        self.closed = True
        with suppress(*self._dialect.failures):
            self.connection.close()

    def _prepare(self, statement: Statement) -> tuple[str, Parameters]:
        compiled = statement.compile(dialect=self.connection.dialect)
        constants = {name: value for name, value in compiled.params.items() if value is not None}
        known = self._prepared[statement] = (str(compiled), constants)
        return known
