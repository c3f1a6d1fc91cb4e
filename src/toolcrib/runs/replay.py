"""A replay: the program of a run that has ended, executed again against the run's journal alone.

It opens no socket, runs no tool, asks no model and writes nothing: every call and every answer comes from the journal.
What the program asks for is held against what it asked for then, and its end against the recorded one; the first
difference ends the replay. It is not a new run: for that there is `recorded_model`. Nor does it judge what a run could
not know of itself: its warnings tell how tools stand at the moment, and its metadata what time it took.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Final, TypeAlias, TypeVar, cast

from msgspec import Struct
from pydantic_core import to_jsonable_python

from toolcrib.contracts import (
    ApprovalRequested,
    CallFinished,
    CallStarted,
    Conflict,
    Divergence,
    JournalDivergence,
    Json,
    JsonObject,
    LimitReached,
    Limits,
    ModelStarted,
    Reason,
    Replay,
    Run,
    RunEvent,
    RunFinished,
    RunResult,
    Signal,
    SignalReceived,
    StopReason,
    ToolEnvelope,
    ToolRevision,
    digest,
)
from toolcrib.executor import CallContext, ToolCall
from toolcrib.llm import Response, messages_as_json
from toolcrib.llm.retry import RetryPolicy
from toolcrib.policy import BUDGET, Budget, Shortage, policy_of, screen
from toolcrib.runs.arguments import holds
from toolcrib.runs.context import Program, RunContext
from toolcrib.runs.history import History
from toolcrib.runs.indoubt import InDoubt, Pinned
from toolcrib.runs.log import RunLog
from toolcrib.runs.modelcalls import BudgetExhausted, ModelCall, ModelCalls
from toolcrib.runs.past import Past
from toolcrib.runs.pending import Pending
from toolcrib.runs.program import Ended, Suspended
from toolcrib.runs.result import result_of
from toolcrib.runs.surroundings import Nested, Surroundings
from toolcrib.store import Blobs, Entry, RunChange

T = TypeVar("T")

Programs: TypeAlias = Callable[["Recording"], Program]
"""Finds the code of a run."""
Failed: TypeAlias = Callable[[Exception, Json], Ended]

_END: Final = ("status", "stop_reason", "output", "error", "attachments")
_FROM_OUTSIDE: Final = frozenset({"timed_out", "cancelled"})
_LIMITS: Final[Mapping[str, tuple[Reason, StopReason]]] = {
    "max_iterations": (Reason.MAX_ITERATIONS_EXCEEDED, "max_iterations"),
    "max_total_tokens": (Reason.MAX_TOKENS_EXCEEDED, "max_tokens"),
    "max_cost_usd": (Reason.MAX_COST_EXCEEDED, "max_cost"),
    BUDGET: (Reason.BUDGET_EXCEEDED, "policy"),
}
"""The limits that stop a model call before it is sent."""
_UNTOLD: Final = Shortage("max_total_tokens", 0, 0, *_LIMITS["max_total_tokens"])
"""Why a last answer was not asked for: the journal has the limit that was reached before, and not this one."""


class Recording(Struct, frozen=True):
    """A run that has ended, as the store has it."""

    run: Run
    events: Sequence[RunEvent]
    tool: ToolRevision
    """The revision that it executed."""
    limits: Limits
    nested: Mapping[str, "Recording"] = {}
    """The runs that were nested in it, by their ids."""

    @property
    def end(self) -> RunFinished:
        """How it ended.

        Raises:
            Conflict: It has not.
        """
        last = self.events[-1].event
        if not isinstance(last, RunFinished):
            msg = f"run {self.run.run_id} has not ended; resume it, and replay it when it has"
            raise Conflict(msg)
        return last

    @property
    def result(self) -> RunResult:
        """The same, as who called it was told."""
        return result_of(self.run.run_id, self.end)

    @property
    def stopped(self) -> bool:
        """Whether it was ended from outside: in the middle of its program, or because it was not admitted."""
        refused = self.end.status == "failed" and len(self.events) == 2
        return refused or self.end.status in _FROM_OUTSIDE


async def replay(
    recording: Recording,
    programs: Programs,
    *,
    tools: Pinned,
    blobs: Blobs,
    past: Past,
    failed: Failed,
) -> Replay:
    """Execute a run's program against its journal, and those of its nested runs against theirs.

    Args:
        recording: The run.
        programs: The code of each run.
        tools: Finds the revisions that calls were started with.
        blobs: Where large texts are read.
        past: Reads the other runs that it has read.
        failed: The end of a program that fails, of the failure and what it had so far.

    Returns:
        What was the same and, if anything was not, the first divergence: of the run, else of a nested one.

    Raises:
        Conflict: The run has not ended.
    """
    recorded, witness = recording.end, _Witness(recording, tools, blobs, past)
    divergence = await _divergence(recording, programs(recording), witness, failed)
    nested = [
        await replay(child, programs, tools=tools, blobs=blobs, past=past, failed=failed)
        for child in recording.nested.values()
    ]
    first = next(filter(None, (divergence, *(one.divergence for one in nested))), None)
    return Replay(
        run_id=recording.run.run_id,
        tool=recording.run.request.tool,
        same=first is None,
        divergence=first,
        status=recorded.status,
        stop_reason=recorded.stop_reason,
        output=recorded.output,
        envelopes=tuple(witness.given),
        model_calls=len(witness.answered),
        nested=tuple(nested),
    )


async def _divergence(recording: Recording, program: Program, witness: "_Witness", failed: Failed) -> Divergence | None:
    """Where the program goes another way than it went, if it does."""
    try:
        ended = await program(witness, recording.tool)
    except _Departed as departed:
        return departed.divergence
    except JournalDivergence as problem:
        return witness.divergence("calls", None, str(problem))
    except Suspended as wait:
        return None if recording.stopped else witness.divergence("waits", None, list(wait.signals))
    except Exception as crash:  # noqa: BLE001 - the edge of a run: its failure is its end, as in the engine
        ended = failed(crash, witness.partial())
    finally:
        await witness.settle(cancel=True)
    return None if recording.stopped else witness.difference_at_end(ended)


class _Departed(BaseException):
    """The program asked for something else than the journal has, or for more. No program may catch it by accident."""

    def __init__(self, divergence: Divergence, *, excused: bool) -> None:
        super().__init__(divergence)
        self.divergence = None if excused else divergence


class _Witness(RunContext):
    """The context of a replayed run: what the journal does not have, nobody gets."""

    def __init__(self, recording: Recording, tools: Pinned, blobs: Blobs, past: Past) -> None:
        run, events = recording.run, recording.events
        clock, history = _Stopped(events[-1].at), History(events)
        log = RunLog(_Nowhere(), run, clock, [Entry.of(shown) for shown in events])
        budget = Budget(recording.limits)
        self.given: list[ToolEnvelope] = []
        """The envelopes that the program has asked for."""
        self.answered: set[str] = set()
        """Positions of the model calls that it has made."""
        self._recording = recording
        self._places = _Places(events)
        reached = (entry.event for entry in events if isinstance(entry.event, LimitReached))
        self._shortages = [event for event in reached if event.limit in _LIMITS]
        super().__init__(
            run,
            log=log,
            history=history,
            models=ModelCalls(log, history, budget, clock, jitter=lambda: 0.0, retry=RetryPolicy()),
            budget=budget,
            policy=policy_of(recording.tool, run.request),
            deadline=float("inf"),
            spawn=self._recorded,
            surroundings=Surroundings(
                executor=_Nobody(),
                in_doubt=InDoubt(tools, clock),
                blobs=_ReadOnly(blobs),
                clock=clock,
                signals=_signals(events),
                arrived=lambda: _done(()),
                leave=lambda signal: _done(result=True),
                abandon=lambda child_id: _done(result=None),
                past=past,
            ),
        )

    def call(self, call: ToolCall) -> Pending[ToolEnvelope]:
        """The recorded envelope of a call that is the recorded one."""
        envelope = self._history.envelopes.get(call.position)
        if envelope is not None:
            at = self._places.of_call(call.position)
            if call.name != envelope.name:
                raise self.departure(f"{call.position}.name", envelope.name, call.name, at)
            asked = self._places.shown.get(call.position, envelope.input)
            was_edited_elsewhere = envelope.reused is not None and envelope.approved_input is not None
            if not was_edited_elsewhere and not holds(
                asked, screen(self.policy.guardrails, "tool_input", call.input).value
            ):
                raise self.departure(f"{call.position}.input", asked, call.input, at)
            self.given.append(envelope)
        return super().call(call)

    async def model(self, call: ModelCall) -> Response:
        """The recorded answer to a request that is the recorded one."""
        history = self._history
        if call.position in history.answers or call.position in history.failures:
            self._check_request(call)
            self.answered.add(call.position)
        elif call.position not in history.denials:
            raise self._not_asked(call)
        return await super().model(call)

    def _check_request(self, call: ModelCall) -> None:
        """Hold a request against the recorded one, as content filters had let it pass."""
        at, recorded = self._places.requests[call.position]
        screened, _ = self.models.screened(call, self.policy.guardrails)
        asked: JsonObject = {
            "purpose": screened.purpose,
            "system": screened.system,
            "tools": screened.tools,
            "messages": messages_as_json(screened.new) if screened.new else None,
            "history": len(screened.request.messages),
        }
        for field, got in asked.items():
            expected = to_jsonable_python(getattr(recorded, field))
            if expected != to_jsonable_python(got):
                raise self.departure(f"{call.position}.{field}", expected, got, at)

    def _not_asked(self, call: ModelCall) -> BaseException:
        """Why a model was not asked then: a limit, the next of those that the journal has; or it never was to be."""
        if self._shortages:
            return BudgetExhausted(_shortage(self._shortages.pop(0)))
        if call.purpose == "answer":
            return BudgetExhausted(_UNTOLD)
        return self.beyond(call.position, {"purpose": call.purpose})

    async def once(self, key: str, kind: str, make: Callable[[], Awaitable[Json]]) -> Json:
        """What was found out then."""
        if key not in self._history.progress:
            raise self.beyond(key, {"kind": kind}, failed=self._recording.end.status == "failed")
        return await super().once(key, kind, make)

    async def _recorded(self, context: RunContext, nested: Nested) -> RunResult:
        """How the recorded nested run ended."""
        for child in self._history.children.values():
            if child.position == nested.position:
                return self._recording.nested[child.child_run_id].result
        raise self.beyond(nested.position, {"tool": nested.tool.ref, "input": nested.arguments})

    def difference_at_end(self, ended: Ended) -> Divergence | None:
        """Where the end is another one, or came before all was asked for that a completed run has."""
        recorded = self._recording.end
        for field in _END:
            expected, got = to_jsonable_python(getattr(recorded, field)), to_jsonable_python(getattr(ended, field))
            if expected != got:
                return self.divergence(field, expected, got)
        if ended.status != "completed":
            return None
        asked = {envelope.position for envelope in self.given} | self._history.progress.keys() | self.answered
        for at, position, name in self._places.asked:
            if position not in asked and ".reconcile" not in position:
                return self.divergence(position, name, None, at)
        return None

    def departure(self, field: str, expected: Json, got: Json, at: int) -> "_Departed":
        """What ends the replay where the program asks for something else than it asked for."""
        return _Departed(self.divergence(field, expected, got, at), excused=False)

    def beyond(self, position: str, got: JsonObject, *, failed: bool = False) -> "_Departed":
        """What ends the replay where the journal has nothing more; `failed` if the run may have failed just there."""
        return _Departed(self.divergence(position, None, got), excused=failed or self._recording.stopped)

    def divergence(self, field: str, expected: Json, got: Json, at: int | None = None) -> Divergence:
        """A difference, at the journal's end if no event is named."""
        event = at or self._recording.events[-1].number
        return Divergence(run_id=self.run_id, event=event, field=field, expected=expected, got=to_jsonable_python(got))


