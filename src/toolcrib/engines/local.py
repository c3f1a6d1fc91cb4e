"""The local engine: this process drives runs, one lease each; the journal is the truth.

A run is claimed, its program executed until it ends or must wait, and its row changed in the same transaction as its
last event. If the process dies, the lease runs out and any process may claim the run; what that process writes raises
the epoch, so a zombie can write nothing more.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random

from msgspec import Struct

from toolcrib.contracts import (
    CLOSING_S,
    ENDED,
    WAITING,
    AgenticImplementation,
    AgentImplementation,
    ChildStarted,
    Conflict,
    ErrorCode,
    Fenced,
    JsonObject,
    Limits,
    NotFound,
    Reason,
    ResumeCause,
    Run,
    RunFinished,
    RunKind,
    RunRequest,
    RunResult,
    RunResumed,
    RunStarted,
    RunSuspended,
    Signal,
    ToolcribError,
    ToolError,
    ToolRevision,
    Unavailable,
    Usage,
)
from toolcrib.executor import Clock, Executor, error
from toolcrib.llm.retry import RetryPolicy
from toolcrib.policy import Budget, CallPolicy, least
from toolcrib.registry import Registry, pins_of
from toolcrib.runs import (
    Ended,
    History,
    InDoubt,
    ModelCalls,
    Nested,
    Program,
    RunContext,
    RunLog,
    Surroundings,
    Suspended,
    as_contract,
)
from toolcrib.store import Claim, Entry, Lease, RunChange, Store

_CHILD = "child:"


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
    retry: RetryPolicy = field(default_factory=RetryPolicy)


class Driven(Struct, frozen=True):
    """A run after this process has driven it: how it stands, and its log."""

    result: RunResult
    log: Sequence[Entry]


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
        self._store = store
        self._registry = registry
        self._executor = executor
        self._programs = programs
        self._clock = clock
        self._new_run_id = new_run_id
        self._settings = settings
        self._in_doubt = InDoubt(registry, clock)
        self._driving: set[str] = set()
        """Runs that a task of this process drives or is about to claim."""
        self._active: dict[str, asyncio.Task[object] | None] = {}
        self._heart: asyncio.Task[None] | None = None

    # Starting and driving ---------------------------------------------------------------------------------------------

    async def create(self, request: RunRequest, *, run_id: str | None = None) -> str:
        """Write a new run into the journal, queued for whoever claims it; durable on return.

        Raises:
            Conflict: A run with this id exists.
        """
        run = _new_run(request, run_id or self._new_run_id(), self._clock.now())
        await self._store.journal.create(run, RunStarted(request=request))
        return run.run_id

    async def start(self, request: RunRequest) -> Driven:
        """Create a run and drive it at once until it ends or waits."""
        claim = self._create_claimed(request)
        self._driving.add(claim.run.run_id)
        try:
            return await self._drive_held(claim, None)
        finally:
            self._driving.discard(claim.run.run_id)

    async def refuse(self, request: RunRequest, refusal: ToolError) -> Driven:
        """Write a run that was not admitted: it is in the journal, ended, with the reason."""
        drive = _Drive(self._create_claimed(request), self._clock, self._store)
        stop = "policy" if refusal.code is ErrorCode.POLICY_DENIED else "error"
        return await self._finish(drive, Ended(status="failed", stop_reason=stop, error=refusal))

    async def drive(self, run_id: str, parent: RunContext | None = None) -> Driven:
        """Claim a run and execute its program until it ends or waits.

        Raises:
            Conflict: Another task or process holds the run.
            Fenced: Another process took the run meanwhile.
            Unavailable: This process lacks what the run needs; another one can carry it on.
        """
        if run_id in self._driving:
            msg = f"run {run_id!r} is being driven by this process already; resume it to wait for its end"
            raise Conflict(msg)
        self._driving.add(run_id)
        try:
            stored = await self._store.journal.run(run_id)
            if stored.ended:
                return await self._ended_before(stored, parent)
            await self._check_able(stored)
            return await self._drive_held(await self._claim(run_id), parent)
        finally:
            self._driving.discard(run_id)

    async def resume(self, run_id: str, parent: RunContext | None = None) -> Driven:
        """Drive a run that waits or whose process died, and the nested runs that it waits for.

        Waits until a dead process's lease is over, or a living one is done with the run. The run has ended then, or
        waits for something outside.
        """
        while True:
            try:
                driven = await self.drive(run_id, parent)
            except Conflict:
                driven = await self._stored(await self._store.journal.run(run_id))
            status = driven.result.status
            if status in ENDED or (status in WAITING and not await self._resume_nested(driven)):
                return driven
            if status not in WAITING:
                await self._clock.sleep(min(self._settings.poll_s, self._settings.lease_s / 4))

    async def recover(self) -> Sequence[Driven]:
        """Drive every run that can go on now, and return how they stand."""
        found = await self._store.journal.claimable(now=self._clock.now(), limit=self._settings.max_runs)
        driven = await asyncio.gather(*(self.drive(run_id) for run_id in found), return_exceptions=True)
        return [outcome for outcome in driven if isinstance(outcome, Driven)]

    async def signal(self, run_id: str, signal: Signal) -> bool:
        """Leave a signal for a run. False if there was one of that name; the first wins."""
        return await self._store.journal.signal(run_id, signal)

    async def serve(self) -> None:
        """Drive whatever can go on, for ever: waits that are over, runs of processes that died."""
        running: set[asyncio.Task[object]] = set()
        try:
            while True:
                for run_id in await self._startable():
                    task = asyncio.create_task(self._drive_quietly(run_id))
                    running.add(task)
                    task.add_done_callback(running.discard)
                await self._clock.sleep(self._settings.poll_s)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def close(self) -> None:
        """Stop holding leases."""
        if self._heart is not None:
            self._heart.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._heart
            self._heart = None

    # Inside -----------------------------------------------------------------------------------------------------------

    def _create_claimed(self, request: RunRequest) -> Claim:
        """Create a run that is this process's from the start; it becomes durable with what follows it."""
        now, settings = self._clock.now(), self._settings
        run = _new_run(request, self._new_run_id(), now, owned=True)
        first = RunStarted(request=request)
        lease = Lease(settings.owner, now + timedelta(seconds=settings.lease_s))
        self._store.journal.create(run, first, lease=lease)
        started = Entry(run.run_id, 1, now, run.realm, run.made_by, first)
        return Claim(run, [started], {})

    async def _drive_held(self, claim: Claim, parent: RunContext | None) -> Driven:
        """Execute a run that was claimed, as long as its lease can be renewed."""
        run_id, task = claim.run.run_id, asyncio.current_task()
        self._hold(run_id, task)
        try:
            return await self._execute(claim, parent)
        except asyncio.CancelledError:
            if run_id in self._active or task is None:
                raise
            task.uncancel()
            msg = (
                f"the lease of run {run_id!r} was lost: another process has it; raise lease_s if this one was only slow"
            )
            raise Fenced(msg) from None
        finally:
            self._active.pop(run_id, None)

    async def _claim(self, run_id: str) -> Claim:
        settings = self._settings
        claim = await self._store.journal.claim(
            run_id, owner=settings.owner, now=self._clock.now(), lease_s=settings.lease_s
        )
        if claim is None:
            msg = f"run {run_id!r} cannot be taken now: it waits for something, or another process holds it"
            raise Conflict(msg)
        return claim

    async def _execute(self, claim: Claim, parent: RunContext | None) -> Driven:
        drive = _Drive(claim, self._clock, self._store)
        request = claim.run.request
        tool = await self._registry.pinned(claim.run.realm, request.content_hash)
        limits = limits_of(tool, request.kind)
        if parent is None and request.allowance is not None:  # else the parent's own budget and time-out hold
            limits = request.allowance.bounding(limits)
        context = self._context(drive, limits, parent)
        if claim.run.epoch > 1:
            drive.log.add(RunResumed(epoch=claim.run.epoch, cause=_cause(claim)))
        if parent is None and await self._is_orphan(request):
            return await self._end(drive, _orphaned(request), context)
        try:
            ended = await self._run_program(context, tool, max(limits.timeout_s - drive.history.active_s, 0.0))
        except Suspended as wait:
            await context.settle(cancel=False)
            return await self._suspend(drive, wait)
        except (Fenced, asyncio.CancelledError):
            await context.settle(cancel=True)
            raise
        return await self._end(drive, ended, context)

    async def _run_program(self, context: RunContext, tool: ToolRevision, seconds: float) -> Ended:
        program = self._programs[context.request.kind]
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                return await program(context, tool)
        except TimeoutError as crash:
            if not deadline.expired():
                return _crashed(crash)
            allowed = context.budget.limits.timeout_s
            message = f"the run did not end within timeout_s={allowed:g}; raise timeout_s to go on"
            context.note_limit("timeout_s", allowed, allowed, message)
            late = error(ErrorCode.TIMEOUT, Reason.RUN_TIMEOUT, message)
            return Ended(
                output=context.partial(), status="timed_out", stop_reason="timeout", error=late, warnings=(message,)
            )
        except Fenced:
            raise
        except Exception as crash:  # noqa: BLE001 - the edge of a run: its failure is its end, in the journal
            return _crashed(crash)

    async def _suspend(self, drive: "_Drive", wait: Suspended) -> Driven:
        change = RunChange(status=wait.status, waiting_for=wait.signals, wake_at=wait.wake_at)
        await drive.add(RunSuspended(status=wait.status, waiting_for=wait.signals, wake_at=wait.wake_at), change=change)
        result = RunResult(run_id=drive.run.run_id, status=wait.status)
        return Driven(result, drive.log.events)

    async def _end(self, drive: "_Drive", ended: Ended, context: RunContext) -> Driven:
        """Finish a run of which something may still be under way, or not have been asked for again."""
        await context.settle(cancel=True)
        context.close_open_calls(Reason.RUN_TIMEOUT if ended.status == "timed_out" else Reason.CANCELLED)
        if ended.status != "completed":
            context.recount_rest()
        return await self._finish(drive, ended, context)

    async def _finish(self, drive: "_Drive", ended: Ended, context: RunContext | None = None) -> Driven:
        finished = _finished(ended, context)
        result = _result(drive.run.run_id, finished)
        tells = None
        parent_id = drive.run.request.parent_run_id
        if parent_id is not None:
            name, at = _child_signal(drive.run.run_id), self._clock.now()
            tells = parent_id, Signal(name=name, payload={}, made_by=drive.run.made_by, at=at)
        await drive.add(finished, change=RunChange(status=ended.status, result=result, tells=tells))
        if context is not None:
            await self._end_children(context)
        return Driven(result, drive.log.events)

    async def _spawn(self, context: RunContext, nested: Nested) -> RunResult:
        mine, tool, failed = context.request, nested.tool, nested.instead_of
        child_id = nested_run_id(context.run_id, nested)
        context.child_started(
            ChildStarted(position=nested.position, child_run_id=child_id, tool=tool.ref, instead_of=failed)
        )
        request = RunRequest(
            kind=tool.definition.run_kind if failed is None else "tool",
            tool=tool.ref,
            content_hash=tool.content_hash,
            pins=pins_of(tool, self._registry),
            input=nested.arguments,
            principal=context.principal,
            parent_run_id=context.run_id,
            parent_position=nested.position,
            depth=mine.depth + 1,
            conversation_id=mine.conversation_id,
            session_id=mine.session_id,
            dry_run=mine.dry_run,
            callers=mine.open_tools if failed is None else {**mine.open_tools, failed.content_hash: failed.tool},
            side_effects=least(context.policy.side_effects, tool.definition.side_effects),
            guardrails=context.policy.guardrails,
            tainted=context.tainted,
            allowance=context.budget.allowance(context.deadline - self._clock.monotonic()),
        )
        with contextlib.suppress(Conflict):
            await self.create(request, run_id=child_id)
        result = (await self.resume(child_id, parent=context)).result
        if result.status not in ENDED:
            raise Suspended(result.status, _child_signal(child_id))
        return result

    async def _ended_before(self, run: Run, parent: RunContext | None) -> Driven:
        """A run that was driven to its end before; what it used counts for its parent too."""
        driven = await self._stored(run)
        if parent is not None:
            parent.budget.take_nested(
                tool_calls=driven.result.tool_calls,
                tokens=driven.result.usage.total_tokens,
                cost_usd=driven.result.cost_usd or Decimal(0),
            )
        return driven

    async def _end_children(self, context: RunContext) -> None:
        """End the nested runs that are still open: nobody waits for them any more."""
        for child_id in list(context.open_children):
            with contextlib.suppress(Conflict, Fenced, NotFound, Unavailable):
                await self.drive(child_id)

    async def _is_orphan(self, request: RunRequest) -> bool:
        """Whether the run that called this one has ended."""
        return request.parent_run_id is not None and (await self._store.journal.run(request.parent_run_id)).ended

    async def _resume_nested(self, driven: Driven) -> bool:
        """Whether a nested run that this one waits for has come to its end."""
        last = driven.log[-1].event
        names = last.waiting_for if isinstance(last, RunSuspended) else ()
        nested = [name.removeprefix(_CHILD) for name in names if name.startswith(_CHILD)]
        return any([(await self.resume(child_id)).result.status in ENDED for child_id in nested])

    def _context(self, drive: "_Drive", limits: Limits, parent: RunContext | None) -> RunContext:
        budget = Budget(limits, parent=parent.budget if parent else None)
        run_id = drive.run.run_id
        deadline = self._clock.monotonic() + limits.timeout_s - drive.history.active_s

        async def signal(name: str) -> Signal | None:
            known = drive.signals.get(name)
            return known or (await self._store.journal.signals(run_id)).get(name)

        return RunContext(
            drive.run,
            log=drive.log,
            history=drive.history,
            models=ModelCalls(
                drive.log,
                drive.history,
                budget,
                self._clock,
                jitter=lambda: Random(run_id).random(),  # noqa: S311 - spreads retries, guards nothing
                retry=self._settings.retry,
            ),
            budget=budget,
            policy=CallPolicy(side_effects=drive.run.request.side_effects, guardrails=drive.run.request.guardrails),
            deadline=min(deadline, parent.deadline) if parent else deadline,
            surroundings=Surroundings(
                executor=self._executor,
                in_doubt=self._in_doubt,
                blobs=self._store.blobs,
                clock=self._clock,
                signals=signal,
                spawn=self._spawn,
            ),
        )

    async def _stored(self, run: Run) -> Driven:
        """A run that this process does not drive, as the journal has it."""
        log = [Entry.of(shown) for shown in await self._store.journal.events(run.run_id)]
        last = log[-1].event
        if isinstance(last, RunFinished):
            return Driven(_result(run.run_id, last), log)
        return Driven(RunResult(run_id=run.run_id, status=run.status), log)

    async def _startable(self) -> Sequence[str]:
        """Ids of runs that nobody drives, as many as there is room for; none while the store is away."""
        room = max(self._settings.max_runs - len(self._driving), 0)
        try:
            found = await self._store.journal.claimable(now=self._clock.now(), limit=room)
        except Unavailable:
            return []
        return [run_id for run_id in found if run_id not in self._driving]

    async def _drive_quietly(self, run_id: str) -> None:
        with contextlib.suppress(Conflict, Fenced, Unavailable):  # whoever can go on with it will find it
            await self.drive(run_id)

    def _hold(self, run_id: str, task: asyncio.Task[object] | None) -> None:
        self._active[run_id] = task
        if self._heart is None or self._heart.done():
            self._heart = asyncio.create_task(self._renew_leases())

    async def _renew_leases(self) -> None:
        """Prolong the leases of active runs, and stop the runs whose lease was lost."""
        while self._active:
            await self._clock.sleep(self._settings.lease_s / 3)
            with contextlib.suppress(Unavailable):  # the next look may come in time
                await self._renew_once(list(self._active))

    async def _renew_once(self, mine: Sequence[str]) -> None:
        settings = self._settings
        kept = await self._store.journal.renew(
            mine, owner=settings.owner, now=self._clock.now(), lease_s=settings.lease_s
        )
        for run_id in set(mine) - set(kept):
            task = self._active.pop(run_id, None)
            if task is not None:
                task.cancel()


