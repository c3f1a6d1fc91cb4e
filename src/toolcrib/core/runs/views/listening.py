"""Following a run as it goes on: its journal, and what its models are saying in this process.

A run of another process is followed in the journal only: a model's words are there when its answer is complete.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from toolcrib.contracts import WAITING
from toolcrib.core.executor import Clock
from toolcrib.core.runs.models.live import Live
from toolcrib.core.runs.views.stream import BEGINNING, Narration, StreamMessage
from toolcrib.infrastructure.store import Journal

LISTEN_S: Final = 0.04
"""Seconds between looks at what is being said; what comes within them is told in one piece."""
LISTENS: Final = 5
"""Looks at what is being said between two looks into the journal."""


async def listen(
    journal: Journal, live: Live, clock: Clock, run_id: str, place: str = BEGINNING
) -> AsyncGenerator[StreamMessage | None]:
    """What there is to tell of a run from a place on, until it has ended or waits; null at moments without news.

    Args:
        journal: Where the events are.
        live: What models are saying.
        clock: Time between looks.
        run_id: A run that exists.
        place: Where the subscriber is: of the last message that it has.

    Raises:
        InvalidInput: The run has no such place.
    """
    with live.watch(run_id):
        narration = Narration(await journal.events(run_id) if place != BEGINNING else (), place)
        while True:
            run = await journal.run(run_id)
            for entry in await journal.events(run_id, after=narration.number):
                for told in narration.tell(entry):
                    yield told
            if narration.ended:
                return
            if run.status in WAITING and narration.number >= run.events:
                yield narration.pause(run_id, run.status)
                return
            async for told in _hear(narration, live, clock, run_id):
                yield told


async def _hear(narration: Narration, live: Live, clock: Clock, run_id: str) -> AsyncIterator[StreamMessage | None]:
    """What models say until it is time for the journal: now and then, and when one has begun or ended."""
    speaking = set(live.speeches(run_id))
    for _ in range(LISTENS):
        for told in narration.hear(live.speeches(run_id)):
            yield told
        yield None
        await clock.sleep(LISTEN_S)
        if set(live.speeches(run_id)) != speaking:
            return
