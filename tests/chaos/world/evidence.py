"""Gathers what the judge needs from a world that has come to its end."""

from collections.abc import Collection, Sequence

from tests.chaos.world.jobs import received, tell
from tests.chaos.world.judge import Evidence, Told
from tests.chaos.world.place import Place
from toolcrib import Crib


async def gather(
    crib: Crib,
    place: Place,
    *,
    submitted: Collection[str],
    told: Sequence[Told] = (),
    followed: Collection[str] = (),
    open_in_engine: Collection[str] = (),
    stepped: bool = False,
) -> Evidence:
    """The book and the journal, with what was said and heard.

    Args:
        crib: Of the world.
        place: Where its book is.
        submitted: Ids of the runs that somebody was told of.
        told: What people said.
        followed: Runs that subscribers have listened to.
        open_in_engine: Runs that the engine still means to drive.
        stepped: Whether the clock was set.
    """
    journal = crib.store.journal
    rows = {run.run_id: run for run in await journal.runs("default", limit=100_000)}
    return Evidence(
        lease_s=place.lease_s,
        submitted=submitted,
        rows=rows,
        logs={run_id: await journal.events(run_id) for run_id in rows},
        lines=place.book.lines(),
        streams={run_id: received(place, run_id) for run_id in followed},
        telling={run_id: await tell(crib, run_id) for run_id in followed},
        told=told,
        open_in_engine=open_in_engine,
        stepped=stepped,
    )
