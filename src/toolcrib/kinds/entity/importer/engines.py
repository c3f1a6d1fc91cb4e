"""An open database: its engine, one thread for each connection, and the tables that were read.

Each operation is one transaction with a time limit. The limit is passed to the database if the database supports it.
An operation whose caller has gone is cancelled and rolled back.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import PoolProxiedConnection, SingletonThreadPool, StaticPool

from toolcrib.contracts import InvalidDefinition, InvalidSettings, Unavailable
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.kinds.entity.importer.reflection import read_table
from toolcrib.kinds.entity.shape import EntityImplementation

T = TypeVar("T")
Table: TypeAlias = sa.Table[Any]
Place: TypeAlias = tuple[str | None, str]
"""Schema and name of a table."""

CONNECTIONS: Final = 4
"""To one database, and so the calls that it serves at a time; others wait."""
CONNECT_S: Final = 5
"""Seconds to reach a server."""
_BUSY_S: Final = 5.0
"""Seconds to wait for another process's transaction in SQLite."""
_POOLED_S: Final = 30.0
_IDLE_S: Final = 1_800
"""Seconds after which a connection is replaced."""
_DRIVERS: Final = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
_EXTRAS: Final = {"psycopg": "postgres"}


class Abandoned(Exception):
    """The caller has gone; the operation is rolled back."""


class EntityDatabase:
    """Runs work on the connections of an engine.

    Args:
        engine: Of SQLAlchemy. Without tables it is disposed of with this.
        tables: Those of the application, which are the only ones then; null to read what the database has.

    Raises:
        InvalidSettings: The engine is of a database in memory that each thread would have for itself.
    """

    def __init__(self, engine: sa.Engine, tables: Mapping[Place, Table] | None = None) -> None:
        if isinstance(engine.pool, SingletonThreadPool):
            msg = (
                "an SQLite database in memory is another one in each thread; make its engine with poolclass=StaticPool "
                "and connect_args={'check_same_thread': False}"
            )
            raise InvalidSettings(msg)
        self.engine = engine
        self._tables = dict(tables or {})
        self._is_bound = tables is not None
        self._looking = threading.Lock()
        lanes = 1 if isinstance(engine.pool, StaticPool) else CONNECTIONS
        self._threads = ThreadPoolExecutor(lanes, "toolcrib-database")

    async def run(self, work: Callable[[sa.Connection], T], *, limit_s: float, writes: bool = False) -> T:
        """Do work in one transaction, which is committed if the work returns.

        Args:
            work: Runs in a thread.
            limit_s: Seconds that it may take, waiting for a connection included.
            writes: Whether it may change rows.

        Raises:
            TimeoutError: It took longer, and is rolled back unless its commit had started.
            sqlalchemy.exc.SQLAlchemyError: The database refused or failed.
        """
        job = _Job(self.engine, work, limit_s=limit_s, writes=writes)
        future = self._threads.submit(job.run)
        try:
            async with asyncio.timeout(limit_s):
                return await asyncio.wrap_future(future)
        except (asyncio.CancelledError, TimeoutError):
            job.abandon()
            raise

    def table(self, connection: sa.Connection, implementation: EntityImplementation) -> Table:
        """The table of a tool; it is read again if a column of the tool is missing.

        Raises:
            InvalidDefinition: It is not a table of the application.
            sqlalchemy.exc.NoSuchTableError: The database has none of this name.
        """
        place = (implementation.table_schema, implementation.table)
        wanted = {about.column or name for name, about in implementation.columns.items()}
        with self._looking:
            known = self._tables.get(place)
            if known is None and self._is_bound:
                msg = f"the application has added no table {implementation.table!r}; call crib.add_entities with it"
                raise InvalidDefinition(msg)
            if known is None or not (self._is_bound or wanted <= set(known.columns.keys())):
                known = self._tables[place] = read_table(connection, place[1], place[0])
            return known

    def add(self, tables: Mapping[Place, Table]) -> None:
        """Take further tables of the application."""
        with self._looking:
            self._tables |= tables

    async def close(self) -> None:
        """Wait for active operations, and close the connections unless the application owns them."""
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        if not self._is_bound:
            self.engine.dispose()


