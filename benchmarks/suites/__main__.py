"""Prepare the suites' environments and play them all: `python -m benchmarks.suites [NAME...] [--limit N]`.

The first run downloads; the exit status is 0 only if every task of every suite came out as the suite says, and every
call that was left out was seen.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.environments import ROOT, suite_python
from benchmarks.suites.verdicts import Verdict, verdict_table

SUITES = ("agentdojo", "bfcl")


def verdicts_of(suite: str, limit: int | None) -> Iterator[tuple[str, Verdict, float]]:
    """The verdicts of a suite as they come, each with the seconds that it took."""
    command: list[str | Path] = [suite_python(suite), "-m", f"benchmarks.suites.{suite}_suite"]
    if limit is not None:
        command += ["--limit", str(limit)]
    search = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    began = time.perf_counter()
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": search}, stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout or ():
            verdict, ended = Verdict.read(line), time.perf_counter()
            print(f"{suite} {verdict.group}: {verdict.live}/{verdict.tasks}", *verdict.failed, flush=True)
            yield suite, verdict, ended - began
            began = ended
    if process.returncode:
        sys.exit(f"{suite} ended with exit status {process.returncode}")


def main() -> int:
    """Returns 0 if all is as it must be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], help="all of them if none is named")
    parser.add_argument("--limit", type=int, help="so many tasks of each group")
    given = parser.parse_args()
    found = [one for suite in given.suites or SUITES for one in verdicts_of(suite, given.limit)]
    print(f"\n{verdict_table(found)}")
    return int(not all(verdict.whole and verdict.detected == verdict.controls for _, verdict, _ in found))


if __name__ == "__main__":
    sys.exit(main())
