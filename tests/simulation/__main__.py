"""Runs schedules from the command line: `python -m tests.simulation SEED [COUNT [SHORTEN]]`."""

# ruff: noqa: T201

import sys
import time
from collections import Counter

from tests.simulation.files import template
from tests.simulation.scenarios import scenario
from tests.simulation.schedules import Schedule
from tests.simulation.search import run_schedule, shorten


def main(first: int, count: int = 1, shortens: int = 0) -> None:
    """Run some schedules, and say of each that fails how, of the first of each kind what the shortest is."""
    seen: Counter[str] = Counter()
    began = time.perf_counter()
    with template() as files:
        for seed in range(first, first + count):
            outcome = run_schedule(scenario, Schedule(seed), files=files)
            if outcome.failure is None:
                continue
            kind = outcome.failure.kind
            seen[kind] += 1
            print(
                f"seed {seed}: {outcome.failure.error}"[:900],
                {k: v for k, v in outcome.decisions.items() if "pick" not in k}
                if len(outcome.decisions) < 60
                else "many",
                flush=True,
            )
            if shortens and seen[kind] == 1:
                short = shorten(scenario, outcome.failure, files=files)
                print(f"  shortest: {short.schedule}\n  {short.error}"[:6000], flush=True)
    print(f"{count} schedules in {time.perf_counter() - began:.1f} s: {dict(seen) or 'nothing found'}", flush=True)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
