"""Restate in memory: it keeps what it is asked, asks once for the same words, and calls a worker when it is told to."""

from collections.abc import Awaitable, Callable

from tests.twins.clock import ManualClock
from toolcrib.contracts import NotFound, Unavailable
from toolcrib.core.engines.restate.drives import DriveOutcome


class MemoryRestate:
    """A cluster without a network.

    Args:
        clock: Says what is due.
    """

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._pending: list[tuple[float, str]] = []
        self._known: set[str] = set()
        self.asked: list[str] = []
        """Run ids in the order in which they were sent, also those that had been sent with the same words."""
        self.refusals: list[NotFound | Unavailable] = []
        """What the next sendings are answered, instead of being taken."""
        self.closed = False

    async def send(self, run_id: str, *, once: str | None = None) -> None:
        """Keep a run id."""
        if self.refusals:
            raise self.refusals.pop(0)
        self.asked.append(run_id)
        self._keep(run_id, once, 0)

    async def close(self) -> None:
        """Nothing is connected."""
        self.closed = True

    async def deliver(self, drive: Callable[[str], Awaitable[DriveOutcome]]) -> list[str]:
        """Have a worker drive what is due, and what comes of it; returns how the runs stand then."""
        told: list[str] = []
        while due := [entry for entry in self._pending if entry[0] <= self._clock.monotonic()]:
            self._pending.remove(due[0])
            driving = await drive(due[0][1])
            told.append(driving.standing)
            for one in driving.next:
                self._keep(one.run_id, one.once, one.in_s)
        return told

    @property
    def scheduled(self) -> list[tuple[float, str]]:
        """Moments of the monotonic clock and run ids that are kept."""
        return sorted(self._pending)

    def _keep(self, run_id: str, once: str | None, in_s: float) -> None:
        if once is None or once not in self._known:
            self._pending.append((self._clock.monotonic() + in_s, run_id))
        if once is not None:
            self._known.add(once)
