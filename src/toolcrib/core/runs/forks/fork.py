"""What a fork keeps of the original run: its journal up to one event, and the revision with the fork's changes.

Kept are ended calls and answers, recorded facts, signals and decisions for steps; open calls count as not done, and so
do approvals of open calls. Later results can be reused if the fork repeats a call. Nothing is written here. The
changes are in the run's request, so every process and replay applies them in the same way; a changed model is in the
request itself.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import takewhile
from typing import Final, TypeAlias, TypeVar

from pydantic import ValidationError

from toolcrib.contracts import (
    CANCEL,
    AgenticImplementation,
    AgentImplementation,
    AllocatedTool,
    ApprovalDecided,
    ApprovalRequested,
    ApprovalWithdrawn,
    CallFinished,
    ChildStarted,
    Event,
    InvalidInput,
    Json,
    JsonObject,
    ModelDenied,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    ProgressMade,
    Reason,
    Run,
    RunEvent,
    RunFinished,
    RunRequest,
    SignalReceived,
    ToolcribError,
    ToolEnvelope,
    ToolRevision,
    Usage,
)
from toolcrib.contracts.runs.forks import FORKED, Fork, ForkChanges, PolicyChange
from toolcrib.contracts.runs.recordings import Recorded, RecordedAnswer, RecordedCall, RecordedFailure, RecordedRun
from toolcrib.contracts.workflows import WorkflowImplementation
from toolcrib.core.runs.interrupts.recovery import Pinned
from toolcrib.core.runs.interrupts.suspension import EndedRuns
from toolcrib.core.runs.journal.history import wait_key

_CUT_OFF: Final = frozenset({Reason.CANCELLED, Reason.RUN_TIMEOUT})
_STOPPED: Final = frozenset({"cancelled", "timed_out"})
_TOOLS: Final = frozenset({"tools_resolved", "tools_allotted"})
"""What tells of the tools that a run may call."""
_UNPAID: Final = {"usage": Usage(), "cost_usd": Decimal(0)}


async def read_recorded(request: RunRequest, fork: Fork, run_id: str, *, past: EndedRuns, tools: Pinned) -> Recorded:
    """What a fork knows from the start, and what it may take later.

    Args:
        request: What the fork was asked.
        fork: The run that it is a fork of, and where that is cut.
        run_id: Id of the fork.
        past: Reads that run's journal, and those of its nested runs.
        tools: Finds the revisions that it has called.

    Raises:
        NotFound: That run is gone.
    """
    original = await past.run(fork.run_id)
    journal = _Journal(original, await past.events(fork.run_id), fork)
    calls = [] if fork.anew else [call async for call in _without_replaced(journal.calls(), request, past)]
    if fork.changes.policy is not None:  # what was refused may be allowed now
        calls = [call for call in calls if call.envelope.status != "denied"]
    return Recorded(
        run_id=fork.run_id,
        began_at=journal.began_at,
        seed=journal.seed,
        known=tuple(journal.events_before_cut(run_id)),
        calls=tuple(calls),
        answers=() if fork.anew else tuple(journal.answers()),
        failures=() if fork.anew else tuple(journal.failures()),
        found={} if fork.anew else journal.progress_after_cut(),
        signals=() if fork.anew else tuple(journal.signals()),
        nested={position: child async for position, child in journal.nested_runs(past)},
        schemas=await _schemas((call.envelope.content_hash for call in calls), tools, original.realm),
    )


class _Journal:
    """The journal of a run, cut at one of its events.

    Args:
        run: The run.
        events: All of them.
        fork: Where it is cut, and what is different.
    """

    def __init__(self, run: Run, events: Sequence[RunEvent], fork: Fork) -> None:
        self._run_id, self._writes = run.run_id, fork.allow_writes
        cut_off = _cut_off(events)
        kept = [entry for entry in events if entry.number not in cut_off and not _is_other(entry.event, fork)]
        self._before = [entry for entry in kept if entry.number <= fork.at]
        self._after = [entry for entry in kept if entry.number > fork.at]
        self._moment = self._before[-1].at
        self._starts: dict[tuple[str, int], ModelStarted] = {}
        self._shown: dict[str, ApprovalRequested] = {}
        """The first request to a person for each call."""
        for entry in kept:
            if isinstance(entry.event, ModelStarted):
                self._starts[entry.event.position, entry.event.attempt] = entry.event
            elif isinstance(entry.event, ApprovalRequested):
                self._shown.setdefault(entry.event.position, entry.event)
        self.began_at, self.seed = run.created_at, run.run_id
        for entry in kept:
            if isinstance(entry.event, ProgressMade) and entry.event.key == FORKED:
                self.began_at, self.seed = entry.event.data["began_at"], entry.event.data["seed"]

    # What is known ----------------------------------------------------------------------------------------------------

    def events_before_cut(self, run_id: str) -> Iterator[Event]:
        """The events of a fork that say the same as those until the cut."""
        requests: dict[str, ApprovalRequested] = {}
        for entry in self._before:
            match entry.event:
                case CallFinished() as event if ".reconcile" not in event.position:
                    envelope = copy_envelope(event.envelope, by=run_id, made_in=self._run_id)
                    yield event.model_copy(update={"envelope": envelope, "taken_from": entry.number})
                case ModelFinished() | ModelFailed() | ModelDenied() as event:
                    yield from self._answer_events(event, entry.number)
                case SignalReceived(name=name) as event if name != CANCEL:
                    yield event
                case ProgressMade(key=key) as event if key != FORKED:
                    yield event
                case ApprovalRequested(step=str()) as event:
                    requests[event.position] = event
                case ApprovalDecided(position=position) | ApprovalWithdrawn(position=position, for_good=True) as event:
                    if position in requests and not (self._writes and _lets_through(event)):
                        yield requests[position]
                        yield event
                case _:
                    pass

    def _answer_events(self, event: ModelFinished | ModelFailed | ModelDenied, number: int) -> Iterator[Event]:
        if isinstance(event, ModelDenied):
            yield event
            return
        if isinstance(event, ModelFailed) and event.retry_in_s is not None:
            return
        started = self._start_of(event)
        if started is not None:
            yield started.model_copy(update={"decision": None})
        yield copy_answer(event, number) if isinstance(event, ModelFinished) else copy_failure(event)

    def _start_of(self, event: ModelFinished | ModelFailed) -> ModelStarted | None:
        """What the model was asked: the first attempt says it."""
        return self._starts.get((event.position, 1))

    # What may be taken later ------------------------------------------------------------------------------------------

    def calls(self) -> Iterator[RecordedCall]:
        """Calls that ended after the cut, unless nothing was done because the run was a dry one."""
        for entry in self._after:
            event = entry.event
            if not isinstance(event, CallFinished) or ".reconcile" in event.position:
                continue
            if event.envelope.status != "skipped":
                shown = self._shown.get(event.position)
                arguments = event.envelope.input if shown is None else shown.input
                yield RecordedCall(event=entry.number, envelope=event.envelope, asked=arguments)

    def answers(self) -> Iterator[RecordedAnswer]:
        """Answers of models that came after the cut, as far as it is known what was asked."""
        for entry in self._after:
            event = entry.event
            if isinstance(event, ModelFinished) and (request_hash := self._request_hash(event)):
                yield RecordedAnswer(event=entry.number, request_hash=request_hash, end=event)

    def failures(self) -> Iterator[RecordedFailure]:
        """Last failures of models that came after the cut, likewise."""
        for entry in self._after:
            event = entry.event
            if (
                isinstance(event, ModelFailed)
                and event.retry_in_s is None
                and (request_hash := self._request_hash(event))
            ):
                yield RecordedFailure(event=entry.number, request_hash=request_hash, end=event)

    def _request_hash(self, event: ModelFinished | ModelFailed) -> str | None:
        started = self._start_of(event)
        return None if started is None else started.request_hash

    def progress_after_cut(self) -> JsonObject:
        """What was told after the cut, by key."""
        notes = (entry.event for entry in self._after if isinstance(entry.event, ProgressMade))
        return {event.key: event.data for event in notes if event.key != FORKED}

    def signals(self) -> Iterator[SignalReceived]:
        """Signals that were received after the cut, each wait's own."""
        received = (entry.event for entry in self._after if isinstance(entry.event, SignalReceived))
        yield from {wait_key(event.name, event.position): event for event in received if event.name != CANCEL}.values()

    async def nested_runs(self, past: EndedRuns) -> AsyncIterator[tuple[str, RecordedRun]]:
        """Nested runs of calls that had not ended at the cut, by position, as far as those had come by then."""
        ended = {entry.event.position for entry in self._before if isinstance(entry.event, CallFinished)}
        for entry in (*self._before, *self._after):
            event = entry.event
            if isinstance(event, ChildStarted) and event.instead_of is None and event.position not in ended:
                events = await past.events(event.child_run_id)
                if events:  # else a crash came before it was made, or it was taken from yet another run
                    at = sum(other.at <= self._moment for other in events) if entry in self._before else 1
                    name = event.tool.partition("@")[0]
                    yield event.position, RecordedRun(run_id=event.child_run_id, tool=name, at=max(at, 1))


