"""A run's trace: a reading of its journal as steps with reasoning, tokens, cost and time.

Pure: events in, `Trace` out. Nested runs are handed in by id. It reads a run that goes on as well as one that ended.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import cast

import orjson

from toolcrib.contracts import (
    AgenticMode,
    InvalidInput,
    Json,
    JsonObject,
    LLMStep,
    RunEvent,
    RunFinished,
    RunStarted,
    RunStatus,
    RunSuspended,
    Step,
    ToolStep,
    Trace,
    Usage,
)
from toolcrib.core.runs.journal.history import History
from toolcrib.core.runs.views.costs import costs_of
from toolcrib.core.runs.views.trace import steps_of


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
    usage = ended.usage if ended else _usage(steps)
    cost, cost_unknown = _cost(ended, steps)
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
        active_ms=round(History(events).active_s * 1000),
        cost=cost,
        cost_unknown=cost_unknown,
        tokens=usage.total_tokens,
        usage=usage,
        cost_breakdown=costs_of(steps, total_usd=cost, tokens=usage.total_tokens),
        output=ended.output if ended else None,
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
    asked = cast("JsonObject", given) if isinstance(given, dict) else {}
    task = asked.get("task", asked.get("message"))
    return task if isinstance(task, str) else orjson.dumps(given).decode()


def _usage(steps: Iterable[Step]) -> Usage:
    calls = [step for step in steps if isinstance(step, LLMStep)]
    return Usage(
        input_tokens=sum(step.input_tokens for step in calls), output_tokens=sum(step.output_tokens for step in calls)
    )


def _cost(ended: RunFinished | None, steps: Sequence[Step]) -> tuple[Decimal | None, bool]:
    """What the run cost, and whether that is a lower bound; a cost of which nothing is known is null."""
    if ended is not None and ended.cost_usd is not None:
        total, unknown = ended.cost_usd, ended.cost_unknown
    else:
        known = [step.cost for step in steps if isinstance(step, LLMStep | ToolStep) and step.cost is not None]
        total = sum(known, Decimal(0))
        unknown = any(isinstance(step, LLMStep) and step.status == "success" and step.cost is None for step in steps)
    return (None if unknown and not total else total), unknown