class _Drive:
    """One claim being worked on: row, history, log, and all events so far."""

    def __init__(self, claim: Claim, clock: Clock, store: Store) -> None:
        self.run = claim.run
        self.signals = claim.signals
        self.history = History(claim.events)
        self.log = RunLog(store.journal, claim.run, clock, claim.events)
        self.add = self.log.add


def _new_run(request: RunRequest, run_id: str, now: datetime, *, owned: bool = False) -> Run:
    return Run(
        run_id=run_id,
        realm=request.principal.realm,
        made_by=request.principal.id,
        status="running" if owned else "queued",
        request=request,
        epoch=1 if owned else 0,
        events=1,
        created_at=now,
        updated_at=now,
    )


def limits_of(tool: ToolRevision, kind: RunKind) -> Limits:
    """The limits of a run of this tool; a larger configured `max_tokens` raises the tokens per call.

    A single call of a tool that calls others leaves room for the nested run, which has these limits itself, and for the
    call. Code has its quota of calls; a composite tool has the defaults, inside those of whoever calls it.
    """
    definition, implementation = tool.definition, tool.definition.implementation
    if not isinstance(implementation, AgentImplementation | AgenticImplementation):
        seconds = definition.call_timeout_s + CLOSING_S if kind == "tool" else definition.timeout_s
        if implementation.kind != "code":
            return Limits(timeout_s=seconds)
        return Limits(timeout_s=seconds, max_tool_calls=implementation.limits.tool_calls + (kind == "tool"))
    limits, wanted = implementation.limits, implementation.llm.max_tokens or 0
    changes: JsonObject = {"max_tokens_per_call": wanted} if wanted > limits.max_tokens_per_call else {}
    if kind == "tool":
        changes |= {"timeout_s": definition.timeout_s + CLOSING_S, "max_tool_calls": limits.max_tool_calls + 1}
    return limits.model_copy(update=changes) if changes else limits


