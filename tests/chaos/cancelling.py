"""Two nested runs that are cancelled at a chosen event, by a process that may be killed as soon as that is accepted.

The head calls the clerk of the ledger, whose tools leave a line for every effect.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast

from tests.chaos.ledger import LEASE_S, Ledger, script, tools
from toolcrib import Crib, ScriptedModel, SharingOptions
from toolcrib.contracts import Conflict, Event, Json, Run, RunEvent
from toolcrib.infrastructure.store import Journal, Lease, RunChange, Store, open_store
from toolcrib.llm import Message, Request, ScriptedAnswer, ToolCall


class _CancellingJournal:
    """Cancels the outermost run once so many events of all runs have been committed."""

    def __init__(self, inner: Journal, event: int | None) -> None:
        self.outermost: str | None = None
        self.cancelled: asyncio.Task[None] | None = None
        self.cancel: Callable[[str], Awaitable[None]] | None = None
        self._inner = inner
        self._event = event
        self._seen = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create(self, run: Run, first: Event, *, lease: Lease | None = None) -> Awaitable[None]:
        self.outermost = self.outermost or run.run_id
        return self._write(1, self._inner.create(run, first, lease=lease))

    def append(
        self, run_id: str, epoch: int, events: Sequence[RunEvent], change: RunChange | None = None
    ) -> Awaitable[None]:
        return self._write(len(events), self._inner.append(run_id, epoch, events, change))

    def _write(self, count: int, written: Awaitable[None]) -> Awaitable[None]:
        self._seen += count
        due = self._event is not None and self._seen >= self._event and self.cancelled is None
        if due and self.cancel is not None and self.outermost is not None:
            self.cancelled = asyncio.ensure_future(_after(written, self.cancel, self.outermost))
        return written


async def _after(written: Awaitable[None], cancel: Callable[[str], Awaitable[None]], run_id: str) -> None:
    await written
    await cancel(run_id)


class _CancellingStore:
    def __init__(self, inner: Store, event: int | None) -> None:
        self._inner = inner
        self.journal = _CancellingJournal(inner.journal, event)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _script(request: Request) -> ScriptedAnswer:
    if request.tools.tools and request.tools.tools[0].name == "clerk":
        if any(message.role == "assistant" for message in request.messages):
            return "Done."
        return Message("assistant", (ToolCall("1", "clerk", '{"task": "Do your work"}'),))
    return script(request)


def _crib(folder: Path, store: Store) -> Crib:
    crib = Crib(
        store, models={"scripted:clerk": ScriptedModel(_script, name="clerk")}, sharing=SharingOptions(lease_s=LEASE_S)
    )
    crib.add(*tools(Ledger(folder)))
    model, named = "scripted:clerk", ["look", "put", "post", "pay"]
    crib.agentic_tool("clerk", mode="agentic", model=model, tools=named)
    return crib


async def work(folder: Path, event: int | None, dies: bool) -> Json:
    """Both runs from their beginning, cancelled after an event of theirs; null for none."""
    store = _CancellingStore(open_store(f"sqlite:///{folder}/crib.db"), event)
    async with _crib(folder, cast("Store", store)) as crib:

        async def cancel(run_id: str) -> None:
            try:
                await crib.cancel(run_id, reason="chaos")
            except Conflict:  # it had ended before
                return
            if dies:
                os.kill(os.getpid(), signal.SIGKILL)

        store.journal.cancel = cancel
        head = crib.agentic_tool("head", mode="agentic", model="scripted:clerk", tools=["clerk"])
        result = await head("Do it")
        if store.journal.cancelled is not None:
            await store.journal.cancelled
        return result.summary.model_dump(mode="json")


async def recover(folder: Path, run_id: str) -> Json:
    """What any process does that finds what the dead one has left: the run, and those that are nested in it."""
    async with _crib(folder, open_store(f"sqlite:///{folder}/crib.db")) as crib:
        result = await crib.resume(run_id)
        async with asyncio.timeout(20):
            while not all(run.ended for run in await crib.store.journal.runs("default")):
                await crib.recover()
                await asyncio.sleep(LEASE_S)
        return result.summary.model_dump(mode="json")
