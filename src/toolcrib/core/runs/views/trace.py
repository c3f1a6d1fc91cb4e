"""The steps of a trace, read event by event. What begins and ends in different events becomes one step."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import orjson

from toolcrib.contracts import (
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
    FailedAttempt,
    HandoffStep,
    LimitReached,
    LimitStep,
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
    RunSuspended,
    SignalAwaited,
    SignalReceived,
    SignalStep,
    Step,
    SuspensionStep,
    ToolStep,
    Trace,
)
from toolcrib.contracts.runs.events import CallDoubted
from toolcrib.core.runs.journal.history import wait_key
from toolcrib.core.runs.views.answers import decision_of, reasoning_of
from toolcrib.core.runs.views.shortening import clipped, shortened
from toolcrib.llm import decode_messages, decode_response

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
        self._asked = 0
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
                self._handed_off(entry, event)
            case ClientReturned() as event:
                self._returned(event)
            case SignalAwaited() as event:
                self._awaited(entry, event)
            case SignalReceived() as event:
                self._received(entry, event)
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
        self._asked = len(self.steps)

    def _question(self, event: ModelStarted) -> str:
        if event.messages is None:
            called = [step.action for step in self.steps[self._asked :] if isinstance(step, ToolStep)]
            return f"results of {', '.join(dict.fromkeys(called))}" if called else ""
        messages = decode_messages(orjson.dumps(event.messages))
        return clipped("\n".join(message.text for message in messages), _LONGEST_TEXT)

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
            reasoning=reasoning_of(response),
            decision=None if decision is None else clipped(decision, _LONGEST_TEXT),
            tokens=event.usage.total_tokens,
            input_tokens=event.usage.input_tokens,
            output_tokens=event.usage.output_tokens,
            cost=event.cost_usd,
            cost_source=event.cost_source,
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
            result=shortened(envelope.output, _LARGEST_RESULT),
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

    def _handed_off(self, entry: RunEvent, event: ClientHandoff) -> None:
        step = HandoffStep(
            action=event.envelope.name,
            number=self._next,
            position=event.position,
            status="waiting",
            started_at=entry.at,
            payload=shortened(event.envelope.output, _LARGEST_RESULT),
        )
        self._add(step, event.position)

    def _returned(self, event: ClientReturned) -> None:
        result = event.result
        self._change(
            HandoffStep,
            event.position,
            status="success" if result.error is None else "error",
            result=shortened(result.output, _LARGEST_RESULT),
            error=result.error,
            made_by=event.made_by,
        )

    def _awaited(self, entry: RunEvent, event: SignalAwaited) -> None:
        step = SignalStep(
            name=event.name, number=self._next, status="waiting", wake_at=event.wake_at, started_at=entry.at
        )
        self._add(step, wait_key(event.name, event.position))

    def _received(self, entry: RunEvent, event: SignalReceived) -> None:
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
