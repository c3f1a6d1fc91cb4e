"""A run's trace as it stands in the journal, with the runs that are nested in it."""

from collections.abc import Mapping, Sequence

from toolcrib.contracts import ChildStarted, RunEvent, Signal, Step, ToolStep, Trace
from toolcrib.core.runs.interrupts.settling import in_doubt, settlement_of
from toolcrib.core.runs.views.trace_part import trace_of
from toolcrib.infrastructure.store import Journal


async def read_trace(journal: Journal, run_id: str) -> Trace:
    """What a run has done so far, step by step, and what was said of its calls after its end.

    Raises:
        NotFound: No such run.
    """
    await journal.run(run_id)
    return await _trace(journal, await journal.events(run_id))


async def _trace(journal: Journal, events: Sequence[RunEvent]) -> Trace:
    nested = [entry.event.child_run_id for entry in events if isinstance(entry.event, ChildStarted)]
    logs = [await journal.events(child) for child in nested]
    trace = trace_of(events, {log[0].run_id: await _trace(journal, log) for log in logs if log})
    if not any(map(_is_in_doubt, trace.steps)):
        return trace
    signals = await journal.signals(trace.run_id)
    return trace.model_copy(update={"steps": tuple(_settled(step, signals) for step in trace.steps)})


def _is_in_doubt(step: Step) -> bool:
    return isinstance(step, ToolStep) and in_doubt(step.side_effects, step.error)


def _settled(step: Step, signals: Mapping[str, Signal]) -> Step:
    if not isinstance(step, ToolStep):
        return step
    return step.model_copy(update={"settled": settlement_of(step.position, signals)})
