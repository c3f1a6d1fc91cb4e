"""Active and waiting parts of a run.

A part that waits is parked, and continues as soon as its signal arrives, without waiting for other branches. When no
part is active, each parked part raises its `Suspended`, and the run is suspended. All parts are counted, except parked
ones and those that wait for other parts; so code that waits for another part must say so here. Nothing is stored: a
parked part does the same when another process resumes the run. Nested runs are not parked under their caller, but
driven alone once all callers wait.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator, Sequence
from contextvars import ContextVar, copy_context
from functools import partial
from types import coroutine
from typing import Any, Final, Generic, TypeAlias, TypeVar

from toolcrib.contracts import Unavailable
from toolcrib.core.executor import Clock
from toolcrib.core.runs.interrupts.suspension import Suspended

T = TypeVar("T")

Arrived: TypeAlias = Callable[[], Awaitable[Collection[str]]]
"""Names of the signals that were left for the run."""

Pause: TypeAlias = Callable[[float], Awaitable[None]]
"""Lets so many seconds pass; in a replay only until somebody outside is heard."""

Sleep: TypeAlias = Callable[[str, float], Awaitable[None]]
"""Sleeps through what is left of a wait: its name, and seconds."""

Watch: TypeAlias = Callable[[int], None]
"""Told 1 when a part begins to wait, and -1 when it has ended that."""

LOOK_S: Final = 1.0
"""Seconds between two looks for what is waited for."""
_IN_A_ROW: Final = 10
"""Calls that a program makes in its own task before it lets the rest of the process work."""


class Suspension:
    """The waiting and the working parts of one run's program. It begins with one that works: the program itself.

    Args:
        clock: Time.
        arrived: Finds out what is there.
        pause: Lets time pass between two looks; the clock does if null.
        suspends: Whether the run is suspended when nothing works any more; in a replay, whether it was.
    """

    def __init__(
        self,
        clock: Clock,
        arrived: Arrived,
        pause: Pause | None = None,
        suspends: Callable[[], bool] = lambda: True,
    ) -> None:
        self._clock = clock
        self._arrived = arrived
        self._pause = pause or clock.sleep
        self._suspends = suspends
        self._working = 1
        self._parked: dict[asyncio.Future[Suspended | None], Suspended] = {}
        self._lookout: asyncio.Task[None] | None = None
        self._closed = False
        self._leaving = False
        self._in_a_row = 0
        self.tasks: set[asyncio.Task[Any]] = set()
        """What works on the parts that have not ended."""
        self.left = False
        """Whether something was not begun because the run is being left."""

    async def through(self, work: Callable[[], Awaitable[T]]) -> T:
        """What a piece of work brings, which is begun again each time when what it has waited for is there.

        Raises:
            Suspended: It waits, and nothing else works; or the run is being left.
        """
        while True:
            self.check()
            try:
                return await work()
            except Suspended as wait:
                await self.wait_out(wait)

    def check(self) -> None:
        """Refuse to begin anything in a run that is being left.

        Raises:
            Suspended: It is; any process may go on with it.
        """
        if self._leaving:
            self.left = True
            raise Suspended("queued", nested=True)

    def tires(self) -> bool:
        """Whether others are to be let in before a program makes one more call in its own task.

        That is so after every few, as none of them may have waited for anything.
        """
        self._in_a_row = (self._in_a_row + 1) % _IN_A_ROW
        return self._in_a_row == 0

    def leave(self) -> None:
        """From now on nothing is begun: what works comes to its end, and the run is left to another process."""
        self._leaving = True
        self.close()

    @contextlib.contextmanager
    def watch_parts(self, watch: Watch) -> Generator[None]:
        """Have somebody watch the parts of the program that are begun meanwhile, and those that they begin."""
        token = _WATCH.set((self, watch))
        try:
            yield
        finally:
            _WATCH.reset(token)

    def close(self) -> None:
        """From now on nothing is parked, and what is parked gives up."""
        self._closed = True
        self._look_for_lull()

    # What works -------------------------------------------------------------------------------------------------------

    def start(self, work: Coroutine[Any, Any, T]) -> "Pending[T]":
        """Begin one more part of the program, as a task of its own."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        self._working += 1
        pending = Pending(self, task)
        task.add_done_callback(pending.hear_end)
        return pending

    async def results(self, pending: "Sequence[Pending[T]]") -> list[T]:
        """The results of some parts, in order, when the last of them has ended or given up waiting.

        Raises:
            Suspended: At least one has given up waiting for a signal.
        """
        working = [(call, call.task) for call in pending if call.task is not None and not call.task.done()]
        if working:
            expected = _Expected(self, len(working))
            for call, task in working:
                call.tell_end_to(task, expected)
            await self.hear(expected.news)
        try:
            return [call.result() for call in pending]
        except BaseException:  # what waits comes before what has failed
            waits = [wait for call in pending if (wait := call.wait) is not None]
            if not waits:
                raise
            raise _join_waits(waits) from None

    def begin(self) -> None:
        """One more part of the program works."""
        self._working += 1

    def end(self) -> None:
        """A part has ended. Who waits for it is told in the same turn of the loop, and works again."""
        self._working -= 1
        if self._parked:  # what parks later looks for itself
            asyncio.get_running_loop().call_soon(self._look_for_lull)

    def rest(self) -> None:
        """Who works here waits from now on for the end of a task, of which it hears directly."""
        self._working -= 1
        self._look_for_lull()

    def go_on(self) -> None:
        """Who has rested works again."""
        self._working += 1

    async def hear(self, news: "asyncio.Future[None]") -> None:
        """Wait for news of `tell`; who does so does not work meanwhile."""
        self._working -= 1
        if self._parked:
            self._look_for_lull()
        try:
            await news
        except asyncio.CancelledError:
            if news.cancelled():
                self._working += 1
            raise

    def tell(self, news: "asyncio.Future[None] | None") -> None:
        """Bring news to who waits for them, if anybody does: it works from this moment on."""
        if news is not None:
            self._wake(news, None)

    # Inside -----------------------------------------------------------------------------------------------------------

    async def wait_out(self, wait: Suspended) -> None:
        """Wait until what is waited for may be there.

        Raises:
            Suspended: `wait`, when nothing works any more, or at once where only a suspended run goes on.
        """
        try:
            if self._closed or wait.nested or await self._park(wait):
                raise wait
        finally:
            del wait  # what a frame of its own traceback refers to is left to the garbage collector

    async def _park(self, wait: Suspended) -> bool:
        """Wait until what is waited for may be there; true if it is given up."""
        news: asyncio.Future[Suspended | None] = asyncio.get_running_loop().create_future()
        self._parked[news] = wait
        self._tell_watch(1)
        self._working -= 1
        self._look_for_lull()
        if self._lookout is None:
            self._lookout = asyncio.create_task(self._look_out())
        try:
            return await self._await_news(news) is not None
        finally:
            del self._parked[news]
            self._tell_watch(-1)
            if not self._parked:
                self._lookout.cancel()
                self._lookout = None

    def _tell_watch(self, change: int) -> None:
        watched = _WATCH.get()
        if watched is not None and watched[0] is self:  # who watches the run that has called this one is not concerned
            watched[1](change)

    async def _look_out(self) -> None:
        while True:
            moments = [wait.wake_at for wait in self._parked.values() if wait.wake_at is not None]
            left = min(((moment - self._clock.now()).total_seconds() for moment in moments), default=LOOK_S)
            await self._pause(min(max(left, 0.0), LOOK_S))
            with contextlib.suppress(Unavailable):  # the next look may find the store again
                self._wake_those_with(await self._arrived())

    def _wake_those_with(self, arrived: Collection[str]) -> None:
        now = self._clock.now()
        for news, wait in self._parked.items():
            if (wait.wake_at is not None and wait.wake_at <= now) or not set(wait.signals).isdisjoint(arrived):
                self._wake(news, None)

    def _look_for_lull(self) -> None:
        if self._closed or (not self._working and self._parked and self._suspends()):
            for news, wait in self._parked.items():
                self._wake(news, wait)

    def _wake(self, news: "asyncio.Future[T]", message: T) -> None:
        if not news.done():
            self._working += 1
            news.set_result(message)

    async def _await_news(self, news: "asyncio.Future[T]") -> T:
        """What `_wake` tells; who is cancelled instead works again too."""
        try:
            return await news
        except asyncio.CancelledError:
            if news.cancelled():
                self._working += 1
            raise


