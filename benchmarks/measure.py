"""What runs inside a candidate's process: warm up, run the load, print one JSON line with the process's own CPU.

CPU is user plus system time of the whole process with all its threads (`getrusage`), so the mock provider and other
load on the machine do not count, as they would with wall time. Imports and warm-up lie outside of the measured span.
Standard library only, because each peer imports this module in an environment of its own.
"""

import asyncio
import gc
import json
import resource
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass

from benchmarks.script import ANSWER


@dataclass(frozen=True, slots=True)
class Plan:
    """One load on one candidate."""

    base_url: str
    """Address of the mock provider's OpenAI API, with the trailing `/v1`."""
    model: str
    warm_up: int
    runs: int
    """Runs of one batch."""
    in_flight: int
    least_cpu_s: float
    """Batches are repeated until they used this much CPU, so that a light candidate is not judged by one moment."""
    store: str = "memory://"
    """Journal address. Candidates without a journal ignore it."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one load cost."""

    cpu_ms_per_run: float
    runs: int
    failures: int
    """Runs that raised, or that ended with another text than the script's."""
    first_failure: str | None
    peak_rss_mb: float
    rss_growth_mb: float
    """Peak during the load above the peak after the warm-up."""


Run = Callable[[], Awaitable[str]]
OpenRun = Callable[[Plan], AbstractAsyncContextManager[Run]]
"""A candidate: opens its clients for a plan and yields a coroutine function that makes one run and returns its text."""


def cpu_ms() -> float:
    """CPU milliseconds that this process has used, user and system."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) * 1000


def peak_rss_mb() -> float:
    """Peak resident memory of this process in MiB; `ru_maxrss` is in bytes on macOS and in KiB elsewhere."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


async def run_batch(run: Run, runs: int, in_flight: int) -> list[str | BaseException]:
    """Make `runs` runs, at most `in_flight` of them at a time; a run's exception is its outcome."""
    gate = asyncio.Semaphore(in_flight)

    async def one() -> str:
        async with gate:
            return await run()

    return await asyncio.gather(*(one() for _ in range(runs)), return_exceptions=True)


async def carry_out(open_run: OpenRun, plan: Plan) -> Figures:
    """Carry out a plan. Raises if the warm-up fails, because then nothing that follows has a meaning."""
    async with open_run(plan) as run:
        for _ in range(plan.warm_up):
            answer = await run()
            if answer != ANSWER:
                message = f"warm-up ended with {answer!r} instead of the script's {ANSWER!r}"
                raise ValueError(message)
        gc.collect()
        rss_before, cpu_before = peak_rss_mb(), cpu_ms()
        outcomes = await run_batch(run, plan.runs, plan.in_flight)
        while cpu_ms() - cpu_before < plan.least_cpu_s * 1000:
            outcomes += await run_batch(run, plan.runs, plan.in_flight)
        cpu, rss = cpu_ms() - cpu_before, peak_rss_mb()
    failures = [outcome for outcome in outcomes if outcome != ANSWER]
    return Figures(
        cpu_ms_per_run=cpu / len(outcomes),
        runs=len(outcomes),
        failures=len(failures),
        first_failure=repr(failures[0])[:300] if failures else None,
        peak_rss_mb=rss,
        rss_growth_mb=rss - rss_before,
    )


def main(open_run: OpenRun) -> None:
    """Entry point of every candidate: the plan is the first argument, as JSON; the last line printed is the result."""
    plan = Plan(**json.loads(sys.argv[1]))
    print(json.dumps(asdict(asyncio.run(carry_out(open_run, plan)))), flush=True)
