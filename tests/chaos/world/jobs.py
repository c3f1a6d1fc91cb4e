"""What processes do in a world: they serve, or they listen. Each may be killed at any time, and another one goes on."""

import asyncio
import os
from asyncio import gather
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from tests.chaos.world.crew import crib_at
from tests.chaos.world.place import Place
from tests.chaos.world.points import MortalJournal, Point, with_journal
from toolcrib import Crib
from toolcrib.contracts import WAITING, Json, StreamDone, Unavailable
from toolcrib.core.engines.restate import RestateEngine, WorkerTerms
from toolcrib.infrastructure.store import open_store

_BREATH_S = 0.1
"""Seconds until a subscriber listens again to a run that waits."""
_MOMENT_S = 0.05
_TOGETHER = 200
"""Runs that are begun or decided at a time."""
_ENDS = ('{"type":"done"', '{"type":"error"')


async def moment() -> None:
    """Let others do what one waits for; what they do is in another process, so no event tells of it."""
    await asyncio.sleep(_MOMENT_S)


async def serve(place: Place) -> Json:
    """Drive what can be driven, until the process is killed."""
    async with _opened(place) as crib:
        await _serve(crib)
    return None


async def perish(place: Place, point: Point) -> Json:
    """Drive one run to its end, or to the point where the process dies; returns how often the run was written to.

    Where Restate says who drives what, others are driven as well.
    """
    store = open_store(place.store)
    journal = MortalJournal(store.journal, point)
    async with crib_at(place, with_journal(store, journal)) as crib:
        driving = asyncio.create_task(_serve(crib) if place.restate else _insist(crib, point.run_id))
        while not (await store.journal.run(point.run_id)).ended:
            await moment()
        driving.cancel()
        await asyncio.wait([driving])
    return journal.writes


async def _serve(crib: Crib) -> None:
    if isinstance(crib.engine, RestateEngine):
        await crib.engine.worker.serve(WorkerTerms(), lambda _: None)
    else:
        await crib.engine.serve()


async def _insist(crib: Crib, run_id: str) -> None:
    """Carry a run on whenever it can be, and leave it alone otherwise: so it is written to as often each time."""
    while True:
        if run_id in await crib.store.journal.claimable(now=crib.clock.now(), limit=_TOGETHER):
            await crib.resume(run_id)
        await moment()


async def listen(place: Place, run_ids: Sequence[str]) -> Json:
    """Follow runs to their ends, each from where a process before this one was cut off."""
    async with _opened(place) as crib, asyncio.TaskGroup() as group:
        for run_id in run_ids:
            group.create_task(_follow(crib, place, run_id))
    return None


def received(place: Place, run_id: str) -> Sequence[str]:
    """What subscribers have received of a run so far: a place and a message each."""
    file = _stream(place, run_id)
    return file.read_text().splitlines() if file.exists() else []


async def tell(crib: Crib, run_id: str) -> Sequence[str]:
    """What a subscriber receives who is never cut off."""
    return [line async for line in _listen(crib, run_id, "0")]


@asynccontextmanager
async def _opened(place: Place) -> AsyncGenerator[Crib]:
    """A crib that is open; a process that finds the store away begins again, as who watches over it has it do."""
    async with AsyncExitStack() as stack:
        while True:
            try:
                crib = await stack.enter_async_context(crib_at(place))
                break
            except Unavailable:
                await asyncio.sleep(_BREATH_S)
        yield crib


async def _follow(crib: Crib, place: Place, run_id: str) -> None:
    while True:
        known = received(place, run_id)
        after, _, last = known[-1].partition(" ") if known else ("0", "", "")
        if last.startswith(_ENDS):  # who was told the end would be told it again
            return
        with suppress(Unavailable):  # the store is away
            async for line in _listen(crib, run_id, after):
                _append(_stream(place, run_id), line)
        await asyncio.sleep(_BREATH_S)


async def _listen(crib: Crib, run_id: str, after: str) -> AsyncIterator[str]:
    """Messages as lines; that a run waits is told to all who listen then, and to nobody who comes later."""
    async for message in crib.stream(run_id, after=after):
        if not (isinstance(message.event, StreamDone) and message.event.result.status in WAITING):
            yield f"{message.place} {message.event.model_dump_json()}"


def _stream(place: Place, run_id: str) -> Path:
    return place.folder / f"stream-{run_id}"


def _append(file: Path, line: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


async def ask_many(place: Place, runs: int) -> Json:
    """Begin runs that will each wait for a person; returns their ids."""
    async with crib_at(place) as crib:
        return [
            run_id for count in _batches(runs) for run_id in await gather(*(crib.submit("sign", {}) for _ in count))
        ]


async def approve_all(place: Place) -> Json:
    """Decide whatever waits for a person; returns how many were decided."""
    decided = 0
    async with crib_at(place) as crib:
        while waiting := (await crib.approvals.page(limit=_TOGETHER)).items:
            said = (crib.decide(one.run_id, one.position, approve=True) for one in waiting)
            decided += sum(await gather(*said))
    return decided


def _batches(count: int) -> Iterator[range]:
    return (range(min(_TOGETHER, count - start)) for start in range(0, count, _TOGETHER))
