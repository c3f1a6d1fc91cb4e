"""The run context: the only way in which a program makes calls, asks models and waits.

It decides whether a call runs: a recorded call returns its envelope, an interrupted one is repeated only if that is
safe, and one that needs a person or a client suspends the run. The executor decides how a call runs, and uses the
context as its `CallJournal` for intents, approvals, client calls and nested runs.
"""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, Final, NamedTuple, Self, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Struct

from toolcrib.contracts import (
    ApprovalDecision,
    ApprovalRequested,
    CallFinished,
    CallStarted,
    ChildStarted,
    ClientResult,
    Event,
    FailedCall,
    GuardDecision,
    Json,
    JsonObject,
    LimitReached,
    ModelError,
    ProgressMade,
    Reason,
    Run,
    RunRequest,
    RunResult,
    RunStatus,
    Signal,
    ToolEnvelope,
    ToolError,
    ToolRevision,
    idempotency_key,
)
from toolcrib.contracts.runs.executions import answer_signal
from toolcrib.contracts.runs.forks import Fork
from toolcrib.contracts.runs.recordings import Recorded
from toolcrib.core.executor import CallContext, CallerQuestion, CallRequest, Lanes, LiveCall, has_acted
from toolcrib.core.executor.approval import confirm, request_of
from toolcrib.core.executor.envelope import EnvelopeBuilder
from toolcrib.core.policy import Budget, CallPolicy
from toolcrib.core.runs.context.pending import LOOK_S, ConcurrentCalls, Pending, Suspension, apart
from toolcrib.core.runs.context.ports import Nested, RunPorts
from toolcrib.core.runs.context.prior_runs import PriorRuns
from toolcrib.core.runs.context.unknown_outcomes import InquiryScope, OutcomeResolver
from toolcrib.core.runs.context.waits import RunWaits
from toolcrib.core.runs.forks.recording import Recording
from toolcrib.core.runs.interrupts.approvals import Question, RunApprovals, request_for
from toolcrib.core.runs.interrupts.client_calls import ClientCalls
from toolcrib.core.runs.interrupts.signals import QUESTION_ASKED, asked_question, may_ask, question_key, question_place
from toolcrib.core.runs.interrupts.suspension import EndedRuns, RunEnd, Suspended
from toolcrib.core.runs.journal.history import ONE_CALL, History, nested_facts, spending_on_calls
from toolcrib.core.runs.journal.log import RunLog
from toolcrib.core.runs.models.model_requests import BudgetExhausted, ModelCall, ModelCalls, ModelRefused
from toolcrib.core.runs.models.request_screening import ModelCallScope
from toolcrib.llm import LanguageModel, Request, Response


def denial_of(failure: ToolError) -> GuardDecision:
    """The decision by which a call was denied, from the error of its envelope."""
    details = failure.details or {}
    return GuardDecision(
        outcome="deny",
        rule=details.get("rule", "resolve"),
        reason=failure.reason,
        message=failure.message,
        inputs=details.get("inputs", {}),
    )


_MOST_NESTED: Final = 20
"""Warnings of one nested run that its caller repeats."""


def incomplete(envelope: ToolEnvelope, *, nested: bool = True) -> Iterable[str]:
    """Warnings that what is made of an outcome must have too: of a list that ends before its end, and of nested runs.

    Args:
        envelope: The outcome.
        nested: Whether those of nested runs are wanted.
    """
    if nested and "run_id" in envelope.metadata:
        yield from (f"{envelope.name}: {warning}" for warning in envelope.metadata.get("warnings", ())[:_MOST_NESTED])
        return
    paging = envelope.metadata.get("paging")
    if isinstance(paging, dict) and cast("JsonObject", paging).get("complete") is False:
        for warning in envelope.metadata.get("warnings", ()):
            yield f"{envelope.name}: {warning}"


T = TypeVar("T")

Spawn: TypeAlias = "Callable[[RunContext, Nested], Awaitable[RunResult]]"
"""Runs a nested run to its end, or raises `Suspended`."""


class _RunEffects(Struct):
    """What all parts of one run's program have read and done."""

    tainted_by: str | None
    wrote: bool
    cost_unknown: bool
    """Of nested runs."""


