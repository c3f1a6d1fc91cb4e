"""A run's events as server-sent events (WHATWG HTML, section 9.2), read from the journal only.

Whoever drives the run, here or in another process, its events are found in the store; so a subscriber can leave, come
back with the last number it saw, and miss nothing. Text that a model is still writing is not shown.
"""

from collections.abc import AsyncIterator
from typing import Final

from toolcrib.contracts import WAITING, Run, RunResult, StreamDone
from toolcrib.executor import Clock
from toolcrib.store import Journal

POLL_S: Final = 0.2
"""Seconds between looks into the journal."""
KEEP_ALIVE_S: Final = 15.0
"""Seconds of silence after which a comment keeps the connection open."""


async def follow(journal: Journal, clock: Clock, run_id: str, after: int) -> AsyncIterator[str]:
    """The events with numbers above `after`, as they come; `done` once the run has ended or waits.

    Args:
        journal: Where the events are.
        clock: Time between looks.
        run_id: A run that exists.
        after: Number of the last event that the subscriber has.
    """
    spoken = clock.monotonic()
    while True:
        run = await journal.run(run_id)
        if run.events > after:
            for entry in await journal.events(run_id, after=after):
                after = entry.number
                yield _message(entry.event.type, after, entry.model_dump_json())
            spoken = clock.monotonic()
        if (run.ended or run.status in WAITING) and after >= run.events:
            done = StreamDone(number=run.events, result=_result(run))
            yield _message(done.type, run.events, done.model_dump_json())
            return
        if clock.monotonic() - spoken >= KEEP_ALIVE_S:
            yield ": keep-alive\n\n"
            spoken = clock.monotonic()
        await clock.sleep(POLL_S)


def _message(kind: str, number: int, data: str) -> str:
    return f"id: {number}\nevent: {kind}\ndata: {data}\n\n"


def _result(run: Run) -> RunResult:
    return RunResult(
        run_id=run.run_id,
        status=run.status,
        stop_reason=run.stop_reason,
        output=run.output,
        error=run.error,
        warnings=run.warnings,
        usage=run.usage,
        cost_usd=run.cost_usd,
        cost_unknown=run.cost_unknown,
    )
