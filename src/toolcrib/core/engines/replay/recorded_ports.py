"""Ports of a replay: time, tools, models, secrets, sandboxes and caps that return recorded values and do nothing.

The executor's checks before a tool lead to the recorded outcome, and the outcome itself is returned. A nested run is
not returned but replayed.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from decimal import Decimal
from itertools import count
from typing import Final, cast

from toolcrib.contracts import (
    DELEGATES,
    CallFinished,
    CallStarted,
    ChildStarted,
    ClientHandoff,
    FailedCall,
    GuardDecision,
    Json,
    JsonObject,
    LimitReached,
    ModelStarted,
    OpenQuestion,
    Principal,
    ProgressMade,
    RateLimit,
    Reason,
    RunEvent,
    StopReason,
    ToolcribError,
    ToolDefinition,
    ToolEnvelope,
    ToolRevision,
)
from toolcrib.core.engines.replay.event_comparison import ReplayState
from toolcrib.core.engines.replay.ordering import never
from toolcrib.core.engines.replay.recording import RunSegment
from toolcrib.core.executor import (
    BlobSink,
    CallContext,
    CallerQuestion,
    CallFailed,
    CallRequest,
    Dispatch,
    Dispatcher,
    ExecutionRules,
    Executor,
    Outcome,
    Tools,
)
from toolcrib.core.executor.fallbacks import failure_of
from toolcrib.core.executor.retries import rule_for
from toolcrib.core.policy import (
    BUDGET,
    CALL_LIMITS,
    Budget,
    CapReservation,
    Guardrails,
    Shortage,
    Spend,
    Spender,
    take_call,
)
from toolcrib.core.policy.permissions import Accounts
from toolcrib.core.runs.interrupts.signals import question_key

_REFUSALS: Final = (Reason.BUDGET_EXCEEDED, Reason.BUDGET_UNKNOWN)
_LIMITS: Final[Mapping[str, tuple[Reason, StopReason]]] = {
    "max_total_tokens": (Reason.MAX_TOKENS_EXCEEDED, "max_tokens"),
    "max_cost_usd": (Reason.MAX_COST_EXCEEDED, "max_cost"),
}
_UNTOLD: Final = Shortage(BUDGET, 0, 0, Reason.BUDGET_EXCEEDED, "policy")
"""Why a last answer was not asked for: the journal has the limit that was reached before, and not this one."""


class ReplayCaps:
    """The caps on what many runs spend together.

    Args:
        stage: Of the replay.
    """

    def __init__(self, stage: ReplayState) -> None:
        self._stage = stage

    async def reserve(
        self, spender: Spender, ticket: str, most: Spend, *, tool: str | None = None
    ) -> CapReservation | Shortage:
        """What was said when it was asked then."""
        del spender, most
        run_id, position = ticket.split("/", 1)
        return self._model(run_id, position.removeprefix("model/")) if tool is None else self._call(run_id, position)

    async def settle(self, reservation: CapReservation, spent: Spend) -> None:
        """Nothing is counted."""

    def _call(self, run_id: str, position: str) -> CapReservation | Shortage:
        started, outcome = (
            self._stage.life(run_id).find("call_started", position),
            self._stage.outcome(run_id, position),
        )
        if started is not None and isinstance(started.event, CallStarted):
            return CapReservation(position, facts=_facts(started.event.decision))
        refused = None if outcome is None else outcome[1].envelope.error
        reason = None if refused is None else refused.reason
        if refused is None or reason is None or reason not in _REFUSALS:
            return CapReservation(position)
        numbers = (refused.details or {}).get("inputs", {})
        return Shortage(
            BUDGET,
            numbers.get("value", 0),
            numbers.get("maximum", 0),
            reason,
            "policy",
            text=refused.message,
            free_in_s=refused.retry_after_s,
        )

    def _model(self, run_id: str, position: str) -> CapReservation | Shortage:
        life, part = self._stage.life(run_id), self._stage.parts[run_id]
        for key, entries in part.open.items():
            if key[:2] == ("model_started", position) and entries:
                return CapReservation(position, facts=_decision_facts(entries))
        for entry in part.open.get(("limit_reached", BUDGET), ()):
            if isinstance(entry.event, LimitReached):
                reached = entry.event
                reason = Reason.BUDGET_EXCEEDED
                return Shortage(BUDGET, reached.value, reached.maximum, reason, "policy", text=reached.message)
        if part.planned is not None:  # what an older release would have asked for a plan may have been longer
            for limit, (reason, stop) in _LIMITS.items():
                for reached in (entry.event for entry in part.open.get(("limit_reached", limit), ())):
                    if isinstance(reached, LimitReached):
                        return Shortage(limit, reached.value, reached.maximum, reason, stop, text=reached.message)
        return CapReservation(position) if life.end is None else _UNTOLD


def _decision_facts(entries: Sequence[RunEvent]) -> dict[str, object]:
    event = entries[0].event
    return _facts(event.decision) if isinstance(event, ModelStarted) else {}


def _facts(decision: GuardDecision | None) -> dict[str, object]:
    return {name: value for name, value in (decision.inputs if decision else {}).items() if name == "budgets"}


RUN: Final[ContextVar[str]] = ContextVar("RUN")
"""The run that this task replays."""
_CALL: Final[ContextVar[tuple[str, str] | None]] = ContextVar("_CALL", default=None)
"""Run and position of the call that this task makes."""
_NOT_HELD: Final = "(a secret that the recording does not hold)"
_OLD_DOUBT: Final = "; the effect is unknown"
_UNRESOLVED: Final = "which cannot be resolved: "


class _Given(BaseException):
    """The tool would run now: its outcome is in the recording. Not an `Exception`, so that the executor lets it by."""

    def __init__(self, dispatch: Dispatch, envelope: ToolEnvelope) -> None:
        super().__init__(envelope.position)
        self.dispatch = dispatch
        self.envelope = envelope


class ReplayClock:
    """Time as the recording tells it: the moment of what happens next. Nobody waits longer than the others need."""

    def __init__(self, stage: ReplayState) -> None:
        self._stage = stage
        self._score = stage.score
        self._started = self._score.now()

    def now(self) -> datetime:
        """The moment of the next event."""
        return self._score.now()

    def monotonic(self) -> float:
        """Seconds since the first event."""
        return (self._score.now() - self._started).total_seconds()

    async def sleep(self, seconds: float) -> None:
        """Wait for the recorded time to pass."""
        await self._score.rest(seconds, self._last(RUN.get()))

    async def sleep_out(self, run_id: str, wait: str, seconds: float) -> None:
        """Sleep through a wait of a run until it was over then; as long as it lasts if its process died before."""
        over = self._stage.life(run_id).find("signal_received", wait, "")
        await (self._score.rest(seconds, self._last(run_id)) if over is None else self._score.turn(over))

    async def pause(self, seconds: float) -> None:
        """Wait likewise, but no longer than until somebody outside is heard."""
        await self._score.rest(seconds, self._last(RUN.get()), until_heard=True)

    def _last(self, run_id: str) -> RunEvent:
        """What a run has written last in the life that is replayed."""
        return self._stage.life(run_id).events[-1]


class Deadlines:
    """Ends runs and calls when they were ended then, and never sooner."""

    def __init__(self, stage: ReplayState) -> None:
        self._stage = stage
        self._watching: set[asyncio.Task[None]] = set()

    def of_run(self, seconds: float) -> asyncio.Timeout:
        """The time limit of the run that this task replays."""
        return self._until(self._stage.life(RUN.get()).find("limit_reached", "timeout_s"))

    def of_call(self, seconds: float) -> asyncio.Timeout:
        """The time limit of the call that this task makes."""
        call = _CALL.get()
        found = None if call is None else self._stage.outcome(*call)
        if call is None or found is None or _reason(found[1].envelope) is not Reason.TOOL_TIMEOUT:
            return asyncio.timeout(None)
        entry, _ = found
        begun = (life.events[0] for life in self._next_lives(*call))
        ends = [first for first in begun if self._stage.score.is_before(first, entry)]
        return self._until(ends[0] if ends else entry)

    def _next_lives(self, run_id: str, position: str) -> list[RunSegment]:
        """The lives in which the nested runs of a call were ended that its time-out had cut off."""
        events = (entry.event for entry in self._stage.life(run_id).events)
        children = (one.child_run_id for one in events if isinstance(one, ChildStarted) and one.position == position)
        parts = (self._stage.parts.get(child) for child in children)
        return [life for part in parts if part is not None for life in part.lives[1:] if life.end is not None]

    def _until(self, entry: RunEvent | None) -> asyncio.Timeout:
        limit = asyncio.timeout(None)
        if entry is not None:
            watch = asyncio.create_task(self._expire(limit, entry))
            self._watching.add(watch)
            watch.add_done_callback(self._watching.discard)
        return limit

    async def _expire(self, limit: asyncio.Timeout, entry: RunEvent) -> None:
        await self._stage.score.turn(entry)
        with contextlib.suppress(RuntimeError):  # it has ended by itself meanwhile
            limit.reschedule(asyncio.get_running_loop().time())

    def close(self) -> None:
        """Watch for nothing any more."""
        for watch in list(self._watching):
            watch.cancel()


class ReplayExecutor:
    """The executor, with a world around it that is the recording's.

    Args:
        stage: Of the replay.
        tools: Finds revisions.
        delegates: Runs tools that are runs of their own.
        clock: Of the replay.
        deadlines: Of the replay.
        blob_sink: Keeps what is too large.
        guardrails: Asks the rules of agents.
        accounts: Finds service accounts.
    """

    def __init__(
        self,
        stage: ReplayState,
        *,
        tools: Tools,
        delegates: Dispatcher,
        clock: ReplayClock,
        deadlines: Deadlines,
        blob_sink: BlobSink,
        guardrails: Guardrails,
        accounts: Accounts,
    ) -> None:
        world = _World(stage)
        self.caps = ReplayCaps(stage)
        self._stage = stage
        self._executor = Executor(
            tools=_Tools(stage, tools),
            dispatcher=_Outcomes(stage, delegates),
            secrets=world,
            results=world,
            blob_sink=blob_sink,
            rates=world,
            clock=clock,
            rules=ExecutionRules(
                guardrails, accounts, self.caps, deadlines.of_call, world.take_call, shares_calls=False
            ),
        )

    @property
    def guardrails(self) -> Guardrails:
        """Asks the rules of agents."""
        return self._executor.guardrails

    async def execute(self, call: CallRequest, context: CallContext) -> ToolEnvelope:
        """Make a call up to the tool, and give it the outcome that it had."""
        token = _CALL.set((context.run_id, call.position))
        try:
            return self._with_old_time_out(await self._executor.execute(call, context), context.run_id)
        except _Given as given:
            return self._to_envelope(given, context)
        finally:
            _CALL.reset(token)

    def passes(self, call: CallRequest, context: CallContext) -> bool:
        """Whether a call would run, without anybody being asked."""
        token = _CALL.set((context.run_id, call.position))
        try:
            return self._executor.passes(call, context)
        finally:
            _CALL.reset(token)

    def _with_old_time_out(self, made: ToolEnvelope, run_id: str) -> ToolEnvelope:
        """An envelope with what an older release said of a read that took too long: that its effect is unknown."""
        found = self._stage.outcome(run_id, made.position) if _reason(made) is Reason.TOOL_TIMEOUT else None
        recorded = None if found is None else found[1].envelope.error
        if made.error is None or recorded is None:
            return made
        is_worded_anew = recorded.message.replace(_OLD_DOUBT, "") == made.error.message
        return made.model_copy(update={"error": recorded}) if is_worded_anew else made

    def _to_envelope(self, given: _Given, context: CallContext) -> ToolEnvelope:
        """What the tool brought, as the outcome of the call that was made now."""
        tool, known = given.dispatch.tool, given.envelope
        intent = self._stage.parts[context.run_id].intents[given.dispatch.position]
        if known.metadata.get("sent") is False:
            context.budget.return_tool_call()
        context.budget.add_cost((known.cost_usd or Decimal(0)) - (tool.definition.cost_usd_per_call or Decimal(0)))
        return known.model_copy(
            update={
                "call_id": intent.call_id,
                "name": tool.name,
                "version": tool.version,
                "position": intent.position,
                "input": intent.input,
                "run_id": context.run_id,
                "conversation_id": context.conversation_id,
                "session_id": context.session_id,
                "side_effects": tool.definition.side_effects,
                "content_hash": tool.content_hash,
            }
        )


class _Tools:
    """Finds what a name meant then: a revision that was not pinned is the recorded one, and is in service as it was."""

    def __init__(self, stage: ReplayState, tools: Tools) -> None:
        self._stage = stage
        self._tools = tools

    def find(self, realm: str, name: str, version: str | None) -> ToolRevision | None:
        """The revision that a call gets."""
        found, call = self._tools.find(realm, name, version), _CALL.get()
        if call is None:
            return found
        recorded, refused = _revision_of(self._stage.life(call[0]), call[1])
        is_pinned = version is not None and version.startswith("sha256:")
        if recorded is not None and not is_pinned and (found is None or found.content_hash != recorded):
            found = self._tools.find(realm, name, recorded)
        if found is None or refused:
            return found
        definition = _as_prepared(found) if found.definition.runs_on == "client" else found.definition
        return found.model_copy(update={"status": "active", "definition": definition})


class _Outcomes:
    """Dispatches to nobody: a tool's outcome is the recorded one, once it is its turn."""

    def __init__(self, stage: ReplayState, delegates: Dispatcher) -> None:
        self._stage = stage
        self._delegates = delegates

    async def dispatch(self, dispatch: Dispatch) -> Outcome:
        """The outcome, if the recording has one; else what was cut off hangs until it is cut off again."""
        run_id, position = dispatch.context.run_id, dispatch.position
        life, definition = self._stage.life(run_id), dispatch.tool.definition
        handed = life.find("client_handoff", position)
        if handed is not None and isinstance(handed.event, ClientHandoff):
            await self._stage.score.turn(handed)
            return _to_outcome(handed.event.envelope)
        for entry in life.events:
            if isinstance(entry.event, ChildStarted) and entry.event.position == position and entry.event.instead_of:
                await self._stage.score.turn(entry)
                raise _original_failure(dispatch, entry.event.instead_of)
        if definition.implementation.kind in DELEGATES and self._has_nested(run_id, position):
            return await self._delegates.dispatch(dispatch)
        await self._ask_again(dispatch)
        found = self._stage.outcome(run_id, position)
        if found is None:
            await never()
        entry, event = cast("tuple[RunEvent, CallFinished]", found)
        await self._stage.score.turn(entry)
        raise _Given(dispatch, event.envelope)

    async def _ask_again(self, dispatch: Dispatch) -> None:
        """Ask what the call has asked by the end of this life; suspends the run as it was then.

        A question is asked when it is its turn, and one of an earlier life at once, for its answer.
        """
        run_id, position = dispatch.context.run_id, dispatch.position
        life = self._stage.life(run_id)
        for number in count(1):
            key = question_key(f"{position}.ask{number}")
            entry = life.find("progress_made", key)
            before = (each.event for each in life.before if isinstance(each.event, ProgressMade))
            asked = entry.event if entry is not None else next((each for each in before if each.key == key), None)
            if not isinstance(asked, ProgressMade):
                return
            if entry is not None:
                await self._stage.score.turn(entry)
            was = OpenQuestion.model_validate(asked.data)
            question = _as_asked(number, was)
            await dispatch.context.journal.ask_caller(position, question)

    def _has_nested(self, run_id: str, position: str) -> bool:
        """Whether the nested runs of a call are in the recording, if it had any."""
        events = (entry.event for entry in self._stage.parts[run_id].recorded.events)
        nested = [one.child_run_id for one in events if isinstance(one, ChildStarted) and one.position == position]
        return all(child_id in self._stage.parts for child_id in nested)