def copy_envelope(envelope: ToolEnvelope, *, by: str, made_in: str) -> ToolEnvelope:
    """An envelope as a run has it that has taken it over, and has neither called nor paid.

    Args:
        envelope: As the other run has it.
        by: Id of the run that takes it.
        made_in: Id of the run that it is taken from.
    """
    own = {"reused": envelope.reused or made_in, "attempts": 0, "cost_usd": None, "run_id": by}
    return envelope.model_copy(update=own)


def copy_answer(event: ModelFinished, number: int) -> ModelFinished:
    """An answer as a fork has it, which has neither asked nor paid.

    Args:
        event: As the other run has it.
        number: Of the event there.
    """
    own = {"cost_source": "fork", "not_priced": (), "attempts": 0, "duration_s": 0.0, "taken_from": number}
    return event.model_copy(update={**_UNPAID, **own})


def copy_failure(event: ModelFailed) -> ModelFailed:
    """The last failure of a model call as a fork has it, likewise."""
    return event.model_copy(update={**_UNPAID, "attempt": 1})


def _lets_through(event: ApprovalDecided | ApprovalWithdrawn) -> bool:
    """Whether a person has said yes: to what that run did then, and not to what a fork may do once more."""
    return isinstance(event, ApprovalDecided) and event.decision is not None and event.decision.approved


