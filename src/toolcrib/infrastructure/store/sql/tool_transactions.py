"""Work of tools in transactions of the SQL store.

The record of the work is a signal of the run that owns the key, with its result; it is committed together with the
work.
"""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import sqlalchemy as sa
from msgspec import Struct
from pydantic_core import from_json

from toolcrib.contracts import ENDED, SCHEMA_VERSION, Json, PermissionDenied
from toolcrib.infrastructure.store.database.database import Database
from toolcrib.infrastructure.store.database.dialect import insert_new
from toolcrib.infrastructure.store.database.session import OnRuns, Session
from toolcrib.infrastructure.store.database.tables import METADATA, RUNS, SIGNALS
from toolcrib.infrastructure.store.ports import state_changes as rules
from toolcrib.infrastructure.store.ports.transactions import Doer, Work
from toolcrib.infrastructure.store.sql.rows import encode, to_micros

_PREFIX: Final = "effect:"
_LOCKED_RUN: Final = sa.select(RUNS).where(RUNS.c.run_id == sa.bindparam("this_run")).with_for_update()
_DONE: Final = sa.select(SIGNALS.c.payload).where(
    SIGNALS.c.run_id == sa.bindparam("this_run"), SIGNALS.c.name == sa.bindparam("this_name")
)
_INSERT: Final = insert_new(SIGNALS)
_CLOSED: Final = frozenset(
    {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA, sqlite3.SQLITE_SAVEPOINT}
    | {sqlite3.SQLITE_TRANSACTION}
)
"""What work may not do in SQLite: reach other files, change how the database works, end the transaction."""
_CHANGES: Final = """
    SELECT relname AS name, pg_stat_get_xact_tuples_inserted(oid) + pg_stat_get_xact_tuples_updated(oid)
        + pg_stat_get_xact_tuples_deleted(oid) AS changes
    FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname = ANY(%(tables)s)
"""


class _Raised(Struct, frozen=True):
    failure: Exception


class SqlTransactions:
    """As `Transactions`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def transact(self, doer: Doer, work: Work) -> Json:
        """See `Transactions`."""
        origin = _origin(doer)[0]  # several runs may go on with its calls, so they take turns
        found = await self._database.write(OnRuns(partial(_do, doer, work), doer.run_id, origin))
        if isinstance(found, _Raised):
            raise found.failure
        return found


def _do(doer: Doer, work: Work, session: Session) -> Json | _Raised:
    row = session.row(_LOCKED_RUN, {"this_run": doer.run_id})
    if row is None:
        raise rules.no_run(doer.run_id)
    if row["epoch"] != doer.epoch or row["status"] in ENDED:
        raise rules.refusal(
            doer.run_id,
            own_epoch=doer.epoch,
            epoch=row["epoch"],
            status=row["status"],
            last=row["last_event"],
            first=None,
        )
    origin, position = _origin(doer)
    place = {"this_run": origin, "this_name": f"{_PREFIX}{position}"}
    done = session.row(_DONE, place)
    if done is not None:
        return from_json(done["payload"])["output"]
    connection = session.connection
    try:
        with _undoing(connection), _protect_tables(connection):
            output = work(sa.Connection(connection.engine, connection.connection))  # ours knows nothing of its deeds
            payload = encode({"output": output}, f"what the work of call {doer.key} brings")
    except Exception as failure:  # noqa: BLE001 - foreign code: what it raises is its caller's to hear, not the store's
        return _Raised(failure)
    session.run(_INSERT, _mark_row(doer, origin, place["this_name"], payload, row))
    return from_json(payload)["output"]


def _origin(doer: Doer) -> tuple[str, str]:
    """The run in whose name the key is, and the position of the call there."""
    run_id, _, position = doer.key.partition("/")
    return run_id, position


def _mark_row(doer: Doer, origin: str, name: str, payload: str, row: dict[str, Any]) -> dict[str, Any]:
    return {
        "run_id": origin,
        "name": name,
        "realm": row["realm"],
        "made_by": doer.made_by,
        "at": to_micros(datetime.now(UTC)),
        "payload": payload,
        "schema_version": SCHEMA_VERSION,
    }


@contextmanager
def _undoing(connection: sa.Connection) -> Generator[None]:
    """Undo work that fails. The driver is told so: SQLAlchemy forgets its savepoint when work tries to commit."""
    driver: Any = connection.connection.dbapi_connection
    if not isinstance(driver, sqlite3.Connection):
        with driver.transaction():  # a savepoint, within which psycopg refuses to commit and to roll back
            yield
        return
    driver.execute("SAVEPOINT work")
    try:
        yield
    except BaseException:
        driver.execute("ROLLBACK TO work")
        raise
    finally:
        driver.execute("RELEASE work")


@contextmanager
def _protect_tables(connection: sa.Connection) -> Generator[None]:
    """Keep work off the store's own tables: SQLite asks before each statement, PostgreSQL tells what was changed.

    Raises:
        PermissionDenied: On PostgreSQL, rows of the store were changed: the work must be undone.
    """
    driver: Any = connection.connection.dbapi_connection
    if not isinstance(driver, sqlite3.Connection):
        before = _changes(connection)
        yield
        touched = sorted(name for name, count in _changes(connection).items() if count != before[name])
        if touched:
            tables = ", ".join(touched)
            msg = f"a tool's work has changed rows of {tables}, and was rolled back; it may only touch its own tables"
            raise PermissionDenied(msg)
        return
    driver.set_authorizer(_may)
    try:
        yield
    finally:
        driver.set_authorizer(None)


def _changes(connection: sa.Connection) -> dict[str, int]:
    """How many rows of each table of the store the transaction has changed so far, by PostgreSQL's own count."""
    found = connection.exec_driver_sql(_CHANGES, {"tables": list(METADATA.tables)})
    return {row.name: row.changes for row in found}


def _may(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    del database, trigger
    ours = first in METADATA.tables or second in METADATA.tables
    return sqlite3.SQLITE_DENY if ours or action in _CLOSED else sqlite3.SQLITE_OK