class RunBounds(NamedTuple):
    """Within what a run stays."""

    policy: CallPolicy
    """What its calls may be; a program may narrow it before its first call."""
    deadline: float
    """When its time is over, and at the latest its callers', on the monotonic clock."""


def _nothing_yet() -> Json:
    """What a run has so far of which nobody tells it."""
    return None


class _SpecialParts:
    """What few runs need of their context, made when it is first needed; all parts of one program share it."""

    def __init__(self, run: Run, log: RunLog, history: History, budget: Budget, run_ports: RunPorts) -> None:
        self._run = run
        self._log = log
        self._history = history
        self._budget = budget
        self._around = run_ports
        self._approvals: RunApprovals | None = None
        self._client_calls: ClientCalls | None = None
        self._waits: RunWaits | None = None
        self._unknown_outcomes: OutcomeResolver | None = None
        self.prior_runs = PriorRuns(run, log, history)

    @property
    def approvals(self) -> RunApprovals:
        """Asks people for calls."""
        if self._approvals is None:
            around, clock = self._around, self._around.engine.clock
            self._approvals = RunApprovals(
                self._run,
                log=self._log,
                history=self._history,
                signals=around.signal,
                leave=around.leave,
                clock=clock,
            )
        return self._approvals

    @property
    def client_calls(self) -> ClientCalls:
        """Hands calls to a client."""
        if self._client_calls is None:
            self._client_calls = ClientCalls(self._log, self._history, self._budget, self._around.signal)
        return self._client_calls

    @property
    def waits(self) -> RunWaits:
        """Waits for signals and moments."""
        if self._waits is None:
            around = self._around
            self._waits = RunWaits(
                self._log, self._history, around.signal, around.engine.clock, self.prior_runs, sleep=around.sleep
            )
        return self._waits

    @property
    def unknown_outcomes(self) -> OutcomeResolver:
        """Finds out what became of calls in doubt."""
        if self._unknown_outcomes is None:
            self._unknown_outcomes = OutcomeResolver(
                self._run, self._log, self._history, self._around, self.waits.until
            )
        return self._unknown_outcomes


