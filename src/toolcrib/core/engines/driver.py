"""The driver: executes the program of one claimed run until it ends or must wait.

It owns no lease and searches for no work: it turns a claim into events. The row of a run changes in the same
transaction as its last event.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from random import Random
from typing import Final, NamedTuple, Protocol

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
from toolcrib.core.policy import Budget, CallPolicy, Caps, Guardrails, RunCaps, policy_of
from toolcrib.core.registry import Registry
from toolcrib.core.runs import (
    EndedRuns,
    EnginePorts,
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
    Suspended,
    TokenHub,
    as_asked,
    result_of,
)
from toolcrib.core.runs.context.pending import Pause, Sleep
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


class _Terms(NamedTuple):
    """On what terms runs of one revision are driven that nobody has called, and that bring no rules of their own."""

    tool: ToolRevision
    limits: Limits
    policy: CallPolicy


_MOST_TERMS: Final = 4096
"""Revisions whose terms are remembered; when there are more, all are worked out anew."""


class ClaimedRun:
    """One claim being worked on: row, signals, history, events so far, and what its context needs of the driver.

    Args:
        claim: The claim.
        driver: Works on it.
        hold: Stops the work from outside; null if there is none, because the run ends at once.
    """

    __slots__ = ("_driver", "_hold", "_services", "add", "engine", "history", "log", "run", "signals")

    def __init__(self, claim: Claim, driver: "Driver", hold: LeaseGuard | None = None) -> None:
        self.run = claim.run
        self.signals = claim.signals
        self.history = History(claim.events)
        self.log = RunLog(driver.services.store.journal, claim.run, driver.services.clock, claim.events)
        self.add = self.log.add
        self.engine = driver.ports
        self._driver = driver
        self._services = driver.services
        self._hold = hold

    @property
    def sleep(self) -> Sleep | None:
        """See `RunServices`."""
        sleep = self._services.sleep
        return None if sleep is None else partial(sleep, self.run.run_id)

    async def signal(self, name: str) -> Signal | None:
        """A signal that was left, also after the run was claimed."""
        known = self.signals.get(name)
        return known or (await self._services.store.journal.signals(self.run.run_id)).get(name)

    async def arrived(self) -> Collection[str]:
        """Names of the signals that were left until now."""
        return await self._services.store.journal.signals(self.run.run_id)

    async def leave(self, signal: Signal) -> bool:
        """Leave a signal for the run."""
        return await self._services.store.journal.signal(self.run.run_id, signal)

    async def abandon(self, child_id: str) -> None:
        """End a nested run that was cut off with its call, while the run that has called it goes on."""
        await self._driver.abandon(self.run, child_id)

    async def fence(self) -> None:
        """Raise `Fenced` if another process may have the run."""
        if self._hold is not None:
            await self._driver.ensure(self._hold)

    def suspends(self) -> bool:
        """Whether the run is suspended when nothing of it works any more."""
        return self._services.suspends(self.run.run_id)


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
        self.services = services
        self.ensure = ensure
        self._nested = nested
        in_doubt = InterruptedCalls(services.registry, services.clock, services.foretell)
        self.ports = EnginePorts(
            executor=services.executor,
            in_doubt=in_doubt,
            blobs=services.store.blobs,
            clock=services.clock,
            past=services.store.journal,
            live=services.live,
            learn=services.learn,
            foretell=services.foretell,
            pause=services.pause,
            in_recorded_order=services.in_recorded_order,
        )
        """What the contexts of all runs need."""
        self._terms: dict[tuple[str, str], _Terms] = {}

    async def execute(self, claim: Claim, hold: LeaseGuard, parent: RunContext | None) -> DriveResult:
        """Execute a run's program until it ends or waits; a run that was cancelled is ended instead.

        Raises:
            Fenced: Another process has taken the run.
            StoreUnavailable: The store went away; whoever claims the run later goes on with it.
        """
        drive, request = ClaimedRun(claim, self, hold), claim.run.request
        tool = as_asked(await self.services.registry.get_revision(claim.run.realm, request.content_hash), request)
        terms = self._terms_of(tool, request)
        if parent is None and (request.parent_run_id is not None or request.allowance is not None):
            # else the parent's own budget and time-out hold, or there is none
            journal = self.services.store.journal
            terms = terms._replace(limits=await limits_alone(journal, request, drive.history, terms.limits))
        parts = await open_parts(self.services.store.journal, drive.history) if drive.history.children else None
        context = self._context(drive, terms, parent)
        if parts is not None:
            for child_id, most in parts.items():
                context.budget.hold(child_id, most)
        if claim.run.epoch > 1:
            drive.add(RunResumed(epoch=claim.run.epoch, cause=resume_cause(claim)))
        try:
            driven = await self._work(drive, hold, context, tool, called=parent is not None)
        finally:
            context.forget_program()
            hold.forget_work()
        hold.let_go()
        if driven.result.status in ENDED and context.open_children:
            for child_id in list(context.open_children):
                await self._nested.end(child_id)
        return driven

    async def _work(
        self, drive: ClaimedRun, hold: LeaseGuard, context: RunContext, tool: ToolRevision, *, called: bool
    ) -> DriveResult:
        """Do what there is to do, until it is written how the run has halted."""
        if CANCEL in drive.signals:
            return await self._cancel(drive, context)
        if not called and context.request.parent_run_id is not None and await self._is_orphan(context.request):
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
        return await self._finish(ClaimedRun(claim, self), ended)

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _run_program(self, context: RunContext, tool: ToolRevision, seconds: float) -> RunEnd | Suspended:
        """Execute the program until it ends, or until nothing of it can go on."""
        program = self.services.programs[context.request.kind]
        deadline = self.services.deadline(seconds)
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
        left = context.budget.allowance(context.deadline - self.services.clock.monotonic())
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
        signal = (await self.services.store.journal.signals(drive.run.run_id))[CANCEL]
        if CANCEL not in drive.history.received:
            drive.add(SignalReceived(name=CANCEL, payload=signal.payload, made_by=signal.made_by))
        return await self._end(drive, end_by_cancel(signal, context.partial()), context)

    async def _end(self, drive: ClaimedRun, ended: RunEnd, context: RunContext) -> DriveResult:
        """Finish a run of which something may still be under way, or not have been asked for again."""
        await context.settle(cancel=True)
        context.leave_budget()
        context.close_open_calls(Reason.RUN_TIMEOUT if ended.status == "timed_out" else Reason.CANCELLED)
        if context.open_children:
            await self._cancel_children(drive, context)
        return await self._finish(drive, ended, context)

    async def _finish(self, drive: ClaimedRun, ended: RunEnd, context: RunContext | None = None) -> DriveResult:
        finish = to_run_finished(ended, context)
        result = result_of(drive.run.run_id, finish)
        tells = None
        parent_id = drive.run.request.parent_run_id
        if parent_id is not None:
            name, at = child_signal(drive.run.run_id), self.services.clock.now()
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
        request = nested_request(context, nested, self.services.registry, self.services.clock)
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

    async def abandon(self, run: Run, child_id: str) -> None:
        """End a nested run that was cut off with its call, while the run that has called it goes on."""
        await self._cancel_child(run, child_id, call_ended(run.run_id))
        await self._nested.end(child_id)

    async def _cancel_child(self, run: Run, child_id: str, reason: str) -> None:
        signal = cancel_signal(by=run.made_by, reason=reason, at=self.services.clock.now())
        with contextlib.suppress(NotFound):  # it was announced, and a crash came before it was made
            await self.services.store.journal.signal(child_id, signal)

    async def _is_orphan(self, request: RunRequest) -> bool:
        """Whether the run that called a nested one has ended."""
        parent_id = request.parent_run_id
        return parent_id is not None and (await self.services.store.journal.run(parent_id)).ended

    def _terms_of(self, tool: ToolRevision, request: RunRequest) -> _Terms:
        """On what terms a run is driven; what was worked out for this very revision, if its request adds nothing."""
        if request.timeout_s is not None or request.guardrails or request.side_effects != "writes":
            return self._find_terms(tool, request)
        key = tool.content_hash, request.kind
        known = self._terms.get(key)
        if known is not None and known.tool is tool:
            return known
        if len(self._terms) >= _MOST_TERMS:
            self._terms.clear()
        terms = self._terms[key] = self._find_terms(tool, request)
        return terms

    def _find_terms(self, tool: ToolRevision, request: RunRequest) -> _Terms:
        return _Terms(tool, limits_of(tool, request.kind, request.timeout_s), policy_of(tool, request))

    def _context(self, drive: ClaimedRun, terms: _Terms, parent: RunContext | None) -> RunContext:
        services, run, history, policy = self.services, drive.run, drive.history, terms.policy
        limits = with_max_cost(terms.limits, policy.guardrails) if policy.guardrails else terms.limits
        deadline = services.clock.monotonic() + terms.limits.timeout_s - history.active_s
        if parent is not None:
            parent.budget.release(run.run_id)
            deadline = min(deadline, parent.deadline)
        budget = Budget(limits, parent=None if parent is None else parent.budget)
        run_id = run.run_id
        models = ModelCalls(
            drive.log,
            history,
            budget,
            services.clock,
            open_buffer=partial(services.live.open, run_id),
            jitter=lambda: Random(run_id).random(),  # noqa: S311 - spreads retries, guards nothing
            retry=services.retry,
            rules=ModelCallRules(
                services.executor.guardrails,
                RunCaps.of(services.executor.caps, run),
                services.screens(),
                narrows_tokens=not run.request.has_old_rules,
                read_blob=partial(services.store.blobs.get, run.realm),
            ),
        )
        return RunContext(
            run,
            log=drive.log,
            history=history,
            models=models,
            budget=budget,
            bounds=RunBounds(policy, deadline),
            spawn=self._spawn,
            run_ports=drive,
        )