def _is_other(event: Event, fork: Fork) -> bool:
    """Whether an event tells which tools there are, and the fork has others."""
    policy = fork.changes.policy
    if policy is None or (policy.tools is None and policy.side_effects is None) or not isinstance(event, ProgressMade):
        return False
    return event.kind in _TOOLS


def _cut_off(events: Sequence[RunEvent]) -> set[int]:
    """Numbers of the events that say of calls how they were cut off when the run was ended; its program never knew."""
    last = events[-1].event
    if not isinstance(last, RunFinished):
        return set()
    reasons = {*_CUT_OFF, *([Reason.OUTCOME_UNKNOWN] if last.status in _STOPPED else [])}

    def is_cut_off(entry: RunEvent) -> bool:
        failure = entry.event.envelope.error if isinstance(entry.event, CallFinished) else None
        return failure is not None and failure.reason in reasons

    return {entry.number for entry in takewhile(is_cut_off, reversed(events[:-1]))}


async def _without_replaced(
    calls: Iterable[RecordedCall], request: RunRequest, past: EndedRuns
) -> AsyncIterator[RecordedCall]:
    """The calls in whose nested runs, at any depth, nothing was called that is called in another revision now."""
    for call in calls:
        nested = call.envelope.metadata.get("run_id")
        if not (request.replaced and isinstance(nested, str) and await _has_called(request.replaced, nested, past)):
            yield call


async def _has_called(hashes: Mapping[str, str], run_id: str, past: EndedRuns) -> bool:
    """Whether a run, or one that is nested in it, has called one of these revisions, or is of one of them."""
    events = await past.events(run_id)
    for entry in events:
        event = entry.event
        if isinstance(event, CallFinished) and event.envelope.content_hash in hashes:
            return True
        if isinstance(event, ChildStarted) and await _has_called(hashes, event.child_run_id, past):
            return True
    return False


