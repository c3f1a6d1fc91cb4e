"""A store that kills its process at a chosen event: right before the event is committed, or right after.

A decorator of the `Store` port. Once it has decided to kill, it lets nothing more through, so that the journal which
the process leaves behind ends exactly where the test says.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from toolcrib.contracts import Conflict, Event, Run, RunEvent
from toolcrib.infrastructure.store import Journal, Lease, RunChange, Store


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """Where a process dies."""

    when: Literal["before", "after"]
    """The commit of the event."""
    event: int
    """Counted over all runs since the process began."""


def crashing(store: Store, point: CrashPoint) -> Store:
    """The store, with a journal that kills this process."""
    return cast("Store", _CrashingStore(store, point))


class _CrashingStore:
    def __init__(self, inner: Store, point: CrashPoint) -> None:
        self._inner = inner
        self.journal = _CrashingJournal(inner.journal, point)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _CrashingJournal:
    def __init__(self, inner: Journal, point: CrashPoint) -> None:
        self._inner = inner
        self._point = point
        self._seen = 0
        self._death: asyncio.Task[None] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create(self, run: Run, first: Event, *, lease: Lease | None = None) -> Awaitable[None]:
        return self._write(1, lambda: self._inner.create(run, first, lease=lease))

    def append(
        self, run_id: str, epoch: int, events: Sequence[RunEvent], change: RunChange | None = None
    ) -> Awaitable[None]:
        return self._write(len(events), lambda: self._inner.append(run_id, epoch, events, change))

    def _write(self, count: int, write: Callable[[], Awaitable[None]]) -> Awaitable[None]:
        self._seen += count
        if self._death is None and self._seen < self._point.event:
            return write()
        if self._death is None:
            last = write() if self._point.when == "after" else self._drained()
            self._death = asyncio.ensure_future(_die_after(last))
        return asyncio.get_running_loop().create_future()  # nothing happens any more

    async def _drained(self) -> None:
        """All earlier events are durable; reading sees to that."""
        await self._inner.claimable(now=datetime.now(UTC), limit=1)


async def _die_after(last: Awaitable[None]) -> None:
    with contextlib.suppress(Conflict):  # a nested run that is created again exists already
        await last
    os.kill(os.getpid(), signal.SIGKILL)
