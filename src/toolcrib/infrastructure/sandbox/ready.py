"""Things that take a while to start, kept ready. Each is used once."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from toolcrib.contracts import Unavailable


class Closable(Protocol):
    """What is kept ready."""

    async def close(self) -> None:
        """End it."""
        ...


T = TypeVar("T", bound=Closable)


class Ready(Generic[T]):
    """A number of them.

    Args:
        start: Starts one; raises `Unavailable` if that cannot be.
        count: How many are kept.
    """

    def __init__(self, start: Callable[[], Awaitable[T]], count: int) -> None:
        self._start = start
        self._count = count
        self._waiting: deque[T] = deque()
        self._starting: set[asyncio.Task[None]] = set()

    async def take(self) -> T:
        """One that is ready, else a new one; its successor is started meanwhile."""
        taken = self._waiting.popleft() if self._waiting else await self._start()
        for _ in range(self._count - len(self._waiting) - len(self._starting)):
            task = asyncio.create_task(self._keep())
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)
        return taken

    async def close(self) -> None:
        """End those that wait."""
        self._count = 0
        await asyncio.gather(*self._starting)
        while self._waiting:
            await self._waiting.popleft().close()

    async def _keep(self) -> None:
        with contextlib.suppress(Unavailable):  # who needs one next is told
            self._waiting.append(await self._start())
