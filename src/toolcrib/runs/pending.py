"""Calls that are under way, and how a program waits for them."""

import asyncio
from collections.abc import Collection, Generator, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from toolcrib.runs.program import Suspended

K = TypeVar("K")
T = TypeVar("T")


class Pending(Generic[T]):
    """A call that was started, or that the journal knew already. Await it for its result."""

    __slots__ = ("_result", "_task")

    def __init__(self, task: "asyncio.Task[T] | None", result: T | None = None) -> None:
        self._task = task
        self._result = result

    @property
    def done(self) -> bool:
        """Whether it has a result, or failed."""
        return self._task is None or (self._task.done() and not self.parked)

    @property
    def parked(self) -> bool:
        """Whether it waits for a signal that is not there."""
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
        if self._task is None:
            return self.result()
        return (yield from self._task.__await__())


class Underway(Generic[K, T]):
    """Calls that are under way side by side, each under a key; to hear of the next costs the same however many."""

    def __init__(self) -> None:
        self._running = 0
        self._done: list[tuple[K, Pending[T]]] = []
        self._parked: list[Pending[T]] = []
        self._news: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return self._running + len(self._done) + len(self._parked)

    @property
    def works(self) -> bool:
        """Whether there is one that does not wait for a signal."""
        return bool(self._running or self._done)

    def add(self, key: K, pending: Pending[T]) -> None:
        """Have one more under way."""
        if pending.task is None:
            self._done.append((key, pending))
        else:
            self._running += 1
            pending.task.add_done_callback(partial(self._hear, key, pending))

    async def next(self) -> Sequence[tuple[K, Pending[T]]]:
        """Wait until at least one is done; returns all that are, in the order in which they ended, and lets them go.

        Raises:
            Suspended: None is done, and all that remain wait for signals.
        """
        while not self._done:
            if not self._running:
                raise _suspension(self._parked)
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        done, self._done = self._done, []
        return done

    def _hear(self, key: K, pending: Pending[T], _: "asyncio.Task[T]") -> None:
        self._running -= 1
        if pending.parked:
            self._parked.append(pending)
        else:
            self._done.append((key, pending))
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


async def wait_any(pending: Collection[Pending[T]]) -> set[Pending[T]]:
    """Wait until at least one is done; returns all that are.

    Raises:
        Suspended: None is done, and all that remain wait for signals.
    """
    while not (done := {call for call in pending if call.done}):
        running = [call.task for call in pending if call.task is not None and not call.task.done()]
        if not running:
            raise _suspension(pending)
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    return done


async def wait_all(pending: Sequence[Pending[T]]) -> list[T]:
    """Wait until every call is done, and return the results in order.

    A call that waits for a signal does not keep the others from ending.

    Raises:
        Suspended: All others are done, and at least one waits for a signal.
    """
    running = [call.task for call in pending if call.task is not None and not call.task.done()]
    if running:
        await asyncio.wait(running)
    if any(call.parked for call in pending):
        raise _suspension(pending)
    return [call.result() for call in pending]


def _suspension(pending: Collection[Pending[T]]) -> Suspended:
    causes = [cause for call in pending if call.task and isinstance(cause := call.task.exception(), Suspended)]
    leading = next((cause for cause in causes if cause.status == "awaiting_approval"), causes[0])
    moments = [cause.wake_at for cause in causes if cause.wake_at is not None]
    names = (name for cause in causes for name in cause.signals)
    return Suspended(leading.status, *names, wake_at=min(moments, default=None))
