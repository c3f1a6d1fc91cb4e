"""Points at which a process dies: right before or right after any of the writes that one family of runs makes.

A write is a claim, the creation of a nested run, or the append of events. Between the effect of a call and its outcome
lies the point before the append of that outcome, and every other moment of a run lies between two writes likewise.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, cast

from toolcrib.contracts import Conflict, Event, Run, RunEvent
from toolcrib.infrastructure.store import Claim, Journal, Lease, RunChange, Store


class Point(NamedTuple):
    """Where a process dies."""

    run_id: str
    """The outermost run of the family."""
    when: Literal["before", "after"] = "before"
    """The commit of the write."""
    write: int = 0
    """Counted since the process began; 0 for none."""


class MortalJournal:
    """A journal that kills its process. Once it has decided to, it lets nothing more through.

    Args:
        inner: The journal.
        point: When.
    """

    def __init__(self, inner: Journal, point: Point) -> None:
        self.writes = 0
        """How many there were."""
        self._inner = inner
        self._point = point
        self._family = {point.run_id}
        self._death: asyncio.Task[None] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create(self, run: Run, first: Event, *, lease: Lease | None = None) -> Awaitable[None]:
        if run.request.root_run_id == self._point.run_id:
            self._family.add(run.run_id)
        return self._write(run.run_id, lambda: self._inner.create(run, first, lease=lease))

    def claim(self, run_id: str, *, owner: str, now: datetime, lease_s: float) -> Awaitable[Claim | None]:
        return self._write(run_id, lambda: self._inner.claim(run_id, owner=owner, now=now, lease_s=lease_s))

    def append(
        self, run_id: str, epoch: int, events: Sequence[RunEvent], change: RunChange | None = None
    ) -> Awaitable[None]:
        return self._write(run_id, lambda: self._inner.append(run_id, epoch, events, change))

    def _write(self, run_id: str, write: Callable[[], Awaitable[Any]]) -> Awaitable[Any]:
        self.writes += run_id in self._family
        if self._death is None and self.writes != self._point.write:
            return write()
        if self._death is None:
            last = write() if self._point.when == "after" else self._drained()
            self._death = asyncio.ensure_future(_die_after(last))
        return asyncio.get_running_loop().create_future()  # nothing happens any more

    async def _drained(self) -> None:
        """All earlier writes are durable; reading sees to that."""
        await self._inner.claimable(now=datetime.now(UTC), limit=1)


class _StoreWith:
    def __init__(self, inner: Store, journal: MortalJournal) -> None:
        self._inner = inner
        self.journal = journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def with_journal(store: Store, journal: MortalJournal) -> Store:
    """The same store with another journal."""
    return cast("Store", _StoreWith(store, journal))


async def _die_after(last: Awaitable[Any]) -> None:
    with contextlib.suppress(Conflict):  # a nested run that is created again exists already
        await last
    os.kill(os.getpid(), signal.SIGKILL)
