"""Instructions and CPU of an agent run and of an executor call, in units of the bare loop.

Instructions are counted by valgrind, in user space, garbage collection included, as the difference between a long load
and a short one: the start of the process and the warm-up drop out. They hardly depend on what else the machine does.

CPU is user and system time of processes that stay alive and take turns in each round, so that a busy moment of the
machine hits all of them. The mock provider runs in a process of its own, which counts in neither.

    python -m benchmarks.ratios --rounds 12
"""

import argparse
import asyncio
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

from benchmarks.agent_loop import mock_provider
from benchmarks.environments import ROOT
from benchmarks.measure import Plan, cpu_ms, run_batch
from benchmarks.report import table
from benchmarks.script import ANSWER

BARE: Final = "bare loop"
CALL: Final = "executor call"
STORES: Final = {BARE: "memory://", "memory": "memory://", "SQLite": "sqlite:///{folder}/journal.db", CALL: "memory://"}
IN_FLIGHT: Final = 4
WARM_UP: Final = 20
SHORT, LONG = 40, 160
"""Runs of the two loads whose instructions are compared."""
CALLS: Final = 20
"""Of one turn of the executor, which takes as long as some runs."""
MORE_CALLS: Final = 10
"""So many calls take the place of a run, so that one collection of garbage more or less does not matter."""
VALGRIND: Final = ("--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
LONGEST_S: Final = 1200

Load = Callable[[int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Row:
    """What one candidate costs."""

    name: str
    cpu_ms: list[float]
    instructions: float | None


# In the candidate's process -------------------------------------------------------------------------------------------


@asynccontextmanager
async def load_of(name: str, base_url: str, store: str) -> AsyncGenerator[Load]:
    """What makes so many runs, or calls."""
    if name == CALL:
        from benchmarks.executor_call import Program, calling
        from toolcrib import Crib

        async with Crib(store) as crib, calling(crib, Program()) as start:

            async def calls(count: int) -> None:
                for _ in range(count // CALLS):
                    await start()

            yield calls
        return
    if name == BARE:
        from benchmarks.candidates.raw_run import open_run
    else:
        from benchmarks.candidates.toolcrib_run import open_run
    async with open_run(Plan(base_url, "agent", WARM_UP, 1, IN_FLIGHT, 0, store)) as run:

        async def runs(count: int) -> None:
            for answer in await run_batch(run, count, IN_FLIGHT):
                if answer != ANSWER:
                    raise RuntimeError(f"a run ended with {answer!r}")

        yield runs


async def serve_turns(name: str, base_url: str, store: str) -> None:
    """Make as many runs as each line of the input says, and print the CPU milliseconds that they took."""
    async with load_of(name, base_url, store) as load:
        await load(WARM_UP * (MORE_CALLS if name == CALL else 1))
        gc.collect()
        for line in sys.stdin:
            before = cpu_ms()
            await load(int(line))
            print(cpu_ms() - before, flush=True)


# Instructions ---------------------------------------------------------------------------------------------------------


def instructions(name: str, base_url: str) -> float:
    """Of one run, or call."""
    short, long = (runs * (MORE_CALLS if name == CALL else 1) for runs in (SHORT, LONG))
    return (_all_instructions(name, base_url, long) - _all_instructions(name, base_url, short)) / (long - short)


def _all_instructions(name: str, base_url: str, runs: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "valgrind.log"
        command = ["valgrind", *VALGRIND, f"--log-file={log}", *_worker(name, base_url, folder)]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        subprocess.run(
            command, cwd=ROOT, env=environment, input=f"{runs}\n", text=True, check=True, timeout=LONGEST_S,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        found = re.findall(r"I\s+refs:\s+([\d,]+)", log.read_text())
    return int(found[-1].replace(",", ""))


def _worker(name: str, base_url: str, folder: str) -> list[str]:
    store = STORES[name].format(folder=folder)
    return [sys.executable, "-m", "benchmarks.ratios", "--worker", name, base_url, store]


# CPU ------------------------------------------------------------------------------------------------------------------


def cpu_of_turns(names: list[str], base_url: str, rounds: int, runs: int) -> dict[str, list[float]]:
    """CPU milliseconds of one run, or call, in each round, by candidate."""
    found: dict[str, list[float]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        workers = {
            name: subprocess.Popen(
                _worker(name, base_url, folder), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for name in names
        }
        try:
            for number in range(rounds):
                for name in Random(number).sample(names, len(names)):  # nobody always comes after the same one
                    count = runs * 4 if name in {BARE, CALL} else runs
                    found[name].append(_turn(name, workers[name], count) / count)
        finally:
            for worker in workers.values():
                worker.communicate()
    return found


def _turn(name: str, worker: "subprocess.Popen[str]", count: int) -> float:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{count}\n")
    worker.stdin.flush()
    line = worker.stdout.readline()
    if not line:
        sys.exit(f"{name}: the process has failed; see above")
    return float(line)


# The report -----------------------------------------------------------------------------------------------------------


def report(rows: list[Row]) -> str:
    """Markdown."""
    bare = rows[0]
    header = ["", "instructions", "vs bare", "CPU µs, min", "min / min", "median of ratios"]
    return table(
        header,
        [
            [
                row.name,
                f"{row.instructions / 1e6:.3f} M" if row.instructions else "-",
                f"{row.instructions / bare.instructions:.2f}x" if row.instructions and bare.instructions else "-",
                f"{min(row.cpu_ms) * 1000:.0f}",
                f"{min(row.cpu_ms) / min(bare.cpu_ms):.2f}x",
                f"{median(mine / unit for mine, unit in zip(row.cpu_ms, bare.cpu_ms, strict=True)):.2f}x",
            ]
            for row in rows
        ],
    )


def main() -> None:
    """Measure and print; or be the process of a candidate."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ratios", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--rounds", type=int, default=12, help="turns of each candidate")
    parser.add_argument("--runs", type=int, default=60, help="runs of a turn")
    parser.add_argument("--no-instructions", action="store_true", help="CPU only, which takes a minute")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        asyncio.run(serve_turns(*options.worker))
        return
    names, counted = list(STORES), dict[str, float]()
    with mock_provider() as provider:
        cpu = cpu_of_turns(names, provider.base_url, options.rounds, options.runs)
        if shutil.which("valgrind") is None:
            print("instructions are not counted: valgrind is not installed; run: make deps-bench")
        elif not options.no_instructions:
            counted = {name: instructions(name, provider.base_url) for name in names}
    print(report([Row(name, cpu[name], counted.get(name)) for name in names]))


if __name__ == "__main__":
    main()