def _as_asked(number: int, was: OpenQuestion) -> CallerQuestion:
    """A question as the call has asked it."""
    further = tuple(_as_asked(number + at, each) for at, each in enumerate(was.together_with, 1))
    return CallerQuestion(
        number, was.question, was.answer_schema, was.name, was.asked_of, was.max_tokens, together_with=further
    )


class _World:
    """What the executor asks besides: secrets, rates and cached results, answered as they were for this very call."""

    def __init__(self, stage: ReplayState) -> None:
        self._stage = stage

    async def resolve(self, reference: str, principal: Principal, hosts: Sequence[str] = ()) -> str | None:
        """A stand-in for a secret, if there was one.

        Raises:
            ToolcribError: It could not be resolved then.
        """
        del reference, principal, hosts
        envelope = self._refusal_for(Reason.MISSING_SECRET)
        if envelope is None or envelope.error is None:
            return _NOT_HELD
        _, could_not, why = envelope.error.message.partition(_UNRESOLVED)
        if could_not:
            raise ToolcribError(why)
        return None

    def take_call(self, budget: Budget, position: str, cost_usd: Decimal | None) -> Shortage | None:
        """Count a call, or refuse it, as it was then: which calls beside it come first depends on the store's speed."""
        call, envelope = _CALL.get(), self._outcome()
        refused = None if envelope is None else _shortage_of(envelope)
        if refused is None and (call is None or not self._was_let_through(*call)):
            return take_call(budget, position, cost_usd)
        if refused is None:
            budget.count_tool_call(position)
        return refused

    def _was_let_through(self, run_id: str, position: str) -> bool:
        life = self._stage.life(run_id)
        return any(life.find(kind, position) is not None for kind in ("call_started", "child_started", "call_finished"))

    async def take(self, key: str, limit: RateLimit, *, now: float) -> float | None:
        """How long a call had to wait, if its rate limit refused it."""
        del key, limit, now
        envelope = self._refusal_for(Reason.RATE_LIMITED)
        return None if envelope is None or envelope.error is None else envelope.error.retry_after_s

    async def get(self, key: str, *, now: datetime) -> JsonObject | None:
        """What was known of an equal call, if that was what this one got."""
        del key, now
        envelope = self._outcome()
        if envelope is None or not envelope.cached:
            return None
        return envelope.model_dump(mode="json", include={"output", "http_status", "metadata", "attachments", "tainted"})

    async def put(self, key: str, value: JsonObject, *, realm: str, made_by: str, expires_at: datetime | None) -> None:
        """Nothing is kept."""

    def _outcome(self) -> ToolEnvelope | None:
        call = _CALL.get()
        found = None if call is None else self._stage.outcome(*call)
        return None if found is None else found[1].envelope

    def _refusal_for(self, reason: Reason) -> ToolEnvelope | None:
        """The outcome, if the call was refused for a reason before it was sent."""
        call, envelope = _CALL.get(), self._outcome()
        if call is None or envelope is None or _reason(envelope) is not reason:
            return None
        return None if self._stage.life(call[0]).find("call_started", call[1]) else envelope