class _Places:
    """Where in the journal the calls of tools and models stand."""

    def __init__(self, events: Iterable[RunEvent]) -> None:
        self.requests: dict[str, tuple[int, ModelStarted]] = {}
        """First requests of model calls, by position, with the numbers of their events."""
        self.shown: dict[str, Json] = {}
        """Arguments of calls as a person was shown them, who may have made others of them."""
        self._calls: dict[str, tuple[int, str]] = {}
        for entry in events:
            match entry.event:
                case ApprovalRequested(position=position, input=shown):
                    self.shown.setdefault(position, shown)
                case ModelStarted() as event:
                    self.requests.setdefault(event.position, (entry.number, event))
                case CallStarted(position=position, name=name):
                    self._calls.setdefault(position, (entry.number, name))
                case CallFinished(position=position, envelope=envelope):
                    self._calls.setdefault(position, (entry.number, envelope.name))
                case _:
                    pass

    def of_call(self, position: str) -> int:
        """Number of the event with which a call began."""
        return self._calls[position][0]

    @property
    def asked(self) -> list[tuple[int, str, str]]:
        """Everything that was asked for, in order: number of the event, position, tool or purpose."""
        calls = ((number, position, name) for position, (number, name) in self._calls.items())
        models = ((number, position, event.purpose) for position, (number, event) in self.requests.items())
        return sorted(chain(calls, models))


