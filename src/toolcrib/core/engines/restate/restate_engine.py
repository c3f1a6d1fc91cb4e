"""`RestateEngine`: starts runs, waits for them, and lets the workers of a Restate cluster drive them.

Restate has only run ids. A worker claims a run like a process of the local engine, so repeated or duplicate
invocations are harmless. Refused runs, and the ends of cancelled runs without a driver, are driven here.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Self

from toolcrib.contracts import WAITING, Run, RunRequest, Signal, ToolError
from toolcrib.core.engines.local import LocalEngine
from toolcrib.core.engines.nested_runs import child_signal
from toolcrib.core.engines.outcomes import DriveResult, read_driven
from toolcrib.core.engines.restate.drives import RestateDriver, awaited_runs
from toolcrib.core.engines.restate.ingress import Ingress, RestateClient
from toolcrib.core.engines.restate.options import RestateOptions
from toolcrib.core.engines.restate.outbox import Outbox
from toolcrib.core.engines.restate.worker import RestateWorker
from toolcrib.core.executor import Clock
from toolcrib.core.runs import TokenHub
from toolcrib.infrastructure.store import Journal

CREATED: Final = "created"
"""Why a run is sent that is new; one that was left a signal is sent for the signal's name."""

_SOONEST_S: Final = 0.02
_LATEST_S: Final = 0.5
_MOST: Final = 500


class RestateEngine:
    """Starts, resumes and recovers runs that workers drive.

    Args:
        local: Drives runs in this process; in a worker only, what is said above excepted.
        outbox: Tells Restate of runs.
        worker: Drives what Restate asks for, when this process is to be a worker.
        journal: The truth.
        ingress: Takes runs; closed with the engine.
        clock: Time.
    """

    def __init__(
        self,
        local: LocalEngine,
        *,
        outbox: Outbox,
        worker: RestateWorker,
        journal: Journal,
        ingress: Ingress,
        clock: Clock,
    ) -> None:
        self.local = local
        self.outbox = outbox
        self.worker = worker
        self._journal = journal
        self._ingress = ingress
        self._clock = clock
        self._leaving = False

    @classmethod
    def wire(
        cls, local: LocalEngine, journal: Journal, clock: Clock, *, owner: str, lease_s: float, options: RestateOptions
    ) -> Self:
        """An engine for a cluster. Nothing is connected here.

        Args:
            local: As in the constructor.
            journal: See there.
            clock: See there.
            owner: Names this process.
            lease_s: After which the runs of a process that died are free.
            options: Where the cluster is.

        Raises:
            InvalidSettings: One of its addresses is no URL.
        """
        client = RestateClient(options, owner=owner)
        outbox = Outbox(journal, client, clock, owner=owner, sweep_s=options.sweep_s)
        drives = RestateDriver(local, journal, clock, lease_s=lease_s)
        worker = RestateWorker(drives, outbox, client, options, clock)
        return cls(local, outbox=outbox, worker=worker, journal=journal, ingress=client, clock=clock)

    @property
    def live(self) -> TokenHub:
        """As `Engine.live`: a worker's own runs."""
        return self.local.live

    async def create(self, request: RunRequest, *, run_id: str | None = None) -> str:
        """As `Engine.create`."""
        run_id = await self.local.create(request, run_id=run_id)
        self.outbox.announce(run_id, CREATED)
        return run_id

    async def start(self, request: RunRequest) -> DriveResult:
        """As `Engine.start`, when a worker has driven it."""
        return await self._wait_for_halt(await self.create(request))

    async def refuse(self, request: RunRequest, refusal: ToolError) -> DriveResult:
        """As `Engine.refuse`."""
        return await self.local.refuse(request, refusal)

    async def resume(self, run_id: str) -> DriveResult:
        """As `Engine.resume`, when a worker has driven it, however long there is none."""
        self.begin(run_id)
        return await self._wait_for_halt(run_id)

    async def recover(self) -> Sequence[DriveResult]:
        """As `Engine.recover`."""
        found = await self._journal.claimable(now=self._clock.now(), limit=_MOST)
        return await asyncio.gather(*(self.resume(run_id) for run_id in found))

    async def signal(self, run_id: str, signal: Signal) -> bool:
        """As `Engine.signal`."""
        first = await self.local.signal(run_id, signal)
        if first:
            self.outbox.announce(run_id, signal.name)
        return first

    async def signal_all(self, signals: Sequence[tuple[str, Signal]]) -> bool:
        """As `Engine.signal_all`."""
        left = await self.local.signal_all(signals)
        if left:
            for run_id, signal in signals:
                self.outbox.announce(run_id, signal.name)
        return left

    async def cancel(self, run_id: str, *, by: str, reason: str | None = None) -> bool:
        """As `Engine.cancel`. A worker that drives the run hears of it at its next heartbeat."""
        first = await self.local.cancel(run_id, by=by, reason=reason)
        parent_id = (await self._journal.run(run_id)).request.parent_run_id
        if parent_id is not None:
            self.outbox.announce(parent_id, child_signal(run_id))
        return first

    def begin(self, run_id: str) -> None:
        """As `Engine.begin`."""
        self.outbox.announce(run_id)

    async def serve(self) -> None:
        """As `Engine.serve`: tell Restate of whatever can go on."""
        await self.outbox.serve()

    async def drain(self, grace_s: float) -> Sequence[str]:
        """As `Engine.drain`; who waits for a run is told how it stands."""
        self._leaving = True
        return await self.local.drain(grace_s)

    async def close(self) -> None:
        """As `Engine.close`."""
        await self.outbox.close()
        await self.local.close()
        await self._ingress.close()

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _wait_for_halt(self, run_id: str) -> DriveResult:
        """A run once it has ended or waits for something outside; the journal is asked less often as time goes by."""
        pause_s = _SOONEST_S
        while True:
            run = await self._journal.run(run_id)
            if run.ended or self._leaving or await self._waits(run, self._clock.now()):
                return await read_driven(self._journal, run)
            await self._clock.sleep(pause_s)
            pause_s = min(pause_s * 1.5, _LATEST_S)

    async def _waits(self, run: Run, now: datetime) -> bool:
        """Whether a run waits for something outside, and so does every nested run that it waits for."""
        if run.status not in WAITING or (run.wake_at is not None and run.wake_at <= now):
            return False
        return all([await self._waits(nested, now) for nested in await awaited_runs(self._journal, run)])
