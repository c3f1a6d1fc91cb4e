"""Gathers what the judge needs from a world that has come to its end."""

from collections.abc import Collection, Mapping, Sequence

from tests.chaos.world.judge import Evidence, Told
from tests.chaos.world.place import Place
from toolcrib.store import Journal


async def gather(
    journal: Journal,
    place: Place,
    *,
    submitted: Collection[str],
    told: Sequence[Told] = (),
    streams: Mapping[str, Sequence[str]] | None = None,
) -> Evidence:
    """The book and the journal, with what was said and heard.

    Args:
        journal: Of the world.
        place: Where its book is.
        submitted: Ids of the runs that somebody was told of.
        told: What people said.
        streams: What subscribers received.
    """
    rows = {run.run_id: run for run in await journal.runs("default", limit=100_000)}
    return Evidence(
        lease_s=place.lease_s,
        submitted=submitted,
        rows=rows,
        logs={run_id: await journal.events(run_id) for run_id in rows},
        lines=place.book.lines(),
        streams=streams or {},
        told=told,
    )
