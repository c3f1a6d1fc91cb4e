"""An event loop without input and output, whose clock jumps to the next timer when nothing is left to run.

What is ready runs in the order in which it became ready, as in asyncio's own loops. Each handle belongs to the process
in whose context it was made: what belongs to a dead one never runs, and what belongs to a frozen one runs later.
"""

import asyncio
import heapq
from asyncio import events
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context, ContextVar, copy_context
from itertools import count
from typing import Any, Final, Protocol, TypeVar, cast

T = TypeVar("T")

_TICK_S: Final = 1e-6
"""What each step takes."""
_MOST_STEPS: Final = 400_000


class Stuck(AssertionError):
    """Nothing can happen any more, or something happens for ever."""


class Threads(Protocol):
    """What runs functions outside of the loop; simulated, inside of it."""

    def call(self, function: Callable[..., Any], *arguments: Any) -> "asyncio.Future[Any]":
        """Run a function."""
        ...


class Owner(Protocol):
    """A process, as the loop knows it."""

    alive: bool
    frozen_until: float
    tasks: "list[asyncio.Task[Any]]"
    lost: list[asyncio.Handle]
    """What would have run if the process had not died."""

    @property
    def threads(self) -> Threads:
        """Its threads."""
        ...


OWNER: Final[ContextVar[Owner | None]] = ContextVar("OWNER", default=None)
"""The process that this code is part of."""


class _Handle(asyncio.Handle):
    __slots__ = ("owner",)

    owner: Owner | None


class _Timer(asyncio.TimerHandle):
    __slots__ = ("owner",)

    owner: Owner | None


class SimulatedLoop(asyncio.AbstractEventLoop):
    """The loop."""

    def __init__(self) -> None:
        self.steps = 0
        self.problems: list[dict[str, Any]] = []
        """What would have been logged, such as exceptions that nobody has seen."""
        self.tasks: list[asyncio.Task[Any]] = []
        """Those that belong to no process."""
        self._now = 0.0
        self._ready: deque[_Handle | _Timer] = deque()
        self._timers: list[tuple[float, int, _Handle | _Timer]] = []
        self._numbers = count()
        self._running = self._closed = False
        self._generators: list[Any] = []

    # Running ----------------------------------------------------------------------------------------------------------

    def run_until_complete(self, future: Awaitable[T] | Generator[Any, None, T]) -> T:
        """Run until a future is done.

        Raises:
            Stuck: It never will be.
        """
        task: asyncio.Future[T] = asyncio.ensure_future(cast("Awaitable[T]", future), loop=self)
        previous = events._get_running_loop()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
        events._set_running_loop(self)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        self._running = True
        try:
            while not task.done():
                self._step()
        finally:
            self._running = False
            events._set_running_loop(previous)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        return task.result()

    def _step(self) -> None:
        if not self._ready:
            self._jump()
        handle = self._ready.popleft()
        owner = handle.owner
        if handle.cancelled():
            return
        if owner is not None and not owner.alive:
            owner.lost.append(handle)
            return
        if owner is not None and owner.frozen_until > self._now:
            heapq.heappush(self._timers, (owner.frozen_until, next(self._numbers), handle))
            return
        self.steps += 1
        self._now += _TICK_S
        if self.steps > _MOST_STEPS:
            msg = f"after {_MOST_STEPS} steps and {self._now:.0f} simulated seconds it still goes on"
            raise Stuck(msg)
        handle._run()  # pyright: ignore[reportPrivateUsage]
        while self._timers and self._timers[0][0] <= self._now:
            self._ready.append(heapq.heappop(self._timers)[2])

    def restore(self, owner: Owner) -> None:
        """Run after all what a process has lost by its death."""
        self._ready.extend(handle for handle in owner.lost if isinstance(handle, _Handle | _Timer))
        owner.lost.clear()

    def _jump(self) -> None:
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        if not self._timers:
            raise Stuck("everything waits, and nothing is left that could happen")
        self._now = max(self._now, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self._now:
            self._ready.append(heapq.heappop(self._timers)[2])

    # What asyncio asks of a loop --------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._now

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:
        context = copy_context() if context is None else context
        handle = _Handle(callback, args, self, context)
        handle.owner = context.get(OWNER)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        context = copy_context() if context is None else context
        timer = _Timer(when, callback, args, self, context)
        timer.owner = context.get(OWNER)
        heapq.heappush(self._timers, (when, next(self._numbers), timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is left out when its time comes."""

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> "asyncio.Task[T]":
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        owner = (copy_context() if context is None else context).get(OWNER)
        (self if owner is None else owner).tasks.append(task)
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> "asyncio.Future[T]":
        owner = OWNER.get()
        if executor is None and owner is None:
            msg = "only a process of the simulation runs functions in threads"
            raise RuntimeError(msg)
        return (executor or owner.threads).call(func, *args)  # pyright: ignore[reportOptionalMemberAccess]

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True
        self._ready.clear()
        self._timers.clear()

    def get_task_factory(self) -> None:
        return None

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.problems.append(context)

    default_exception_handler = call_exception_handler
