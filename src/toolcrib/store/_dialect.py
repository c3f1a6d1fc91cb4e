"""Everything that SQLite does in its own way. A second database is a second module with these names.

Durability: write-ahead log, and a sync of the file at every commit (`synchronous=FULL`), so what was committed survives
the machine. Writers take turns: `BEGIN IMMEDIATE` waits for the lock before it reads anything.
"""

import sqlite3
import time
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool, PoolProxiedConnection

from toolcrib.contracts import Unavailable

BEGIN: Final = "BEGIN IMMEDIATE"
"""Starts a transaction that may write."""
FAILURES: Final = (DBAPIError, sqlite3.Error)
"""What a failing database raises, through SQLAlchemy and past it."""

_BUSY_S: Final = 10.0
"""Seconds to wait for another process's transaction."""
_SWITCH_S: Final = 0.02
"""Seconds between attempts to switch a new file to the write-ahead log, for which SQLite itself does not wait."""
_LOCKED: Final = "database is locked"


def make_engine(url: str) -> sa.Engine:
    """An engine whose connections are durable, check foreign keys and leave transactions to us."""
    options = {"check_same_thread": False, "timeout": _BUSY_S, "isolation_level": None, "cached_statements": 256}
    engine = sa.create_engine(url, paramstyle="named", poolclass=NullPool, connect_args=options)
    event.listen(engine, "connect", _configure)
    return engine


def _configure(connection: PoolProxiedConnection, record: object) -> None:
    del record
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def connect(engine: sa.Engine) -> sa.Connection:
    """The first connection, which sees to it that the file is there and has a write-ahead log.

    Raises:
        Unavailable: There is no such folder, the file is no database, or it cannot be written.
    """
    file = Path(str(engine.url.database))
    if not file.parent.is_dir():
        msg = f"cannot open the store {file}: there is no folder {file.parent.absolute()}; make it, or name another"
        raise Unavailable(msg)
    try:
        connection = engine.connect()
    except FAILURES as error:
        raise unavailable(engine, error) from error
    try:
        _use_wal(connection)
    except FAILURES as error:
        connection.close()
        raise unavailable(engine, error) from error
    return connection


def _use_wal(connection: sa.Connection) -> None:
    deadline = time.monotonic() + _BUSY_S
    while True:
        try:
            # Its row is read, so that no statement is left in progress for the first transaction to trip over.
            connection.exec_driver_sql("PRAGMA journal_mode=WAL").scalar()
        except OperationalError as error:
            connection.rollback()
            if _LOCKED not in str(error.orig) or time.monotonic() > deadline:
                raise
            time.sleep(_SWITCH_S)
        else:
            connection.rollback()
            return


def insert_new(table: sa.Table) -> sa.Insert:
    """Insert a row unless its key is taken; the row count says which."""
    return insert(table).on_conflict_do_nothing()


def unavailable(engine: sa.Engine, error: Exception) -> Unavailable:
    """What a failure of the database means to the caller; the statement and its values stay out of the message."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    advice = "check that it is a SQLite database and can be written"
    if _LOCKED in str(cause):
        advice = f"another process has kept it locked for more than {_BUSY_S:g} s; try again"
    return Unavailable(f"the store {engine.url.database} failed: {cause}; {advice}")
