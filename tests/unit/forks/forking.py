"""What tests of forks have in common."""

from toolcrib import Crib
from toolcrib.contracts import CallFinished, CallStarted, ModelFinished, Run, RunEvent


async def made_itself(crib: Crib, run_id: str) -> list[str]:
    """Positions of the calls and answers of a run that it has taken from no other."""
    events = await crib.store.journal.events(run_id)
    return [position for entry in events if (position := _made(entry)) is not None]


async def same_at_every_event(crib: Crib, run_id: str) -> None:
    """Fork a run at each of its events, and expect the same end each time, without a call, and a sound replay."""
    journal = crib.store.journal
    original, events = await journal.run(run_id), await journal.events(run_id)
    for at in range(1, len(events) + 1):
        fork = await crib.fork(run_id, at=at)
        assert ended(fork) == ended(original), at
        assert await made_itself(crib, fork.run_id) == [], at
        assert (await crib.replay(fork.run_id)).divergence is None, at
        assert fork.usage.total_tokens == 0


def ended(run: Run) -> object:
    """How a run ended."""
    return run.status, run.stop_reason, run.output, run.error


def _made(entry: RunEvent) -> str | None:
    match entry.event:
        case CallStarted(position=position):
            return position
        case ModelFinished(position=position, taken_from=None):
            return position
        case CallFinished(position=position, envelope=envelope) if envelope.reused is None:
            return position
        case _:
            return None
