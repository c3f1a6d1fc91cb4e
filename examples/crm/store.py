"""The CRM's SQLite file: made once from a seed, opened by one process that writes.

All work on the connection is synchronous and happens on the event loop's thread, so one transaction never sees half
of another; at this size a request takes a few milliseconds. WAL mode lets other processes read meanwhile. The file
outlives the process: idempotency keys, the audit and the tokens issued before still hold after a restart.
"""

import hashlib
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from examples.crm.data import populate

SCHEMA_VERSION: Final = 1

_SCHEMA = Path(__file__).with_name("schema.sql")


class Store:
    """An open database.

    Args:
        path: the SQLite file; made and filled if it does not exist.
        seed: decides the data of a new file; an existing one keeps its own.
        reset: delete an existing file first.

    Raises:
        ValueError: the file was made by another version of the CRM, or for something else.
        sqlite3.Error: the file cannot be opened, or is no database.
    """

    def __init__(self, path: Path, *, seed: int, reset: bool = False) -> None:
        if reset:
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
        self.connection = sqlite3.connect(path, isolation_level=None)
        try:
            self._prepare(seed)
        except BaseException:
            self.connection.close()
            raise

    def close(self) -> None:
        """Close the file; the write-ahead log is folded into it."""
        self.connection.close()

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """All of the block's changes, or none if it raises."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield self.connection
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def admit_token(self, token: str, now: str) -> None:
        """Let requests with this token in, from now on and after restarts; only its hash is kept."""
        sql = "INSERT OR IGNORE INTO tokens (sha256, issued_at) VALUES (?, ?)"
        self.connection.execute(sql, (_sha256(token), now))

    def knows_token(self, token: str) -> bool:
        """Whether the token was admitted to this file at any time."""
        sql = "SELECT 1 FROM tokens WHERE sha256 = ?"
        return self.connection.execute(sql, (_sha256(token),)).fetchone() is not None

    def _prepare(self, seed: int) -> None:
        self.connection.create_function("casefold", 1, _casefold, deterministic=True)
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON", "busy_timeout = 5000"):
            self.connection.execute(f"PRAGMA {pragma}")
        version: int = self.connection.execute("PRAGMA user_version").fetchone()[0]
        tables: int = self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if version == 0 and tables == 0:
            self._create(seed)
        elif version != SCHEMA_VERSION:
            raise ValueError(
                f"this is not a CRM database of schema version {SCHEMA_VERSION} (it says {version}); "
                "name another file, or start with --reset to make it anew"
            )

    def _create(self, seed: int) -> None:
        with self.transaction() as connection:
            for statement in _SCHEMA.read_text(encoding="utf-8").split(";\n"):
                connection.execute(statement)
            populate(connection, seed)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _casefold(text: str | None) -> str | None:
    return None if text is None else text.casefold()
