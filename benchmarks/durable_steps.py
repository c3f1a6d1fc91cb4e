"""What durability costs: steps that write, beside bare commits on the same disk, in rounds that take turns.

A step is a call of a tool with side effects: its intent is durable before the tool runs, and its outcome after. A bare
commit inserts one row of 500 bytes into a SQLite file of its own, with the same settings: write-ahead log, a sync of
the file at every commit. Steps are taken one after the other in one run, and by many runs at once. Storage is what a
run of 1,000 steps has added to the file from its tenth step on.

    python -m benchmarks.durable_steps --rounds 20
"""

import argparse
import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from toolcrib import Crib, tool
from toolcrib.contracts import OWNER, Run, RunRequest, ToolRevision
from toolcrib.contracts.workflows import WorkflowDefinition
from toolcrib.core.engines import EngineSettings, LocalEngine, SystemClock, new_run_id
from toolcrib.core.executor import CallRequest
from toolcrib.core.runs import RunContext, RunEnd

STEPS = 100
"""Of a run in a round."""
AT_ONCE = 8
BAR_ALONE = 2.2
BAR_AT_ONCE = 1.5
"""Of a bare commit, per step."""
GROWTH = 1.05
"""How much more the last steps of a long run may take up than the first ones."""


@tool(side_effects="writes")
async def put(key: str) -> dict[str, str]:
    """Write something outside."""
    return {"put": key}


HOST = WorkflowDefinition.model_validate(
    {
        "name": "host",
        "limits": {"max_tool_calls": 10_000},
        "steps": [{"name": "one", "tool": "put", "input": {"key": "k"}}],
    }
)
"""Whose runs have room for many steps; its own program is not run."""


class Commits:
    """Bare commits into a file.

    Args:
        file: Made anew.
    """

    def __init__(self, file: Path) -> None:
        self.connection = sqlite3.connect(file, isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=FULL"):
            self.connection.execute(f"PRAGMA {pragma}").fetchall()
        self.connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, body TEXT)")

    def take(self, count: int) -> float:
        """Milliseconds of one commit."""
        began = perf_counter()
        for _ in range(count):
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.execute("INSERT INTO rows (body) VALUES (?)", ("x" * 500,))
            self.connection.execute("COMMIT")
        return (perf_counter() - began) * 1000 / count


async def able(_: Run) -> None:
    """This process can do all that its runs need."""


class Steps:
    """Runs whose program calls the tool again and again, with nothing between the calls.

    Args:
        crib: Has the tool.
    """

    def __init__(self, crib: Crib) -> None:
        self._put, self._host = (crib.registry.require(crib.principal.realm, name) for name in ("put", "host"))
        self._count = STEPS
        self.engine = LocalEngine(
            store=crib.store,
            registry=crib.registry,
            executor=crib.executor,
            programs={"workflow": self._program},
            clock=SystemClock(),
            new_run_id=new_run_id,
            settings=EngineSettings(owner="benchmark"),
            check_able=able,
        )

    async def take(self, runs: int, steps: int = STEPS) -> float:
        """Milliseconds per step, if so many runs take so many steps each at the same time."""
        self._count = steps
        host = self._host
        request = RunRequest(kind="workflow", tool=host.ref, content_hash=host.content_hash, principal=OWNER)
        began = perf_counter()
        ended = await asyncio.gather(*(self.engine.start(request) for _ in range(runs)))
        took = (perf_counter() - began) * 1000 / (runs * steps)
        for driven in ended:
            if driven.result.status != "completed":
                raise RuntimeError(driven.result.error)
        return took

    async def _program(self, context: RunContext, _: ToolRevision) -> RunEnd:
        for number in range(self._count):
            call = CallRequest(f"s{number:04}", "put", {"key": f"k{number % 10}"}, self._put.content_hash)
            envelope = await context.call(call)
            if not envelope.ok:
                raise RuntimeError(envelope.error)
        return RunEnd()


@asynccontextmanager
async def steps_on(file: Path) -> AsyncGenerator[Steps]:
    """Steps in a new store."""
    async with Crib(f"sqlite:///{file}") as crib:
        crib.add(put)
        await crib.save(HOST.tool())
        steps = Steps(crib)
        yield steps
        await steps.engine.close()


async def measure(folder: Path, rounds: int) -> dict[str, float]:
    """Medians of the rounds: milliseconds of a commit, and what a step costs in bare commits of the same round."""
    commits = Commits(folder / "bare.db")
    bare: list[float] = []
    alone: list[float] = []
    at_once: list[float] = []
    async with steps_on(folder / "steps.db") as steps:
        await steps.take(AT_ONCE)
        for _ in range(rounds):
            before = commits.take(STEPS)
            one = await steps.take(1)
            between = commits.take(STEPS)
            many = await steps.take(AT_ONCE)
            after = commits.take(STEPS)
            bare += [before, between, after]
            alone.append(one / ((before + between) / 2))
            at_once.append(many / ((between + after) / 2))
    commits.connection.close()
    return {
        "bare_commit_ms": round(median(bare), 3),
        "sequential_step": round(median(alone), 2),
        "best_sequential_step": round(min(alone), 2),
        f"step_of_{AT_ONCE}_runs": round(median(at_once), 2),
        f"best_step_of_{AT_ONCE}_runs": round(min(at_once), 2),
    }


async def storage(folder: Path) -> dict[str, float]:
    """Bytes of events per step, of the steps 10 to 20 and of the steps 990 to 1,000 of one run."""
    file = folder / "long.db"
    async with steps_on(file) as steps:
        await steps.take(1, 1_000)
    with closing(sqlite3.connect(file)) as connection:
        sizes = [
            size
            for (size,) in connection.execute(
                "SELECT length(body) FROM events "
                "WHERE run_id = (SELECT run_id FROM events ORDER BY number DESC LIMIT 1) ORDER BY number"
            )
        ]
    each = 2  # intent and outcome
    return {
        "bytes_per_step_at_10": sum(sizes[10 * each : 20 * each]) / 10,
        "bytes_per_step_at_1000": sum(sizes[-11 * each : -1 * each]) / 10,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        found = asyncio.run(measure(Path(folder), options.rounds))
        sizes = asyncio.run(storage(Path(folder)))
    print(json.dumps({**found, **sizes}, indent=2))
    alone, many = found["sequential_step"], found[f"step_of_{AT_ONCE}_runs"]
    print(f"a sequential step: {alone:g} bare commits; bar {BAR_ALONE:g}: {_verdict(alone <= BAR_ALONE)}")
    print(f"a step of {AT_ONCE} runs at once: {many:g}; bar {BAR_AT_ONCE:g}: {_verdict(many <= BAR_AT_ONCE)}")
    grown = sizes["bytes_per_step_at_1000"] / sizes["bytes_per_step_at_10"]
    print(f"storage of a step, the 1,000th to the 10th: {grown:.2f}x; bar {GROWTH:g}x: {_verdict(grown <= GROWTH)}")


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


if __name__ == "__main__":
    main()
