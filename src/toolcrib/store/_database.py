"""A database as the SQL store uses it: one connection that writes, in group commits, and a few that read.

Statements are SQLAlchemy Core, compiled once and then run through the driver. This module knows no table.
"""

import asyncio
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import sqlalchemy as sa

from toolcrib.contracts import InvalidInput, ToolcribError, Unavailable
from toolcrib.store import _dialect
from toolcrib.store._schema import bring_up_to_date
from toolcrib.store._writer import Job, Writer

T = TypeVar("T")
Statement: TypeAlias = sa.UpdateBase | sa.Select[Any]
Parameters: TypeAlias = Mapping[str, Any]
Row: TypeAlias = dict[str, Any]
Prepared: TypeAlias = dict[Statement, tuple[str, Parameters]]
"""Statements as the driver takes them, with the values that stand in the statement itself."""

_READERS = 2


class Session:
    """A connection that runs prepared statements; inside a job, the transaction that the job is part of."""

    def __init__(self, connection: sa.Connection, prepared: Prepared) -> None:
        self.connection = connection
        self._driver = connection.connection
        self._cursor = self._driver.cursor()
        self._prepared = prepared
        self._deferred: dict[Statement, list[Parameters]] = {}

    def run(self, statement: Statement, parameters: Parameters) -> int:
        """Run a statement with parameters named as in the statement; returns how many rows it changed."""
        text, constants = self._prepare(statement)
        self._cursor.execute(text, {**constants, **parameters})
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
            self._cursor.executemany(self._prepare(statement)[0], rows)
        self._deferred.clear()

    def begin(self) -> None:
        """Start a transaction that may write."""
        self._cursor.execute(_dialect.BEGIN)

    def commit(self) -> None:
        """Make everything since `begin` durable."""
        self.flush()
        self._driver.commit()

    def rollback(self) -> None:
        """Undo everything since `begin`."""
        self._deferred.clear()
        self._driver.rollback()

    def _prepare(self, statement: Statement) -> tuple[str, Parameters]:
        known = self._prepared.get(statement)
        if known is None:
            compiled = statement.compile(dialect=self.connection.dialect)
            constants = {name: value for name, value in compiled.params.items() if value is not None}
            known = self._prepared[statement] = (str(compiled), constants)
        return known


class Database:
    """Opens and closes the connections, and runs operations on them.

    Args:
        url: An SQLAlchemy URL.
    """

    def __init__(self, url: str) -> None:
        self._engine = _dialect.make_engine(url)
        self._prepared: Prepared = {}
        self._live: _Live | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """Connect, and bring the schema up to date; does nothing if it is open."""
        async with self._opening:
            if self._live is None:
                self._live = await self._open()

    async def _open(self) -> "_Live":
        thread = ThreadPoolExecutor(1, "toolcrib-store-writer")
        try:
            session = await asyncio.get_running_loop().run_in_executor(thread, self._connect)
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return _Live(self._engine, session, thread)

    def _connect(self) -> Session:
        connection = _dialect.connect(self._engine)
        try:
            bring_up_to_date(connection)
        except _dialect.FAILURES as error:
            connection.close()
            raise _dialect.unavailable(self._engine, error) from error
        except BaseException:
            connection.close()
            raise
        return Session(connection, self._prepared)

    async def close(self) -> None:
        """Commit what is queued and close all connections; does nothing if it is closed."""
        live, self._live = self._live, None
        if live is not None:
            await live.close()

    def write(self, work: Callable[[Session], T], chain: Hashable | None = None) -> Job[T]:
        """Queue an operation for the next commit.

        Args:
            work: Runs in the writer's thread. It raises a `ToolcribError` before it writes anything, or never; it may
                be run a second time if another operation spoiled the transaction.
            chain: Names operations that build on each other; see `Job`.
        """
        return self._opened().writer.put(work, chain)

    def queued(self, chain: Hashable) -> Job[Any] | None:
        """See `Writer.queued`."""
        return self._opened().writer.queued(chain)

    async def drain(self) -> None:
        """Wait until all that is queued now has been committed or refused."""
        await self._opened().writer.drain()

    async def read(self, work: Callable[[Session], T]) -> T:
        """Run an operation that only reads, in a thread of its own; it sees what was committed before."""
        live = self._opened()
        return await asyncio.get_running_loop().run_in_executor(live.readers, self._read, live, work)

    def _read(self, live: "_Live", work: Callable[[Session], T]) -> T:
        try:
            with live.reader(self._prepared) as session:
                return work(session)
        except _dialect.FAILURES as error:
            raise _dialect.unavailable(self._engine, error) from error

    def _opened(self) -> "_Live":
        if self._live is None:
            msg = f"the store {self._engine.url.database} is not open; call open() first"
            raise Unavailable(msg)
        return self._live


class _Live:
    """What exists between open and close."""

    def __init__(self, engine: sa.Engine, session: Session, thread: ThreadPoolExecutor) -> None:
        self.writer = Writer(self._commit, thread)
        self.readers = ThreadPoolExecutor(_READERS, "toolcrib-store-reader")
        self._engine = engine
        self._session = session
        self._thread = thread
        self._idle: list[Session] = []
        """Connections that read, and that no thread uses now."""

    @contextmanager
    def reader(self, prepared: Prepared) -> Generator[Session]:
        """A session for one thread."""
        try:
            session = self._idle.pop()
        except IndexError:
            session = Session(self._engine.connect(), prepared)
        try:
            yield session
        finally:
            session.rollback()
            self._idle.append(session)

    async def close(self) -> None:
        await self.writer.drain()
        self.readers.shutdown()
        self._thread.shutdown()
        for session in (self._session, *self._idle):
            session.connection.close()

    def _commit(self, jobs: Sequence[Job[Any]]) -> None:
        """Run the jobs in one transaction; if one of them breaks it, run each in its own."""
        try:
            self._session.begin()
        except _dialect.FAILURES as error:
            self._session.rollback()
            for job in jobs:
                job.error = self._explain(error)
            return
        try:
            for job in jobs:
                self._run(job)
            self._session.commit()
        except (*_dialect.FAILURES, ValueError, OverflowError) as error:
            self._session.rollback()
            if len(jobs) == 1:
                jobs[0].error = self._explain(error)
                return
            for job in jobs:
                self._commit([job])
        except BaseException:
            self._session.rollback()
            raise

    def _run(self, job: Job[Any]) -> None:
        job.error = None
        try:
            job.result = job.work(self._session)
        except ToolcribError as refused:
            job.error = refused

    def _explain(self, error: Exception) -> ToolcribError:
        if isinstance(error, _dialect.FAILURES):
            return _dialect.unavailable(self._engine, error)
        return InvalidInput(f"a value cannot be stored: {error}")