def child_run_id(parent_run_id: str, position: str) -> str:
    """The id of a nested run: a function of its parent and position, so that recovery finds it again."""
    return "run_" + hashlib.sha256(f"{parent_run_id}/{position}".encode()).hexdigest()[:32]


def nested_run_id(parent_run_id: str, nested: Nested) -> str:
    """The id of a nested run: each attempt of a call has one, and its fallback."""
    place = nested.position if nested.attempt == 1 else f"{nested.position}#{nested.attempt}"
    return child_run_id(parent_run_id, place if nested.instead_of is None else f"{place}.fallback")


def _finished(ended: Ended, context: RunContext | None) -> RunFinished:
    spending = context.models.spending if context else None
    return RunFinished(
        status=ended.status,
        stop_reason=ended.stop_reason,
        output=ended.output,
        attachments=ended.attachments,
        metadata=ended.metadata,
        tainted=context.tainted if context else False,
        error=ended.error,
        warnings=(*context.warnings, *ended.warnings) if context else ended.warnings,
        usage=as_contract(spending.usage) if spending else Usage(),
        cost_usd=context.budget.cost_usd if context else None,
        cost_unknown=spending.cost_unknown if spending else False,
        iterations=context.budget.iterations if context else 0,
        tool_calls=context.budget.tool_calls if context else 0,
    )


