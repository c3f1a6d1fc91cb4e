"""A database with one connection for writes, in group commits, and some for reads.

A lost connection is replaced at the next use. This module knows no table.
"""

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from toolcrib.contracts.base.errors import StoreUnavailable
from toolcrib.infrastructure.store.database.committer import Committer, Job, Writer, WriterThread
from toolcrib.infrastructure.store.database.dialect import Dialect
from toolcrib.infrastructure.store.database.schema import SchemaState, bring_up_to_date, state_of
from toolcrib.infrastructure.store.database.session import Prepared, Session

T = TypeVar("T")

_READERS: Final = 2


class Database:
    """Opens and closes the connections, and runs operations on them.

    Args:
        dialect: Which database it is, and what that does in its own way.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._prepared: Prepared = {}
        self._live: _Live | None = None
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        """The database as messages call it, without a password."""
        return self._dialect.name

    async def open(self) -> None:
        """Connect, and bring the schema up to date; does nothing if it is open."""
        async with self._opening:
            if self._live is None:
                self._live = await self._open()

    async def _open(self) -> "_Live":
        thread = ThreadPoolExecutor(1, "toolcrib-store-writer")
        try:
            session = await asyncio.get_running_loop().run_in_executor(thread, self._connect)
        finally:
            thread.shutdown(wait=False)
        return _Live(Committer(self._dialect, session, self._prepared))

    def _connect(self) -> Session:
        session = Session(self._dialect.create(), self._dialect, self._prepared)
        try:
            bring_up_to_date(session, self._dialect.name)
        except self._dialect.failures as error:
            session.close()
            raise self._dialect.explain(error) from error
        except BaseException:
            session.close()
            raise
        return session

    async def schema(self) -> SchemaState:
        """Which schema the database has; nothing is changed, and nothing needs to be open.

        Raises:
            Unavailable: There is no database, or it cannot be read.
        """
        return await asyncio.to_thread(self._schema)

    def _schema(self) -> SchemaState:
        session = Session(self._dialect.connect(), self._dialect, self._prepared)
        try:
            return state_of(session, self._dialect.name)
        except self._dialect.failures as error:
            raise self._dialect.explain(error) from error
        finally:
            session.close()

    async def close(self) -> None:
        """Commit what is queued and close all connections; does nothing if it is closed."""
        live, self._live = self._live, None
        if live is not None:
            await live.close()

    def write(self, work: Callable[[Session], T], chain: Hashable | None = None) -> Job[T]:
        """Queue an operation for the next commit.

        Args:
            work: Runs in the writer's thread. It raises a `ToolcribError` before it writes anything, or never; it may
                be run a second time if another operation spoiled the transaction, or the connection was lost.
            chain: Names operations that build on each other; see `Job`.
        """
        live = self._live or self._require_open()
        return live.writer.put(work, chain)

    def find_open_job(self, chain: Hashable) -> Job[Any] | None:
        """See `Writer.open_jobs`."""
        return (self._live or self._require_open()).writer.open_jobs.get(chain)

    async def drain(self) -> None:
        """Wait until all that is queued now has been committed or refused."""
        await self._require_open().writer.drain()

    async def read(self, work: Callable[[Session], T]) -> T:
        """Run an operation that only reads, in a thread of its own; it sees what was committed before.

        It may be run a second time if the connection was lost.
        """
        live = self._require_open()
        return await asyncio.get_running_loop().run_in_executor(live.readers, self._read, live, work)

    def _read(self, live: "_Live", work: Callable[[Session], T]) -> T:
        session, used = self._reader(live)
        try:
            return work(session)
        except self._dialect.failures as error:
            if not session.is_lost(error):
                raise self._dialect.explain(error) from error
            session.close()
            if not used:  # it was not an idle one that had been lost before
                raise self._dialect.explain(error) from error
        finally:
            live.give_back(session)
        return self._read(live, work)

    def _reader(self, live: "_Live") -> tuple[Session, bool]:
        """A session that reads, and whether it has been used before."""
        while live.idle:
            session = live.idle.pop()
            if not session.is_lost():
                return session, True
            session.close()
        return Session(self._dialect.connect(), self._dialect, self._prepared), False

    def _require_open(self) -> "_Live":
        if self._live is None:
            msg = f"the store {self._dialect.name} is not open; call open() first"
            raise StoreUnavailable(msg)
        return self._live


class _Live:
    """What exists between open and close."""

    def __init__(self, committer: Committer) -> None:
        self._thread = WriterThread("toolcrib-store-writer")
        self.writer = Writer(committer, self._thread)
        self.readers = ThreadPoolExecutor(_READERS, "toolcrib-store-reader")
        self.idle: list[Session] = []
        """Sessions that read, and that no thread uses now."""
        self._committer = committer

    def give_back(self, session: Session) -> None:
        """Let others read with a session, unless it is closed."""
        if not session.closed:
            session.rollback()
            self.idle.append(session)

    async def close(self) -> None:
        await self.writer.drain()
        self.readers.shutdown()
        self._thread.shutdown()
        self._committer.close()
        for session in self.idle:
            session.close()
