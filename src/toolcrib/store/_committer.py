"""Runs jobs in transactions on the one connection that writes, and gets another one when that is lost.

What a commit has done whose answer was lost, the database is asked; so no job takes effect twice, and none is told that
it failed although it is there. It runs in the writer's thread and does not know the queue.
"""

from collections.abc import Sequence
from typing import Any

from toolcrib.contracts import InvalidInput, ToolcribError
from toolcrib.contracts.errors import StoreUnavailable
from toolcrib.store._dialect import Dialect, Mark
from toolcrib.store._session import Prepared, Session, TouchesRuns
from toolcrib.store._writer import Job


class _Lost(Exception):
    """The connection is gone.

    Args:
        cause: What the driver says.
        mark: The transaction, if the database was told to commit it and has not answered.
    """

    def __init__(self, cause: Exception | None = None, mark: Mark | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.mark = mark


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
            self._reconnect(lost)
            if lost.mark is not None and self._session.committed(lost.mark):
                return None
        try:
            return self._transact(jobs)
        except _Lost as lost:
            raise self._away(lost, None) from lost.cause

    def _transact(self, jobs: Sequence[Job[Any]]) -> Exception | None:
        session, sent = self._session, None
        if session.lost():
            raise _Lost
        try:
            mark = session.begin()
        except self._dialect.failures as error:
            self._give_up(error, None)
            raise self._explain(error) from error
        try:
            run_ids = {run_id for job in jobs if isinstance(job.work, TouchesRuns) for run_id in job.work.run_ids}
            if len(run_ids) > 1:
                session.lock_runs(run_ids)
            for job in jobs:
                self._run(job)
            session.flush()
            sent = mark
            session.commit()
        except (*self._dialect.failures, ValueError, OverflowError) as error:
            self._give_up(error, sent)
            return error
        except BaseException:
            session.rollback()
            raise
        return None

    def _run(self, job: Job[Any]) -> None:
        job.error = None
        try:
            job.result = job.work(self._session)
        except ToolcribError as refused:
            job.error = refused

    def _give_up(self, error: Exception, sent: Mark | None) -> None:
        """Undo the transaction; raises `_Lost` if that was its connection's end."""
        self._session.rollback()
        if self._session.lost(error):
            raise _Lost(error, sent) from error

    def _reconnect(self, lost: _Lost) -> None:
        self._session.close()
        try:
            self._session = Session(self._dialect.connect(), self._dialect, self._prepared)
        except StoreUnavailable as away:
            raise self._away(lost, away) from lost.cause

    def _away(self, lost: _Lost, away: StoreUnavailable | None) -> ToolcribError:
        """What a job is told that has not been done, as far as anybody knows."""
        told = away or self._explain(lost.cause)
        if lost.mark is None:
            return told
        return StoreUnavailable(f"{told}; it is not known whether what was being written has been")

    def _explain(self, error: Exception | None) -> ToolcribError:
        if error is None:
            return StoreUnavailable(f"the store {self._dialect.name} goes away again and again; try again later")
        if isinstance(error, self._dialect.failures):
            return self._dialect.explain(error)
        return InvalidInput(f"a value cannot be stored: {error}")
