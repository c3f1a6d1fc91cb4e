"""The port for differences between SQLite and PostgreSQL.

Of the tables it only knows that runs have rows. Statements and parameter names are the same for both.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles

from toolcrib.contracts import ToolcribError

Cursor: TypeAlias = Any
"""A cursor of the driver."""
Mark: TypeAlias = str
"""Names a transaction to its database, also for those who ask later and over another connection."""


class Dialect(Protocol):
    """One database, named by URL. Its connections leave transactions to the store."""

    @property
    def name(self) -> str:
        """What messages call the database: file, or database and host. Never user or password."""
        ...

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What a failing database raises, through SQLAlchemy and past it."""
        ...

    def create(self) -> sa.Connection:
        """The first connection. It makes the database if there is none and that is ours to do.

        Raises:
            Unavailable: The database cannot be reached, made or written.
        """
        ...

    def connect(self) -> sa.Connection:
        """Another connection, to a database that was there.

        Raises:
            Unavailable: It cannot be reached, or is gone.
        """
        ...

    def begin(self, cursor: Cursor) -> Mark | None:
        """Start a transaction that may write; null if nobody needs to ask later what became of it."""
        ...

    def is_committed(self, cursor: Cursor, mark: Mark) -> bool:
        """Whether a transaction took place whose connection was lost before the database had answered.

        Raises:
            Unavailable: The database does not know yet.
        """
        ...

    def is_lost(self, connection: sa.Connection, error: Exception | None = None) -> bool:
        """Whether a connection leads nowhere any more, in itself or as this failure says."""
        ...

    def lock(self, cursor: Cursor, name: str) -> None:
        """Keep all others who ask for this name waiting until the transaction has ended."""
        ...

    def lock_runs(self, cursor: Cursor, run_ids: Sequence[str]) -> None:
        """Keep all others from changing the rows of these runs until the transaction has ended; locked one by one."""
        ...

    def time(self, cursor: Cursor) -> int | None:
        """Microseconds since 1970 as all machines that share the database see them; null where it is on one machine."""
        ...

    def compact(self, cursor: Cursor) -> None:
        """Give the space of what was deleted back to the file system, outside of any transaction."""
        ...

    def explain(self, error: Exception) -> ToolcribError:
        """What a failure of the database means to the caller; the statement and its values stay out of the message."""
        ...


class InsertNew(sa.Insert):
    """See `insert_new`."""

    inherit_cache = True


@compiles(InsertNew)
def _insert_new(statement: InsertNew, compiler: Any, **options: Any) -> str:
    return f"{compiler.visit_insert(statement, **options)} ON CONFLICT DO NOTHING"


def insert_new(table: sa.Table) -> sa.Insert:
    """Insert a row unless its key is taken; the row count says which."""
    return InsertNew(table)
