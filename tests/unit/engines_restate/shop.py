"""A crib whose runs workers of a real Restate server drive, and what its processes do: they work, or they wait.

Every tool leaves lines in a file outside of the system, and takes as long as a test wants: until there is a file named
`open` in the folder.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.chaos.ledger import Ledger
from toolcrib import Crib, SharingOptions, ToolContext, tool
from toolcrib.contracts import Json, JsonObject
from toolcrib.core.engines.restate import RestateEngine, RestateOptions, WorkerTerms
from toolcrib.kinds.python.functions import FunctionTool

LEASE_S = 1.0
MARK = "swordfish-of-the-shop"
"""Stands in inputs and outputs, and must not stand in what Restate keeps."""
_LOOK_S = 0.01
_PUTS: JsonObject = {"name": "puts", "tool": "put", "input": {"what": MARK}}


@dataclass(frozen=True, slots=True)
class Shop:
    """Where a crib is, as its processes are told it."""

    folder: Path
    options: RestateOptions

    @property
    def store(self) -> str:
        """The URL."""
        return f"sqlite:///{self.folder}/crib.db"

    @property
    def ledger(self) -> Ledger:
        """What the tools have done."""
        return Ledger(self.folder)

    def open(self) -> None:
        """Let every tool come to its end."""
        (self.folder / "open").touch()

    def crib(self, *, tools: bool = True) -> Crib:
        """A crib in this process."""
        crib = Crib(self.store, sharing=SharingOptions(restate=self.options, lease_s=LEASE_S))
        if tools:
            crib.add(*_tools(self))
            asked: JsonObject = {"name": "asked", "tool": "sign", "input": {"what": MARK}}
            crib.workflow(
                "rests", steps=[{"name": "rest", "wait": {"seconds": 0.3}}, {**_PUTS, "depends_on": ["rest"]}]
            )
            crib.workflow("signs", steps=[asked])
            crib.workflow("nests", steps=[{"name": "inner", "tool": "rests"}, {"name": "signed", "tool": "signs"}])
        return crib

    async def until(self, effect: str, times: int = 1) -> None:
        """Wait until a tool has left so many lines of a kind."""
        await until(lambda: self.times(effect) >= times)

    def times(self, effect: str) -> int:
        """How many lines of a kind tools have left."""
        return sum(count for (found, _), count in self.ledger.counts().items() if found == effect)


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that another process does."""
    async with asyncio.timeout(60):
        while True:
            if condition():
                return
            await asyncio.sleep(_LOOK_S)


async def work(shop: Shop, tools: bool, listens: Path, drain_s: float) -> Json:
    """Be a worker until told to stop, and say in a file where it listens."""
    async with shop.crib(tools=tools) as crib:
        engine = crib.engine
        assert isinstance(engine, RestateEngine)
        await engine.worker.serve(WorkerTerms(drain_s=drain_s), partial(_note, listens))
    return None


def _note(file: Path, url: str) -> None:
    file.write_text(url)


def _tools(shop: Shop) -> list[FunctionTool[..., Json]]:
    """Tools of every kind of safety."""

    async def act(name: str, context: ToolContext) -> Json:
        shop.ledger.write(f"{name}-begun", context.idempotency_key)
        await until((shop.folder / "open").exists)
        shop.ledger.write(name, context.idempotency_key)
        return {"did": name, "told": MARK}

    @tool(side_effects="writes", idempotent=True)
    async def put(what: str, context: ToolContext) -> Json:
        """Set something to a value."""
        return await act("put", context)

    @tool(side_effects="writes")
    async def post(what: str, context: ToolContext) -> Json:
        """Send a letter, which cannot be taken back."""
        return await act("post", context)

    @tool(side_effects="writes", requires_confirmation=True)
    async def sign(what: str, context: ToolContext) -> Json:
        """Sign a contract, once a person agrees."""
        return await act("sign", context)

    return [put, post, sign]
