"""A rehearsal: what would become of the parked runs if definitions, or the code, were others.

    async def changes(crib: Crib) -> None:
        await crib.save(new_definition)
        await crib.lifecycle.block("refund", message="Replaced.")

    report = await crib.rehearse(changes)

The changes are made in a shadow of the store. Each parked run is copied there with all that are nested in it, what it
asks of people is approved, and it is driven by the same engine, code, policies and definitions that would drive it, up
to the first thing that it would do to the world: there it is stopped. So nothing is dispatched, no model is asked, and
nothing is written. What a run would do after that nobody knows; of the tools that it may call then, those are told that
would be refused.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Final, Self

from msgspec import Struct

from toolcrib.contracts import (
    DELEGATES,
    ApprovalRequested,
    ChildStarted,
    JsonObject,
    LLMConfig,
    NotFound,
    Principal,
    Run,
    RunEvent,
    RunFinished,
    RunStatus,
    RunSuspended,
    Signal,
    ToolcribError,
    ToolRevision,
    Unavailable,
    approval_signal,
)
from toolcrib.contracts.rehearsals import RehearsalReason, RehearsedRun
from toolcrib.core.engines import EngineSettings, LocalEngine, new_run_id
from toolcrib.core.executor import Clock, Dispatch, Executor, Outcome, SlidingWindow
from toolcrib.core.policy import Guardrails
from toolcrib.core.runs import Suspended, decision_on, result_of, waiting_approvals
from toolcrib.crib.container.container import Parts, at_home
from toolcrib.crib.runs.bundles_part import replay_run
from toolcrib.crib.runs.rehearsal_reasons import (
    reason_of_ability,
    reason_of_divergence,
    reason_of_failure,
    reasons_of_events,
    reasons_of_later_calls,
    worst,
)
from toolcrib.infrastructure.store import Entry, Journal, RunChange
from toolcrib.infrastructure.store.memory.shadow import ShadowStore
from toolcrib.kinds.runtimes_part import Abilities, DelegateRuntime, PythonRuntime, RuntimeDispatcher
from toolcrib.llm import LanguageModel, Request, Response, ScriptedModel

_OPEN: Final[tuple[RunStatus, ...]] = ("queued", "running", "awaiting_approval", "awaiting_client", "awaiting_answer")
_PAGE: Final = 200
_SOMEBODY: Final = "rehearsal"
_STOPPED: Final = "rehearsal"
"""The signal that a run waits for which has come to the edge of the world."""
_SLEEP: Final = "sleep:"


class Ahead:
    """A clock that can be put forward, and on which nobody has to wait.

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
        clock: Of that crib.
        functions_here: Whether this process has the Python functions that the one has which will drive the runs.
    """

    def __init__(
        self,
        real: Parts,
        shadow: ShadowStore,
        parts: Parts,
        clock: Ahead,
        *,
        functions_here: bool,
    ) -> None:
        self._real = real
        self._journal = real.outside.store.journal
        self._shadow = shadow
        self._parts = parts
        self._clock = clock
        functions = parts.functions if functions_here else _Elsewhere(parts.session)
        parts.registry.runs_here = functions.serves
        self._able = Abilities(parts.registry, functions, real.models, parts.reaching.plugins)
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
        waits = [asked.position for copy in family for asked in copy.approvals]
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
        """Copy a run and all that are nested in it, each as if it could go on now, and answer what it asks."""
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
        tool = await registry.pinned(run.realm, run.request.content_hash)
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
                return f"{callee.ref} needs {secret.reference}, which is not set or not released"
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
        """Write it into another journal, with the approval of all that it asks."""
        queued = self.run.model_copy(update={"status": "queued", "epoch": 0, "events": 1})
        journal.create(queued, self.events[0].event)
        await journal.claim(self.run.run_id, owner=_SOMEBODY, now=now, lease_s=1)
        await journal.append(self.run.run_id, 1, [Entry.of(entry) for entry in self.events[1:]], self._change())
        answers = {
            approval_signal(asked.position, asked.number): _approved(asked)
            for asked in self.approvals
            if asked.question == "permission"  # whether something took effect nobody can tell here
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


def _approved(asked: ApprovalRequested) -> JsonObject:
    decision = decision_on(asked, approve=True, edited_input=None, reason=None)
    return decision.model_dump(mode="json")


class _Elsewhere(PythonRuntime):
    """The Python functions of another process, of which nothing is known here."""

    def serves(self, tool: ToolRevision) -> bool:
        """True: nobody can tell."""
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


def _engine(parts: Parts, shadow: ShadowStore, clock: Clock, able: Abilities) -> LocalEngine:
    edge = _Edge()
    runtimes = {**dict.fromkeys(parts.reaching.by_kind, edge), **dict.fromkeys(DELEGATES, DelegateRuntime())}
    executor = Executor(
        tools=parts.registry,
        dispatcher=RuntimeDispatcher(runtimes, parts.providers.find),
        secrets=parts.keeping.secrets,
        results=shadow.cache,
        attic=shadow.blobs,
        rates=SlidingWindow(),
        clock=clock,
        guardrails=Guardrails(parts.outside.plugins.guardrails),
        accounts=parts.accounts,
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
