"""The recorded order of a family of runs, and how a replay keeps it.

Events that the code makes are never delayed. Recorded inputs (answers, outcomes, decisions, times) wait until
everything recorded before them has happened again. If the clocks of several processes disagree and nothing can
continue, the earliest waiting input is released.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from typing import Final

from toolcrib.contracts import Divergence, RunEvent
from toolcrib.core.engines.replay.recording import signal_taken

_STILL: Final = 60
"""Turns of the event loop without anything happening, after which nothing will: longer than any chain of tasks."""
_FUTILE: Final = 100
"""Times that somebody is let through and no event is made, after which none will be: they only look again."""


class EventOrder:
    """Who may go on.

    Args:
        events: Of all runs, in order.
    """

    def __init__(self, events: Sequence[RunEvent]) -> None:
        self._events = events
        self._places = {(entry.run_id, entry.number): place for place, entry in enumerate(events)}
        self._made = [False] * len(events)
        self._moments = _rising(events)
        self._next = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()
        self._steps = 0
        self._events_made = 0
        self.divergence: Divergence | None = None
        """The first, after which nothing goes on."""
        self._stopped = asyncio.Event()

    def mark_made(self, entry: RunEvent) -> None:
        """An event was made again."""
        self._made[self._places[entry.run_id, entry.number]] = True
        self._events_made += 1
        self._steps += 1
        while self._next < len(self._events) and self._made[self._next]:
            self._next += 1
        self._let_through()

    def is_made(self, entry: RunEvent) -> bool:
        """Whether it was."""
        return self._made[self._places[entry.run_id, entry.number]]

    def is_next(self, entry: RunEvent) -> bool:
        """Whether all that was before it was made."""
        return self._places[entry.run_id, entry.number] <= self._next

    def is_before(self, entry: RunEvent, other: RunEvent) -> bool:
        """Whether an event was before another one."""
        return self._places[entry.run_id, entry.number] < self._places[other.run_id, other.number]

    async def turn(self, entry: RunEvent) -> None:
        """Wait until all that was recorded before an event was made."""
        await self._wait(self._places[entry.run_id, entry.number])

    async def rest(self, seconds: float, last: RunEvent, *, until_heard: bool = False) -> None:
        """Wait until so much time has passed, or also until somebody from outside is heard.

        Args:
            seconds: How much; the next event is often the one after the wait, so this alone may reach too far.
            last: What the run that waits has written last before another process took it: it waited no longer.
            until_heard: Wait no longer than until somebody from outside is heard.
        """
        moment = self.now() + timedelta(seconds=seconds)
        await asyncio.sleep(0)  # others go on also if no time is to pass
        place = min(bisect_left(self._moments, moment), self._places[last.run_id, last.number])
        if until_heard:
            heard = (at for at in range(self._next, place) if signal_taken(self._events[at].event) is not None)
            place = next(heard, place)
        if place > self._next or self.stopped:  # else who looks again and again would seem to be getting on
            await self._wait(place)

    def now(self) -> datetime:
        """The moment of what happens next; at the end that of the last event."""
        return self._moments[min(self._next, len(self._moments) - 1)]

    def stop(self, divergence: Divergence) -> None:
        """Let nothing go on any more; the first reason stands."""
        self.divergence = self.divergence or divergence
        self._stopped.set()

    @property
    def stopped(self) -> bool:
        """Whether nothing goes on any more."""
        return self._stopped.is_set()

    async def conduct(self) -> None:
        """Let those through who wait, until nobody does and nothing happens any more, or it was stopped."""
        still, steps, futile, made = 0, self._steps, 0, self._events_made
        while still < _STILL and not self.stopped:
            await asyncio.sleep(0)
            still = still + 1 if steps == self._steps else 0
            steps = self._steps
            if still == _STILL and futile < _FUTILE and self._let_earliest_through():
                still, steps = 0, self._steps
                futile = futile + 1 if made == self._events_made else 0
                made = self._events_made

    def _let_through(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._next:
            _open(heappop(self._waiting)[2])

    def _let_earliest_through(self) -> bool:
        while self._waiting:
            _, _, gate = heappop(self._waiting)
            if not gate.done():
                _open(gate)
                self._steps += 1
                return True
        return False

    async def _wait(self, place: int) -> None:
        self._steps += 1
        if place <= self._next and not self.stopped:
            return
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self.stopped:
            heappush(self._waiting, (place, next(self._order), gate))
        await gate
        self._steps += 1


async def never() -> None:
    """What is lost with a process that has died: it does not come."""
    await asyncio.get_running_loop().create_future()


def _open(gate: "asyncio.Future[None]") -> None:
    if not gate.done():
        gate.set_result(None)


def _rising(events: Sequence[RunEvent]) -> list[datetime]:
    """The moments of events, none before the one that it follows: a clock may have been set back."""
    moments: list[datetime] = []
    for entry in events:
        moments.append(max(entry.at, moments[-1]) if moments else entry.at)
    return moments
