"""Runs of parallel branches on the default store, on a busy machine: their replays make the same events.

A replay that differs only because a store was slow is a false alarm. Caches, retries, costs and limits make branches
depend on each other; two other processes compete for the cores.
"""

import asyncio
import multiprocessing
import random
from collections.abc import Generator
from decimal import Decimal
from pathlib import Path

import pytest

from toolcrib import Crib, tool
from toolcrib.contracts import Json, JsonObject, Limits
from toolcrib.crib import WorkflowHandle

LIMITS = (200, 28, 20, 12)
"""Of tool calls: for all that the workflow calls, and for fewer."""


@tool(side_effects="writes", idempotent=True, cost_usd_per_call=Decimal("0.01"))
async def record(n: int) -> int:
    """Record a number; some cannot be recorded."""
    await asyncio.sleep(random.random() * 0.01)
    if n % 5 == 3:
        raise ConnectionError("the recorder is away")
    return n


@tool(side_effects="none", cache="ttl", cache_ttl_s=60)
async def look(n: int) -> int:
    """Look a number up."""
    await asyncio.sleep(random.random() * 0.01)
    return n // 2


def spin() -> None:
    while True:
        pass


@pytest.fixture
def load() -> Generator[None]:
    """Two processes that do nothing but compete."""
    context = multiprocessing.get_context("spawn")
    busy = [context.Process(target=spin, daemon=True) for _ in range(2)]
    for process in busy:
        process.start()
    yield
    for process in busy:
        process.kill()
        process.join()


def fan(name: str, called: str, number: str, **more: Json) -> JsonObject:
    """A step that calls a tool for each item, four at a time."""
    each: JsonObject = {"items": "${input.items}", "max_concurrency": 4, "on_item_error": "continue"}
    return {"name": name, "tool": called, "input": {"n": number}, "on_error": "continue", "for_each": each, **more}


def branches(crib: Crib, calls: int) -> WorkflowHandle:
    """Four branches side by side."""
    return crib.workflow(
        f"branches_{calls}",
        steps=[
            fan("records", "record", "${item}"),
            fan("cached", "look", "${item % 3}"),
            fan("looks", "look", "${item}"),
            fan("retried", "record", "${item}", retry={"count": 2, "base_s": 0.01}),
        ],
        input_schema={"type": "object", "properties": {"items": {"type": "array"}}},
        limits=Limits(max_tool_calls=calls, max_cost_usd=Decimal(10)),
    )


async def replay_all(folder: Path, runs: int) -> list[str]:
    """Where replays differ, of so many runs for each limit."""
    differing: list[str] = []
    async with Crib(f"sqlite:///{folder}/crib.db") as crib:
        crib.add(record, look)
        for calls in LIMITS:
            flow = branches(crib, calls)
            for _ in range(runs):
                run = await flow(items=list(range(8)))
                replay = await crib.replay(run.run_id)
                if not replay.same:
                    differing.append(str(replay.divergence))
    return differing


@pytest.mark.requirement("runs.replay_under_load")
@pytest.mark.usefixtures("load")
async def test_runs_of_parallel_branches_replay_the_same_on_a_busy_machine(tmp_path: Path):
    assert await replay_all(tmp_path, 8) == []


@pytest.mark.soak
@pytest.mark.requirement("runs.replay_under_load")
@pytest.mark.usefixtures("load")
async def test_hundreds_of_them_do(tmp_path: Path):
    assert await replay_all(tmp_path, 125) == []
