"""Group commit: a thread commits all queued operations in one transaction, on the only connection that writes.

An awaited operation starts a commit as soon as the loop has run who is ready, at once if nobody is; others wait some
milliseconds for more. Operations take effect in order,
and one commit is active at a time. If the answer of a commit is lost, the database is asked whether it took place, so
no operation is applied twice or wrongly reported as failed. A lost connection is replaced.
"""

import asyncio
from collections.abc import Callable, Generator, Hashable, Sequence, Sized
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread, current_thread
from typing import Any, Generic, Protocol, TypeVar, cast
from weakref import finalize

from toolcrib.contracts import InvalidInput, ToolcribError
from toolcrib.contracts.base.errors import StoreUnavailable
from toolcrib.infrastructure.store.database.dialect import Dialect, Mark
from toolcrib.infrastructure.store.database.session import Prepared, Session, TakesTurns, TouchesRuns

T = TypeVar("T")

_LINGER_S = 0.005
_ENDED_LOOP = (
    "this crib was opened in an event loop that has ended; make all calls in one asyncio.run(...), or use toolcrib.sync"
)
_SOON_S = 0.0005
"""What is left of a wait for which no other timer is set."""


class Job(Generic[T]):
    """One operation on its way to the database. Awaiting it makes the commit happen at once and returns its result.

    A failure that nobody has heard of is reported by the next job of the same chain, never by a warning of the loop.
    """

    __slots__ = ("_is_committing", "_settled", "_waiters", "_writer", "chain", "error", "listeners", "result", "work")

    def __init__(self, writer: "Writer", work: Callable[[Any], T], chain: Hashable | None = None) -> None:
        self.work = work
        self.chain = chain
        self.result: T | None = None
        self.error: BaseException | None = None
        self.listeners = 0
        """How many will hear of the error."""
        self._writer = writer
        self._is_committing = self._settled = False
        self._waiters: list[asyncio.Future[None]] | None = None

    def __await__(self) -> Generator[Any, None, T]:
        """Wait until the operation is durable or refused."""
        self.listeners += 1
        try:
            if not self._settled:
                yield from self._add_waiter()
        except BaseException:
            self.listeners -= 1
            self._writer.note(self)
            raise
        if self.error is not None:
            self._writer.lost.pop(self.chain, None)
            raise self.error
        return cast("T", self.result)

    async def wait_for_end(self) -> None:
        """Wait likewise, but leave a failure to others."""
        if not self._settled:
            await self._add_waiter()

    def _add_waiter(self) -> "asyncio.Future[None]":
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._waiters is None:
            self._waiters = [waiter]
        else:
            self._waiters.append(waiter)
        if not self._is_committing:
            self._writer.hurry()
        return waiter

    def take(self) -> None:
        """The operation is part of the commit in flight."""
        self._is_committing = True

    def settle(self) -> None:
        """Result or error are there; wake those who wait."""
        self._settled = True
        for waiter in self._waiters or ():
            if not waiter.done():
                waiter.set_result(None)


class Handed(Protocol):
    """What a thread was given."""

    def exception(self) -> BaseException | None:
        """What it has failed with, when it is over."""
        ...

    def add_done_callback(self, fn: Callable[[Any], object], /) -> None:
        """Have a function called with this when it is over, in the thread."""
        ...


