"""How many executions there are at the same time: few compute, the others wait, and too many are refused.

An execution has a place while it computes. It gives it back while it waits for a tool, which may be code and need a
place too, so nobody waits for whom he keeps waiting. What waits for a tool still holds its memory; so there is a bound
on all that are open, at which nobody waits.
"""

import asyncio
from typing import Final, Self

from toolcrib.contracts import Unavailable
from toolcrib.infrastructure.sandbox.jobs import Answer, Backend, CodeJob, Dialect, Session, Turn, Used

_OPEN: Final = 16
"""Executions that may be open for each place."""


class Places:
    """The places of a sandbox.

    Args:
        count: How many executions compute at the same time.
    """

    def __init__(self, count: int) -> None:
        self.free = asyncio.Semaphore(count)
        self._most = _OPEN * count
        self._open = 0

    def enter(self) -> None:
        """Count an execution that is to be opened.

        Raises:
            Unavailable: Too many are open.
        """
        if self._open >= self._most:
            msg = f"{self._open} executions of code are open, the most at a time"
            raise Unavailable(f"{msg}; try again later, or raise TOOLCRIB_SANDBOX_PLACES")
        self._open += 1

    def leave(self) -> None:
        """Count one that has ended."""
        self._open -= 1


class PlacedSession:
    """A session that computes only while it has a place. The clock of its quotas stands still until then."""

    def __init__(self, places: Places, session: Session) -> None:
        self._places = places
        self._session = session
        self._is_open = True

    @classmethod
    async def open(cls, places: Places, backend: Backend, job: CodeJob, dialect: Dialect) -> Self:
        """Open a session.

        Raises:
            Unavailable: Too many are open, or the backend cannot.
        """
        places.enter()
        try:
            async with places.free:
                return cls(places, await backend.open(job, dialect))
        except BaseException:
            places.leave()
            raise

    @property
    def used(self) -> Used:
        """What it has used so far."""
        return self._session.used

    async def start(self) -> Turn:
        """Let the code begin."""
        async with self._places.free:
            return await self._session.start()

    async def answer(self, answer: Answer) -> Turn:
        """Let the code go on."""
        async with self._places.free:
            return await self._session.answer(answer)

    async def close(self) -> None:
        """End it. Any number of times."""
        try:
            await self._session.close()
        finally:
            if self._is_open:
                self._is_open = False
                self._places.leave()