class RecordedObservations:
    """What programs found out of the world then."""

    def __init__(self, stage: ReplayState) -> None:
        self._stage = stage

    async def learn(self, run_id: str, key: str, make: Callable[[], Awaitable[Json]]) -> Json:
        """What was found then. Calls that were made to find it are made again.

        Raises:
            ToolcribError: It could not be found out then.
        """
        life = self._stage.life(run_id)
        entry = life.find("progress_made", key)
        if any(getattr(one.event, "position", None) == key for one in life.events):
            with contextlib.suppress(ToolcribError):
                await make()
        if entry is not None and isinstance(entry.event, ProgressMade):
            await self._stage.score.turn(entry)
            return entry.event.data
        if life.end is None or life.end.error is None:
            await never()
        self._stage.parts[run_id].excused = True
        raise ToolcribError("this could not be found out when the run was recorded")


def _shortage_of(envelope: ToolEnvelope) -> Shortage | None:
    """The limit of its run that has refused a call; null if none has."""
    details = (envelope.error.details if envelope.error else None) or {}
    reason, inputs = _reason(envelope), details.get("inputs")
    maximum = cast("JsonObject", inputs).get("maximum") if isinstance(inputs, dict) else None
    if envelope.error is None or envelope.status != "denied":
        return None  # a nested run that ended at a limit of its own was called all the same
    if reason is None or reason not in CALL_LIMITS or not isinstance(maximum, int | float):
        return None
    limit, message = str(details.get("rule")), envelope.error.message
    return Shortage(limit, maximum, maximum, reason, CALL_LIMITS[reason], text=message)


