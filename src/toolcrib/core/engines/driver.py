"""The driver: executes the program of one claimed run until it ends or must wait.

It owns no lease and searches for no work: it turns a claim into events. The row of a run changes in the same
transaction as its last event.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from random import Random
from typing import Protocol

from msgspec import Struct

from toolcrib.contracts import (
    CANCEL,
    ENDED,
    ChildStarted,
    Conflict,
    ErrorCode,
    Fenced,
    Limits,
    NotFound,
    Reason,
    Run,
    RunKind,
    RunRequest,
    RunResult,
    RunResumed,
    RunSuspended,
    Signal,
    SignalReceived,
    ToolRevision,
    Unavailable,
)
from toolcrib.contracts.base.errors import StoreUnavailable
from toolcrib.core.engines.budgets import limits_alone, limits_of, open_parts, with_max_cost
from toolcrib.core.engines.leases import LeaseGuard, Stopped
from toolcrib.core.engines.nested_runs import child_signal, nested_request, nested_run_id
from toolcrib.core.engines.outcomes import (
    DriveResult,
    call_ended,
    caller_ended,
    cancel_signal,
    end_by_cancel,
    end_of,
    end_of_orphan,
    resume_cause,
    to_run_finished,
)
from toolcrib.core.executor import Clock, error
from toolcrib.core.policy import Budget, Caps, Guardrails, RunCaps, policy_of
from toolcrib.core.registry import Registry
from toolcrib.core.runs import (
    EndedRuns,
    History,
    InterruptedCalls,
    ModelCallRules,
    ModelCalls,
    Nested,
    Program,
    RunBounds,
    RunContext,
    RunEnd,
    RunLog,
    RunPorts,
    Suspended,
    TokenHub,
    as_asked,
    result_of,
)
from toolcrib.core.runs.context.pending import Pause
from toolcrib.core.runs.context.ports import Executes, Foretell, Learn, Texts, nothing_foretold, observe_now
from toolcrib.core.runs.journal.log import Appends
from toolcrib.core.runs.models.request_screening import Screens
from toolcrib.infrastructure.store import Claim, RunChange
from toolcrib.llm.base.errors import ModelRetryPolicy


class NestedRuns(Protocol):
    """What a driver asks of the engine for the runs that its run starts."""

    async def create(self, request: RunRequest, *, run_id: str | None = None) -> str:
        """Write a new run; `Conflict` if there is one of this id."""
        ...

    async def resume(self, run_id: str, parent: RunContext | None = None) -> DriveResult:
        """Drive a run until it has ended or waits for something outside."""
        ...

    async def end(self, run_id: str) -> None:
        """End a run that was cancelled, unless another process drives it."""
        ...


class RunJournal(Appends, EndedRuns, Protocol):
    """What a driver asks of a journal."""

    async def signal(self, run_id: str, signal: Signal) -> bool:
        """Leave a signal for a run; see `Journal.signal`."""
        ...

    async def signals(self, run_id: str) -> Mapping[str, Signal]:
        """The signals left for a run so far."""
        ...


class RunStore(Protocol):
    """What a driver asks of a store."""

    @property
    def journal(self) -> RunJournal:
        """Journal."""
        ...

    @property
    def blobs(self) -> Texts:
        """Large texts."""
        ...


class RunExecutor(Executes, Protocol):
    """What a driver asks of an executor."""

    @property
    def guardrails(self) -> Guardrails:
        """Asks the rules of agents."""
        ...

    @property
    def caps(self) -> Caps | None:
        """On what many runs spend together; null if there are none."""
        ...


class RunServices(Struct, frozen=True):
    """What runs are executed with."""

    store: RunStore
    registry: Registry
    executor: RunExecutor
    programs: Mapping[RunKind, Program]
    clock: Clock
    retry: ModelRetryPolicy
    live: TokenHub
    deadline: Callable[[float], asyncio.Timeout] = asyncio.timeout
    """Ends the work on a run after so many seconds; in a replay when it ended then."""
    learn: Learn = observe_now
    """Finds out what a program wants to know of the world; in a replay what it found then."""
    screens: Callable[[], Screens] = Screens
    """Makes the content filters of a run; in a replay they find in an answer what they found then."""
    foretell: Foretell = nothing_foretold
    """Says what a replay comes to next in a run."""
    pause: Pause | None = None
    """Lets time pass between two looks for signals; the clock does if null."""
    sleep: Callable[[str, str, float], Awaitable[None]] | None = None
    """Sleeps through what is left of a wait of a run; the clock does if null."""
    suspends: Callable[[str], bool] = lambda _: True
    """Whether a run is suspended when nothing of it works any more; in a replay, whether it was."""
    in_recorded_order: bool = False
    """The calls of runs are made in the order of a recording."""


class ClaimedRun:
    """One claim being worked on: row, signals, history, and all events so far."""

    def __init__(self, claim: Claim, services: RunServices) -> None:
        self.run = claim.run
        self.signals = claim.signals
        self.history = History(claim.events)
        self.log = RunLog(services.store.journal, claim.run, services.clock, claim.events)
        self.add = self.log.add


class Driver:
    """Executes claimed runs.

    Args:
        services: What they are executed with.
        nested: Starts and ends the runs that they start.
        ensure: Raises `Fenced` if another process may have a run.
    """

    def __init__(
        self, services: RunServices, nested: NestedRuns, ensure: Callable[[LeaseGuard], Awaitable[None]]
    ) -> None:
        self._services = services
        self._ensure = ensure
        self._nested = nested
        self._in_doubt = InterruptedCalls(services.registry, services.clock, services.foretell)

    async def execute(self, claim: Claim, hold: LeaseGuard, parent: RunContext | None) -> DriveResult:
        """Execute a run's program until it ends or waits; a run that was cancelled is ended instead.

        Raises:
            Fenced: Another process has taken the run.
            StoreUnavailable: The store went away; whoever claims the run later goes on with it.
        """
        drive, request = ClaimedRun(claim, self._services), claim.run.request
        tool = as_asked(await self._services.registry.get_revision(claim.run.realm, request.content_hash), request)
        journal, limits = self._services.store.journal, limits_of(tool, request.kind, request.timeout_s)
        if parent is None:  # else the parent's own budget and time-out hold
            limits = await limits_alone(journal, request, drive.history, limits)
        parts = await open_parts(journal, drive.history)
        context = self._context(drive, hold, tool, limits, parent)
        for child_id, most in parts.items():
            context.budget.hold(child_id, most)
        if claim.run.epoch > 1:
            drive.add(RunResumed(epoch=claim.run.epoch, cause=resume_cause(claim)))
        driven = await self._work(drive, hold, context, tool, called=parent is not None)
        hold.let_go()
        if driven.result.status in ENDED:
            for child_id in list(context.open_children):
                await self._nested.end(child_id)
        return driven

    async def _work(
        self, drive: ClaimedRun, hold: LeaseGuard, context: RunContext, tool: ToolRevision, *, called: bool
    ) -> DriveResult:
        """Do what there is to do, until it is written how the run has halted."""
        if CANCEL in drive.signals:
            return await self._cancel(drive, context)
        if not called and await self._is_orphan(context.request):
            return await self._end(drive, end_of_orphan(context.request), context)
        seconds = max(context.budget.limits.timeout_s - drive.history.active_s, 0.0)
        hold.on_leave(context.leave)
        try:
            with hold:
                halt = await self._run_program(context, tool, seconds)
        except Stopped:
            return await self._cancel(drive, context)
        except (Fenced, StoreUnavailable, asyncio.CancelledError) as stop:
            await context.settle(cancel=True)
            context.leave_budget()
            if hold.leaving and not (isinstance(stop, Fenced) or hold.lost or context.acting):
                with contextlib.suppress(Unavailable):  # then the lease has to run out
                    await self._suspend(drive, Suspended("queued"), context)
            raise
        if isinstance(halt, Suspended):
            return await self._suspend(drive, halt, context)
        return await self._end(drive, halt, context)

    async def refuse(self, claim: Claim, ended: RunEnd) -> DriveResult:
        """End a run that was not admitted."""
        return await self._finish(ClaimedRun(claim, self._services), ended)

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _run_program(self, context: RunContext, tool: ToolRevision, seconds: float) -> RunEnd | Suspended:
        """Execute the program until it ends, or until nothing of it can go on."""
        program = self._services.programs[context.request.kind]
        deadline = self._services.deadline(seconds)
        try:
            async with deadline:
                return await program(context, tool)
        except Suspended as wait:
            await context.settle(cancel=False)
            return Suspended("queued") if context.left else wait
        except TimeoutError as crash:
            if not deadline.expired():
                return end_of(crash, context.partial())
            allowed = context.budget.limits.timeout_s
            message = f"the run did not end within timeout_s={allowed:g}; raise timeout_s to go on"
            context.note_limit("timeout_s", allowed, allowed, message)
            late = error(ErrorCode.TIMEOUT, Reason.RUN_TIMEOUT, message)
            return RunEnd(
                partial=context.partial(), status="timed_out", stop_reason="timeout", error=late, warnings=(message,)
            )
        except (Fenced, StoreUnavailable):  # that is no end: the run goes on elsewhere, or later
            raise
        except Exception as crash:  # noqa: BLE001 - the edge of a run: its failure is its end, in the journal
            return end_of(crash, context.partial())

    async def _suspend(self, drive: ClaimedRun, wait: Suspended, context: RunContext) -> DriveResult:
        change = RunChange(status=wait.status, waiting_for=wait.signals, wake_at=wait.wake_at)
        left = context.budget.allowance(context.deadline - self._services.clock.monotonic())
        spent = context.budget.usage(left.seconds)
        context.leave_budget()
        suspended = RunSuspended(
            status=wait.status,
            waiting_for=wait.signals,
            wake_at=wait.wake_at,
            spent=spent,
            left=left,
            tainted=context.ever_tainted,
        )
        await drive.add(suspended, change=change)
        return DriveResult(RunResult(run_id=drive.run.run_id, status=wait.status), drive.log.events)

    async def _cancel(self, drive: ClaimedRun, context: RunContext) -> DriveResult:
        """End a run that somebody has cancelled, with what it has so far."""
        signal = (await self._services.store.journal.signals(drive.run.run_id))[CANCEL]
        if CANCEL not in drive.history.received:
            drive.add(SignalReceived(name=CANCEL, payload=signal.payload, made_by=signal.made_by))
        return await self._end(drive, end_by_cancel(signal, context.partial()), context)

    async def _end(self, drive: ClaimedRun, ended: RunEnd, context: RunContext) -> DriveResult:
        """Finish a run of which something may still be under way, or not have been asked for again."""
        await context.settle(cancel=True)
        context.leave_budget()
        context.close_open_calls(Reason.RUN_TIMEOUT if ended.status == "timed_out" else Reason.CANCELLED)
        await self._cancel_children(drive, context)
        return await self._finish(drive, ended, context)

    async def _finish(self, drive: ClaimedRun, ended: RunEnd, context: RunContext | None = None) -> DriveResult:
        finish = to_run_finished(ended, context)
        result = result_of(drive.run.run_id, finish)
        tells = None
        parent_id = drive.run.request.parent_run_id
        if parent_id is not None:
            name, at = child_signal(drive.run.run_id), self._services.clock.now()
            tells = parent_id, Signal(name=name, payload={}, made_by=drive.run.made_by, at=at)
        await drive.add(finish, change=RunChange(status=finish.status, result=result, tells=tells))
        return DriveResult(result, drive.log.events)

    async def _spawn(self, context: RunContext, nested: Nested) -> RunResult:
        child_id = nested_run_id(context.run_id, nested)
        context.child_started(
            ChildStarted(
                position=nested.position, child_run_id=child_id, tool=nested.tool.ref, instead_of=nested.instead_of
            )
        )
        request = nested_request(context, nested, self._services.registry, self._services.clock)
        with contextlib.suppress(Conflict):
            await self._nested.create(request, run_id=child_id)
        result = (await self._nested.resume(child_id, parent=context)).result
        if result.status == "queued":
            raise Suspended("queued", nested=True)
        if result.status not in ENDED:
            raise Suspended(result.status, child_signal(child_id), nested=True)
        context.child_ended(child_id)
        return result

    async def _cancel_children(self, drive: ClaimedRun, context: RunContext) -> None:
        """Tell the nested runs that are still open that nobody waits for them any more, whoever drives them."""
        for child_id in context.open_children:
            await self._cancel_child(drive.run, child_id, caller_ended(drive.run.run_id))

    async def _abandon(self, run: Run, child_id: str) -> None:
        """End a nested run that was cut off with its call, while the run that has called it goes on."""
        await self._cancel_child(run, child_id, call_ended(run.run_id))
        await self._nested.end(child_id)

    async def _cancel_child(self, run: Run, child_id: str, reason: str) -> None:
        signal = cancel_signal(by=run.made_by, reason=reason, at=self._services.clock.now())
        with contextlib.suppress(NotFound):  # it was announced, and a crash came before it was made
            await self._services.store.journal.signal(child_id, signal)

    async def _is_orphan(self, request: RunRequest) -> bool:
        """Whether the run that called this one has ended."""
        parent_id = request.parent_run_id
        return parent_id is not None and (await self._services.store.journal.run(parent_id)).ended

    def _context(
        self, drive: ClaimedRun, hold: LeaseGuard, tool: ToolRevision, limits: Limits, parent: RunContext | None
    ) -> RunContext:
        services, run_id, request = self._services, drive.run.run_id, drive.run.request
        policy = policy_of(tool, request)
        if parent is not None:
            parent.budget.release(run_id)
        budget = Budget(with_max_cost(limits, policy.guardrails), parent=parent.budget if parent else None)
        deadline = services.clock.monotonic() + limits.timeout_s - drive.history.active_s

        async def signal(name: str) -> Signal | None:
            known = drive.signals.get(name)
            return known or (await services.store.journal.signals(run_id)).get(name)

        async def arrived() -> Collection[str]:
            return await services.store.journal.signals(run_id)

        return RunContext(
            drive.run,
            log=drive.log,
            history=drive.history,
            models=ModelCalls(
                drive.log,
                drive.history,
                budget,
                services.clock,
                open_buffer=partial(services.live.speech, run_id),
                jitter=lambda: Random(run_id).random(),  # noqa: S311 - spreads retries, guards nothing
                retry=services.retry,
                rules=ModelCallRules(
                    services.executor.guardrails,
                    RunCaps.of(services.executor.caps, drive.run),
                    services.screens(),
                    narrows_tokens=not request.has_old_rules,
                ),
            ),
            budget=budget,
            bounds=RunBounds(policy, min(deadline, parent.deadline) if parent else deadline),
            spawn=self._spawn,
            run_ports=RunPorts(
                executor=services.executor,
                in_doubt=self._in_doubt,
                blobs=services.store.blobs,
                clock=services.clock,
                signals=signal,
                arrived=arrived,
                leave=partial(services.store.journal.signal, run_id),
                abandon=partial(self._abandon, drive.run),
                past=services.store.journal,
                learn=services.learn,
                foretell=services.foretell,
                pause=services.pause,
                sleep=None if services.sleep is None else partial(services.sleep, run_id),
                suspends=partial(services.suspends, run_id),
                in_recorded_order=services.in_recorded_order,
                fence=partial(self._ensure, hold),
            ),
        )
