"""The leases of the runs that this process drives: one heartbeat prolongs them, and stops runs whose lease was lost."""

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import timedelta

from toolcrib.contracts import Unavailable
from toolcrib.executor import Clock
from toolcrib.store import Claim, Journal, Lease


class Leases:
    """Leases of one owner.

    Args:
        journal: Where they stand.
        clock: Time.
        owner: Names this process.
        lease_s: Seconds after which a dead process's runs are free; renewed at a third of it.
    """

    def __init__(self, journal: Journal, clock: Clock, *, owner: str, lease_s: float) -> None:
        self._journal = journal
        self._clock = clock
        self._owner = owner
        self._lease_s = lease_s
        self._held: dict[str, asyncio.Task[object] | None] = {}
        self._heart: asyncio.Task[None] | None = None

    def new(self) -> Lease:
        """A lease from now on, for a run that is created here."""
        return Lease(self._owner, self._clock.now() + timedelta(seconds=self._lease_s))

    async def claim(self, run_id: str) -> Claim | None:
        """Take a run, as `Journal.claim` does."""
        return await self._journal.claim(run_id, owner=self._owner, now=self._clock.now(), lease_s=self._lease_s)

    def hold(self, run_id: str, task: asyncio.Task[object] | None) -> None:
        """Renew the lease of a run from now on; the task is cancelled if it is lost."""
        self._held[run_id] = task
        if self._heart is None or self._heart.done():
            self._heart = asyncio.create_task(self._beat())

    def release(self, run_id: str) -> None:
        """Renew it no more."""
        self._held.pop(run_id, None)

    def holds(self, run_id: str) -> bool:
        """Whether the lease of a run is this process's, as far as it knows."""
        return run_id in self._held

    async def close(self) -> None:
        """Stop the heartbeat."""
        if self._heart is not None:
            self._heart.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._heart
            self._heart = None

    async def _beat(self) -> None:
        while self._held:
            await self._clock.sleep(self._lease_s / 3)
            with contextlib.suppress(Unavailable):  # the next look may come in time
                await self._renew(list(self._held))

    async def _renew(self, mine: Sequence[str]) -> None:
        kept = await self._journal.renew(mine, owner=self._owner, now=self._clock.now(), lease_s=self._lease_s)
        for run_id in set(mine) - set(kept):
            task = self._held.pop(run_id, None)
            if task is not None:
                task.cancel()
