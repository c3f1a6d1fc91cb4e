"""When runs that wait go on by themselves: their own moments, and those of the nested runs that they wait for."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from toolcrib.contracts import NotFound, Run
from toolcrib.core.engines.nesting import awaited_children
from toolcrib.infrastructure.store import Entry, Journal


async def awaited_runs(journal: Journal, run: Run) -> Sequence[Run]:
    """The nested runs that a suspended run waits for."""
    last = await journal.events(run.run_id, after=run.events - 1)
    found: list[Run] = []
    for child_id in awaited_children([Entry.of(shown) for shown in last]) if last else ():
        try:
            found.append(await journal.run(child_id))
        except NotFound:  # it was announced, and a crash came before it was made
            continue
    return found


async def moments(journal: Journal, run: Run) -> Mapping[str, datetime]:
    """When a suspended run and the nested ones below it go on by themselves, by run id."""
    found = {} if run.wake_at is None else {run.run_id: run.wake_at}
    for child in await awaited_runs(journal, run):
        found |= await moments(journal, child)
    return found
