"""What it costs to run a small program in each sandbox of this machine: cold, and in one that was kept ready.

python -m benchmarks.sandbox --rounds 20
"""

import argparse
import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from statistics import median
from time import perf_counter

from toolcrib.infrastructure.sandbox import (
    Backend,
    BwrapBackend,
    CodeJob,
    Dialect,
    GvisorBackend,
    MontyBackend,
    Sandbox,
    ToolReply,
    ToolRequest,
)

PYTHON = "def main(n):\n    return [look_up(id=i) for i in range(n)]\n"
JAVASCRIPT = "function main({n}) { return Array.from({length: n}, (_, i) => look_up({id: i})) }"
CALLS = 10

Make = Callable[[], Backend]
WAYS: tuple[tuple[str, Make, Dialect], ...] = (
    ("monty in a jail, cold", MontyBackend, "monty"),
    ("monty in a jail, ready", lambda: MontyBackend(warm=2), "monty"),
    ("cpython under bubblewrap, cold", BwrapBackend, "cpython"),
    ("cpython under bubblewrap, ready", lambda: BwrapBackend(warm=2), "cpython"),
    ("restricted under bubblewrap, cold", BwrapBackend, "restricted"),
    ("quickjs under bubblewrap, cold", BwrapBackend, "quickjs"),
    ("cpython under gvisor, cold", GvisorBackend, "cpython"),
)


async def once(backend: Backend, dialect: Dialect, calls: int) -> float:
    """Milliseconds from the wish to the output, with so many calls between."""
    source = JAVASCRIPT if dialect == "quickjs" else PYTHON
    job = CodeJob(source, {"n": calls}, datetime.now(UTC), seed="1", functions=("look_up",))
    began = perf_counter()
    session = await backend.open(job, dialect)
    try:
        turn = await session.start()
        while isinstance(turn, ToolRequest):
            turn = await session.answer(ToolReply({"id": 1}))
        return (perf_counter() - began) * 1000
    finally:
        await session.close()


async def measure(rounds: int) -> list[dict[str, object]]:
    """Each way that holds on this machine, in turn."""
    rows: list[dict[str, object]] = []
    for name, make, dialect in WAYS:
        backend = make()
        sandbox = Sandbox((backend,))
        if next(probe.problem for probe in await sandbox.probe() if probe.dialect == dialect) is None:
            await once(backend, dialect, 0)
            alone: list[float] = []
            talking: list[float] = []
            for _ in range(rounds):
                await asyncio.sleep(0.2)  # those that are kept ready are started meanwhile
                alone.append(await once(backend, dialect, 0))
                await asyncio.sleep(0.2)
                talking.append(await once(backend, dialect, CALLS))
            a_call = (median(talking) - median(alone)) / CALLS
            rows.append({"sandbox": name, "run_ms": round(median(alone), 1), "call_ms": round(max(a_call, 0.0), 2)})
        await sandbox.close()
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    for row in asyncio.run(measure(parser.parse_args().rounds)):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
