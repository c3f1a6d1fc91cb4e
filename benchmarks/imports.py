"""What importing costs, in CPU milliseconds, each statement in a fresh interpreter of this environment.

The statements take turns, so that a busy moment of the machine hits all of them. The interpreter's own start is left
out: it would only flatter the ratio.
"""

import statistics
import subprocess
import sys
from dataclasses import dataclass

OURS = "import toolcrib"
OURS_USED = "from toolcrib import Crib, tool"
PYDANTIC = "import pydantic"
PYDANTIC_USED = "from pydantic import BaseModel"
STATEMENTS = (OURS, OURS_USED, PYDANTIC, PYDANTIC_USED)

PROBE = """
import resource
def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) * 1000
before = cpu()
{statement}
print(cpu() - before)
"""


@dataclass(frozen=True, slots=True)
class ImportCost:
    """CPU milliseconds of one statement; `None` where the statement fails."""

    statement: str
    least_ms: float | None
    median_ms: float | None


def measure_imports(rounds: int) -> list[ImportCost]:
    """Measure every statement `rounds` times, after one uncounted round that fills the bytecode cache."""
    taken: dict[str, list[float]] = {statement: [] for statement in STATEMENTS}
    for number in range(rounds + 1):
        for statement, times in taken.items():
            probe = [sys.executable, "-c", PROBE.format(statement=statement)]
            outcome = subprocess.run(probe, capture_output=True, text=True, check=False)
            if number and outcome.returncode == 0:
                times.append(float(outcome.stdout))
    return [
        ImportCost(statement, min(times, default=None), statistics.median(times) if times else None)
        for statement, times in taken.items()
    ]