def _child_signal(run_id: str) -> str:
    """Name of the signal by which a nested run tells its parent that it has ended."""
    return f"{_CHILD}{run_id}"


def _result(run_id: str, finished: RunFinished) -> RunResult:
    return RunResult(run_id=run_id, **{name: getattr(finished, name) for name in _OUTCOME})


_OUTCOME = tuple(RunResult.model_fields.keys() - {"run_id"})


def _orphaned(request: RunRequest) -> Ended:
    message = f"the run {request.parent_run_id} that called this one has ended; start this tool anew if it is needed"
    return Ended(status="cancelled", stop_reason="cancelled", error=error(ErrorCode.UNKNOWN, Reason.CANCELLED, message))


def _crashed(crash: Exception) -> Ended:
    if isinstance(crash, ToolcribError):
        message = str(crash)
    else:
        message = f"the run's program failed with {type(crash).__name__}: {str(crash)[:500]}"
    failure = error(ErrorCode.UNKNOWN, Reason.TOOL_FAILED, message)
    return Ended(status="failed", stop_reason="error", error=failure)


def _cause(claim: Claim) -> ResumeCause:
    last = claim.events[-1].event if claim.events else None
    if not isinstance(last, RunSuspended):
        return "crash"
    arrived = next((name for name in last.waiting_for if name in claim.signals), None)
    if arrived is None:
        return "timer"
    match arrived.partition(":")[0]:
        case "approval":
            return "approval"
        case "client":
            return "client"
        case _:
            return "signal"
