"""Rehearsals: test whether parked runs could continue after a change of definitions or code.

    async def changes(crib: Crib) -> None:
        await crib.save(new_definition)
        await crib.lifecycle.block("refund", message="Replaced.")

    report = await crib.rehearse(changes)

The changes are made in a shadow of the store. Each parked run is copied there with its nested runs, its approvals are
granted, and the usual engine drives it up to its first external effect, where it stops. No call is dispatched, no
model is asked, and the store is not written. What the run would do after that is unknown; the report lists the tools
that it may call then and that would be refused.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, Self

from msgspec import Struct

from toolcrib.contracts import (
    DELEGATES,
    ApprovalRequested,
    ApprovalWithdrawn,
    CallFinished,
    ChildStarted,
    Divergence,
    Json,
    JsonObject,
    LLMConfig,
    NotFound,
    Principal,
    Reason,
    Run,
    RunEvent,
    RunFinished,
    RunStatus,
    RunSuspended,
    Signal,
    ToolcribError,
    ToolEnvelope,
    ToolRevision,
    Unavailable,
    approval_signal,
)
from toolcrib.contracts.pruning_and_rehearsal import ReasonCode, RehearsalReason, RehearsedRun, Verdict
from toolcrib.contracts.workflows import WorkflowImplementation, WorkflowStep
from toolcrib.core.engines import EngineSettings, LocalEngine, new_run_id
from toolcrib.core.executor import Clock, Dispatch, ExecutionRules, Executor, Outcome, SlidingWindow
from toolcrib.core.policy import Guardrails
from toolcrib.core.runs import Suspended, decision_on, result_of, waiting_approvals
from toolcrib.crib.container.container import CribServices, at_home
from toolcrib.crib.runs.bundles import replay_run
from toolcrib.infrastructure.store import Journal, RunChange
from toolcrib.infrastructure.store.memory.shadow import ShadowStore
from toolcrib.kinds.dispatch import Abilities, DelegateRuntime, RuntimeDispatcher, Runtimes
from toolcrib.kinds.python.runtime import PythonRuntime
from toolcrib.llm import LanguageModel, Request, Response, ScriptedModel

_NOT_OF_THE_CHANGE: Final = frozenset(
    {Reason.OUTCOME_UNKNOWN, Reason.APPROVAL_EXPIRED, Reason.APPROVAL_REJECTED, Reason.CANCELLED}
)
_MOST_SHOWN: Final = 200
"""Characters of a value in a message."""
_ENDED_BADLY: Final = frozenset({"failed", "incomplete", "timed_out"})


def reasons_of_events(run: Run, events: Sequence[RunEvent], *, before: int) -> Iterator[RehearsalReason]:
    """What a run did in its rehearsal that it would not do if all were well.

    Args:
        run: The run.
        events: All of it, those of the rehearsal last.
        before: Number of the last event before the rehearsal.
    """
    why: dict[str, str] = {}
    for entry in events[before:]:
        match entry.event:
            case ApprovalWithdrawn(position=position, reason=reason):
                why[position] = reason
            case ApprovalRequested(number=number, position=position) as asked if number > 1:
                changed = why.get(position, "it is not what was shown any more")
                message = f"the call {position} of {asked.name}@{asked.version} must be asked about again: {changed}"
                next_step = "decide on it before the change, or tell who decides that it will be asked again"
                tool = f"{asked.name}@{asked.version}"
                yield _reason("asked_again", run, tool, message, next_step, position=position)
            case CallFinished(envelope=envelope) if _is_refused(envelope):
                yield _reason_of_refusal(run, envelope)
            case RunFinished(status=status, error=failure) if status in _ENDED_BADLY:
                failure_text = failure.message if failure is not None else f"it has {status.replace('_', ' ')}"
                next_step = "correct what is said here, let the run end before the change, or cancel it"
                verdict: Verdict = "will_strand" if run.request.parent_run_id is None else "needs_attention"
                message = f"the run fails: {failure_text}"
                yield _reason("fails", run, run.request.tool, message, next_step, verdict=verdict)
            case _:
                pass


def reason_of_ability(run: Run, missing: str) -> RehearsalReason:
    """The reason for a run that this process could not resume after the change."""
    next_step = "add what is missing, unchanged, keep a process that has it until the run has ended, or cancel the run"
    return _reason("cannot_run_here", run, run.request.tool, missing, next_step, verdict="will_strand")


def reason_of_failure(run: Run, failure: Exception) -> RehearsalReason:
    """The reason for a run that no process could drive."""
    next_step = "put back what is missing, or cancel the run"
    message = f"the run cannot be continued: {failure}"
    return _reason("fails", run, run.request.tool, message, next_step, verdict="will_strand")


def reason_of_divergence(run: Run, found: Divergence) -> RehearsalReason:
    """The reason for a run whose code would now make different calls than recorded."""
    message = (
        f"event {found.event} of run {found.run_id} has {found.field} = {_short(found.expected)}, and the code would "
        f"now have {_short(found.got)}: it continues with what was recorded, if it can"
    )
    next_step = "let it end under the release that has begun it, before that is replaced"
    return _reason("diverges", run, run.request.tool, message, next_step)


def reasons_of_later_calls(
    run: Run, tool: ToolRevision, refused: Mapping[str, str], events: Sequence[RunEvent]
) -> Iterator[RehearsalReason]:
    """Tools that a run has not come to yet, and that would be refused if it did.

    Args:
        run: The run.
        tool: What it executes.
        refused: Why calls would be refused, by the references of the tools in its definition.
        events: The events of the run.
    """
    reached = {entry.event.position for entry in events if isinstance(entry.event, CallFinished)}
    for ref, why in refused.items():
        steps = _steps_of(tool, ref)
        left = [step for step in steps if not any(_is_of(position, step.name) for position in reached)]
        if steps and not left:
            continue
        certain = [step.name for step in left if _is_certain(step, tool)]
        place = f"step {left[0].name!r}" if left else "a later call"
        message = f"{why}; {place} of {run.request.tool} that calls it would be refused"
        next_step = "let the run end before the change, deprecate instead of block, or cancel the run"
        verdict: Verdict = "will_strand" if certain else "needs_attention"
        yield _reason("later_call_refused", run, ref, message, next_step, verdict=verdict)


def worst(reasons: Sequence[RehearsalReason]) -> Verdict:
    """The verdict on a family."""
    found = {reason.verdict for reason in reasons}
    if "will_strand" in found:
        return "will_strand"
    return "needs_attention" if "needs_attention" in found else "safe"


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _reason_of_refusal(run: Run, envelope: ToolEnvelope) -> RehearsalReason:
    why = envelope.error.message if envelope.error is not None else envelope.status
    tool = f"{envelope.name}@{envelope.version}" if envelope.version else envelope.name
    message = f"the call {envelope.position} of {tool} is refused: {why}"
    next_step = "undo what refuses it, or tell those who wait for the run that its result will differ"
    return _reason("call_refused", run, tool, message, next_step, position=envelope.position)


def _is_refused(envelope: ToolEnvelope) -> bool:
    failure = envelope.error
    return failure is not None and failure.reason not in _NOT_OF_THE_CHANGE


def _steps_of(tool: ToolRevision, ref: str) -> list[WorkflowStep]:
    workflow = tool.definition.implementation
    if not isinstance(workflow, WorkflowImplementation):
        return []
    return [step for step in workflow.steps if step.callee(workflow.handlers) == ref]


def _is_of(position: str, step: str) -> bool:
    return position == step or position.startswith((f"{step}[", f"{step}."))


def _is_certain(step: WorkflowStep, tool: ToolRevision) -> bool:
    """Whether a step is sure to be run, and its failure to end the workflow."""
    workflow = tool.definition.implementation
    steps = workflow.steps if isinstance(workflow, WorkflowImplementation) else ()
    targets = {each.goes_to for each in steps}
    return step.condition is None and step.for_each is None and step.on_error == "fail" and step.name not in targets


def _reason(
    code: ReasonCode,
    run: Run,
    tool: str,
    message: str,
    next_step: str,
    *,
    verdict: Verdict = "needs_attention",
    position: str | None = None,
) -> RehearsalReason:
    return RehearsalReason(
        code=code,
        verdict=verdict,
        run_id=run.run_id,
        tool=tool,
        position=position,
        message=message,
        next_step=next_step,
    )


_OPEN: Final[tuple[RunStatus, ...]] = ("queued", "running", "awaiting_approval", "awaiting_client", "awaiting_answer")
_PAGE: Final = 200
_SOMEBODY: Final = "rehearsal"
_STOPPED: Final = "rehearsal"
"""The signal that a run waits for once it has reached its first external effect."""
_SLEEP: Final = "sleep:"


class ShiftedClock:
    """A clock that can be advanced, and whose waits end at once.

    Args:
        clock: The time as it is.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.at_least: datetime | None = None

    def now(self) -> datetime:
        """The time, or the moment to which it was put forward."""
        now = self._clock.now()
        return now if self.at_least is None else max(now, self.at_least)

    def monotonic(self) -> float:
        """Seconds since some moment."""
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Let others have a turn."""
        del seconds
        await asyncio.sleep(0)


class Rehearsal:
    """Drives copies of parked runs up to the edge of the world.

    Args:
        real: Of the crib with the runs. Nothing is written there.
        shadow: The store in which copies of them are driven.
        parts: Of a crib on the shadow.
        clock: The clock of that crib.
        functions_here: Whether this process has the Python functions that the one has which will drive the runs.
    """

    def __init__(
        self,
        real: CribServices,
        shadow: ShadowStore,
        parts: CribServices,
        clock: ShiftedClock,
        *,
        functions_here: bool,
    ) -> None:
        self._real = real
        self._journal = real.outside.store.journal
        self._shadow = shadow
        self._parts = parts
        self._clock = clock
        functions = parts.functions if functions_here else _UnknownFunctions(parts.session)
        parts.registry.runs_here = functions.serves
        runtimes = Runtimes({**parts.reaching.by_kind, "python": functions})
        self._able = Abilities(parts.registry, runtimes, real.models)
        self._engine = _engine(parts, shadow, clock, self._able)

    async def of_all(self, realms: Sequence[str]) -> tuple[RehearsedRun, ...]:
        """Rehearse the outermost runs of some realms that have not ended."""
        found: list[RehearsedRun] = []
        for realm in realms:
            await self._real.catalogue.read(realm)
            await self._parts.catalogue.read(realm)
            found += [run async for run in self._of(realm)]
        return tuple(found)

    async def _of(self, realm: str) -> AsyncIterator[RehearsedRun]:
        for status in _OPEN:
            last: str | None = None
            while page := await self._journal.runs(realm, status=status, before=last, limit=_PAGE):
                last = page[-1].run_id
                for run in page:
                    if run.request.parent_run_id is None:
                        yield await self._rehearse(run)

    async def _rehearse(self, root: Run) -> RehearsedRun:
        self._shadow.forget_runs()
        replayed = await replay_run(self._real, root.run_id, parked=True)  # with today's code, and nothing else changed
        family = [copy async for copy in self._bring_in(root.run_id)]
        waits = [approval.position for copy in family for approval in copy.approvals]
        moments = [copy.sleeps_until for copy in family if copy.sleeps_until is not None]
        self._clock.at_least = max(moments, default=None) if not waits else None
        reasons = [reason for copy in family if not copy.run.ended async for reason in self._standing(copy)]
        if not any(reason.code == "cannot_run_here" for reason in reasons):
            reasons += await self._drive(root, family)
        if replayed.divergence is not None:
            reasons.append(reason_of_divergence(root, replayed.divergence))
        return RehearsedRun(
            run_id=root.run_id,
            realm=root.realm,
            tool=root.request.tool,
            status=root.status,
            waits_at=tuple(waits),
            verdict=worst(reasons),
            reasons=tuple(reasons),
        )

    async def _bring_in(self, root: str) -> AsyncIterator["_Copy"]:
        """Copy a run with its nested runs, make each ready to resume now, and answer its questions."""
        waiting = [root]
        while waiting:
            try:
                copy = await _Copy.of(self._journal, waiting.pop())
            except NotFound:  # it was announced, and a crash came before it was made
                continue
            await copy.write(self._shadow.journal, self._clock.now())
            yield copy
            waiting += [entry.event.child_run_id for entry in copy.events if isinstance(entry.event, ChildStarted)]

    async def _standing(self, copy: "_Copy") -> AsyncIterator[RehearsalReason]:
        """What can be said of a run without driving it."""
        run, registry = copy.run, self._parts.registry
        try:
            await self._able.check(run)
        except (NotFound, Unavailable) as lacking:
            yield reason_of_ability(run, str(lacking))
            return
        tool = await registry.get_revision(run.realm, run.request.content_hash)
        pinned = {ref: registry.find(run.realm, ref, known) for ref, known in run.request.pins.items()}
        refused = {ref: why for ref, callee in pinned.items() if (why := await self._why_refused(run, ref, callee))}
        for reason in reasons_of_later_calls(run, tool, refused, copy.events):
            yield reason

    async def _why_refused(self, run: Run, ref: str, callee: ToolRevision | None) -> str | None:
        """Why a call of a tool would be refused, whatever its arguments."""
        if callee is None:
            return f"there is no tool {ref} any more"
        if not callee.definition.enabled:
            return f"{callee.ref} is disabled"
        if callee.status == "blocked":
            return f"{callee.ref} is blocked"
        provider = callee.definition.provider
        if provider is not None and self._parts.providers.find(run.realm, provider) is None:
            return f"the provider {provider} of {callee.ref} is gone"
        for secret in callee.definition.secrets:
            if secret.required and not await self._is_there(secret.reference, run.request.principal):
                return (
                    f"{callee.ref} needs {secret.reference}, which is not set or not released; "
                    "set it, release variables by TOOLCRIB_RELEASED_ENV"
                )
        return None

    async def _is_there(self, reference: str, principal: Principal) -> bool:
        try:
            return await self._parts.keeping.secrets.resolve(reference, principal) is not None
        except ToolcribError:
            return False

    async def _drive(self, root: Run, family: Sequence["_Copy"]) -> list[RehearsalReason]:
        try:
            await self._engine.drive(root.run_id)
        except ToolcribError as failure:
            return [reason_of_failure(root, failure)]
        found: list[RehearsalReason] = []
        for copy in family:
            events = await self._shadow.journal.events(copy.run.run_id)
            found += reasons_of_events(copy.run, events, before=len(copy.events))
        return found


class _Copy(Struct, frozen=True):
    """A run as the journal has it."""

    run: Run
    events: Sequence[RunEvent]
    signals: Mapping[str, Signal]
    approvals: Sequence[ApprovalRequested]
    """What waits for a person."""

    @classmethod
    async def of(cls, journal: Journal, run_id: str) -> Self:
        run, events = await journal.run(run_id), await journal.events(run_id)
        signals = await journal.signals(run_id)
        return cls(run, events, signals, waiting_approvals(events, signals.keys()))

    @property
    def sleeps_until(self) -> datetime | None:
        """The moment for which it waits, if it waits for nothing else."""
        last = self.events[-1].event
        if isinstance(last, RunSuspended) and all(name.startswith(_SLEEP) for name in last.waiting_for):
            return last.wake_at
        return None

    async def write(self, journal: Journal, now: datetime) -> None:
        """Write it into another journal, with all its approvals granted."""
        queued = self.run.model_copy(update={"status": "queued", "epoch": 0, "events": 1})
        journal.create(queued, self.events[0].event)
        await journal.claim(self.run.run_id, owner=_SOMEBODY, now=now, lease_s=1)
        await journal.append(self.run.run_id, 1, self.events[1:], self._change())
        answers = {
            approval_signal(approval.position, approval.number): _approval_payload(approval)
            for approval in self.approvals
            if approval.question == "permission"  # whether a call took effect is unknown here
        }
        given = {
            name: Signal(name=name, payload=payload, made_by=_SOMEBODY, at=now) for name, payload in answers.items()
        }
        for signal in (given | dict(self.signals)).values():
            await journal.signal(self.run.run_id, signal)

    def _change(self) -> RunChange:
        last = self.events[-1].event
        if isinstance(last, RunFinished):
            return RunChange(last.status, result_of(self.run.run_id, last))
        return RunChange("queued")


def _approval_payload(approval: ApprovalRequested) -> JsonObject:
    decision = decision_on(approval, approve=True, edited_input=None, reason=None)
    return decision.model_dump(mode="json")


class _UnknownFunctions(PythonRuntime):
    """The Python functions of another process, which are unknown here."""

    def serves(self, tool: ToolRevision) -> bool:
        """True, because it cannot be determined."""
        del tool
        return True


class _Edge:
    """A runtime that stops a run where it would do something."""

    async def run(self, dispatch: Dispatch) -> Outcome:
        """Stop.

        Raises:
            Suspended: Always.
        """
        del dispatch
        raise Suspended("awaiting_client", _STOPPED, nested=True)


def _engine(parts: CribServices, shadow: ShadowStore, clock: Clock, able: Abilities) -> LocalEngine:
    edge = _Edge()
    runtimes = {**dict.fromkeys(parts.reaching.by_kind, edge), **dict.fromkeys(DELEGATES, DelegateRuntime())}
    executor = Executor(
        tools=parts.registry,
        dispatcher=RuntimeDispatcher(runtimes, parts.providers.find),
        secrets=parts.keeping.secrets,
        results=shadow.cache,
        blob_sink=shadow.blobs,
        rates=SlidingWindow(),
        clock=clock,
        rules=ExecutionRules(Guardrails(parts.outside.definitions.plugins.guardrails), parts.accounts),
    )
    return LocalEngine(
        store=shadow,
        registry=parts.registry,
        executor=executor,
        programs=at_home(parts.programs(_silent, parts.outside.sandbox), parts.catalogue),
        clock=clock,
        new_run_id=new_run_id,
        settings=EngineSettings(owner=_SOMEBODY, lease_s=3600),
        check_able=able.check,
    )


def _silent(llm: LLMConfig) -> LanguageModel:
    """A model that is never asked: the run stops where it would be."""

    def stop(request: Request) -> Response:
        del request
        raise Suspended("awaiting_client", _STOPPED, nested=True)

    model = ScriptedModel(stop)
    model.name = llm.model
    return model
