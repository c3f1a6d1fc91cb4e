"""A tool that a person is asked about, and what two processes do with it: one is frozen in the call, one follows it."""

import asyncio
import time
from pathlib import Path

from toolcrib import Crib, SharingOptions, tool
from toolcrib.contracts import Json

LEASE_S = 0.5
LIMIT_S = 4.0
"""Seconds that the call may take."""


def lines(folder: Path) -> list[tuple[str, float]]:
    """What the tool has done, and when."""
    file = folder / "deeds"
    rows = file.read_text().splitlines() if file.exists() else []
    return [(what, float(at)) for what, _, at in (row.partition(" ") for row in rows)]


def _crib(folder: Path) -> Crib:
    def write(what: str) -> None:
        with (folder / "deeds").open("a") as file:
            file.write(f"{what} {time.time()}\n")

    @tool(side_effects="writes", on_unknown="ask", timeout_s=LIMIT_S)
    async def pay(steps: int, step_s: float) -> Json:
        """Pay a bill, after so many steps of so many seconds each."""
        write("begun")
        for _ in range(steps):
            await asyncio.sleep(step_s)
        write("effect")
        return {"paid": True}

    crib = Crib(f"sqlite:///{folder}/crib.db", sharing=SharingOptions(lease_s=LEASE_S))
    crib.add(pay)
    return crib


async def pay(folder: Path, steps: int, step_s: float) -> Json:
    """Make the call, in a process that will be frozen."""
    async with _crib(folder) as crib:
        await crib.submit("pay", {"steps": steps, "step_s": step_s})
        await crib.engine.serve()
    return None


async def follow(folder: Path) -> Json:
    """Drive what the other process can drive no more, until this one is killed."""
    async with _crib(folder) as crib:
        await crib.open()
        await crib.engine.serve()
    return None


async def settle(folder: Path) -> Json:
    """Say that the call did not happen, let the run end, and replay it; whether that is the same."""
    async with _crib(folder) as crib:
        [asked] = (await crib.approvals.page(limit=10)).items
        await crib.approvals.decide(asked.approval_id, approve=True, happened=False)
        result = await crib.resume(asked.run_id)
        return {"status": result.summary.status, "same": (await crib.replay(asked.run_id)).same}
