"""Forks last: over crashes at any event, without the run that they were made of, in files, and forks of forks."""

import asyncio
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.agents.crm import Crm, asks
from tests.unit.forks.forking import ended, made_itself, same_at_every_event
from toolcrib import Crib, LLMConfig, ScriptedModel, SharingOptions
from toolcrib.contracts import AgentDefinition, JsonObject, NotFound, Run, RunEvent, ToolDefinition
from toolcrib.infrastructure.store import Journal, MemoryStore, RunChange, Store

SEARCH = asks(("search_deals", {"company": "Acme"}))
OTHER = asks(("search_deals", {"company": "Beta"}))
CHANGES: JsonObject = {"model": "scripted:o"}


def agent(name: str, **fields: Any) -> ToolDefinition:
    """An agent with a scripted model."""
    llm = LLMConfig(model="scripted:m")
    return AgentDefinition.model_validate({"name": name, "llm": llm, "tools": ("search_deals",), **fields}).tool()


def models(*others: str) -> dict[str, Any]:
    """The model of the first run, and another one."""
    script = [SEARCH, OTHER, *others] if others else []
    return {"scripted:m": ScriptedModel([SEARCH, "Ok."]), "scripted:o": ScriptedModel(script, name="o")}


async def first_run(crib: Crib, crm: Crm) -> str:
    """A run of an agent that has searched once."""
    crib.add(*crm.tools)
    await crib.save(agent("a"))
    return (await crib.invoke("a", {"message": "go"})).run_id


class _Dying:
    """A journal whose process dies after so many events, or a journal that has lost a run."""

    def __init__(self, journal: Journal, *, after: int | None = None, without: str = "") -> None:
        self._journal = journal
        self._left = after
        self._without = without
        self.dead = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def run(self, run_id: str) -> Run:
        if run_id == self._without:
            raise NotFound(f"there is no run {run_id!r}")
        return await self._journal.run(run_id)

    async def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[RunEvent]:
        if run_id == self._without:
            return ()
        return await self._journal.events(run_id, after=after, limit=limit)

    def append(
        self, run_id: str, epoch: int, events: Sequence[RunEvent], change: RunChange | None = None
    ) -> Awaitable[None]:
        if self._left is None:
            return self._journal.append(run_id, epoch, events, change)
        self._left -= 1
        if self._left < 0:
            self.dead.set()
            return asyncio.get_running_loop().create_future()
        return self._journal.append(run_id, epoch, events, change)


class _House:
    """A store with another journal, which nobody closes."""

    def __init__(self, store: Store, journal: _Dying) -> None:
        self.journal = journal
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def close(self) -> None:
        """Others have it too."""


@pytest.mark.requirement("forks.durable", "forks.replayed")
@pytest.mark.parametrize("after", range(1, 13))
async def test_a_fork_whose_process_dies_goes_on_with_what_it_knew(after: int):
    crm, store = Crm(1), MemoryStore()
    shared = models("Other.")
    journal = _Dying(store.journal, after=after)
    async with Crib(store, models=shared, sharing=SharingOptions(lease_s=0.05)) as crib:
        first = await first_run(crib, crm)
        house: Any = _House(store, journal)
        async with Crib(house, models=shared, sharing=SharingOptions(lease_s=0.05)) as dying:
            dying.add(*crm.tools)
            forking = asyncio.create_task(dying.fork(first, at="turn:1", changes=CHANGES))
            dead = asyncio.create_task(journal.dead.wait())
            await asyncio.wait({forking, dead}, return_when=asyncio.FIRST_COMPLETED)
            forking.cancel()
            dead.cancel()
            await asyncio.gather(forking, dead, return_exceptions=True)
        [newest, *_] = await store.journal.runs("default", limit=5)
        assert newest.run_id != first
        again = Crib(
            store,
            models={**shared, "scripted:o": ScriptedModel(_answers, name="o")},
            sharing=SharingOptions(lease_s=0.05),
        )
        again.add(*crm.tools)
        await again.resume(newest.run_id)

        run = await store.journal.run(newest.run_id)
        assert run.output == {"response": "Other."}
        assert crm.searches[0] == "Acme"
        assert set(crm.searches[1:]) == {"Beta"}
        assert (await again.replay(run.run_id)).divergence is None


def _answers(request: Any) -> Any:
    """What the other model says, whatever was lost."""
    return [SEARCH, OTHER, "Other."][len(request.messages) // 2]


@pytest.mark.requirement("forks.durable", "forks.replayed")
async def test_a_fork_that_has_begun_needs_the_other_run_no_more():
    crm, store = Crm(1), MemoryStore()
    async with Crib(store, models=models("Other.")) as crib:
        first = await first_run(crib, crm)
        fork = await crib.fork(first, changes=CHANGES)
        assert fork.output == {"response": "Other."}
        lost: Any = _House(store, _Dying(store.journal, without=first))
        async with Crib(lost, models=models()) as later:
            later.add(*crm.tools)
            with pytest.raises(NotFound):
                await later.fork(first)

            assert (await later.replay(fork.run_id)).divergence is None
            assert ended(await later.fork(fork.run_id, at="turn:2")) == ended(fork)


@pytest.mark.requirement("forks.same", "forks.known")
async def test_forks_of_forks_and_forks_in_a_file_are_forks_like_others(tmp_path: Path):
    crm = Crm(1)
    async with Crib(f"sqlite:///{tmp_path / 'crib.db'}", models=models("Other.")) as crib:
        first = await first_run(crib, crm)
        fork = await crib.fork(first, changes=CHANGES)
        assert fork.output == {"response": "Other."}

        await same_at_every_event(crib, first)
        await same_at_every_event(crib, fork.run_id)

        again = await crib.fork(fork.run_id, at=4)
        deeper = await crib.fork(again.run_id, at=5)
        assert ended(deeper) == ended(fork)
        assert await made_itself(crib, deeper.run_id) == []
        assert crm.searches == ["Acme", "Beta"]