class CommitThread(Protocol):
    """A single thread: `WriterThread`, or a pool of one."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Handed:
        """Have it do something after what it was given before."""
        ...


class _Handed:
    """What `WriterThread` was given: it begins when somebody listens, so that nobody can listen too late."""

    __slots__ = ("_error", "_listener", "_queue", "_work")

    def __init__(self, queue: "SimpleQueue[_Handed | None]", work: Callable[[], object]) -> None:
        self._queue = queue
        self._work = work
        self._error: BaseException | None = None
        self._listener: Callable[[Any], object] | None = None

    def exception(self) -> BaseException | None:
        return self._error

    def add_done_callback(self, fn: Callable[[Any], object], /) -> None:
        self._listener = fn
        self._queue.put(self)

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - who has handed the jobs over is told
            self._error = error
        if self._listener is not None:
            with suppress(RuntimeError):  # the loop is closed: nobody is left to be told
                self._listener(self)


class WriterThread:
    """A thread for commits, without what a pool of threads does for each function beside running it.

    It ends what it has begun also at the exit of a process that has not shut it down.

    Args:
        name: Its name.
    """

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[_Handed | None] = SimpleQueue()
        self._thread = Thread(target=_serve, args=(self._queue,), name=name, daemon=True)
        self._end = finalize(self, _end, self._queue, self._thread)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Handed:
        """Have it do something after what it was given before, as soon as somebody listens for its end."""
        if self._thread.ident is None:
            self._thread.start()
        return _Handed(self._queue, partial(fn, *args, **kwargs))

    def shutdown(self) -> None:
        """Wait until it has ended what it was given."""
        self._end()


def _serve(queue: "SimpleQueue[_Handed | None]") -> None:
    while (handed := queue.get()) is not None:
        handed.run()
        del handed  # what it holds is not kept until the next comes


def _end(queue: "SimpleQueue[_Handed | None]", thread: Thread) -> None:
    queue.put(None)
    if thread.is_alive() and thread is not current_thread():
        thread.join()


class Writer:
    """The queue in front of the committing thread.

    Args:
        commit: Runs in the thread; sets `result` or `error` of each job.
        thread: Where commits run.
    """

    def __init__(self, commit: Callable[[Sequence[Job[Any]]], None], thread: CommitThread) -> None:
        self.lost: dict[Hashable | None, BaseException] = {}
        """The failures nobody has heard of, by chain."""
        self._commit = commit
        self._thread = thread
        self._loop = asyncio.get_running_loop()
        self._queue: list[Job[Any]] = []
        self._in_flight: list[Job[Any]] = []
        self.open_jobs: dict[Hashable, Job[Any]] = {}
        """The last operation of each chain to which more may be added: it is not on its way yet.

        Nor is anything of no chain queued behind it, which could see that the order had changed.
        """
        self._ready: Sized | None = getattr(self._loop, "_ready", None)
        """What the loop runs next, if it tells."""
        self._timer: asyncio.TimerHandle | None = None
        self._since = 0.0
        """When the loop's time was that from which on the queue has lingered."""
        self._urgent = False
        """Somebody waits for what is queued."""

    def put(self, work: Callable[[Any], T], chain: Hashable | None = None) -> Job[T]:
        """Queue an operation. If its chain is broken, it is refused with the failure that broke it.

        Raises:
            InvalidInput: The event loop in which the store was opened has ended.
        """
        if self._loop.is_closed():
            raise InvalidInput(_ENDED_LOOP)
        job = Job(self, work, chain)
        if chain is not None and chain in self.lost:
            job.error = self.lost[chain]
            job.settle()
            return job
        if chain is None:
            self.open_jobs.clear()
        else:
            self.open_jobs[chain] = job
        self._queue.append(job)
        if len(self._queue) == 1 and not self._in_flight:
            self._linger()
        return job

    def hurry(self) -> None:
        """Commit what is queued as soon as the loop has run those who are ready, or the commit in flight has ended."""
        if self._urgent:
            return
        self._urgent = True
        if self._in_flight:
            return
        if self._ready is not None and not self._ready:  # nobody is there who could join
            self._launch()
        else:
            self._loop.call_soon(self._launch)

    def note(self, job: Job[Any]) -> None:
        """Keep a failure that nobody will hear of for the next of its chain."""
        if job.error is not None and job.chain is not None and not job.listeners:
            self.lost.setdefault(job.chain, job.error)

    async def drain(self) -> None:
        """Wait until all that is queued now has been committed or refused."""
        pending = self._queue or self._in_flight
        if pending:
            await pending[-1].wait_for_end()

    def _linger(self) -> None:
        """Commit what is queued after a while. One timer serves many commits, as most do not wait for it."""
        self._since = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(_LINGER_S, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._urgent or self._in_flight or not self._queue:
            return
        left = self._since + _LINGER_S - self._loop.time()
        if left > _SOON_S:
            self._timer = self._loop.call_later(left, self._look)
        else:
            self._launch()

    def _launch(self) -> None:
        self._urgent = False
        self._in_flight, self._queue = self._queue, []
        self.open_jobs.clear()
        for job in self._in_flight:
            job.take()
        self._thread.submit(self._commit, self._in_flight).add_done_callback(self._report)

    def _report(self, commit: Handed) -> None:
        """Called in the thread."""
        self._loop.call_soon_threadsafe(self._land, commit)

    def _land(self, commit: Handed) -> None:
        landed, self._in_flight = self._in_flight, []
        failure = commit.exception()
        for job in landed:
            job.error = job.error or failure
            if job.error is not None:
                job.error = self.lost.get(job.chain, job.error)
                self.note(job)
            job.settle()
        if self._urgent:
            self._loop.call_soon(self._launch)
        elif self._queue:
            self._linger()


class _Lost(Exception):
    """The connection is gone.

    Args:
        cause: What the driver says.
        mark: The transaction that was under way.
        commit_sent: Whether the database was told to commit it, and has not answered.
    """

    def __init__(self, cause: Exception | None = None, mark: Mark | None = None, *, commit_sent: bool = False) -> None:
        super().__init__(cause)
        self.cause = cause
        self.mark = mark
        self.commit_sent = commit_sent


class Committer:
    """The only one that writes.

    Args:
        dialect: What the database does in its own way.
        session: Connected, to a database that is up to date.
        prepared: The statements that are known.
    """

    def __init__(self, dialect: Dialect, session: Session, prepared: Prepared) -> None:
        self._dialect = dialect
        self._session = session
        self._prepared = prepared
        self._in_doubt: Mark | None = None
        """A transaction whose connection was lost, and of which nobody has found out whether it is over."""

    def __call__(self, jobs: Sequence[Job[Any]]) -> None:
        """Run the jobs in one transaction; if one of them breaks it, run each in its own."""
        try:
            failure = self._attempt(jobs)
        except StoreUnavailable as away:
            for job in jobs:
                job.error = away
            return
        if failure is None:
            return
        if len(jobs) == 1:
            jobs[0].error = self._explain(failure)
            return
        for job in jobs:
            self([job])

    def close(self) -> None:
        """Let go of the connection."""
        self._session.close()

    def _attempt(self, jobs: Sequence[Job[Any]]) -> Exception | None:
        """One transaction, once more on another connection if this one is lost; returns what broke it.

        Raises:
            StoreUnavailable: The database cannot be reached, or keeps us waiting; no job took effect, or nobody knows.
        """
        try:
            return self._transact(jobs)
        except _Lost as lost:
            if self._reconnect(lost):
                return None
        try:
            return self._transact(jobs)
        except _Lost as lost:
            self._in_doubt = lost.mark
            raise self._away(lost, None) from lost.cause

    def _transact(self, jobs: Sequence[Job[Any]]) -> Exception | None:
        session, commit_sent = self._session, False
        if session.is_lost():
            raise _Lost
        try:
            mark = session.begin()
        except self._dialect.failures as error:
            self._give_up(_Lost(error))
            raise self._explain(error) from error
        try:
            self._lock(jobs)
            for job in jobs:
                self._run(job)
            session.flush()  # what it refuses was not committed, for certain
            commit_sent = True
            session.commit()
        except (*self._dialect.failures, ValueError, OverflowError) as error:
            self._give_up(_Lost(error, mark, commit_sent=commit_sent))
            return error
        except BaseException:
            session.rollback()
            raise
        return None

    def _lock(self, jobs: Sequence[Job[Any]]) -> None:
        """Lock all that the jobs have in common with other processes, in one order for everybody."""
        if len(jobs) == 1:
            work = jobs[0].work
            if isinstance(work, TouchesRuns) and len(work.run_ids) == 1:
                return  # one row is locked by the statement that changes it
        run_ids: set[str] = set()
        names: set[str] = set()
        for job in jobs:
            if isinstance(job.work, TouchesRuns):
                run_ids |= job.work.run_ids
            elif isinstance(job.work, TakesTurns):
                names |= job.work.names
        if run_ids and len(run_ids) + len(names) > 1:
            self._session.lock_runs(run_ids)
        if names:
            for name in sorted(names):
                self._session.lock(name)

    def _run(self, job: Job[Any]) -> None:
        job.error = None
        try:
            job.result = job.work(self._session)
        except ToolcribError as refused:
            job.error = refused

    def _give_up(self, lost: _Lost) -> None:
        """Undo the transaction; raises `lost` if that was its connection's end."""
        self._session.rollback()
        if self._session.is_lost(lost.cause):
            raise lost from lost.cause

    def _reconnect(self, lost: _Lost) -> bool:
        """Get another connection, and see to it that nothing is left of the other: it may have locked what we need.

        Returns:
            Whether what was under way has taken place.
        """
        self._session.close()
        self._in_doubt = lost.mark or self._in_doubt
        try:
            self._session = Session(self._dialect.connect(), self._dialect, self._prepared)
        except StoreUnavailable as away:
            raise self._away(lost, away) from lost.cause
        if self._in_doubt is None:
            return False
        has = self._session.is_committed(self._in_doubt)
        self._in_doubt = None
        return has and lost.mark is not None

    def _away(self, lost: _Lost, away: StoreUnavailable | None) -> ToolcribError:
        """What a job is told that has not been done, as far as anybody knows."""
        problem = away or self._explain(lost.cause)
        if not lost.commit_sent:
            return problem
        return StoreUnavailable(f"{problem}; it is unknown whether the last write succeeded")

    def _explain(self, error: Exception | None) -> ToolcribError:
        if error is None:
            return StoreUnavailable(f"the store {self._dialect.name} is repeatedly unavailable; try again later")
        if isinstance(error, self._dialect.failures):
            return self._dialect.explain(error)
        return InvalidInput(f"a value cannot be stored: {error}")
