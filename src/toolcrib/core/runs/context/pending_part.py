"""Calls that are under way, and how a program waits for them."""

import asyncio
import contextlib
from collections.abc import Generator, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from toolcrib.core.runs.context.pending import Parking
from toolcrib.core.runs.interrupts.program import Suspended

K = TypeVar("K")
T = TypeVar("T")


class Pending(Generic[T]):
    """A call that was started, or that the journal knew already. Await it for its result.

    Args:
        parking: Of the run.
        task: What works on it; null if the result is known.
        result: The known result.
    """

    __slots__ = ("_parking", "_result", "_task")

    def __init__(self, parking: Parking, task: "asyncio.Task[T] | None", result: T | None = None) -> None:
        self._parking = parking
        self._task = task
        self._result = result

    @property
    def done(self) -> bool:
        """Whether it has a result, or failed."""
        return self._task is None or (self._task.done() and not self.parked)

    @property
    def parked(self) -> bool:
        """Whether it has given up waiting for a signal that is not there."""
        task = self._task
        return task is not None and task.done() and not task.cancelled() and isinstance(task.exception(), Suspended)

    @property
    def task(self) -> "asyncio.Task[T] | None":
        """What works on it; null if it was known."""
        return self._task

    def result(self) -> T:
        """The result of a call that is done; raises what the call raised."""
        return self._task.result() if self._task is not None else self._result  # pyright: ignore[reportReturnType] - set together

    def __await__(self) -> Generator[Any, None, T]:
        if self._task is None or self._task.done():
            return self.result()
        self._parking.rest()
        try:
            return (yield from self._task.__await__())
        finally:
            self._parking.go_on()


class Underway(Generic[K, T]):
    """Calls that are under way side by side, each under a key; to hear of the next costs the same however many.

    Args:
        parking: Of the run.
    """

    def __init__(self, parking: Parking) -> None:
        self._parking = parking
        self._added = 0
        self._running = 0
        self._parked = 0
        self._tasks: set[asyncio.Task[T]] = set()
        self._done: list[tuple[K, Pending[T]]] = []
        self._given_up: dict[int, Pending[T]] = {}
        self._news: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return self._running + len(self._done) + len(self._given_up)

    def add(self, key: K, pending: Pending[T]) -> None:
        """Have one more under way."""
        self._running += 1
        self._added += 1
        if pending.task is None or pending.task.done():
            self._hear(self._added, key, pending)
        else:
            self._tasks.add(pending.task)
            pending.task.add_done_callback(self._tasks.discard)
            pending.task.add_done_callback(partial(self._hear, self._added, key, pending))

    @property
    def waiting(self) -> int:
        """How many wait for somebody outside, of those that were begun while `watching`."""
        return self._parked + len(self._given_up)

    @property
    def working(self) -> int:
        """How many do not, and have not ended."""
        return self._running - self._parked

    @contextlib.contextmanager
    def watching(self) -> Generator[None]:
        """Know of the parts that are begun meanwhile whether they wait."""
        with self._parking.watched(self._count):
            yield

    async def next(self) -> Sequence[tuple[K, Pending[T]]]:
        """Wait until at least one is done; returns all that are, in the order in which they ended, and lets them go.

        Raises:
            Suspended: None is done, and all that remain have given up waiting for signals.
        """
        while not self._done:
            await self.stir()
        return self.ended()

    async def stir(self) -> None:
        """Wait until one is done or has given up, or one that is watched begins to wait or goes on.

        Raises:
            Suspended: None is done, and all that remain have given up waiting for signals.
        """
        if self._done:
            return
        if not self._running:
            raise self._suspension()
        self._news = asyncio.get_running_loop().create_future()
        await self._parking.hear(self._news)

    def ended(self) -> Sequence[tuple[K, Pending[T]]]:
        """All that are done, in the order in which they ended; lets them go."""
        done, self._done = self._done, []
        return done

    async def stop(self) -> None:
        """Cut off all that has not ended."""
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            self._parking.rest()
            try:
                await asyncio.wait(tasks)
            finally:
                self._parking.go_on()

    async def all_ended(self) -> None:
        """Wait until each is done, or has given up.

        Raises:
            Suspended: At least one has given up waiting for a signal.
        """
        while self._running or self._done:
            await self.next()
        if self._given_up:
            raise self._suspension()

    def _count(self, change: int) -> None:
        self._parked += change
        self._parking.tell(self._news)

    def _hear(self, place: int, key: K, pending: Pending[T], _: "asyncio.Task[T] | None" = None) -> None:
        self._running -= 1
        if pending.parked:
            self._given_up[place] = pending
        else:
            self._done.append((key, pending))
        self._parking.tell(self._news)

    def _suspension(self) -> Suspended:
        """What all of them wait for, in the order in which they were added."""
        waiting = [pending for _, pending in sorted(self._given_up.items())]
        causes = [cause for call in waiting if call.task and isinstance(cause := call.task.exception(), Suspended)]
        leading = next((cause for cause in causes if cause.status == "awaiting_approval"), causes[0])
        moments = [cause.wake_at for cause in causes if cause.wake_at is not None]
        names = (name for cause in causes for name in cause.signals)
        return Suspended(leading.status, *names, wake_at=min(moments, default=None))