_WATCH: ContextVar[tuple[Suspension, Watch] | None] = ContextVar("_WATCH", default=None)
"""Goes down with the tasks that a part of the program begins, such as those of its calls."""


def _apart(work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    run = copy_context().run
    try:
        awaited: Any = run(work.send, None)
        while True:
            try:
                yield awaited
            except GeneratorExit:
                run(work.close)
                raise
            except BaseException as interruption:  # noqa: BLE001 - as `await` does: the work says what comes of it
                caught = interruption
            else:
                awaited = run(work.send, None)
                continue
            awaited = run(work.throw, caught)
    except StopIteration as end:
        return end.value


def apart(work: Coroutine[Any, Any, T]) -> Awaitable[T]:
    """Await work in the task that asks, with context variables of its own, as a task would have them."""
    return _in_turn(work)


_in_turn = coroutine(_apart)


K = TypeVar("K")


class _Expected:
    """The ends of several calls for which one part of a program waits."""

    __slots__ = ("_left", "_parking", "news")

    def __init__(self, parking: Suspension, count: int) -> None:
        self._parking = parking
        self._left = count
        self.news: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def hear(self, _: object) -> None:
        """One has ended."""
        self._left -= 1
        if not self._left:
            self._parking.tell(self.news)


class Pending(Generic[T]):
    """A call that was started, or that the journal knew already. Await it for its result.

    Args:
        parking: Of the run.
        task: What works on it; null if the result is known.
        result: The known result.
    """

    __slots__ = ("_expected", "_parking", "_result", "task")

    def __init__(self, parking: Suspension, task: "asyncio.Task[T] | None", result: T | None = None) -> None:
        self._parking = parking
        self.task = task
        """What works on it; null if it was known."""
        self._result = result
        self._expected: _Expected | None = None

    def hear_end(self, task: "asyncio.Task[T]") -> None:
        """Tell that the task has ended to who waits for it with others."""
        parking = self._parking
        parking.tasks.discard(task)
        parking.end()
        if not task.cancelled():
            task.exception()  # heard, so that the loop does not complain: why it failed ends the run, or is told
        if self._expected is not None:
            self._expected.hear(task)

    def tell_end_to(self, task: "asyncio.Task[T]", expected: _Expected) -> None:
        """Have somebody hear of the end of the task, which has not ended."""
        if self._expected is None and task in self._parking.tasks:
            self._expected = expected
        else:
            task.add_done_callback(expected.hear)

    @property
    def done(self) -> bool:
        """Whether it has a result, or failed."""
        return self.task is None or (self.task.done() and not self.parked)

    @property
    def parked(self) -> bool:
        """Whether it has given up waiting for a signal that is not there."""
        return self.wait is not None

    @property
    def wait(self) -> Suspended | None:
        """What it has given up waiting for; null if it has not."""
        task = self.task
        if task is None or not task.done() or task.cancelled():
            return None
        cause = task.exception()
        return cause if isinstance(cause, Suspended) else None

    def result(self) -> T:
        """The result of a call that is done; raises what the call raised."""
        return self.task.result() if self.task is not None else self._result  # pyright: ignore[reportReturnType] - set together

    def __await__(self) -> Generator[Any, None, T]:
        if self.task is None or self.task.done():
            return self.result()
        self._parking.rest()
        try:
            return (yield from self.task.__await__())
        finally:
            self._parking.go_on()


class ConcurrentCalls(Generic[K, T]):
    """Calls that are under way side by side, each under a key; to hear of the next costs the same however many.

    Args:
        parking: Of the run.
    """

    def __init__(self, parking: Suspension) -> None:
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
        with self._parking.watch_parts(self._count):
            yield

    async def next(self) -> Sequence[tuple[K, Pending[T]]]:
        """Wait until at least one is done; returns all that are, in the order in which they ended, and lets them go.

        Raises:
            Suspended: None is done, and all that remain have given up waiting for signals.
        """
        while not self._done:
            await self.stir()
        return self.take_ended()

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

    def take_ended(self) -> Sequence[tuple[K, Pending[T]]]:
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
        given_up = (pending for _, pending in sorted(self._given_up.items()))
        return _join_waits([wait for call in given_up if (wait := call.wait) is not None])


def _join_waits(causes: Sequence[Suspended]) -> Suspended:
    """One wait for all that some parts wait for."""
    leading = next((cause for cause in causes if cause.status == "awaiting_approval"), causes[0])
    moments = [cause.wake_at for cause in causes if cause.wake_at is not None]
    names = (name for cause in causes for name in cause.signals)
    return Suspended(leading.status, *names, wake_at=min(moments, default=None))