class RunContext:
    """One run, as its program sees it.

    Args:
        run: The row as it was claimed.
        log: The writing end of its journal.
        history: What the journal knew when the run was claimed.
        models: Makes model calls.
        budget: What the run may still spend.
        bounds: Within what it stays.
        spawn: Runs the runs that are nested in it.
        run_ports: What it needs of the engine.
    """

    def __init__(
        self,
        run: Run,
        *,
        log: RunLog,
        history: History,
        models: ModelCalls,
        budget: Budget,
        bounds: RunBounds,
        spawn: Spawn,
        run_ports: RunPorts,
    ) -> None:
        self.run = run
        self.budget = budget
        self.policy, self.deadline = bounds
        self.principal = run.request.principal
        """Who makes the calls; an agent may act as a service account."""
        request, known = run.request, history.envelopes.values()
        self._deeds = _RunEffects(
            tainted_by="what its caller had read" if request.tainted else None,
            wrote=history.begun and any(map(has_acted, known)),
            cost_unknown=history.begun and any(map(_has_unknown_cost, known)),
        )
        self._standing = request.starter, request.open_tools, request.skips_writes
        """What all its calls have in common, whatever else changes of the request."""
        self.log = log
        self.models = models
        self._history = history
        self._spawn = spawn
        self._run_ports = run_ports
        self._around = around = run_ports.engine
        self.partial = _nothing_yet
        self.warnings: list[str] = []
        """What stands in the run's result besides the warnings of its end."""
        self.open_children: dict[str, str] = {}
        """Positions of calls that have no envelope yet, by the ids of their nested runs."""
        if history.begun:
            self.open_children = history.open_children
            spent = spending_on_calls(history)
            budget.take_nested(
                tool_calls=spent.tool_calls, tokens=spent.tokens, cost_usd=spent.cost_usd, cut_off_usd=spent.cut_off_usd
            )
            for position in history.intents.keys() - history.envelopes.keys():
                budget.hold(position, ONE_CALL)
        self._tracebacks: dict[str, str] = {}
        """Of calls that have not ended, by position."""
        self._lanes = Lanes(None if around.in_recorded_order else budget.limits.max_parallel_calls)
        self._special = _SpecialParts(run, log, history, budget, run_ports)
        self.prior_runs = self._special.prior_runs
        self._parking = Suspension(around.clock, run_ports.arrived, around.pause, run_ports.suspends)

    partial: Callable[[], Json]
    """Tells what the run has so far: its output if time runs out."""

    def forget_program(self) -> None:
        """Let go of the program, which has halted."""
        self.partial = _nothing_yet

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.run.run_id

    @property
    def request(self) -> RunRequest:
        """What the run was asked to do."""
        return self.run.request

    @property
    def tainted_by(self) -> str | None:
        """What it has read that outsiders can write: the first of it; null if nothing."""
        return self._deeds.tainted_by

    @tainted_by.setter
    def tainted_by(self, source: str | None) -> None:
        self._deeds.tainted_by = source

    @property
    def tainted(self) -> bool:
        """Whether what it knows holds what outsiders can write."""
        return self._deeds.tainted_by is not None

    @property
    def ever_tainted(self) -> bool:
        """The same of all that the journal has, also of what the program has not come to again."""
        return self.tainted or self._history.tainted

    @property
    def wrote(self) -> bool:
        """Whether a call of it, or of a nested run, has changed something or may have."""
        return self._deeds.wrote

    @property
    def cost_unknown(self) -> bool:
        """Whether something that it has paid for, or a nested run, had no known price."""
        return self.models.spending.cost_unknown or self._deeds.cost_unknown

    def beside(self) -> Self:
        """The same run for one part of its program: with a policy and a principal of its own, and all else shared."""
        return copy.copy(self)

    # What a program may do --------------------------------------------------------------------------------------------

    def call(self, call: CallRequest) -> Pending[ToolEnvelope]:
        """Start a tool call at once; calls start in the order of the requests.

        Raises:
            JournalDivergence: The journal has another call at this position.
        """
        known = self._known(call)
        return Pending(self._parking, None, known) if known is not None else self._parking.start(self._run_call(call))

    async def make(self, call: CallRequest) -> ToolEnvelope:
        """Make a tool call and wait for its end, as `await call(...)`: for a program that has nothing else to do then.

        Raises:
            JournalDivergence: The journal has another call at this position.
        """
        known = self._known(call)
        if known is not None:
            return known
        if self._parking.tires():
            await asyncio.sleep(0)
        return await apart(self._run_call(call))

    def key_of(self, call: CallRequest) -> str:
        """The idempotency key under which a call was made: who makes it once more elsewhere makes the same request."""
        intent = self._history.intents.get(call.position)
        known = self.prior_runs.key_of(call, self.policy) if intent is None else intent.idempotency_key
        return known or idempotency_key(self.run_id, call.position)

    def model(self, call: ModelCall) -> Coroutine[Any, Any, Response]:
        """The answer of a model.

        Raises:
            BudgetExhausted: The run may not spend what the call could cost.
            ModelRefused: A guardrail forbids the call, or withholds the answer.
            ModelError: The provider failed for good.
            Suspended: The run is being left.
        """
        self._parking.check()
        guardrails, principal = self.policy.guardrails, self.principal
        scope = ModelCallScope(guardrails, principal.realm, principal.id, self._deeds.tainted_by)
        return self.models.perform(call, scope)

    def keep_answer(self, model: LanguageModel, request: Request) -> bool:
        """Hold back tokens and dollars for a last answer, so that there is one whatever limit is reached.

        A program calls it before its first model call, with the longest request that `last_answer` may get: short
        facts and few output tokens, and no tools. What is held back nothing else can spend, in nested runs neither.

        Returns:
            False if that is more than a quarter of what the run begins with; then there may be no last answer.
        """
        return self.models.keep_answer(model, request)

    async def last_answer(self, call: ModelCall) -> Response | None:
        """What the model makes of what there is, when a limit has been reached; null if it cannot be asked.

        Args:
            call: Of the purpose `answer`, which no `max_iterations` forbids, for the model of `keep_answer`.
        """
        self.models.release_answer()
        try:
            return await self.model(call)
        except (BudgetExhausted, ModelError, ModelRefused):
            return None  # the journal tells why, and the run ends with what it has

    def underway(self) -> ConcurrentCalls[Any, Any]:
        """An empty set of calls that are under way, for a program that has many of them at once."""
        return ConcurrentCalls(self._parking)

    def wait_all(self, pending: Sequence[Pending[T]]) -> Coroutine[Any, Any, list[T]]:
        """Wait for all calls; results in order."""
        return self._parking.results(pending)

    async def wait_signal(
        self,
        name: str,
        *,
        position: str | None = None,
        timeout_s: float | None = None,
        status: RunStatus = "awaiting_client",
    ) -> Signal | None:
        """Wait for a signal from outside, for days if need be; null if the time is over before it comes.

        Args:
            name: Of the signal; one that was left before the wait began counts.
            position: Of the part of the program that waits, where several may wait for one signal.
            timeout_s: Seconds from the moment in which the wait began; null for ever.
            status: How the run stands meanwhile.
        """
        return await self._parking.through(lambda: self._special.waits.signal(name, position, timeout_s, status))

    async def sleep(self, name: str, seconds: float, *, hold_s: float = 0.0) -> None:
        """Let time pass. The run holds nothing meanwhile, unless that is over within `hold_s` seconds."""
        await self._parking.through(lambda: self._special.waits.rest(name, seconds, hold_s))

    async def sleep_until(self, name: str, moment: datetime, *, hold_s: float = 0.0) -> None:
        """Let time pass until a moment, as `sleep`; one that is over is no wait."""
        await self._parking.through(lambda: self._special.waits.until(name, moment, hold_s))

    def start_child(self, position: str, tool: ToolRevision, arguments: JsonObject) -> Pending[RunResult]:
        """Start a nested run at once."""
        return self.start(self.spawn(position, tool, arguments))

    async def emit(self, key: str, kind: str, data: Json = None) -> None:
        """Tell something, once per key however often the program runs."""
        if key not in self._history.progress:
            self._history.progress[key] = data
            self.log.add(ProgressMade(key=key, kind=kind, data=data))

    def has_begun(self, position: str) -> bool:
        """Whether the journal has a call at a position, ended or not."""
        return position in self._history.intents or position in self._history.envelopes

    @property
    def progress_keys(self) -> Collection[str]:
        """Keys of what it has told so far, in order; in a fork, after those what the other run told next."""
        return {**self._history.progress, **self.prior_runs.progress}

    @property
    def ahead(self) -> Sequence[Event] | None:
        """In a replay what was recorded of the run since it was taken; null elsewhere."""
        return self._around.foretell(self.run_id)

    def find_progress(self, key: str) -> Json:
        """What was told under a key; null if nothing was."""
        return self._history.progress.get(key)

    async def once(self, key: str, kind: str, make: Callable[[], Awaitable[Json]]) -> Json:
        """Find something out that may be different the next time: what was found the first time is what holds.

        Args:
            key: Names it in the run.
            kind: What it is, for readers of the journal.
            make: Finds it out; called once in the life of the run, unless it fails or a crash comes between. What a
                tool brings that it calls at the position `key` is known to the run also when it is not called again.
        """
        if key not in self._history.progress:
            await self.emit(key, kind, await self.prior_runs.find_or_make(key, lambda: self.learn(key, make)))
        envelope = self._history.envelopes.get(key)
        if envelope is not None:
            self._note(envelope)
        return self._history.progress[key]

    async def learn(self, key: str, make: Callable[[], Awaitable[Json]]) -> Json:
        """What `make` finds out, or in a replay what it found then; it is for the program to tell."""
        return await self._around.learn(self.run_id, key, make)

    def know(self, events: Sequence[Event]) -> None:
        """Take what happened in another run as what has happened here: all of it or, if a crash comes, nothing."""
        for entry in self.log.add_all(events):
            self._history.take(entry)
        self.models.know(self._history)

    def go_on_from(self, facts: Recorded, fork: Fork) -> None:
        """Take from now on from another run what is asked for as it was there."""
        recording = Recording(facts, fork, self._history.used_events)
        self.prior_runs.recording = self.models.recording = recording
        self.run = self.run.model_copy(update={"created_at": facts.began_at})

    def warn(self, warning: str) -> None:
        """Say something in the run's result, once; a program that is started again says it again."""
        if warning not in self.warnings:
            self.warnings.append(warning)

    def start(self, work: Coroutine[Any, Any, T]) -> Pending[T]:
        """Start a part of the program beside the rest of it."""
        return self._parking.start(work)

    def leave(self) -> None:
        """Begin nothing any more: the run goes on in another process as soon as what is under way has ended."""
        self._parking.leave()

    @property
    def left(self) -> bool:
        """Whether a part of the program has not gone on because the run is being left."""
        return self._parking.left

    @property
    def acting(self) -> bool:
        """Whether a call that writes was cut off, so that its effect may still come."""
        nested = self.open_children.values()
        return any(
            intent.side_effects == "writes" and intent.position not in nested for intent in self.log.open_calls.values()
        )

    def stop_waiting(self) -> None:
        """Have all parts of the program give up that wait for somebody outside: what they wait for matters no more."""
        self._parking.close()

    def keep(self, data: bytes) -> Coroutine[Any, Any, str]:
        """Keep a large text that many calls share, such as a prompt; returns its digest."""
        return self._around.blobs.put(data, realm=self.run.realm, made_by=self.run.made_by)

    async def read_blob(self, digest: str) -> bytes:
        """What was kept under a digest.

        Raises:
            NotFound: This realm has nothing of that digest.
        """
        return await self._around.blobs.get(self.run.realm, digest)

    async def end_orphan(self, run_id: str) -> None:
        """End a nested run whose caller has ended, and wait until it has, whoever drives it."""
        while not (await self.past.run(run_id)).ended:
            await self._run_ports.abandon(run_id)
            await self._around.clock.sleep(LOOK_S)

    @property
    def past(self) -> EndedRuns:
        """Other runs, to be read."""
        return self._around.past

    def note_limit(self, limit: str, value: float, maximum: float, message: str) -> None:
        """Record that a limit was reached."""
        self.log.add(LimitReached(limit=limit, value=value, maximum=maximum, message=message))

    # What the executor asks back: CallJournal -------------------------------------------------------------------------

    def fence(self) -> Coroutine[Any, Any, None]:
        """Raise `Fenced` if another process may have the run."""
        return self._run_ports.fence()

    async def intend(self, intent: CallStarted) -> None:
        """Record an intent; durable on return if the call has side effects."""
        appended = self.log.add(intent)
        if intent.side_effects == "writes":
            await appended
            await self.fence()

    async def confirm(self, request: ApprovalRequested) -> ApprovalDecision | None:
        """Ask a person."""
        return await self._special.approvals.confirm(request, acting=self.principal.id)

    async def ask_as_a_whole(self, position: str, tool: ToolRevision) -> JsonObject | None:
        """Ask a person for the run itself; returns its arguments as they were edited, null if they were not.

        Raises:
            Denied: The person said no, or nobody said anything in time.
        """
        call = CallRequest(position, tool.name, self.request.input, tool.content_hash)
        builder = EnvelopeBuilder(call, self._call_context(), self._around.clock)
        asks = GuardDecision(outcome="ask", rule="confirmation", message="a person must confirm")
        return await confirm(builder, request_of(builder, tool, asks, self._around.clock))

    async def ask(self, position: str, workflow: ToolRevision, question: Question) -> ApprovalDecision | None:
        """Ask a person what a step of a workflow asks; null if nobody decided in time."""
        request = request_for(question, position, workflow, self._around.clock.now())
        return await self._parking.through(lambda: self.confirm(request))

    async def give_up(self, position: str) -> None:
        """Let what waits at a position wait for nobody: what is asked is withdrawn, its nested runs are ended."""
        self._special.approvals.give_up(position)
        for child_id, place in list(self.open_children.items()):
            if place == position or place.startswith(f"{position}."):
                await self._abandon(child_id)

    async def ask_caller(self, position: str, question: CallerQuestion) -> str | None:
        """Ask who has started the run, or is at the other end of its conversation; null if there is nobody."""
        if not may_ask(self.request):
            return None
        place = question_place(position, question)
        asked = asked_question(self.run_id, position, question)
        await self.emit(question_key(place), QUESTION_ASKED, asked.model_dump(mode="json"))
        signal = await self._special.waits.signal(answer_signal(place), None, None, "awaiting_answer")
        return None if signal is None else str(signal.payload["answer"])

    async def hand_off(self, prepared: ToolEnvelope) -> ClientResult:
        """Let a client perform a prepared call."""
        return await self._special.client_calls.hand_off(prepared)

    def find_client_call(self, position: str) -> ToolEnvelope | None:
        """What was handed to a client at a position before this process took the run."""
        handed = self._history.handoffs.get(position)
        return None if handed is None else handed.envelope

    async def spawn(
        self,
        position: str,
        tool: ToolRevision,
        arguments: JsonObject,
        *,
        attempt: int = 1,
        instead_of: FailedCall | None = None,
        timeout_s: float | None = None,
    ) -> RunResult:
        """Run a nested run to its end."""
        return await self._spawn(self, Nested(position, tool, arguments, attempt, instead_of, timeout_s))

    def live_call(self, position: str, attempt: int) -> AbstractContextManager[LiveCall]:
        """Let the followers of the run see an attempt of a call."""
        return self._around.live.call(self.run_id, self.log.number_of(position), attempt)

    def keep_traceback(self, position: str, text: str) -> None:
        """See `CallJournal`."""
        self._tracebacks[position] = text

    def find_failed_call(self, position: str) -> FailedCall | None:
        """How the call at a position failed, if a fallback was started for it before this process took the run."""
        return self._history.failed.get(position)

    def child_ended(self, child_run_id: str) -> None:
        """A nested run has ended: there is nothing of it to be ended any more."""
        self.open_children.pop(child_run_id, None)

    def child_started(self, started: ChildStarted) -> None:
        """Record a nested run, once."""
        self.open_children[started.child_run_id] = started.position
        if started.child_run_id not in self._history.children:
            self.log.add(started)

    # Inside -----------------------------------------------------------------------------------------------------------

    def _known(self, call: CallRequest) -> ToolEnvelope | None:
        """What a call has brought before, here or in another run of which it may be taken."""
        envelope = self._history.envelopes.get(call.position)
        if envelope is None and self.prior_runs.known:
            passes = partial(self._around.executor.passes, call, self._call_context())
            envelope = self.prior_runs.outcome(call, self.policy, passes)
        if envelope is not None:
            self._around.in_doubt.check_same(call, envelope.name)
            self._note(envelope)
        return envelope

    async def _run_call(self, call: CallRequest) -> ToolEnvelope:
        """Make a call, again each time when what it has waited for is there."""
        history, parking = self._history, self._parking
        parking.check()
        while True:
            try:
                if self.prior_runs.known or call.position in history.intents or call.position in history.doubted:
                    envelope, is_settled = await self._go_on_with(call)
                else:
                    envelope, is_settled = await self._around.executor.execute(call, self._call_context()), False
                if is_settled or envelope.error is None or not await self._special.unknown_outcomes.take(envelope):
                    await self._record(envelope)
                    return envelope
            except Suspended as wait:
                await parking.wait_out(wait)
                parking.check()

    async def _go_on_with(self, call: CallRequest) -> tuple[ToolEnvelope, bool]:
        """Make a call that was begun before, or that another run may have made: as far as it must be made.

        Returns:
            The envelope, and whether it is what is said of a call in doubt, of which nobody is asked again.
        """
        if self._special.unknown_outcomes.holds(call.position):
            settled = await self._special.unknown_outcomes.settle(call.position, self._part)
            if settled is not None:
                return settled, True
        context = self._call_context()
        if self.prior_runs.fork_at(call.position, call.name) is not None:  # what is nested skips its own calls
            context = msgspec.structs.replace(context, dry_run=self.request.dry_run)
        self._special.client_calls.count_anew(call.position)
        intent = self._history.intents.get(call.position)
        if intent is not None:
            self._around.in_doubt.check_same(call, intent.name)
            verdict = await self._special.unknown_outcomes.judge(self._part, intent)
            if verdict is not None:
                self.budget.release(call.position)
                self.budget.take_nested(tool_calls=1, tokens=0, cost_usd=Decimal(0))  # its price is counted as lost
                self.budget.find_cost(verdict.cost_usd)
                return verdict, True
            context = msgspec.structs.replace(context, attempt=intent.attempt + 1)
            call = msgspec.structs.replace(call, idempotency_key=intent.idempotency_key)
        else:
            known = await self.prior_runs.decide_repeat(
                call, self.policy, partial(self._special.unknown_outcomes.judge, self._part)
            )
            if isinstance(known, ToolEnvelope):
                return known, True
            call = msgspec.structs.replace(call, idempotency_key=known or call.idempotency_key)
        return await self._around.executor.execute(call, context), False

    @property
    def _part(self) -> InquiryScope:
        return InquiryScope(self._call_context(), self.confirm, self._record)

    async def _record(self, envelope: ToolEnvelope) -> None:
        position = envelope.position
        self._note(envelope)
        if self._history.approvals:
            self._special.approvals.close(position)
        if self.open_children:
            for child_id in [child for child, place in self.open_children.items() if place == position]:
                await self._abandon(child_id)
        failure = envelope.error
        denial = denial_of(failure) if envelope.status == "denied" and failure is not None else None
        traceback = self._tracebacks.pop(position, None)
        self.log.add(CallFinished(position=position, envelope=envelope, decision=denial, traceback=traceback))

    async def _abandon(self, child_id: str) -> None:
        """End a nested run that nobody waits for any more, if it has not ended itself."""
        del self.open_children[child_id]
        await self._run_ports.abandon(child_id)

    def _call_context(self) -> CallContext:
        """For whom and under which rules calls are made now."""
        run, request = self.run, self.run.request
        starter, callers, skips_writes = self._standing
        return CallContext(
            principal=self.principal,
            policy=self.policy,
            budget=self.budget,
            journal=self,
            lanes=self._lanes,
            run_id=run.run_id,
            epoch=run.epoch,
            starter=starter,
            conversation_id=request.conversation_id,
            session_id=request.session_id,
            depth=request.depth,
            callers=callers,
            dry_run=skips_writes,
            tainted_by=self._deeds.tainted_by,
            pins=request.pins,
        )

    def _note(self, envelope: ToolEnvelope) -> None:
        """What a call has brought is known to the run from now on."""
        deeds = self._deeds
        if envelope.metadata:
            for warning in incomplete(envelope, nested=not self.run.request.has_old_rules):
                said = warning.removeprefix(f"{envelope.name}: ")
                if not any(said in known for known in self.warnings):
                    self.warn(warning)
            deeds.cost_unknown = deeds.cost_unknown or _has_unknown_cost(envelope)
        deeds.wrote = deeds.wrote or has_acted(envelope)
        if envelope.tainted and deeds.tainted_by is None:
            deeds.tainted_by = f"{envelope.name} at {envelope.position}"

    async def settle(self, *, cancel: bool) -> None:
        """Wait until nothing is under way any more, cancelling it first if it shall not end by itself."""
        self._parking.close()
        tasks = list(self._parking.tasks)
        for task in tasks:
            if cancel:
                task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def leave_budget(self) -> None:
        """Give back to the callers what is held back here and will not be spent, because the run waits or has ended."""
        self.models.release_answer()
        self.budget.park(self.run_id)

    def close_open_calls(self, reason: Reason) -> None:
        """Give every call that was cut off its envelope, so that the journal tells what is known of it."""
        for intent in list(self.log.open_calls.values()):
            envelope = self._special.client_calls.as_handed_over(
                self._around.in_doubt.cut_off(intent, self.run, reason)
            )
            self._deeds.wrote |= has_acted(envelope)
            self.log.add(CallFinished(position=intent.position, envelope=envelope))


def _has_unknown_cost(envelope: ToolEnvelope) -> bool:
    return nested_facts(envelope).get("cost_unknown") is True


Program: TypeAlias = Callable[[RunContext, ToolRevision], Awaitable[RunEnd]]
"""The code of one kind of run: an async function that touches the world only through its context.

It gets the pinned revision of the tool that the run executes. It may be started again at any time, in any process,
from its first line: calls that the journal knows return at once. So it uses no clock, no randomness and no I/O of its
own, and its calls have fixed positions.
"""
