"""Runs jobs in transactions on the one connection that writes, and gets another one when that is lost.

What a commit has done whose answer was lost, the database is asked; so no job takes effect twice, and none is told that
it failed although it is there. It runs in the writer's thread and does not know the queue.
"""

from collections.abc import Sequence
from typing import Any

from toolcrib.contracts import InvalidInput, ToolcribError
from toolcrib.contracts.base.errors import StoreUnavailable
from toolcrib.infrastructure.store.database._writer import Job
from toolcrib.infrastructure.store.database.dialect import Dialect, Mark
from toolcrib.infrastructure.store.database.session import Prepared, Session, TakesTurns, TouchesRuns


class _Lost(Exception):
    """The connection is gone.

    Args:
        cause: What the driver says.
        mark: The transaction that was under way.
        told: Whether the database was told to commit it, and has not answered.
    """

    def __init__(self, cause: Exception | None = None, mark: Mark | None = None, *, told: bool = False) -> None:
        super().__init__(cause)
        self.cause = cause
        self.mark = mark
        self.told = told


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
        session, told = self._session, False
        if session.lost():
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
            session.flush()
            told = True
            session.commit()
        except (*self._dialect.failures, ValueError, OverflowError) as error:
            self._give_up(_Lost(error, mark, told=told))
            return error
        except BaseException:
            session.rollback()
            raise
        return None

    def _lock(self, jobs: Sequence[Job[Any]]) -> None:
        """Lock all that the jobs have in common with other processes, in one order for everybody."""
        run_ids = {run_id for job in jobs if isinstance(job.work, TouchesRuns) for run_id in job.work.run_ids}
        names = {name for job in jobs if isinstance(job.work, TakesTurns) for name in job.work.names}
        if run_ids and len(run_ids) + len(names) > 1:  # one row is locked by the statement that changes it
            self._session.lock_runs(run_ids)
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
        if self._session.lost(lost.cause):
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
        has = self._session.committed(self._in_doubt)
        self._in_doubt = None
        return has and lost.mark is not None

    def _away(self, lost: _Lost, away: StoreUnavailable | None) -> ToolcribError:
        """What a job is told that has not been done, as far as anybody knows."""
        said = away or self._explain(lost.cause)
        if not lost.told:
            return said
        return StoreUnavailable(f"{said}; it is not known whether what was being written has been")

    def _explain(self, error: Exception | None) -> ToolcribError:
        if error is None:
            return StoreUnavailable(f"the store {self._dialect.name} goes away again and again; try again later")
        if isinstance(error, self._dialect.failures):
            return self._dialect.explain(error)
        return InvalidInput(f"a value cannot be stored: {error}")
