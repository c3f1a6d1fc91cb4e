"""PostgreSQL 13 or newer, through psycopg.

Transactions use READ COMMITTED and lock the rows, or names, that they decide on. If the answer of a commit is lost,
the server is asked by transaction id. The server's clock is used for comparisons between machines. libpq reads the
URL, so all of its parameters work: several hosts, `sslmode`, `options`.
"""

import re
import time
from collections.abc import Sequence
from typing import Final

import psycopg
import sqlalchemy as sa
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from toolcrib.contracts import InvalidInput, InvalidSettings, ToolcribError
from toolcrib.contracts.base.errors import StoreUnavailable
from toolcrib.infrastructure.store.database.dialect import Cursor, Mark
from toolcrib.infrastructure.store.database.tables import METADATA

for _table in METADATA.tables.values():  # set here, so that SQLite does not load the dialects of PostgreSQL
    for _index in _table.indexes:
        if (_where := _index.dialect_options["sqlite"]["where"]) is not None:
            _index.dialect_kwargs["postgresql_where"] = _where

_DEFAULTS: Final = {
    "application_name": "toolcrib",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""Parameters of a connection that the URL does not name: a server that has vanished is noticed within half a minute."""
_LOCK_S: Final = 10
"""Seconds to wait for what another process has locked."""
_SETTLE_S: Final = 15.0
"""Seconds to wait for the end of a transaction whose connection was lost; the server ends an idle one in `_LOCK_S`."""
_LOOK_S: Final = 0.05

_CONFIGURE: Final = """
    SELECT set_config('lock_timeout', %(wait)s, false),
        set_config('idle_in_transaction_session_timeout', %(wait)s, false),
        set_config('synchronous_commit', CASE setting WHEN 'off' THEN 'on' ELSE setting END, false)
    FROM pg_settings WHERE name = 'synchronous_commit'
"""
_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_current_xact_id()::text"
_STATUS: Final = "SELECT pg_xact_status(%(mark)s::xid8)"
_END: Final = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid = %(mark)s::xid8::xid"
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%(name)s, 0))"
_LOCK_RUNS: Final = "SELECT run_id FROM runs WHERE run_id = ANY(%(run_ids)s) ORDER BY run_id FOR NO KEY UPDATE"
_TIME: Final = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

_FUTURE: Final = "22023"
"""The server has not got as far as the transaction: a copy took its place that had not heard of it."""
_LEADS_NOWHERE: Final = ("08", "25006", "55000", "57P")
"""States of a server that another connection may not find: gone, read-only, a copy of another, shutting down."""
_NO_WRITES: Final = (
    "it is read-only: a standby, or a server during a failover; name the writable one, or let the URL find it "
    "with several hosts and target_session_attrs=read-write"
)
_VALUE: Final = ("22", "23502")
_ADVICE: Final = {
    "25006": _NO_WRITES,
    "40P01": "nothing of this was written; try again",
    "53100": "its disk is full and nothing of this was written; free space, and try again",
    "53300": "a process uses one connection for writes and two for reads; raise max_connections, or "
    "start fewer processes",
    "55000": _NO_WRITES,
    "55P03": f"another process has kept it locked for more than {_LOCK_S} s; try again",
    "42501": "grant the URL's user the right to create tables in its schema, and to use them",
}
"""What to do, by the state that the server names."""
_OTHERWISE: Final = "check that the server runs and can be reached; active runs continue when it is back"


class Postgres:
    """One database of a server.

    Args:
        url: `postgresql://user:password@host:port/database?parameter=…`, as libpq reads it.
        keeps_time: Whether leases and waits go by the server's clock; else by those of its callers.

    Raises:
        InvalidSettings: The URL cannot be read, or names no database.
    """

    failures = (DBAPIError, psycopg.Error)

    def __init__(self, url: str, *, keeps_time: bool = True) -> None:
        self._parameters = _parameters(url)
        self._keeps_time = keeps_time
        self._engine = sa.create_engine(
            "postgresql+psycopg://", creator=self._dial, poolclass=NullPool, pool_reset_on_return=None
        )
        hosts = self._parameters.get("host", "this machine").split(",")
        ports = self._parameters.get("port", "5432").split(",")
        ports = ports * len(hosts) if len(ports) == 1 else ports
        places = ", ".join(f"{host}:{port}" for host, port in zip(hosts, ports, strict=False))
        self.name = f"{self._parameters['dbname']} at {places}"

    def create(self) -> sa.Connection:
        """The first connection; a database must be there, and may be empty."""
        return self.connect()

    def connect(self) -> sa.Connection:
        """A connection.

        Raises:
            StoreUnavailable: The server cannot be reached, or does not let us in.
        """
        try:
            connection = self._engine.connect()
        except self.failures as error:
            raise self.explain(error) from error
        return connection

    def begin(self, cursor: Cursor) -> Mark:
        """Start a transaction that may write; its id tells it from all others that the server has had."""
        cursor.execute(_BEGIN)
        cursor.nextset()
        return cursor.fetchone()[0]

    def is_committed(self, cursor: Cursor, mark: Mark) -> bool:
        """Whether a transaction took place. One that still waits for its commit is ended: that never comes.

        Raises:
            StoreUnavailable: The server is still busy with it.
        """
        deadline = time.monotonic() + _SETTLE_S
        while time.monotonic() < deadline:
            try:
                cursor.execute(_STATUS, {"mark": mark})
                status = cursor.fetchone()[0]
                if status != "in progress":
                    return status == "committed"
                cursor.execute(_END, {"mark": mark})
            except psycopg.Error as error:
                if error.sqlstate == _FUTURE:
                    return False
                raise self.explain(error) from error
            time.sleep(_LOOK_S)
        msg = f"the store {self.name} is still busy with a write, and it is unknown whether that will succeed"
        raise StoreUnavailable(msg)

    def is_lost(self, connection: sa.Connection, error: Exception | None = None) -> bool:
        """Whether a connection is closed, or is one to a server that does not write any more."""
        if connection.closed or connection.invalidated:  # seen by SQLAlchemy, which would now connect anew, or raise
            return True
        driver = connection.connection.driver_connection
        state = _state(error) if error is not None else ""
        return driver is None or bool(driver.closed) or state.startswith(_LEADS_NOWHERE)

    def lock(self, cursor: Cursor, name: str) -> None:
        """Keep all others who ask for this name waiting until the transaction has ended."""
        cursor.execute(_LOCK, {"name": name})

    def lock_runs(self, cursor: Cursor, run_ids: Sequence[str]) -> None:
        """Keep all others from changing the rows of these runs until the transaction has ended; locked in order."""
        cursor.execute(_LOCK_RUNS, {"run_ids": list(run_ids)})

    def time(self, cursor: Cursor) -> int | None:
        """Microseconds since 1970 by the server's clock."""
        if not self._keeps_time:
            return None
        cursor.execute(_TIME)
        return cursor.fetchone()[0]

    def compact(self, cursor: Cursor) -> None:
        """Do at once what the server does by itself sooner or later; others go on meanwhile."""
        cursor.execute("VACUUM")

    def explain(self, error: Exception) -> ToolcribError:
        """What a failure of the server means to the caller."""
        state, cause = _state(error), self._error_text(error)
        if state.startswith(_VALUE) or (isinstance(_original(error), psycopg.DataError) and not state):
            return InvalidInput(f"a value cannot be stored: {cause}")
        return StoreUnavailable(f"the store {self.name} failed: {cause}; {_ADVICE.get(state, _OTHERWISE)}")

    def _dial(self) -> "psycopg.Connection[tuple[object, ...]]":
        place = make_conninfo(**self._parameters)
        connection = psycopg.connect(place, autocommit=True)  # transactions are begun by `begin` alone
        connection.execute(_CONFIGURE, {"wait": f"{_LOCK_S}s"})
        return connection

    def _error_text(self, error: Exception) -> str:
        """The server's words in one line, without the names that open it."""
        cause = _original(error)
        primary = cause.diag.message_primary if isinstance(cause, psycopg.Error) else None
        text = " ".join((primary or str(cause)).split())
        for secret in ("user", "password"):
            given = self._parameters.get(secret)
            if given:
                text = re.sub(rf'(?<!\w)"?{re.escape(given)}"?(?!\w)', "…", text)
        return text


def _parameters(url: str) -> dict[str, str]:
    msg = (
        "the store's PostgreSQL URL cannot be read; use postgresql://user:password@host:5432/database, with special "
        "characters in percent form"
    )
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.ProgrammingError:
        raise InvalidSettings(msg) from None  # what libpq says may hold a piece of the password
    if "dbname" not in given:
        raise InvalidSettings(f"{msg}: it names no database")
    if "@" in given.get("host", ""):
        raise InvalidSettings(f"{msg}: write %40 for an @ in the password")
    return _DEFAULTS | given


def _original(error: Exception) -> BaseException:
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def _state(error: Exception) -> str:
    cause = _original(error)
    return (cause.sqlstate or "") if isinstance(cause, psycopg.Error) else ""
