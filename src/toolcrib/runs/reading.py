"""A run's trace as it stands in the journal, with the runs that are nested in it."""

from collections.abc import Sequence

from toolcrib.contracts import ChildStarted, RunEvent, Trace
from toolcrib.runs.trace import trace_of
from toolcrib.store import Journal


async def read_trace(journal: Journal, run_id: str) -> Trace:
    """What a run has done so far, step by step.

    Raises:
        NotFound: No such run.
    """
    await journal.run(run_id)
    return await _trace(journal, await journal.events(run_id))


async def _trace(journal: Journal, events: Sequence[RunEvent]) -> Trace:
    nested = [entry.event.child_run_id for entry in events if isinstance(entry.event, ChildStarted)]
    logs = [await journal.events(child) for child in nested]
    return trace_of(events, {log[0].run_id: await _trace(journal, log) for log in logs if log})