class _Nobody:
    """An executor without tools: what the journal does not have is not run."""

    async def execute(self, call: ToolCall, context: CallContext) -> ToolEnvelope:
        """End the replay."""
        raise cast("_Witness", context.journal).beyond(call.position, {"tool": call.name, "input": call.input})


class _Nowhere:
    """A journal that takes no events."""

    def append(
        self, run_id: str, epoch: int, events: Sequence[Entry], change: RunChange | None = None
    ) -> Awaitable[None]:
        """Forget them."""
        return _done(None)


class _ReadOnly:
    """Large texts as they were kept; what is kept anew is only named."""

    def __init__(self, blobs: Blobs) -> None:
        self.get = blobs.get

    async def put(self, data: bytes, *, realm: str, made_by: str, content_type: str = "application/json") -> str:
        """The digest under which the text would be kept."""
        return digest(data)


class _Stopped:
    """A clock that stands at the run's end."""

    monotonic = staticmethod(float)
    """No time passes: always 0.0."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def now(self) -> datetime:
        """The moment of the last event."""
        return self._at

    async def sleep(self, seconds: float) -> None:
        """Nobody waits."""


def _done(result: T) -> Awaitable[T]:
    done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    done.set_result(result)
    return done


def _signals(events: Iterable[RunEvent]) -> Callable[[str], Awaitable[Signal | None]]:
    """Finds the signals that the run received."""
    found = {
        entry.event.name: Signal(
            name=entry.event.name, payload=entry.event.payload, made_by=entry.event.made_by, at=entry.at
        )
        for entry in events
        if isinstance(entry.event, SignalReceived) and entry.event.payload is not None
    }

    async def find(name: str) -> Signal | None:
        return found.get(name)

    return find


def _shortage(reached: LimitReached) -> Shortage:
    reason, stop_reason = _LIMITS[reached.limit]
    said = reached.message if reached.limit == BUDGET else None
    return Shortage(reached.limit, reached.value, reached.maximum, reason, stop_reason, said)
