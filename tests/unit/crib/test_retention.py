"""Pruning a crib: what goes, what stays, and what happens when it is cut off."""

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.twins import ManualClock
from tests.unit.agents.crm import Crm, asks
from toolcrib import Crib, LLMConfig, ScriptedModel, SharingOptions
from toolcrib.contracts import AgentDefinition, AgentRequest, InvalidInput, NotFound, ToolDefinition
from toolcrib.contracts.pruning_and_rehearsal import PrunedCounts
from toolcrib.infrastructure.store import MemoryStore, Store

MONTH = timedelta(days=30)
SEARCH = asks(("search_deals", {"company": "Acme"}))
MOVE = asks(("update_deals", {"ids": ["d0"], "stage": "3001"}))


def agent(name: str, **fields: Any) -> ToolDefinition:
    values: dict[str, Any] = {"llm": LLMConfig(model="scripted:m"), "tools": ("search_deals", "update_deals")}
    return AgentDefinition.model_validate({"name": name, **values, **fields}).tool()


async def crib_on(store: str | Store, clock: ManualClock, *script: Any, keep: timedelta | None = None) -> Crib:
    models = {"scripted:m": ScriptedModel(script or ["done"])}
    crib = Crib(store, clock=clock, models=models, sharing=SharingOptions(keep_ended=keep))
    crib.add(*Crm(1).tools)
    await crib.save(agent("helper"))
    return crib


async def runs(crib: Crib) -> set[str]:
    return {run.run_id for run in await crib.store.journal.runs("default")}


@pytest.mark.requirement("retention.families", "retention.record")
async def test_runs_that_ended_long_ago_go_and_the_others_stay(tmp_path: Path):
    clock = ManualClock()
    crib = await crib_on(f"sqlite:///{tmp_path}/crib.db", clock, SEARCH, "One deal.", "Still one.")
    async with crib:
        old = await crib.invoke("helper", {"message": "go"})
        clock.advance(20 * 86400)
        young = await crib.invoke("search_deals", {"company": "Acme"})
        clock.advance(20 * 86400)

        pruned = await crib.retention.prune(older_than=MONTH)

        assert (pruned.gone.families, pruned.gone.runs, pruned.gone.events) == (1, 1, len(old.events))
        assert await runs(crib) == {young.run_id}
        with pytest.raises(NotFound, match=r"that ended before 2026-02-10 may have been pruned"):
            await crib.trace(old.run_id)
        (noted,) = await crib.retention.history()
        assert (noted.counts, noted.made_by, noted.ended_before) == (pruned.gone, "owner", clock.now() - MONTH)
        assert (await crib.retention.prune(older_than=MONTH)).gone == PrunedCounts()
        assert len(await crib.retention.history()) == 1


@pytest.mark.requirement("retention.families")
async def test_a_run_that_waits_for_a_person_is_never_pruned():
    clock = ManualClock()
    async with await crib_on("memory://", clock, MOVE, "Moved.") as crib:
        await crib.save(agent("careful", requires_approval=True))
        waiting = await crib.invoke("careful", {"message": "go"})
        clock.advance(400 * 86400)

        pruned = await crib.retention.prune(older_than=timedelta())

        assert pruned.gone.runs == 0
        [asked] = await crib.pending_approvals(waiting.run_id)
        await crib.decide(waiting.run_id, asked.position, approve=True)
        assert (await crib.resume(waiting.run_id)).output == "Moved."


@pytest.mark.requirement("retention.dry_run")
async def test_a_dry_run_tells_what_would_go_and_leaves_it():
    clock = ManualClock()
    async with await crib_on("memory://", clock) as crib:
        await crib.invoke("helper", {"message": "go"})
        clock.advance(1)

        pruned = await crib.retention.prune(older_than=timedelta(), dry_run=True)

        assert (pruned.dry_run, pruned.gone.runs, len(await runs(crib))) == (True, 1, 1)
        assert await crib.store.retention.prunings("default") == []
        with pytest.raises(InvalidInput, match="lies in the future"):
            await crib.retention.prune(older_than=timedelta(days=-1))


