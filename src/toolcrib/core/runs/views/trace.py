"""The trace of a run: its journal as steps with reasoning, tokens, cost and time.

Events that begin and end the same thing become one step. Long values are shortened; the journal has all of them.
Nested runs are passed in by id. It works for active and ended runs. Pure: events in, `Trace` out.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, cast

import orjson

from toolcrib.contracts import (
    ActionCost,
    AgenticMode,
    ApprovalDecided,
    ApprovalRequested,
    ApprovalStatus,
    ApprovalStep,
    ApprovalWithdrawn,
    CallFinished,
    CallStarted,
    ChildStarted,
    ClientHandoff,
    ClientReturned,
    CostBreakdown,
    FailedAttempt,
    HandoffStep,
    InvalidInput,
    Json,
    JsonObject,
    LimitReached,
    LimitStep,
    LLMCost,
    LLMStep,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    ProgressMade,
    ProgressStep,
    ResumptionStep,
    RunEvent,
    RunFinished,
    RunResumed,
    RunStarted,
    RunStatus,
    RunSuspended,
    Signal,
    SignalAwaited,
    SignalReceived,
    SignalStep,
    Step,
    SuspensionStep,
    ToolStep,
    Trace,
    Usage,
)
from toolcrib.contracts.runs.events import CallDoubted
from toolcrib.contracts.runs.runs import CostBounds
from toolcrib.contracts.runs.trace import CutOffCost
from toolcrib.core.runs.interrupts.recovery import in_doubt, settlement_of
from toolcrib.core.runs.journal.history import History, lost_calls, nested_facts, spending_on_calls, wait_key
from toolcrib.infrastructure.store import Journal
from toolcrib.llm import Response, Thinking, decode_messages, decode_response

_ITEMS, _LENGTH = 50, 300
"""Where shortening starts: items of a list, characters of a text."""
_SHORTEST = 20
_DEEPER = 4
"""Lists inside lists are cut so much sooner: what each of a hundred batches says counts more than all of the first."""


def shorten_json(value: Json, limit: int) -> Json:
    """The value, with lists and texts cut until its JSON has at most `limit` characters, or cutting helps no more."""
    short, items, length = value, _ITEMS, _LENGTH
    while len(orjson.dumps(short).decode()) > limit and (items > 1 or length > _SHORTEST):
        short = _cut(value, items, length)
        items, length = max(items // 2, 1), max(length // 2, _SHORTEST)
    return short


def clip_text(text: str, limit: int) -> str:
    """The text, or its beginning and how long it is."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def _cut(value: Json, items: int, length: int) -> Json:
    if isinstance(value, str):
        return clip_text(value, length)
    if isinstance(value, dict):
        return {key: _cut(item, items, length) for key, item in cast("JsonObject", value).items()}
    if isinstance(value, list):
        whole = cast("list[Json]", value)
        kept = [_cut(item, max(items // _DEEPER, 1), length) for item in whole[:items]]
        return [*kept, f"… {len(whole) - items} more of {len(whole)}"] if len(whole) > items else kept
    return value


_STOPPED: Final = "calls that were stopped"
"""Name of the line for what nested runs had paid whose calls were stopped before they could tell it."""


def costs_of(
    steps: Sequence[Step], history: History, *, tokens: int, ended: RunFinished | None = None
) -> CostBreakdown:
    """What each call cost, and what those may have cost that were cut off.

    Args:
        steps: Of the run itself; a nested run is one action here, and has its own trace.
        history: Of the run.
        tokens: Input and output tokens in all.
        ended: The end of the run, if it has ended.
    """
    models = [step for step in steps if isinstance(step, LLMStep) and step.status == "success"]
    tools = [step for step in steps if isinstance(step, ToolStep)]
    actions = [
        ActionCost(position=step.position, action=step.action, cost_usd=step.cost)
        for step in tools
        if step.cost is not None
    ]
    cut_off = tuple(_cut_off(history)) if ended is not None or history.suspensions else ()
    total = sum(
        (step.cost for step in models if step.cost is not None), sum((each.cost_usd for each in actions), _ZERO)
    )
    if ended is not None and ended.cost_usd is not None:
        written = ended.as_read()
        tells = written is None or "cut_off" in written
        reserved = _ZERO if tells else sum((each.upper_usd or _ZERO for each in cut_off), _ZERO)
        untold = ended.cost_usd - reserved - total
        if untold > _SMALLEST:
            total += untold
            actions.append(ActionCost(position="", action=_STOPPED, cost_usd=untold))
    unknown = any(step.cost is None or step.not_priced for step in models) or any(
        nested_facts(envelope).get("cost_unknown") is True for envelope in history.envelopes.values()
    )
    unknown |= ended is not None and ended.cost_unknown
    return CostBreakdown(
        total_cost_usd=None if unknown and not total else total,
        cost_unknown=unknown,
        total_tokens=tokens,
        llm_calls=tuple(
            LLMCost(
                position=step.position,
                purpose=step.purpose,
                model=step.model,
                input_tokens=step.input_tokens,
                output_tokens=step.output_tokens,
                cost_usd=step.cost,
                cost_source=step.cost_source,
                not_priced=step.not_priced,
            )
            for step in models
        ),
        action_calls=tuple(actions),
        cut_off=cut_off,
    )


_ZERO: Final = Decimal(0)
_SMALLEST: Final = Decimal("1e-9")
"""US dollars: less comes of recorded reservations, which are floats."""


def _cut_off(history: History) -> Iterator[CutOffCost]:
    """The attempts of model calls and the calls of tools that were cut off, with those of nested runs."""
    for lost in history.wasted:
        yield CutOffCost(position=lost.position, name=lost.model, upper_usd=lost.cost_usd)
    for call in lost_calls(history):
        price = call.decision.inputs.get("price_usd")
        if price is not None:
            yield CutOffCost(position=call.position, name=call.name, upper_usd=Decimal(str(price)))
    for envelope in history.envelopes.values():
        at_most = nested_facts(envelope).get("cut_off_usd")
        if at_most is not None:
            upper = Decimal(at_most) or None
            yield CutOffCost(position=envelope.position, name=envelope.name, upper_usd=upper)


def reasoning_of(response: Response) -> str | None:
    """The model's thinking as far as it was shown, and its words beside its calls; or the `reasoning` of its JSON."""
    thought = "\n".join(
        part.text for part in response.message.parts if isinstance(part, Thinking) and part.text and not part.redacted
    )
    said = response.message.text.strip()
    if response.message.calls:
        return "\n".join(filter(None, (thought, said))) or None
    given = _object(said).get("reasoning")
    return thought or (given if isinstance(given, str) and given else None)


def decision_of(response: Response) -> str | None:
    """The calls that the model asked for, else its answer without the reasons; null if it said nothing."""
    calls = response.message.calls
    if calls:
        return "call " + ", ".join(f"{call.name}({call.args})" for call in calls)
    rest = {name: value for name, value in _object(response.message.text).items() if name != "reasoning"}
    only = next(iter(rest.values())) if len(rest) == 1 else None
    if isinstance(only, str):
        return only
    return json.dumps(rest, ensure_ascii=False) if rest else response.message.text.strip() or None


def _object(text: str) -> JsonObject:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return cast("JsonObject", found) if isinstance(found, dict) else {}


_LONGEST_TEXT = 600
"""Characters of a question or a decision."""
_LARGEST_RESULT = 2000
"""Characters of a result as JSON."""


def steps_of(events: Iterable[RunEvent], children: Mapping[str, Trace]) -> Sequence[Step]:
    """The steps of a run's events, numbered from 1 in the order in which they began.

    Args:
        events: In order.
        children: Traces of nested runs by run id.
    """
    reader = _Reader(children)
    for entry in events:
        reader.take(entry)
    return reader.steps


class _Reader:
    def __init__(self, children: Mapping[str, Trace]) -> None:
        self.steps: list[Step] = []
        self._children = children
        self._places: dict[tuple[type[object], str], int] = {}
        """Index of a step by its class and its position or name."""
        self._steps_before = 0
        """How many steps there were when a model was asked last."""
        self._after_crash = False
        """Whether the process that writes now took the run on after another one's death."""

    def take(self, entry: RunEvent) -> None:
        match entry.event:
            case ModelStarted() as event:
                self._model_started(entry, event)
            case ModelFailed() as event:
                self._model_failed(event)
            case ModelFinished() as event:
                self._model_finished(event)
            case CallStarted() as event:
                self._call_started(entry, event)
            case CallFinished() as event:
                self._call_finished(entry, event)
            case CallDoubted(position=position, envelope=envelope):
                self._change(ToolStep, position, error=envelope.error, attempts=envelope.attempts)
            case ChildStarted() as event:
                self._child_started(event)
            case RunFinished():
                self._cut_off()
            case _:
                self._take_wait(entry)

    def _take_wait(self, entry: RunEvent) -> None:
        match entry.event:
            case ApprovalRequested() as event:
                self._approval_requested(entry, event)
            case ApprovalDecided() as event:
                self._approval_decided(event)
            case ApprovalWithdrawn() as event:
                self._change(ApprovalStep, event.position, status="cancelled", reason=event.reason)
            case ClientHandoff() as event:
                self._take_client_call(entry, event)
            case ClientReturned() as event:
                self._take_client_result(event)
            case SignalAwaited() as event:
                self._take_signal_wait(entry, event)
            case SignalReceived() as event:
                self._take_signal(entry, event)
            case _:
                self._take_note(entry)

    def _take_note(self, entry: RunEvent) -> None:
        """What is a step of its own, in one event."""
        place: dict[str, Any] = {"number": self._next, "started_at": entry.at}
        match entry.event:
            case RunSuspended() as event:
                fields = event.model_dump(exclude={"type", "spent", "left", "tainted"})
                self.steps.append(SuspensionStep(**place, **fields))
            case RunResumed() as event:
                self._after_crash = event.cause == "crash"
                self.steps.append(ResumptionStep(**place, cause=event.cause, epoch=event.epoch))
            case LimitReached() as event:
                self.steps.append(LimitStep(**place, **event.model_dump(exclude={"type"})))
            case ProgressMade() as event:
                self.steps.append(ProgressStep(**place, kind=event.kind, data=event.data))
            case _:
                pass

    # Model calls ------------------------------------------------------------------------------------------------------

    def _model_started(self, entry: RunEvent, event: ModelStarted) -> None:
        if self._change(LLMStep, event.position, status="running", attempts=event.attempt):
            return
        step = LLMStep(
            purpose=event.purpose,
            number=self._next,
            position=event.position,
            model=event.model,
            status="running",
            started_at=entry.at,
            input=self._question(event),
            attempts=event.attempt,
        )
        self._add(step, event.position)
        self._steps_before = len(self.steps)

    def _question(self, event: ModelStarted) -> str:
        if event.messages is None:
            called = [step.action for step in self.steps[self._steps_before :] if isinstance(step, ToolStep)]
            return f"results of {', '.join(dict.fromkeys(called))}" if called else ""
        messages = decode_messages(orjson.dumps(event.messages))
        return clip_text("\n".join(message.text for message in messages), _LONGEST_TEXT)

    def _model_failed(self, event: ModelFailed) -> None:
        step = cast("LLMStep", self.steps[self._places[LLMStep, event.position]])
        failure = FailedAttempt(**event.model_dump(include=set(FailedAttempt.model_fields)))
        status = "error" if event.retry_in_s is None else "running"
        self._change(LLMStep, event.position, status=status, failures=(*step.failures, failure))

    def _model_finished(self, event: ModelFinished) -> None:
        response = decode_response(orjson.dumps(event.response))
        decision = decision_of(response)
        self._change(
            LLMStep,
            event.position,
            status="success",
            model=event.model,
            reasoning=reasoning_of(response),
            decision=None if decision is None else clip_text(decision, _LONGEST_TEXT),
            tokens=event.usage.total_tokens,
            input_tokens=event.usage.input_tokens,
            output_tokens=event.usage.output_tokens,
            cost=event.cost_usd,
            cost_source=event.cost_source,
            not_priced=event.not_priced,
            attempts=event.attempts,
            latency_ms=round(event.duration_s * 1000),
        )

    # Tool calls -------------------------------------------------------------------------------------------------------

    def _call_started(self, entry: RunEvent, event: CallStarted) -> None:
        known = self._places.get((ToolStep, event.position))
        if known is not None:
            repeats = cast("ToolStep", self.steps[known]).repeats
            self._change(ToolStep, event.position, repeats=repeats + self._after_crash)
            return
        step = ToolStep(
            action=event.name,
            number=self._next,
            position=event.position,
            version=event.version,
            status="running",
            started_at=entry.at,
            parameters=event.input,
            side_effects=event.side_effects,
            rule=event.decision.rule,
            idempotency_key=event.idempotency_key,
        )
        self._add(step, event.position)

    def _call_finished(self, entry: RunEvent, event: CallFinished) -> None:
        envelope, decision = event.envelope, event.decision
        if (ToolStep, event.position) not in self._places:
            step = ToolStep(
                action=envelope.name,
                number=self._next,
                position=event.position,
                version=envelope.version,
                status="running",
                started_at=entry.at,
                parameters=envelope.input,
                side_effects=envelope.side_effects,
                rule=decision.rule if decision else None,
            )
            self._add(step, event.position)
        self._change(
            ToolStep,
            event.position,
            status=envelope.status,
            approved_parameters=envelope.approved_input,
            result=shorten_json(envelope.output, _LARGEST_RESULT),
            error=envelope.error,
            attempts=envelope.attempts,
            cached=envelope.cached,
            reused=envelope.reused,
            truncated=envelope.truncated,
            http_status=envelope.http_status,
            metadata=envelope.metadata,
            cost=envelope.cost_usd,
            latency_ms=round((envelope.t_end - envelope.t_start).total_seconds() * 1000),
        )

    def _child_started(self, event: ChildStarted) -> None:
        child = self._children.get(event.child_run_id)
        if event.instead_of is None:
            self._change(ToolStep, event.position, child_run_id=event.child_run_id, child=child)
        else:
            self._change(ToolStep, event.position, fallback_run_id=event.child_run_id, fallback=child)

    def _cut_off(self) -> None:
        """When a run ends, nothing of it goes on."""
        for index, step in enumerate(self.steps):
            if isinstance(step, LLMStep | ToolStep) and step.status == "running":
                self.steps[index] = step.model_copy(update={"status": "error"})

    # Waits ------------------------------------------------------------------------------------------------------------

    def _approval_requested(self, entry: RunEvent, event: ApprovalRequested) -> None:
        step = ApprovalStep(
            action=event.name,
            number=self._next,
            position=event.position,
            status="waiting",
            started_at=entry.at,
            parameters=event.input,
            message=event.message,
        )
        self._add(step, event.position)

    def _approval_decided(self, event: ApprovalDecided) -> None:
        decision = event.decision
        status: ApprovalStatus = "expired"
        if decision is not None:
            status = "rejected" if not decision.approved else "approved" if decision.edited_input is None else "edited"
        self._change(
            ApprovalStep,
            event.position,
            status=status,
            edited_parameters=decision.edited_input if decision else None,
            reason=decision.reason if decision else None,
            made_by=event.made_by,
        )

    def _take_client_call(self, entry: RunEvent, event: ClientHandoff) -> None:
        step = HandoffStep(
            action=event.envelope.name,
            number=self._next,
            position=event.position,
            status="waiting",
            started_at=entry.at,
            payload=shorten_json(event.envelope.output, _LARGEST_RESULT),
        )
        self._add(step, event.position)

    def _take_client_result(self, event: ClientReturned) -> None:
        result = event.result
        self._change(
            HandoffStep,
            event.position,
            status="success" if result.error is None else "error",
            result=shorten_json(result.output, _LARGEST_RESULT),
            error=result.error,
            made_by=event.made_by,
        )

    def _take_signal_wait(self, entry: RunEvent, event: SignalAwaited) -> None:
        step = SignalStep(
            name=event.name, number=self._next, status="waiting", wake_at=event.wake_at, started_at=entry.at
        )
        self._add(step, wait_key(event.name, event.position))

    def _take_signal(self, entry: RunEvent, event: SignalReceived) -> None:
        key = wait_key(event.name, event.position)
        if (SignalStep, key) not in self._places:
            self._add(SignalStep(name=event.name, number=self._next, status="waiting", started_at=entry.at), key)
        status = "timed_out" if event.payload is None else "received"
        self._change(SignalStep, key, status=status, payload=event.payload, made_by=event.made_by)

    # The list ---------------------------------------------------------------------------------------------------------

    @property
    def _next(self) -> int:
        return len(self.steps) + 1

    def _add(self, step: Step, key: str) -> None:
        self._places[type(step), key] = len(self.steps)
        self.steps.append(step)

    def _change(self, kind: type[object], key: str, **fields: Any) -> bool:
        """Set fields of a step; false if there is none."""
        index = self._places.get((kind, key))
        if index is None:
            return False
        self.steps[index] = self.steps[index].model_copy(update=fields)
        return True


def trace_of(events: Sequence[RunEvent], children: Mapping[str, Trace] | None = None) -> Trace:
    """Read the trace out of a run's events.

    Args:
        events: From the first on, in order.
        children: Traces of nested runs by run id, as far as they are wanted.

    Raises:
        InvalidInput: The events do not begin with the run's start.
    """
    first = events[0].event if events else None
    if not isinstance(first, RunStarted):
        msg = "a trace is read from a run's first event on, and these events do not begin with run_started"
        raise InvalidInput(msg)
    steps = steps_of(events, children or {})
    request, last = first.request, events[-1]
    ended = last.event if isinstance(last.event, RunFinished) else None
    usage, history = ended.usage if ended else _usage(steps), History(events)
    tokens = _tokens(ended, usage, history)
    costs = costs_of(steps, history, tokens=tokens, ended=ended)
    return Trace(
        run_id=last.run_id,
        kind=request.kind,
        tool=request.tool,
        mode=_mode(steps) if request.kind == "agentic" else None,
        task=_task(request.input),
        status=_status(last),
        stop_reason=ended.stop_reason if ended else None,
        started_at=events[0].at,
        duration_ms=round((last.at - events[0].at).total_seconds() * 1000),
        active_ms=round(history.active_s * 1000),
        cost=costs.total_cost_usd,
        cost_unknown=costs.cost_unknown,
        cut_off=_bounds(costs.cut_off),
        tokens=tokens,
        usage=usage,
        cost_breakdown=costs,
        output=ended.output if ended else None,
        partial=ended.partial if ended else None,
        error=ended.error if ended else None,
        warnings=ended.warnings if ended else (),
        steps=tuple(steps),
    )


def _status(last: RunEvent) -> RunStatus:
    match last.event:
        case RunFinished(status=status) | RunSuspended(status=status):
            return status
        case RunStarted():
            return "queued"
        case _:
            return "running"


def _mode(steps: Iterable[Step]) -> AgenticMode | None:
    """Only the deterministic mode begins with a plan."""
    first = next((step for step in steps if isinstance(step, LLMStep)), None)
    if first is None:
        return None
    return "deterministic" if first.purpose == "planning" else "agentic"


def _task(given: Json) -> str:
    """What was asked: the task of an agentic tool, the message to an agent; all parameters, where there is neither."""
    arguments = cast("JsonObject", given) if isinstance(given, dict) else {}
    task = arguments.get("task", arguments.get("message"))
    return task if isinstance(task, str) else orjson.dumps(given).decode()


def _usage(steps: Iterable[Step]) -> Usage:
    calls = [step for step in steps if isinstance(step, LLMStep)]
    return Usage(
        input_tokens=sum(step.input_tokens for step in calls), output_tokens=sum(step.output_tokens for step in calls)
    )


def _tokens(ended: RunFinished | None, usage: Usage, history: History) -> int:
    """Input and output tokens, with those of nested runs."""
    if ended is not None and ended.tokens is not None:
        return ended.tokens
    return usage.total_tokens + spending_on_calls(history).tokens


def _bounds(cut_off: Sequence[CutOffCost]) -> CostBounds | None:
    known = [each.upper_usd for each in cut_off if each.upper_usd is not None]
    return CostBounds(upper_usd=sum(known, _ZERO) if known else None) if cut_off else None


async def read_trace(journal: Journal, run_id: str) -> Trace:
    """What a run has done so far, step by step, and what was said of its calls after its end.

    Raises:
        NotFound: No such run.
    """
    await journal.run(run_id)
    return await complete_trace(journal, await journal.events(run_id))


async def complete_trace(journal: Journal, events: Sequence[RunEvent]) -> Trace:
    """What the events of a run tell, with its nested runs and what was said of its calls after its end.

    Args:
        journal: Has the nested runs.
        events: Of the run, from the first on, in order.

    Raises:
        InvalidInput: The events do not begin with the run's start.
    """
    nested = [entry.event.child_run_id for entry in events if isinstance(entry.event, ChildStarted)]
    logs = [await journal.events(child) for child in nested]
    trace = trace_of(events, {log[0].run_id: await complete_trace(journal, log) for log in logs if log})
    if not any(map(_is_in_doubt, trace.steps)):
        return trace
    signals = await journal.signals(trace.run_id)
    return trace.model_copy(update={"steps": tuple(_with_settlement(step, signals) for step in trace.steps)})


def _is_in_doubt(step: Step) -> bool:
    return isinstance(step, ToolStep) and in_doubt(step.side_effects, step.error)


def _with_settlement(step: Step, signals: Mapping[str, Signal]) -> Step:
    if not isinstance(step, ToolStep):
        return step
    return step.model_copy(update={"settled": settlement_of(step.position, signals)})
