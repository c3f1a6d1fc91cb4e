"""The event loop of a synchronous crib: one thread, in which everything asynchronous of the crib happens.

Any thread may call. A caller waits until its call has ended; if it is interrupted, the call is cancelled. The loop ends
with its crib, when the crib is collected, or when the interpreter exits; each time the crib is closed first.
"""

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar, cast

from toolcrib.contracts import Conflict

P = ParamSpec("P")
T = TypeVar("T")

_MOST_THREADS: Final = 4_096
"""Python tools that run at the same time. They may call the crib, so that each waits for others: too few would be a
deadlock. A thread is only started if none is idle."""
_END: Final = object()


class EventLoopThread:
    """An event loop in a thread of its own.

    Example:
        loop = EventLoopThread()
        assert loop.run(asyncio.sleep, 0, "done") == "done"
        loop.close()
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._process = os.getpid()
        self._closers: list[Callable[[], Awaitable[object]]] = []
        self._thread = threading.Thread(target=_serve, args=(self._loop,), name="toolcrib-sync", daemon=True)
        self._thread.start()
        self._finish = weakref.finalize(self, _finish, self._loop, self._thread, self._closers, self._process)

    def closes(self, closer: Callable[[], Awaitable[object]]) -> None:
        """Have something closed in the loop before the loop ends."""
        self._closers.append(closer)

    def close(self) -> None:
        """Close what is to be closed, and end the loop; a second time does nothing."""
        self._check_place()
        self._finish()

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in the loop's thread, and wait for its result."""
        bound = _bind(function, args, kwargs)

        async def made() -> T:
            return bound()

        return self._wait(made)

    def run(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call an asynchronous function in the loop, and wait for its result.

        Raises:
            Conflict: The loop has ended, belongs to another process, or is the one of the calling thread.
        """
        bound = _bind(function, args, kwargs)

        async def made() -> T:
            return await bound()

        return self._wait(made)

    def iterate(self, function: Callable[P, AsyncGenerator[T]], *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        """Iterate over what an asynchronous generator yields, which is closed when the iteration ends."""
        self._check()
        return self._iterate(_bind(function, args, kwargs))

    @contextmanager
    def enter(
        self, function: Callable[P, AbstractAsyncContextManager[T]], *args: P.args, **kwargs: P.kwargs
    ) -> Generator[T]:
        """Enter an asynchronous context, and leave it at the end of the block."""
        bound = _bind(function, args, kwargs)

        async def hold() -> AsyncGenerator[T]:
            async with bound() as entered:
                yield entered

        items = self._iterate(hold)
        try:
            yield next(items)
        finally:
            items.close()

    def _wait(self, made: Callable[[], Coroutine[Any, Any, T]]) -> T:
        self._check()
        future = asyncio.run_coroutine_threadsafe(made(), self._loop)
        try:
            return future.result()
        except CancelledError as error:
            if self._finish.alive:
                raise
            raise _closed() from error
        finally:
            future.cancel()  # the caller was interrupted, if it has not ended

    def _iterate(self, make: Callable[[], AsyncGenerator[T]]) -> Generator[T]:
        """All in one task, as generators with time-outs need it."""
        self._check()
        demands: asyncio.Queue[Future[Any] | None] = asyncio.Queue()
        serving = asyncio.run_coroutine_threadsafe(_yield_on_demand(make, demands), self._loop)
        try:
            while True:
                demand: Future[Any] = Future()
                self._loop.call_soon_threadsafe(demands.put_nowait, demand)
                item = demand.result()
                if item is _END:
                    return
                yield cast("T", item)
                self._check()
        except KeyboardInterrupt:
            serving.cancel()
            raise
        finally:
            if self._finish.alive and not serving.done():
                self._loop.call_soon_threadsafe(demands.put_nowait, None)
                if threading.current_thread() is not self._thread:  # the collector may run anywhere
                    serving.result()

    def _check(self) -> None:
        self._check_place()
        if not self._finish.alive:
            raise _closed()

    def _check_place(self) -> None:
        if os.getpid() != self._process:
            msg = (
                f"this crib was made in process {self._process}, and is used in its fork {os.getpid()}, which has no "
                "thread for it; make a Crib(...) in each process, after the fork"
            )
            raise Conflict(msg)
        if threading.current_thread() is self._thread:
            msg = (
                "a synchronous crib was called in its own event loop, which would wait for itself; in an `async def` "
                "tool await the asynchronous crib (toolcrib.Crib), or write the tool with `def`, so that it runs in a "
                "thread"
            )
            raise Conflict(msg)


async def _yield_on_demand(
    make: Callable[[], AsyncGenerator[Any]], demands: "asyncio.Queue[Future[Any] | None]"
) -> None:
    """Answer each demand with the next element, until there are no more or null is demanded."""
    async with aclosing(make()) as elements:
        while (demand := await demands.get()) is not None:
            try:
                demand.set_result(await anext(elements, _END))
            except asyncio.CancelledError:
                demand.set_exception(_closed())
                raise
            except BaseException as error:  # noqa: BLE001 - raised where the element was asked for
                demand.set_exception(error)
                return


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until it is stopped, then cancel what still runs in it."""
    threads = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="toolcrib-tool")
    loop.set_default_executor(threads)
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        rest = asyncio.all_tasks(loop)
        for task in rest:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        threads.shutdown(wait=False)
        loop.close()


def _finish(
    loop: asyncio.AbstractEventLoop,
    thread: threading.Thread,
    closers: list[Callable[[], Awaitable[object]]],
    process: int,
) -> None:
    """Close, and end the loop; in the loop's own thread, where the collector may run, without waiting for it."""
    if os.getpid() != process:
        return

    async def close() -> None:
        try:
            for closer in closers:
                await closer()
        finally:
            loop.call_soon(loop.stop)

    closing = asyncio.run_coroutine_threadsafe(close(), loop)
    if threading.current_thread() is not thread:
        try:
            closing.result()
        finally:
            thread.join()


def _closed() -> Conflict:
    return Conflict("this crib is closed; make another one, or keep it open while it is used")


def _bind(function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], T]:
    """A call with its arguments, in which no facade is left."""
    return partial(function, *map(_plain, args), **{name: _plain(value) for name, value in kwargs.items()})


def _plain(value: Any) -> Any:
    """An argument with asynchronous objects in the place of their synchronous facades."""
    if isinstance(value, Facade):
        return value.asynchronous
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return value


class Facade:
    """A synchronous facade of an asynchronous object.

    Args:
        asynchronous: The object.
        loop: Where it lives.
    """

    def __init__(self, asynchronous: Any, loop: EventLoopThread) -> None:
        self._asynchronous = asynchronous
        self._loop = loop

    def __repr__(self) -> str:
        """What the asynchronous object shows of itself, also after the crib is closed."""
        return repr(self._asynchronous)

    @property
    def asynchronous(self) -> Any:
        """The asynchronous object; used in its own event loop only."""
        return self._asynchronous