class _Job:
    """One operation in its own thread, which can be cancelled."""

    def __init__(
        self, engine: sa.Engine, work: Callable[[sa.Connection], Any], *, limit_s: float, writes: bool
    ) -> None:
        self._engine = engine
        self._work = work
        self._limit_s = limit_s
        self._writes = writes
        self._state = threading.Lock()
        self._abandoned = False
        self._stop: Callable[[], object] | None = None
        """Interrupts the statement that runs."""

    def run(self) -> Any:
        with self._engine.connect() as connection:
            self._begin(connection)
            try:
                with connection.begin():
                    _limit(connection, self._limit_s)
                    result = self._work(connection)
                    self._check()
                return result
            finally:
                with self._state:
                    self._stop = None
                    if self._abandoned:
                        connection.invalidate()  # an interruption may still be on its way to it

    def abandon(self) -> None:
        with self._state:
            self._abandoned = True
            if self._stop is not None:
                self._stop()

    def _begin(self, connection: sa.Connection) -> None:
        if not self._writes and connection.dialect.name == "postgresql":
            connection.execution_options(postgresql_readonly=True)
        driver: Any = connection.connection.driver_connection
        with self._state:
            self._stop = getattr(driver, "interrupt", None) or getattr(driver, "cancel", None)
        self._check()

    def _check(self) -> None:
        with self._state:
            if self._abandoned:
                raise Abandoned


def open_engine(text: str, *, address: str | None = None) -> sa.Engine:
    """An engine for a URL, not connected yet.

    Args:
        text: The URL. It holds a password, so no message repeats it.
        address: The only address that may be connected to, instead of what the host's name says.

    Raises:
        InvalidSettings: It is not the URL of a supported database.
        Unavailable: The driver is not installed.
    """
    url = read_url(text)
    options: dict[str, Any] = {"pool_size": CONNECTIONS, "max_overflow": 0, "pool_timeout": _POOLED_S}
    arguments: dict[str, Any] = {}
    match url.get_backend_name():
        case "sqlite":
            arguments = {"timeout": _BUSY_S}
            _check_file(url)
        case "postgresql":
            arguments = {"connect_timeout": CONNECT_S, "application_name": "toolcrib"}
            arguments |= {} if address is None else {"hostaddr": address}
        case _:
            pass
    try:
        engine = sa.create_engine(
            url, **options, connect_args=arguments, hide_parameters=True, pool_pre_ping=True, pool_recycle=_IDLE_S
        )
    except ImportError as problem:
        driver = problem.name or url.get_driver_name()
        what = f"a database of {url.get_backend_name()}"
        msg = f"{what} needs the driver {driver!r}, which is not installed: pip install {driver}"
        if driver in _EXTRAS:
            msg = missing_extra(what, driver, _EXTRAS[driver])
        raise Unavailable(msg) from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _keep_references)
    if engine.dialect.driver == "psycopg":
        event.listen(engine, "connect", _read_any_moment)
    return engine


def read_url(text: str) -> sa.URL:
    """A database's URL.

    Raises:
        InvalidSettings: It is not a valid URL; the message does not repeat it, because it may be a secret.
    """
    try:
        url = sa.make_url(text)
        url = url.set(drivername=_DRIVERS.get(url.drivername, url.drivername))
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError, ValueError):
        msg = "the reference leads to something else than the URL of a database, such as postgresql://user@host/shop"
        raise InvalidSettings(msg) from None
    return url


def _check_file(url: sa.URL) -> None:
    """SQLite would make a file that is not there, and find no table in it."""
    file = url.database
    if not file or file == ":memory:" or not Path(file).is_file():
        msg = "the reference leads to an SQLite file that does not exist; correct the path (sqlite:////absolute/path)"
        raise InvalidSettings(msg)


def _keep_references(connection: PoolProxiedConnection, record: object) -> None:
    del record
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _read_any_moment(connection: PoolProxiedConnection, record: object) -> None:
    """Moments that Python has no type for, such as infinity, are read as PostgreSQL writes them."""
    del record
    from toolcrib.kinds.entity.importer.postgres_dates import LOADERS  # noqa: PLC0415 - loads the driver

    for name, loader in LOADERS.items():
        connection.adapters.register_loader(name, loader)


def _limit(connection: sa.Connection, seconds: float) -> None:
    """Have the database itself end what takes too long, also if this process is gone by then."""
    if connection.dialect.name == "postgresql":
        milliseconds = str(max(1, int(seconds * 1000)))
        connection.execute(sa.select(sa.func.set_config("statement_timeout", milliseconds, True)))  # noqa: FBT003 - SQL
