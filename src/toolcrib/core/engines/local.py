"""The local engine: this process drives runs, with one lease each.

A run is claimed, and its program is executed until it ends or must wait. If the process dies, its lease expires and
any process can claim the run. A claim raises the epoch, so the old process can write nothing more.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final

from toolcrib.contracts import (
    ENDED,
    WAITING,
    Conflict,
    ErrorCode,
    Fenced,
    NotFound,
    Run,
    RunEvent,
    RunKind,
    RunRequest,
    RunStarted,
    Signal,
    ToolError,
    Unavailable,
)
from toolcrib.core.engines.budgets import check_alone
from toolcrib.core.engines.driver import Driver, RunServices
from toolcrib.core.engines.leases import LeaseGuard, Leases
from toolcrib.core.engines.nested_runs import awaited_children
from toolcrib.core.engines.outcomes import DriveResult, cancel_signal, read_driven
from toolcrib.core.executor import Clock, Executor
from toolcrib.core.registry import Registry
from toolcrib.core.runs import Program, RunContext, RunEnd, TokenHub
from toolcrib.infrastructure.store import Claim, RunChange, Store
from toolcrib.llm.base.errors import ModelRetryPolicy


class SystemClock:
    """Time as the machine tells it."""

    now = staticmethod(partial(datetime.now, UTC))
    """The current moment in UTC."""
    monotonic = staticmethod(time.perf_counter)
    """Seconds of a clock that never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Let so much time pass."""
        await asyncio.sleep(seconds)


def new_run_id() -> str:
    """`run_` and 32 hex characters: 48 bits of milliseconds, then 80 random bits, so that ids sort by time."""
    return f"run_{time.time_ns() // 1_000_000:012x}{secrets.token_bytes(10).hex()}"


_DRAINED_S: Final = 0.05
"""Seconds between looks whether all runs have been let go of."""
_AT_A_LOOK: Final = 100
"""Runs that are begun at one look: thousands that are woken at once do not fill the memory."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How the engine holds and finds runs."""

    owner: str
    """Names this process in leases."""
    lease_s: float = 10.0
    """Seconds after which a dead process's runs are free; renewed at a third of it."""
    poll_s: float = 0.5
    """Seconds between looks for runs that can go on."""
    max_runs: int = 500
    """Runs at the same time."""
    retry: ModelRetryPolicy = field(default_factory=ModelRetryPolicy)


