"""What a worker does when Restate asks it to drive a run, and when waiting runs continue.

A task of the worker drives the run, independently of the connection: if Restate disconnects, the run continues, and a
later request gets the same result. Results are data, never exceptions. Restate's library is not used here.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Literal, TypeAlias

from msgspec import Struct

from toolcrib.contracts import ENDED, Conflict, Fenced, NotFound, Run, Unavailable
from toolcrib.core.engines.local import LocalEngine
from toolcrib.core.engines.nested_runs import awaited_children, child_signal
from toolcrib.core.executor import Clock
from toolcrib.infrastructure.store import Journal


async def awaited_runs(journal: Journal, run: Run) -> Sequence[Run]:
    """The nested runs that a suspended run waits for."""
    last = await journal.events(run.run_id, after=run.events - 1)
    found: list[Run] = []
    for child_id in awaited_children(list(last)) if last else ():
        try:
            found.append(await journal.run(child_id))
        except NotFound:  # it was announced, and a crash came before it was made
            continue
    return found


async def moments(journal: Journal, run: Run) -> Mapping[str, datetime]:
    """When a suspended run and the nested ones below it go on by themselves, by run id."""
    found = {} if run.wake_at is None else {run.run_id: run.wake_at}
    for child in await awaited_runs(journal, run):
        found |= await moments(journal, child)
    return found


Standing: TypeAlias = Literal["ended", "waits", "held", "journal_missing"]
"""How a run stands: `held` if another process drives it, `journal_missing` if the journal has none of this id."""

_logger = logging.getLogger(__name__)


class NextDrive(Struct, frozen=True):
    """A run that is to be driven later, or now because of this one."""

    run_id: str
    in_s: float
    once: str | None = None
    """As `Ingress.send` has it."""


class DriveOutcome(Struct, frozen=True):
    """What became of a run that was to be driven."""

    standing: Standing
    next: tuple[NextDrive, ...] = ()


class RestateDriver:
    """The runs that Restate has this worker drive.

    Args:
        local: Drives them.
        journal: The truth.
        clock: Time.
        lease_s: After which a run that another process holds is asked for again.
    """

    def __init__(self, local: LocalEngine, journal: Journal, clock: Clock, *, lease_s: float) -> None:
        self._local = local
        self._journal = journal
        self._clock = clock
        self._lease_s = lease_s
        self._tasks: dict[str, asyncio.Task[DriveOutcome]] = {}
        self._stopping = False

    async def drive(self, run_id: str) -> DriveOutcome:
        """Drive a run until it ends or waits, or join what drives it here already.

        Raises:
            Unavailable: This worker lacks what the run needs, or is stopping, or the store is away; to be asked again.
        """
        task = self._tasks.get(run_id)
        if task is None:
            if self._stopping:
                raise _stops(run_id)
            task = self._tasks[run_id] = asyncio.create_task(self._drive(run_id))
            task.add_done_callback(partial(self._over, run_id))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():  # by the drain; Restate is told, else it would wait for an answer
                raise _stops(run_id) from None
            raise

    async def drain(self, grace_s: float) -> None:
        """Take no run any more and let go of those that are driven, for other workers; what takes longer is cut off.

        Args:
            grace_s: The most seconds that calls have to end.
        """
        self._stopping = True
        await self._local.drain(grace_s)
        left = list(self._tasks.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _drive(self, run_id: str) -> DriveOutcome:
        try:
            await self._journal.run(run_id)
        except NotFound as missing:
            _logger.warning("Restate has a run that the store does not have: %s", missing)
            return DriveOutcome("journal_missing")
        try:
            while True:  # also once more after it began to wait: what it waits for may have come meanwhile
                driven = await self._local.drive(run_id)
                if driven.result.status in ENDED or self._stopping:
                    break
        except (Conflict, Fenced):
            pass
        run = await self._journal.run(run_id)
        if self._stopping and not run.ended:
            raise _stops(run_id)
        return await self._outcome_of(run)

    def _over(self, run_id: str, task: asyncio.Task[DriveOutcome]) -> None:
        del self._tasks[run_id]
        if not task.cancelled():
            task.exception()  # whoever has asked is told, if the connection is still there

    async def _outcome_of(self, run: Run) -> DriveOutcome:
        if run.ended:
            parent_id = run.request.parent_run_id
            woken = () if parent_id is None else (NextDrive(parent_id, 0, f"{parent_id}/{child_signal(run.run_id)}"),)
            return DriveOutcome("ended", woken)
        if run.status == "running":
            return DriveOutcome("held", (self._again(run.run_id),))
        at = await moments(self._journal, run)
        return DriveOutcome("waits", tuple(self._waking(run_id, moment) for run_id, moment in at.items()))

    def _again(self, run_id: str) -> NextDrive:
        """Ask once more when the lease can be over; of all who are told so within one, only one does."""
        period = int(self._clock.now().timestamp() / self._lease_s)
        return NextDrive(run_id, self._lease_s, f"{run_id}/held/{period}")

    def _waking(self, run_id: str, moment: datetime) -> NextDrive:
        in_s = max((moment - self._clock.now()).total_seconds(), 0)
        return NextDrive(run_id, in_s, f"{run_id}/wake/{moment.isoformat()}")


def _stops(run_id: str) -> Unavailable:
    return Unavailable(f"this worker is stopping and claims no more runs; another worker will drive run {run_id}")
