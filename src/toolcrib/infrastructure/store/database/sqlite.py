"""SQLite: a file that processes on one machine share.

The write-ahead log and a sync at every commit (`synchronous=FULL`) make committed data durable. Writers take turns:
`BEGIN IMMEDIATE` waits for the lock before it reads, so no other locks are needed.
"""

import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool, PoolProxiedConnection

from toolcrib.contracts import ToolcribError
from toolcrib.contracts.base.errors import StoreUnavailable
from toolcrib.infrastructure.store.database.dialect import Cursor

_BUSY_S: Final = 10.0
"""Seconds to wait for another process's transaction."""
_SWITCH_S: Final = 0.02
"""Seconds between attempts to switch a new file to the write-ahead log, for which SQLite itself does not wait."""
_CREATION_S: Final = 1.0
"""Seconds that another process may need between creating a file and writing its first page."""
_LOCKED: Final = "database is locked"
_ADVICE: Final = {
    sqlite3.SQLITE_FULL: "nothing of this was written; free space, or raise the file size limit, and try again",
    sqlite3.SQLITE_READONLY: "nothing of this was written; make file and folder writable, and try again",
}
"""What to do, by SQLite's primary code of the failure."""
_OTHERWISE: Final = "check that it is a SQLite database and can be written"


class Sqlite:
    """One file.

    Args:
        url: `sqlite:///path`, as SQLAlchemy reads it.
    """

    failures = (DBAPIError, sqlite3.Error)

    def __init__(self, url: str) -> None:
        options = {"check_same_thread": False, "timeout": _BUSY_S, "isolation_level": None, "cached_statements": 256}
        given = sa.make_url(url)
        self.name = str(given.database)
        self._file = Path(self.name).absolute()  # whatever the working directory is later
        self._place = str(self._file)
        place = given.set(database=self._place)
        self._engine = sa.create_engine(place, paramstyle="named", poolclass=NullPool, connect_args=options)
        event.listen(self._engine, "connect", _configure)

    def create(self) -> sa.Connection:
        """The first connection, which sees to it that the file is there and has a write-ahead log.

        Raises:
            StoreUnavailable: There is no such folder, the file is empty or no database, or it cannot be written.
        """
        folder = self._file.parent
        if not folder.is_dir():
            msg = (
                f"cannot open the store {self.name}: the folder {folder} does not exist; create it, or name another one"
            )
            raise StoreUnavailable(msg)
        self._refuse_empty_file()
        with suppress(OSError):  # SQLite says what is wrong; its other files get the mode of this one
            os.close(os.open(self._file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        connection = self._connect()
        try:
            _use_wal(connection)
            connection.info[_INODE] = self._inode()
        except self.failures as error:
            connection.close()
            raise self.explain(error) from error
        return connection

    def _refuse_empty_file(self) -> None:
        """Refuse a file without content, which is more likely a mistake than a store; wait for one that is being made.

        Raises:
            StoreUnavailable: It is one.
        """
        deadline = time.monotonic() + _CREATION_S
        while self._size() == 0:
            if time.monotonic() >= deadline:
                msg = f"cannot open the store {self.name}: the file is empty; remove it to have a store created"
                raise StoreUnavailable(msg)
            time.sleep(_SWITCH_S)

    def _size(self) -> int | None:
        try:
            return self._file.stat().st_size
        except OSError:
            return None

    def connect(self) -> sa.Connection:
        """Another connection to the file.

        Raises:
            StoreUnavailable: The file is gone; none is made in its place.
        """
        inode = self._inode()
        if inode is None:
            msg = (
                f"the store {self.name} was removed while in use, so nothing can be written; "
                "restore it, or restart to create a new one"
            )
            raise StoreUnavailable(msg)
        connection = self._connect()
        connection.info[_INODE] = inode
        return connection

    def begin(self, cursor: Cursor) -> None:
        """Start a transaction that may write."""
        cursor.execute("BEGIN IMMEDIATE")

    def is_committed(self, cursor: Cursor, mark: str) -> bool:
        """False: a commit that fails has not taken place."""
        del cursor, mark
        return False

    def is_lost(self, connection: sa.Connection, error: Exception | None = None) -> bool:
        """Whether the file is not the one any more that was opened: what is written to that one nobody finds."""
        del error
        return connection.info[_INODE] != self._inode()

    def lock(self, cursor: Cursor, name: str) -> None:
        """Nothing: who writes is alone."""

    def lock_runs(self, cursor: Cursor, run_ids: Sequence[str]) -> None:
        """Nothing, likewise."""

    def time(self, cursor: Cursor) -> None:
        """Null: all who share the file share the machine's clock."""

    def compact(self, cursor: Cursor) -> None:
        """Write the file anew without its empty pages; nobody else can write meanwhile."""
        cursor.execute("VACUUM")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def explain(self, error: Exception) -> ToolcribError:
        """What a failure of the database means to the caller."""
        cause = error.orig if isinstance(error, DBAPIError) else error
        advice = _ADVICE.get(getattr(cause, "sqlite_errorcode", 0) & 0xFF, _OTHERWISE)
        if _LOCKED in str(cause):
            advice = f"another process has kept it locked for more than {_BUSY_S:g} s; try again"
        return StoreUnavailable(f"the store {self.name} failed: {cause}; {advice}")

    def _connect(self) -> sa.Connection:
        try:
            return self._engine.connect()
        except self.failures as error:
            raise self.explain(error) from error

    def _inode(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self._place)  # noqa: PTH116 - at every commit, where a path costs as much as the call
        except OSError:
            return None
        return status.st_dev, status.st_ino


_INODE: Final = "inode"
"""Where a connection notes which file it has opened."""


def _configure(connection: PoolProxiedConnection, record: object) -> None:
    del record
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


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