async def _schemas(hashes: Iterable[str | None], tools: Pinned, realm: str) -> dict[str, JsonObject]:
    """Input schemas of revisions, of those that are known here."""
    found: dict[str, JsonObject] = {}
    for content_hash in {*hashes} - {None}:
        try:
            tool = await tools.get_revision(realm, content_hash or "")
        except ToolcribError:
            continue
        found[tool.content_hash] = tool.definition.input_schema
    return found


_Program: TypeAlias = AgenticImplementation | AgentImplementation | WorkflowImplementation
"""What has limits and rules of its own."""
_ProgramT = TypeVar("_ProgramT", bound=_Program)


def as_asked(tool: ToolRevision, request: RunRequest) -> ToolRevision:
    """The revision as a run executes it.

    Args:
        tool: The revision that the request names.
        request: What the run was asked.

    Raises:
        InvalidInput: The changes do not fit the tool.
    """
    return tool if request.fork is None else _with_changes(tool, request.fork.changes)


def _with_changes(tool: ToolRevision, changes: ForkChanges) -> ToolRevision:
    """The revision with changes, under the content hash that its definition has then.

    Raises:
        InvalidInput: It has nothing that could be changed so, or would not be well formed.
    """
    if changes.are_none:
        return tool
    implementation = tool.definition.implementation
    if not isinstance(implementation, AgenticImplementation | AgentImplementation | WorkflowImplementation):
        msg = f"{tool.ref!r} is of kind {implementation.kind!r}, which has no prompt, model or policy that could change"
        raise InvalidInput(msg)
    inside: _Program = implementation
    if changes.policy is not None:
        inside = _with_policy(inside, changes.policy)
    if changes.prompt is not None or changes.llm:
        inside = _with_model(inside, changes, tool.ref)
    definition = tool.definition.model_copy(update={"implementation": inside})
    return tool.model_copy(update={"definition": definition, "content_hash": definition.content_hash()})


def _with_model(implementation: _Program, changes: ForkChanges, ref: str) -> _Program:
    if isinstance(implementation, WorkflowImplementation):
        msg = f"workflow {ref!r} has no prompt and no model of its own; fork the run of the agent that it asks"
        raise InvalidInput(msg)
    update: JsonObject = {} if changes.prompt is None else {"system_prompt": changes.prompt}
    if changes.llm:
        update["llm"] = {**implementation.llm.model_dump(mode="json"), **changes.llm}
    return _with_update(implementation, update)


def _with_policy(implementation: _Program, policy: PolicyChange) -> _Program:
    update: JsonObject = {}
    if policy.limits:
        update["limits"] = {**implementation.limits.model_dump(mode="json"), **policy.limits}
    if policy.tools is not None:
        _require(implementation, "tools")
        update["tools"] = [AllocatedTool(tool=ref) for ref in policy.tools]
    rules: dict[str, Json] = {
        "guardrails": policy.guardrails,
        "side_effects": policy.side_effects,
        "requires_approval": policy.requires_approval,
    }
    for name, value in rules.items():
        if value is not None:
            _require(implementation, name)
            update[name] = value
    return _with_update(implementation, update)


def _require(implementation: _Program, field: str) -> None:
    if field not in type(implementation).model_fields:
        msg = f"a tool of kind {implementation.kind!r} has no {field!r} that a fork could change; leave it out"
        raise InvalidInput(msg)


def _with_update(implementation: _ProgramT, update: JsonObject) -> _ProgramT:
    """The implementation with other fields, as if it had been read so."""
    content = {name: getattr(implementation, name) for name in type(implementation).model_fields}
    try:
        return type(implementation).model_validate({**content, **update})
    except ValidationError as problem:
        raise InvalidInput(f"the changed definition is not valid: {_first(problem)}") from problem


def _first(problem: ValidationError) -> str:
    found = problem.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, found['loc']))}: {found['msg'].removeprefix('Value error, ')}"