def _reason(envelope: ToolEnvelope) -> Reason | None:
    return None if envelope.error is None else envelope.error.reason


def _revision_of(life: RunSegment, position: str) -> tuple[str | None, bool]:
    """The content hash of what was called at a position, and whether its life cycle refused the call."""
    for kind in ("call_started", "call_finished"):
        entry = life.find(kind, position)
        match entry.event if entry is not None else None:
            case CallFinished(envelope=envelope):
                details = (envelope.error.details if envelope.error else None) or {}
                return envelope.content_hash, details.get("rule") == "life_cycle"
            case None:
                continue
            case intent:
                return getattr(intent, "content_hash", None), False
    approvals = [entry.event for entry in life.events if entry.event.type == "approval_requested"]
    return next((one.content_hash for one in approvals if one.position == position), None), False


def _as_prepared(tool: ToolRevision) -> ToolDefinition:
    """The definition of a client's tool whose payload is given as it was prepared."""
    return tool.definition.model_copy(update={"select": None, "cost_from": None})


def _to_outcome(envelope: ToolEnvelope) -> Outcome:
    return Outcome(
        envelope.output,
        http_status=envelope.http_status,
        metadata=envelope.metadata,
        attachments=envelope.attachments,
        tainted=envelope.tainted,
    )


def _original_failure(dispatch: Dispatch, record: FailedCall) -> CallFailed:
    """The failure in whose place a fallback was called, before the author's words were put in front of it."""
    failure = failure_of(record)
    rule = rule_for(dispatch.tool.definition, failure.error, failure.http_status)
    message = failure.error.message
    if rule is not None and rule.message is not None and message.startswith(f"{rule.message} ("):
        failure.error = failure.error.model_copy(update={"message": message[len(rule.message) + 2 : -1]})
    return failure
