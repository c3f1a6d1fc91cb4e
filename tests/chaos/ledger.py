"""An agentic tool whose tools leave a line in a file for every effect, with each kind of safety that a tool can have.

The file is the truth outside of the system: a line is one `write` to a file opened for appending, so that it stands
there whatever happens to the process afterwards.
"""

import asyncio
import contextlib
import os
from collections import Counter
from pathlib import Path

from tests.chaos.crashing import CrashPoint, crashing
from toolcrib import AgenticTool, Crib, ScriptedModel, SharingOptions, ToolContext, tool
from toolcrib.contracts import Json
from toolcrib.infrastructure.store import open_store
from toolcrib.kinds.python.functions import FunctionTool
from toolcrib.llm import Message, Request, ScriptedAnswer, ToolCall

LEASE_S = 0.2


class Ledger:
    """The file."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "ledger"

    def write(self, effect: str, key: str) -> None:
        """Add a line."""
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, f"{effect} {key}\n".encode())
        finally:
            os.close(descriptor)

    def counts(self) -> Counter[tuple[str, str]]:
        """How often each effect took place, by tool and idempotency key."""
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        return Counter((effect, key) for effect, _, key in (line.partition(" ") for line in lines))


def tools(ledger: Ledger) -> list[FunctionTool[..., Json]]:
    """One tool of each kind."""

    @tool(side_effects="reads")
    async def look(context: ToolContext) -> Json:
        """Look something up."""
        ledger.write("look", context.idempotency_key)
        return {"found": 7}

    @tool(side_effects="writes", idempotent=True)
    async def put(context: ToolContext) -> Json:
        """Set something to a value."""
        ledger.write("put", context.idempotency_key)
        return {"put": True}

    @tool(side_effects="writes")
    async def post(context: ToolContext) -> Json:
        """Send a letter, which cannot be taken back."""
        ledger.write("post", context.idempotency_key)
        return {"posted": True}

    @tool(side_effects="writes", reconcile="was_paid", timeout_s=1)
    async def pay(context: ToolContext) -> Json:
        """Pay a bill; afterwards the bank can be asked whether it was paid."""
        ledger.write("pay", context.idempotency_key)
        return {"paid": True}

    @tool(side_effects="reads")
    async def was_paid(idempotency_key: str) -> Json:
        """Ask the bank."""
        found = ("pay", idempotency_key) in ledger.counts()
        return {"found": found, "output": {"paid": True}}

    return [look, put, post, pay, was_paid]


def script(request: Request) -> ScriptedAnswer:
    """Four tools at once, then one alone, then the answer; a function of the conversation alone."""
    turn = sum(message.role == "assistant" for message in request.messages)
    turns = [("look", "put", "post", "pay"), ("post",)]
    if turn == len(turns):
        return "All done."
    calls = (ToolCall(f"{turn}.{name}", name, "{}") for name in turns[turn])
    return Message("assistant", tuple(calls))


def _crib(folder: Path, point: CrashPoint | None = None, *, lease_s: float = LEASE_S) -> Crib:
    store = open_store(f"sqlite:///{folder}/crib.db")
    crib = Crib(
        store if point is None else crashing(store, point),
        models={"scripted:clerk": ScriptedModel(script, name="clerk")},
        sharing=SharingOptions(lease_s=lease_s),
    )
    crib.add(*tools(Ledger(folder)))
    return crib


def _clerk(crib: Crib) -> AgenticTool:
    return crib.agentic_tool("clerk", mode="agentic", model="scripted:clerk", tools=["look", "put", "post", "pay"])


async def submit(folder: Path, runs: int) -> Json:
    """Leave runs for whoever serves."""
    async with _crib(folder) as crib:
        _clerk(crib)
        return [await crib.submit("clerk", {"task": "Do your work"}) for _ in range(runs)]


async def serve(folder: Path, lease_s: float, seconds: float) -> Json:
    """Serve for some time, and stop in good order."""
    async with _crib(folder, lease_s=lease_s) as crib:
        await crib.open()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await crib.engine.serve()
    return None


async def work(folder: Path, point: CrashPoint | None = None) -> Json:
    """The agentic tool from its beginning."""
    async with _crib(folder, point) as crib:
        result = await _clerk(crib)("Do your work")
        return result.summary.model_dump(mode="json")


async def resume(folder: Path, run_id: str) -> Json:
    """What any process does after a crash that has the same functions."""
    async with _crib(folder) as crib:
        result = await crib.resume(run_id)
        return result.summary.model_dump(mode="json")