class LocalEngine:
    """Starts, suspends, resumes and recovers runs.

    Args:
        store: Journal, blobs.
        registry: Finds the revisions that runs have pinned.
        executor: Runs tool calls.
        programs: The code of each kind of run.
        clock: Time.
        new_run_id: Makes ids.
        settings: Leases and polling.
        check_able: Raises `Unavailable` if this process lacks what a run needs, such as its Python functions.
    """

    def __init__(
        self,
        *,
        store: Store,
        registry: Registry,
        executor: Executor,
        programs: Mapping[RunKind, Program],
        clock: Clock,
        new_run_id: Callable[[], str],
        settings: EngineSettings,
        check_able: Callable[[Run], Awaitable[None]],
    ) -> None:
        self._check_able = check_able
        self._journal = store.journal
        self._clock = clock
        self._new_run_id = new_run_id
        self._settings = settings
        self._leases = Leases(store.journal, clock, owner=settings.owner, lease_s=settings.lease_s)
        self.live = TokenHub()
        """What the models of the runs that this process drives are saying."""
        services = RunServices(store, registry, executor, programs, clock, settings.retry, self.live)
        self._driver = Driver(services, self, self._leases.ensure)
        self._driving: dict[str, LeaseGuard] = {}
        """Runs that a task of this process drives or is about to claim."""
        self._left_over: dict[str, None] = {}
        """Runs that were found at a look and may be so at the next, those that were begun longest ago first."""
        self._begun: set[asyncio.Task[None]] = set()
        """What drives runs that nobody waits for."""
        self._leaving = False
        """Nothing is begun any more, because the process is about to stop."""
        self._left_by = 0.0

    async def create(self, request: RunRequest, *, run_id: str | None = None) -> str:
        """Write a new run into the journal, queued for whoever claims it; durable on return.

        Raises:
            Conflict: A run with this id exists.
        """
        run = _new_run(request, run_id or self._new_run_id(), self._clock.now())
        await self._journal.create(run, RunStarted(request=request))
        return run.run_id

    async def start(self, request: RunRequest) -> DriveResult:
        """Create a run and drive it at once until it ends or waits."""
        claim = self._create_claimed(request)
        hold = self._reserve_run(claim.run.run_id)
        try:
            self._leases.note(hold)
            return await self._drive_held(claim, hold, None)
        finally:
            del self._driving[hold.run_id]

    async def refuse(self, request: RunRequest, refusal: ToolError) -> DriveResult:
        """Write a run that was not admitted: it is in the journal, ended, with the reason."""
        stop = "policy" if refusal.code is ErrorCode.POLICY_DENIED else "error"
        refused = RunEnd(status="failed", stop_reason=stop, error=refusal)
        return await self._driver.refuse(self._create_claimed(request), refused)

    async def drive(self, run_id: str, parent: RunContext | None = None) -> DriveResult:
        """Claim a run and execute its program until it ends or waits.

        Raises:
            Conflict: Another task or process holds the run.
            Fenced: Another process took the run meanwhile.
            Unavailable: This process lacks what the run needs; another one can carry it on.
        """
        hold = self._reserve_run(run_id)
        try:
            stored = await self._journal.run(run_id)
            if stored.ended:
                return await self._collect_result(stored, parent)
            await self._check_able(stored)
            if parent is not None:
                return await self._drive_held(await self._claim(hold), hold, parent)
            await check_alone(self._journal, stored)
            claim = await self._claim(hold)
            try:
                await check_alone(self._journal, stored)  # a caller that was claimed in between has seen this one wait
            except Conflict:
                with contextlib.suppress(Fenced):  # the caller's process need not wait for the end of this lease
                    await self._journal.append(run_id, claim.run.epoch, (), RunChange("queued"))
                raise
            return await self._drive_held(claim, hold, None)
        finally:
            del self._driving[run_id]

    async def resume(self, run_id: str, parent: RunContext | None = None) -> DriveResult:
        """Drive a run that waits or whose process died, and the nested runs that it waits for.

        Waits until a dead process's lease is over, or a living one is done with the run, also one that has taken it
        from this. The run has ended then, or waits for something outside; under a living parent also for nested runs,
        which go on when that waits too.

        Raises:
            Fenced: Another process took a nested run under a living parent, which is stopped too.
            Unavailable: As `drive`.
        """
        return await self._resume(run_id, parent, ())

    async def recover(self) -> Sequence[DriveResult]:
        """Drive every run that can go on now, and return how they stand."""
        found = await self._journal.claimable(now=self._clock.now(), limit=self._settings.max_runs)
        driven = await asyncio.gather(*(self.drive(run_id) for run_id in found), return_exceptions=True)
        return [outcome for outcome in driven if isinstance(outcome, DriveResult)]

    async def signal(self, run_id: str, signal: Signal) -> bool:
        """Leave a signal for a run. False if there was one of that name; the first wins."""
        return await self._journal.signal(run_id, signal)

    async def signal_all(self, signals: Sequence[tuple[str, Signal]]) -> bool:
        """Leave signals for the runs of these ids: all of them, or none because there was one of these names."""
        return await self._journal.signal_all(signals)

    async def cancel(self, run_id: str, *, by: str, reason: str | None = None) -> bool:
        """End a run, whatever it does or waits for, and its nested runs with it.

        It is certain to end once this returns. What this process drives is stopped now, what another one drives at that
        one's next heartbeat, and what nobody drives is ended here, without its program.

        Args:
            run_id: The run.
            by: Id of who wants it, for the record.
            reason: Why, for the record.

        Returns:
            False if somebody has cancelled it before: what they said stands.

        Raises:
            NotFound: No such run.
            Conflict: It has ended.
        """
        run = await self._journal.run(run_id)
        if run.ended:
            msg = f"run {run_id} is {run.status} and cannot be cancelled any more"
            raise Conflict(msg)
        first = await self._journal.signal(run_id, cancel_signal(by=by, reason=reason, at=self._clock.now()))
        hold = self._driving.get(run_id)
        if hold is not None:
            hold.stop()
            return first
        await self.end(run_id)
        return first

    async def end(self, run_id: str) -> None:
        """End a run that was cancelled, without its program; one that another task or process drives ends there."""
        with contextlib.suppress(Conflict, Fenced, NotFound):
            hold = self._reserve_run(run_id)
            try:
                await self._drive_held(await self._claim(hold), hold, None)
            finally:
                del self._driving[run_id]

    async def serve(self) -> None:
        """Drive whatever can go on, for ever: waits that are over, runs of processes that died."""
        try:
            while True:
                for run_id in await self._startable():
                    self.begin(run_id)
                await self._clock.sleep(self._settings.poll_s)
        finally:
            await self._let_go()

    def begin(self, run_id: str) -> None:
        """Drive a run beside everything else, as far as it goes, if no other does; until the engine is closed.

        Does nothing once the engine drains: whoever serves the store next finds the run.
        """
        if self._leaving:
            return
        task = asyncio.create_task(self._drive_quietly(run_id))
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)

    async def drain(self, grace_s: float) -> Sequence[str]:
        """Let go of all runs in good order, because this process is about to stop.

        Nothing is begun any more. Calls and model calls that are under way end, then their runs are queued for whoever
        comes next, without waiting for a lease. What has not ended after the grace is cut off when the engine is
        closed; that is queued likewise, unless it was in the middle of an effect: then its lease runs out first.

        Args:
            grace_s: The most seconds that this may take, from the first time on that it is asked for.

        Returns:
            The ids of the runs that are still being driven.
        """
        if not self._leaving:
            self._leaving = True
            self._left_by = self._clock.monotonic() + grace_s
        for hold in self._driving.values():
            hold.leave()
        while self._driving and self._clock.monotonic() < self._left_by:
            await self._clock.sleep(min(self._settings.poll_s, _DRAINED_S))
        return list(self._driving)

    async def close(self) -> None:
        """Stop driving what nobody waits for, and holding leases."""
        await self._let_go()
        await self._leases.close()

    # Inside -----------------------------------------------------------------------------------------------------------

    def _create_claimed(self, request: RunRequest) -> Claim:
        """Create a run that is this process's from the start; it becomes durable with what follows it."""
        now, run_id = self._clock.now(), self._new_run_id()
        run = _new_run(request, run_id, now, owned=True)
        first = RunStarted(request=request)
        self._journal.create(run, first, lease=self._leases.new())
        return Claim(run, [RunEvent(run.run_id, 1, now, run.realm, run.made_by, first)], {})

    def _reserve_run(self, run_id: str) -> LeaseGuard:
        """Keep the other tasks of this process from driving a run until it is taken out of `_driving`."""
        if run_id in self._driving:
            msg = f"run {run_id!r} is being driven by this process already; resume it to wait for its end"
            raise Conflict(msg)
        hold = self._driving[run_id] = LeaseGuard(run_id, leaving=self._leaving)
        return hold

    async def _drive_held(self, claim: Claim, hold: LeaseGuard, parent: RunContext | None) -> DriveResult:
        """Execute a run that was claimed, as long as its lease can be renewed."""
        self._leases.keep_alive(hold)
        try:
            driven = await self._driver.execute(claim, hold, parent)
        except asyncio.CancelledError:
            if not hold.lost or not hold.forget_interruption():
                raise
            msg = (
                f"the lease of run {hold.run_id!r} was lost: another process has claimed the run; "
                "raise lease_s if this one was only slow"
            )
            raise Fenced(msg) from None
        finally:
            self._leases.drop(hold)
        if hold.stopping and driven.result.status not in ENDED:  # it was cancelled while it began to wait
            return await self._drive_held(await self._claim(hold), hold, parent)
        return driven

    async def _claim(self, hold: LeaseGuard) -> Claim:
        claim = await self._leases.claim(hold)
        if claim is None:
            msg = f"run {hold.run_id!r} cannot be claimed now: it waits, or another process drives it"
            raise Conflict(msg)
        return claim

    async def _collect_result(self, run: Run, parent: RunContext | None) -> DriveResult:
        """A run that was driven to its end before; what it used counts for its parent too."""
        driven = await read_driven(self._journal, run)
        if parent is not None:
            parent.budget.release(run.run_id)
            parent.budget.take_nested(
                tool_calls=driven.result.tool_calls,
                tokens=driven.result.all_tokens,
                cost_usd=driven.result.counted_usd,
                cut_off_usd=driven.result.cut_off_usd,
            )
        return driven

    async def _resume(self, run_id: str, parent: RunContext | None, callers: Sequence[str]) -> DriveResult:
        """Resume a run; as a nested one, until one of its `callers` can continue, which then drives it itself."""
        while True:
            try:
                driven = await self.drive(run_id, parent)
            except (Conflict, Fenced) as refused:
                if isinstance(refused, Fenced) and parent is not None:
                    raise
                stored = await self._journal.run(run_id)
                driven = await (  # it may have ended since, in the process that had it
                    self._collect_result(stored, parent) if stored.ended else read_driven(self._journal, stored)
                )
            status = driven.result.status
            if (
                status in ENDED
                or self._leaving
                or (status in WAITING and not (parent is None and await self._resume_nested(driven, callers)))
            ):
                return driven
            if status not in WAITING:
                if not await self._all_wait(callers):
                    return driven
                await self._clock.sleep(min(self._settings.poll_s, self._settings.lease_s / 4))

    async def _resume_nested(self, driven: DriveResult, callers: Sequence[str]) -> bool:
        """Resume the nested runs that a run waits for, one by one.

        Returns:
            Whether the run can continue: one of them has ended, or what else it waits for has come.
        """
        run_id = driven.result.run_id
        for child_id in awaited_children(driven.log):
            child = await self._resume(child_id, None, (*callers, run_id))
            if child.result.status in ENDED:
                return True
        return not await self._all_wait((run_id,))

    async def _all_wait(self, run_ids: Sequence[str]) -> bool:
        """Whether all these runs wait. A run that does not may be driven at any moment, and its nested runs with it."""
        for run_id in run_ids:
            if (await self._journal.run(run_id)).status not in WAITING:
                return False
        return True

    async def _startable(self) -> Sequence[str]:
        """Ids of runs that nobody drives, as many as there is room for; none while the store is away.

        Those come last that could be driven at the look before and still can: this process may lack what they need,
        and however many they are, newer ones must not wait for them.
        """
        room = 0 if self._leaving else min(max(self._settings.max_runs - len(self._driving), 0), _AT_A_LOOK)
        try:
            limit = room + len(self._left_over)
            found = dict.fromkeys(await self._journal.claimable(now=self._clock.now(), limit=limit))
        except Unavailable:
            return []
        new = [run_id for run_id in found if run_id not in self._driving and run_id not in self._left_over]
        known = [run_id for run_id in self._left_over if run_id in found and run_id not in self._driving]
        chosen = (*new, *known)[:room]
        self._left_over = dict.fromkeys((*known[max(room - len(new), 0) :], *chosen))
        return chosen

    async def _let_go(self) -> None:
        begun = list(self._begun)
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)

    async def _drive_quietly(self, run_id: str) -> None:
        with contextlib.suppress(Conflict, Fenced, Unavailable):  # whoever can go on with it will find it
            await self.drive(run_id)


def _new_run(request: RunRequest, run_id: str, now: datetime, *, owned: bool = False) -> Run:
    return Run(
        run_id=run_id,
        realm=request.principal.realm,
        made_by=request.starter,
        status="running" if owned else "queued",
        request=request,
        epoch=1 if owned else 0,
        events=1,
        created_at=now,
        updated_at=now,
    )
