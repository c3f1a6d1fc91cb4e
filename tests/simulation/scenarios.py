"""Scenarios: processes drive runs of some kinds, people answer, and in the end the invariants are checked."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from tests.simulation.invariants import check, check_rehearsal
from tests.simulation.office import Ledger, open_office
from tests.simulation.processes import Died, Process
from tests.simulation.schedules import Schedule
from tests.simulation.world import World
from toolcrib import Crib
from toolcrib.contracts import ClientResult, Conflict, JsonObject, NotFound, Run, RunStatus, ToolcribError, Unavailable

KINDS: Final = ("fan_200", "fan_12", "fan_6", "desk", "helper", "boss", "pair", "nest")
"""What is run."""
_OPEN: Final[tuple[RunStatus, ...]] = ("queued", "running", "awaiting_approval", "awaiting_client")
_LONGEST_S: Final = 4000.0
"""Simulated; nothing happens to a process in all but the first of them."""
_LOOK_S: Final = 2.0


async def scenario(world: World) -> bytes:
    """Runs are begun, some processes serve, people answer; then everything is checked. Returns the journals."""
    ledger = Ledger()
    observer = world.process("observer", calm=True)
    begun: list[str] = []
    async with asyncio.timeout(_LONGEST_S):
        servers = [asyncio.create_task(_keep_serving(world, ledger, name)) for name in _names(world)]
        await _begin(world, ledger, begun)
        crib = await observer.run(_opened(world, observer, ledger))
        await observer.run(_answer_until_ended(world, crib))
        for server in servers:
            server.cancel()
        return await observer.run(check(crib, ledger, begun))


def one(kind: str, *, submits: bool = True) -> Schedule:
    """The schedule of one run where nothing special happens.

    Args:
        kind: What is run.
        submits: Whether its client only submits it, and another process drives it.
    """
    return Schedule(0, {"kind 0 pick 1": KINDS.index(kind), "submits 0 pick 1": int(submits), "items 0 pick 1": 2})


def _names(world: World) -> Sequence[str]:
    return ("a", "b", "c")[: 1 + world.pick("servers", 2)]


async def _keep_serving(world: World, ledger: Ledger, name: str) -> None:
    """One process after the other serves; whoever watches over them begins another when one dies."""
    life = 0
    while True:
        life += 1
        process = world.process(f"{name}{life}")
        with suppress(Died, Unavailable):
            await process.run(_serve(world, process, ledger))
        process.crash()
        await asyncio.sleep(1)


async def _serve(world: World, process: Process, ledger: Ledger) -> None:
    crib = await _opened(world, process, ledger)
    await crib.engine.serve()


async def _opened(world: World, process: Process, ledger: Ledger) -> Crib:
    crib = open_office(world.folder, process, ledger)
    await crib.open()
    return crib


async def _begin(world: World, ledger: Ledger, begun: list[str]) -> None:
    """A process that drives a run itself, or only submits it."""
    process = world.process("client")
    with suppress(Died):
        await process.run(_invoke(world, process, ledger, begun))


async def _invoke(world: World, process: Process, ledger: Ledger, begun: list[str]) -> None:
    crib = await _opened(world, process, ledger)
    for number in range(1 + world.pick("runs", 2)):
        kind = KINDS[world.pick(f"kind {number}", len(KINDS))]
        given: JsonObject = {"items": list(range(1 + world.pick(f"items {number}", 6)))}
        if kind == "desk":
            given = {}
        elif kind in {"helper", "boss", "pair"}:
            given = {"task": kind}
        with suppress(ToolcribError):  # another process may have taken it
            if world.pick(f"submits {number}", 2):
                begun.append(await crib.submit(kind, given))
            else:
                begun.append((await crib.invoke(kind, given)).run_id)


async def _answer_until_ended(world: World, crib: Crib) -> None:
    look = 0
    while runs := await _open_runs(crib):
        look += 1
        if world.pick(f"rehearsal {look}", 8) == 1:
            await check_rehearsal(crib)
        for run in runs:
            with suppress(Conflict, NotFound):
                await _answer(world, crib, run)
        await asyncio.sleep(_LOOK_S)


async def _open_runs(crib: Crib) -> Sequence[Run]:
    journal = crib.store.journal
    return [run for status in _OPEN for run in await journal.runs("default", status=status, limit=100)]


async def _answer(world: World, crib: Crib, run: Run) -> None:
    if run.request.tool_name == "desk":
        with suppress(ToolcribError):
            await crib.instances.signal(run.run_id, "news", {})
    for request in await crib.pending_approvals(run.run_id):
        approve = world.pick(f"rejects {request.position}", 4) != 1
        await crib.decide(run.run_id, request.position, approve=approve)
    for handed in await crib.pending_handoffs(run.run_id):
        await crib.return_client_result(run.run_id, handed.position, ClientResult(output={"printed": True}))
