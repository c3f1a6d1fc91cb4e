"""The runs that this process holds: a heartbeat renews their leases, and stops runs that were lost or cancelled."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from toolcrib.contracts import CANCEL, Fenced, Unavailable
from toolcrib.core.executor import Clock
from toolcrib.infrastructure.store import Claim, Journal, Lease

HEARTBEAT: Final = "toolcrib-heartbeat"
"""Name of the task that renews leases: while it sleeps, nothing waits for it."""


class Stopped(Exception):
    """The run was cancelled while it was worked on."""


class LeaseGuard:
    """One run that a task of this process works on, and how it is stopped from outside.

    Args:
        run_id: The run.
        leaving: The process is about to stop: the run is to be left at the next step.
    """

    __slots__ = (
        "_interrupted", "_on_leave", "_stoppable", "_task", "leaving", "lost", "over", "run_id", "stopping",
        "valid_until",
    )  # fmt: skip

    def __init__(self, run_id: str, *, leaving: bool = False) -> None:
        self.run_id = run_id
        self.leaving = leaving
        self.valid_until = 0.0
        """The moment of the monotonic clock from which on another process may have the run."""
        self.lost = False
        """Another process has the run."""
        self.over = False
        """The run has halted."""
        self.stopping = False
        """The run is cancelled."""
        self._task = asyncio.current_task()
        self._on_leave: Callable[[], None] | None = None
        self._stoppable = False
        self._interrupted = False

    def lose(self) -> None:
        """Stop all work on the run, wherever it is."""
        if not self.over:
            self.lost = True
            self._interrupt()

    def let_go(self) -> None:
        """It is written how the run has halted: its lease is over, and nothing of it can be stopped any more."""
        self.over = True

    def stop(self) -> None:
        """Stop what can be stopped, now or when it begins; the rest goes on to its end."""
        self.stopping = True
        if self._stoppable:
            self._interrupt()

    def leave(self) -> None:
        """Let the work on the run come to a halt as soon as what is under way has ended."""
        self.leaving = True
        if self._on_leave is not None:
            self._on_leave()

    def on_leave(self, callback: Callable[[], None]) -> None:
        """Who is told of `leave`: at once, if it has been said already."""
        self._on_leave = callback
        if self.leaving:
            callback()

    def forget_work(self) -> None:
        """Let go of what `on_leave` was given: the work has halted."""
        self._on_leave = None

    def __enter__(self) -> None:
        """Begin the part of the work that `stop` interrupts.

        Raises:
            Stopped: The run was cancelled before.
        """
        self._refuse_if_stopping()
        self._stoppable = True

    def __exit__(self, kind: object, failure: BaseException | None, trace: object) -> bool | None:
        """End it.

        Raises:
            Stopped: It was interrupted.
        """
        self._stoppable = False
        if failure is not None and (
            not isinstance(failure, asyncio.CancelledError) or self.lost or not self.forget_interruption()
        ):
            return False
        if self._interrupted:
            self.forget_interruption()  # what was awaited may have ended all the same
        self._refuse_if_stopping()
        return failure is not None

    def forget_interruption(self) -> bool:
        """Take back the cancellation of the task. False if somebody else has cancelled it too."""
        was, self._interrupted = self._interrupted, False
        return was and self._task is not None and self._task.uncancel() == 0

    def _interrupt(self) -> None:
        if self._task is not None and not self._interrupted:
            self._interrupted = self._task.cancel()

    def _refuse_if_stopping(self) -> None:
        if self.stopping:
            raise Stopped(self.run_id)


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
        self._lease = timedelta(seconds=lease_s)
        self._kept: dict[str, LeaseGuard] = {}
        self._heart: asyncio.Task[None] | None = None

    def new(self) -> Lease:
        """A lease from now on, for a run that is created here."""
        return Lease(self._owner, self._clock.now() + self._lease)

    async def claim(self, hold: LeaseGuard) -> Claim | None:
        """Take a run, as `Journal.claim` does."""
        self.note(hold)
        return await self._journal.claim(hold.run_id, owner=self._owner, now=self._clock.now(), lease_s=self._lease_s)

    def note(self, hold: LeaseGuard) -> None:
        """A lease that is asked for now holds from now on, if it is granted."""
        hold.valid_until = self._clock.monotonic() + self._lease_s

    async def ensure(self, hold: LeaseGuard) -> None:
        """See to it that no other process can have a run at this moment; asked before each effect.

        A process that was frozen, or whose heartbeat came late, does not know what others have done meanwhile. Its own
        clock tells it that its lease may be over, and then the journal tells whether it is. The clock is a monotonic
        one, so that setting the time of the machine changes nothing here.

        Raises:
            Fenced: Another process has the run.
        """
        if self._clock.monotonic() < hold.valid_until:
            return
        await self._renew([hold])
        if hold.lost or self._clock.monotonic() >= hold.valid_until:
            msg = (
                f"the lease of run {hold.run_id!r} expired before an effect, so another process may have claimed "
                "the run; "
                "raise lease_s if this one was only slow"
            )
            raise Fenced(msg)

    def keep_alive(self, hold: LeaseGuard) -> None:
        """Renew the lease of a claimed run from now on, until it is dropped."""
        self._kept[hold.run_id] = hold
        if self._heart is None or self._heart.done():
            self._heart = asyncio.create_task(self._beat(), name=HEARTBEAT)
            # A process that leaves its crib open may end without a complaint: others take its runs.
            setattr(self._heart, "_log_destroy_pending", False)  # noqa: B010 - asyncio has no public name

    def drop(self, hold: LeaseGuard) -> None:
        """Renew a lease no longer."""
        self._kept.pop(hold.run_id, None)

    async def close(self) -> None:
        """Stop the heartbeat."""
        if self._heart is not None:
            self._heart.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._heart
            self._heart = None

    async def _beat(self) -> None:
        while self._kept:
            await self._clock.sleep(self._lease_s / 3)
            with contextlib.suppress(Unavailable):  # the next look may come in time
                await self._look_after(list(self._kept.values()))

    async def _look_after(self, mine: Sequence[LeaseGuard]) -> None:
        await self._renew(mine)
        for run_id in await self._journal.runs_with_signal(CANCEL, list(self._kept)):
            hold = self._kept.get(run_id)
            if hold is not None:
                hold.stop()

    async def _renew(self, mine: Sequence[LeaseGuard]) -> None:
        """Prolong the leases that are still ours, and stop the work on runs whose are not."""
        requested_at = self._clock.monotonic()
        ids = [hold.run_id for hold in mine]
        renewed = set(await self._journal.renew(ids, owner=self._owner, now=self._clock.now(), lease_s=self._lease_s))
        for hold in mine:
            if hold.run_id in renewed:
                hold.valid_until = requested_at + self._lease_s
            elif self._kept.get(hold.run_id) is hold:
                del self._kept[hold.run_id]
                hold.lose()
