"""Processes of a simulation: each can die or stand still at any of its operations, and has a clock of its own.

The threads of a process are simulated too. A function runs in the loop, at once and as a whole, but begins late and
tells its result late. A real database therefore does what it does, and only its answers are delayed.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, TypeVar

from tests.simulation.schedules import Decisions
from tests.simulation.simulated_loop import OWNER, SimulatedLoop

T = TypeVar("T")

START: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
"""When every simulation begins."""
DELAYS_S: Final = (0.0005, 0.0, 0.002, 0.01, 0.05, 0.3, 2.0, 7.0, 25.0)
"""How long an operation may take; the first is the ordinary one."""
FREEZES_S: Final = (0.0, 0.5, 5.0, 12.0, 40.0)
"""How long a process may stand still: less than a lease, and more."""
CLOCK_STEPS_S: Final = (0.0, -3600.0, -5.0, 5.0, 3600.0, 86_400.0)
"""By how much the wall clock of a process may be set."""


class Died(Exception):
    """The process has died while something waited for it."""


class SimulatedClock:
    """The clock of one process; a `Clock`."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.skew_s = 0.0
        """What its wall clock is ahead."""
        self._loop = loop

    def now(self) -> datetime:
        """The moment that its wall clock tells."""
        return START + timedelta(seconds=self._loop.time() + self.skew_s)

    def monotonic(self) -> float:
        """Seconds of a clock that nobody sets."""
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        """Let so much time pass."""
        await asyncio.sleep(seconds)


class Process:
    """A process. Make one with `World.process`.

    Args:
        name: Its name, which decisions begin with.
        loop: The loop that it shares with all others.
        decisions: Decide what becomes of it.
        calm_from: The simulated second from which on nothing happens to it.
    """

    def __init__(self, name: str, loop: SimulatedLoop, decisions: Decisions, *, calm_from: float) -> None:
        self.name = name
        self.alive = True
        """What belongs to it runs."""
        self.frozen_until = 0.0
        self.dead = False
        self.tasks: list[asyncio.Task[Any]] = []
        self.lost: list[asyncio.Handle] = []
        self.clock = SimulatedClock(loop)
        self.threads = SimulatedThreads(self, "thread")
        self.died = asyncio.Event()
        self.outside: object = None
        """What a scenario wants its code to find that runs in this process."""
        self._calm_from = calm_from
        self._loop = loop
        self._decisions = decisions
        self._context = copy_context()
        self._context.run(OWNER.set, self)

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Begin something in this process."""
        return self._loop.create_task(work, context=self._context.copy())

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in this process.

        Raises:
            Died: The process has died meanwhile.
        """
        task, death = self.start(work), asyncio.ensure_future(self.died.wait())
        try:
            await asyncio.wait({task, death}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            death.cancel()
        if not task.done():
            raise Died(self.name)
        return task.result()

    @property
    def calm(self) -> bool:
        """Whether nothing happens to it any more."""
        return self.dead or self._loop.time() >= self._calm_from

    async def take(self, what: str) -> None:
        """Let an operation outside of the process take its time; the process may die or stand still meanwhile."""
        await asyncio.sleep(self.delay(what))

    def fails(self, what: str) -> bool:
        """Whether an operation fails this time."""
        return not self.calm and bool(self._choose(what, "fault", 2))

    def delay(self, what: str) -> float:
        """How many seconds an operation takes."""
        if self.calm:
            return DELAYS_S[0]
        self.disturb(what)
        return DELAYS_S[self._choose(what, "delay", len(DELAYS_S))]

    def disturb(self, what: str) -> None:
        """Have the process die or stand still, or set its clock, if this is to happen now."""
        if self.calm:
            return
        if self._choose(what, "crash", 2):
            self.crash()
        elif pause := self._choose(what, "freeze", len(FREEZES_S)):
            self.frozen_until = self._loop.time() + FREEZES_S[pause]
        elif step := self._choose(what, "clock", len(CLOCK_STEPS_S)):
            self.clock.skew_s = CLOCK_STEPS_S[step]

    def crash(self) -> None:
        """The process is gone: nothing of it goes on."""
        self.alive, self.dead = False, True
        self._loop.call_soon(self.died.set, context=_NOBODY)

    async def bury(self) -> None:
        """After the simulation: let what is left of a dead process come to an end, without any effect."""
        self.alive = True
        self.frozen_until = 0.0
        self._loop.restore(self)
        for _ in range(5):
            left = [task for task in self.tasks if not task.done()]
            for task in left:
                task.cancel()
            if not left:
                break
            await asyncio.wait(left, timeout=1)
        for task in self.tasks:
            task._log_destroy_pending = False  # pyright: ignore[reportAttributeAccessIssue]
            if task.done() and not task.cancelled():
                task.exception()

    def _choose(self, what: str, kind: str, options: int) -> int:
        return self._decisions.choose(f"{self.name} {what}", kind, options)


_NOBODY: Final = copy_context()


class SimulatedThreads:
    """Stands in for a pool of threads.

    Args:
        process: Whose they are.
        what: What they do, for the names of decisions.
    """

    def __init__(self, process: Process, what: str) -> None:
        self._process = process
        self._what = what

    def submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Run a function later, and tell its result later still."""
        result: Future[Any] = Future()
        self._begin(function, arguments, result.set_result, result.set_exception)
        return result

    def call(self, function: Callable[..., Any], *arguments: Any) -> "asyncio.Future[Any]":
        """Likewise, for a loop."""
        result: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def settle(tell: Callable[[Any], None], value: Any) -> None:
            if not result.done():
                tell(value)

        self._begin(
            function,
            arguments,
            lambda value: settle(result.set_result, value),
            lambda error: settle(result.set_exception, error),
        )
        return result

    def shutdown(self, *, wait: bool = True) -> None:
        """Nothing is to be waited for."""
        del wait

    def _begin(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        succeed: Callable[[Any], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        process, loop = self._process, asyncio.get_running_loop()

        def run() -> None:
            if process.dead:  # and is being buried
                fail(ConnectionError("the process is dead"))
                return
            try:
                told = partial(succeed, function(*arguments))
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
                told = partial(fail, error)
            loop.call_later(process.delay(f"{self._what} answer"), told)

        loop.call_later(process.delay(self._what), run)