@pytest.mark.requirement("retention.conversations")
async def test_an_idle_conversation_goes_with_its_turns_and_a_living_one_stays_whole():
    clock = ManualClock()
    async with await crib_on("memory://", clock, "Hello.", "Hello again.", "Yes?") as crib:
        idle = await crib.executions.execute("helper", AgentRequest(message="hi"))
        living = await crib.executions.execute("helper", AgentRequest(message="hi"))
        clock.advance(40 * 86400)
        again = AgentRequest(message="and now?", conversation_id=living.conversation_id)
        await crib.executions.execute("helper", again)

        told = await crib.retention.prune(older_than=MONTH, dry_run=True)
        pruned = await crib.retention.prune(older_than=MONTH)

        assert pruned.realms == told.realms
        assert (pruned.gone.conversations, pruned.gone.runs, pruned.kept.in_conversation) == (1, 1, 1)
        assert len(await crib.conversations.turns(living.conversation_id or "")) == 2
        with pytest.raises(NotFound):
            await crib.conversations.get(idle.conversation_id or "")


@pytest.mark.requirement("retention.blobs")
async def test_blobs_go_with_the_last_run_that_names_them():
    clock = ManualClock()
    store = MemoryStore(now=clock.now)
    async with await crib_on(store, clock, SEARCH, "One deal.", SEARCH, "One deal.") as crib:
        await crib.invoke("helper", {"message": "go"})
        clock.advance(40 * 86400)
        second = await crib.invoke("helper", {"message": "go"})
        clock.advance(86400 + 1)

        first_pass = await crib.retention.prune(older_than=MONTH)
        assert (first_pass.gone.runs, first_pass.blobs) == (1, 0)
        assert (await crib.replay(second.run_id)).same

        clock.advance(40 * 86400)
        second_pass = await crib.retention.prune(older_than=MONTH)
        assert second_pass.gone.runs == 1
        assert second_pass.blobs > 0
        assert second_pass.blob_bytes > 0
        assert await store.retention.unnamed_blobs(put_before=clock.now()) == []


@pytest.mark.requirement("retention.schedule")
async def test_of_all_processes_one_prunes_a_day_and_none_that_was_not_told_to(tmp_path: Path):
    clock, url = ManualClock(), f"sqlite:///{tmp_path}/crib.db"
    async with (
        await crib_on(url, clock, keep=MONTH) as one,
        await crib_on(url, clock, keep=MONTH) as other,
        await crib_on(url, clock) as untold,
    ):
        await one.invoke("search_deals", {"company": "Acme"})
        clock.advance(31 * 86400)

        assert await untold.retention.prune_if_due() is None
        done = await asyncio.gather(one.retention.prune_if_due(), other.retention.prune_if_due())
        assert sorted(pruned.gone.runs for pruned in done if pruned is not None) == [1]
        assert await one.retention.prune_if_due() is None
        clock.advance(86400)
        assert await other.retention.prune_if_due() is not None


_PRUNES = """
import asyncio, sys
from datetime import timedelta
from toolcrib import Crib

async def main():
    async with Crib(sys.argv[1]) as crib:
        print("ready", flush=True)
        await crib.retention.prune(older_than=timedelta())

asyncio.run(main())
"""


@pytest.mark.requirement("retention.interrupted")
def test_pruning_that_is_killed_leaves_no_family_half_gone_and_goes_on_the_next_time(tmp_path: Path):
    file, families = tmp_path / "crib.db", 150
    asyncio.run(_fill(file, families))
    assert len(_counted(file)) == families

    command = [sys.executable, "-c", _PRUNES, f"sqlite:///{file}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as pruning:
        assert pruning.stdout is not None
        pruning.stdout.readline()
        while len(_counted(file)) == families and pruning.poll() is None:
            pass
        pruning.kill()
    left = _counted(file)

    assert len(left) < families
    assert all(events == last for last, events in left)
    assert asyncio.run(_prune_the_rest(file)) == len(left)


async def _fill(file: Path, families: int) -> None:
    script = [part for _ in range(families) for part in (SEARCH, "Done.")]
    async with await crib_on(f"sqlite:///{file}", ManualClock(), *script) as crib:
        for _ in range(families):
            await crib.invoke("helper", {"message": "go"})


async def _prune_the_rest(file: Path) -> int:
    async with Crib(f"sqlite:///{file}") as crib:
        pruned = await crib.retention.prune(older_than=timedelta())
        assert await runs(crib) == set()
        return pruned.gone.runs


def _counted(file: Path) -> list[tuple[int, int]]:
    """Of each run, the number of its last event and how many it has; and no event is without a run."""
    query = "SELECT last_event, (SELECT count(*) FROM events e WHERE e.run_id = r.run_id) FROM runs r"
    with closing(sqlite3.connect(file)) as connection:
        stray = connection.execute("SELECT count(*) FROM events WHERE run_id NOT IN (SELECT run_id FROM runs)")
        assert stray.fetchone() == (0,)
        return connection.execute(query).fetchall()
