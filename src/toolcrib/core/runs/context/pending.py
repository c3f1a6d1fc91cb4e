"""Where parts of a run wait for somebody outside while other parts of it work.

A run is suspended when nothing of it can go on. Until then a part that waits is parked here: it goes on as soon as what
it waits for is there, and does not have to wait for a branch that takes ten minutes. When nothing works any more, all
that is parked gives up at once, each with the `Suspended` that says what it waits for, and the run is suspended.

It counts what works: every part of the program that has begun and not ended, but for those that are parked, and those
that wait for others. So whoever waits for another part says so here. Nothing here is written down: a part that was
parked and goes on does what it would do in a process that has just taken the run. A nested run that waits is not parked
under its caller: it is driven alone, once all of its callers wait.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Generator
from contextvars import ContextVar
from typing import Final, TypeAlias, TypeVar

from toolcrib.contracts import Unavailable
from toolcrib.core.executor import Clock
from toolcrib.core.runs.interrupts.program import Suspended

T = TypeVar("T")

Arrived: TypeAlias = Callable[[], Awaitable[Collection[str]]]
"""Names of the signals that were left for the run."""

Watch: TypeAlias = Callable[[int], None]
"""Told 1 when a part begins to wait, and -1 when it has ended that."""

LOOK_S: Final = 1.0
"""Seconds between two looks for what is waited for."""


class Parking:
    """The waiting and the working parts of one run's program. It begins with one that works: the program itself.

    Args:
        clock: Time.
        arrived: Finds out what is there.
    """

    def __init__(self, clock: Clock, arrived: Arrived) -> None:
        self._clock = clock
        self._arrived = arrived
        self._working = 1
        self._parked: dict[asyncio.Future[Suspended | None], Suspended] = {}
        self._lookout: asyncio.Task[None] | None = None
        self._closed = False
        self._leaving = False
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
                await self._wait_out(wait)

    def check(self) -> None:
        """Refuse to begin anything in a run that is being left.

        Raises:
            Suspended: It is; any process may go on with it.
        """
        if self._leaving:
            self.left = True
            raise Suspended("queued", nested=True)

    def leave(self) -> None:
        """From now on nothing is begun: what works comes to its end, and the run is left to another process."""
        self._leaving = True
        self.close()

    @contextlib.contextmanager
    def watched(self, watch: Watch) -> Generator[None]:
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
        self._look_for_lull()
        await self._awaited(news)

    def tell(self, news: "asyncio.Future[None] | None") -> None:
        """Bring news to who waits for them, if anybody does: it works from this moment on."""
        if news is not None:
            self._wake(news, None)

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _wait_out(self, wait: Suspended) -> None:
        """Wait until what is waited for may be there.

        Raises:
            Suspended: `wait`, when nothing works any more, or at once where only a suspended run goes on.
        """
        if self._closed or wait.nested:
            raise wait
        news: asyncio.Future[Suspended | None] = asyncio.get_running_loop().create_future()
        self._parked[news] = wait
        self._tell_watch(1)
        self._working -= 1
        self._look_for_lull()
        if self._lookout is None:
            self._lookout = asyncio.create_task(self._look_out())
        try:
            given_up = await self._awaited(news)
        finally:
            del self._parked[news]
            self._tell_watch(-1)
            if not self._parked:
                self._lookout.cancel()
                self._lookout = None
        if given_up is not None:
            raise given_up

    def _tell_watch(self, change: int) -> None:
        watched = _WATCH.get()
        if watched is not None and watched[0] is self:  # who watches the run that has called this one is not concerned
            watched[1](change)

    async def _look_out(self) -> None:
        while True:
            moments = [wait.wake_at for wait in self._parked.values() if wait.wake_at is not None]
            left = min(((moment - self._clock.now()).total_seconds() for moment in moments), default=LOOK_S)
            await self._clock.sleep(min(max(left, 0.0), LOOK_S))
            with contextlib.suppress(Unavailable):  # the next look may find the store again
                self._wake_those_with(await self._arrived())

    def _wake_those_with(self, arrived: Collection[str]) -> None:
        now = self._clock.now()
        for news, wait in self._parked.items():
            if (wait.wake_at is not None and wait.wake_at <= now) or not set(wait.signals).isdisjoint(arrived):
                self._wake(news, None)

    def _look_for_lull(self) -> None:
        if self._closed or not self._working:
            for news, wait in self._parked.items():
                self._wake(news, wait)

    def _wake(self, news: "asyncio.Future[T]", told: T) -> None:
        if not news.done():
            self._working += 1
            news.set_result(told)

    async def _awaited(self, news: "asyncio.Future[T]") -> T:
        """What `_wake` tells; who is cancelled instead works again too."""
        try:
            return await news
        except asyncio.CancelledError:
            if news.cancelled():
                self._working += 1
            raise


_WATCH: ContextVar[tuple[Parking, Watch] | None] = ContextVar("_WATCH", default=None)
"""Goes down with the tasks that a part of the program begins, such as those of its calls."""
