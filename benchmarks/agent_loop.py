"""CPU per agent run: a hand-written loop, Toolcrib, and its peers, interleaved on loopback against one mock provider.

One run is the script of `benchmarks.script`. Every candidate runs in a process of its own, every peer also in an
environment of its own; a round gives each candidate one turn, so that a busy moment of the machine hits all of them.
After the rounds, a burst starts hundreds of runs at once against a slower model and counts the failures. A candidate
whose ordinary runs fail has crashed: its figures would mean nothing. Method and reading: docs/benchmarks.md.

    python -m benchmarks.agent_loop --rounds 5 --runs 200
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.environments import ROOT, peer_python
from benchmarks.imports import measure_imports
from benchmarks.measure import Figures, Plan
from benchmarks.report import MEMORY, RAW, SQLITE, Row, bar_table, import_table, judge, loop_table

LONGEST_LOAD_S = 900


@dataclass(frozen=True, slots=True)
class Candidate:
    """How one candidate is started."""

    name: str
    module: str
    store: str = "memory://"
    """Journal address; `{folder}` is a new temporary folder for each process."""
    peer: bool = False


CANDIDATES = (
    Candidate(RAW, "benchmarks.candidates.raw_run"),
    Candidate(MEMORY, "benchmarks.candidates.toolcrib_run"),
    Candidate(SQLITE, "benchmarks.candidates.toolcrib_run", store="sqlite:///{folder}/journal.db"),
    Candidate("pydantic-ai", "benchmarks.peers.pydantic_ai_run", peer=True),
    Candidate("openai-agents", "benchmarks.peers.openai_agents_run", peer=True),
    Candidate("langgraph", "benchmarks.peers.langgraph_run", peer=True),
    Candidate("agent-framework", "benchmarks.peers.agent_framework_run", peer=True),
)


class CrashedError(Exception):
    """A candidate's process failed, or its ordinary runs did."""


@dataclass(frozen=True, slots=True)
class Provider:
    """The mock provider's process as its clients see it."""

    port: int

    @property
    def base_url(self) -> str:
        """Address of the OpenAI API."""
        return f"http://127.0.0.1:{self.port}/v1"

    def answered(self) -> int:
        """How many model calls it has answered so far."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/answered", timeout=10) as response:
            return int(response.read())


@contextmanager
def mock_provider() -> Generator[Provider]:
    """Run the mock provider in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.mock_provider"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Provider(int(process.stdout.readline()))
        finally:
            process.terminate()


def run_process(python: Path, candidate: Candidate, plan: Plan) -> dict[str, Any]:
    """Carry out a plan in a new process of the candidate and return the JSON object that it prints last."""
    command = [python, "-m", candidate.module, json.dumps(asdict(plan))]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=LONGEST_LOAD_S)
    except subprocess.CalledProcessError as failure:
        tail = failure.stderr.strip().splitlines()[-1:] or [f"exit status {failure.returncode}"]
        raise CrashedError(tail[0]) from failure
    except subprocess.TimeoutExpired as failure:
        message = f"no result after {LONGEST_LOAD_S} s"
        raise CrashedError(message) from failure
    return json.loads(done.stdout.splitlines()[-1])


class Benchmark:
    """The rounds and the burst over the chosen candidates, with one row per candidate as the result."""

    def __init__(self, provider: Provider, candidates: Sequence[Candidate]) -> None:
        self.provider = provider
        self.rows = {candidate.name: Row(candidate.name, candidate.peer) for candidate in candidates}
        self._candidates = candidates
        self._pythons = {c.name: peer_python(c.name) if c.peer else Path(sys.executable) for c in candidates}

    def rounds(self, count: int, turn: Plan) -> None:
        """Give each candidate one turn per round, in the same order."""
        for number in range(1, count + 1):
            for candidate, row in self._standing():
                figures = self._load(candidate, turn)
                if figures and figures.failures:
                    row.crashed = f"{figures.failures} of {figures.runs} runs failed: {figures.first_failure}"
                elif figures:
                    row.rounds.append(figures)
                    print(f"round {number}: {row.name} {figures.cpu_ms_per_run:.2f} ms / run", flush=True)

    def burst(self, runs: int) -> None:
        """Start `runs` runs at once for each candidate; failures are a result here, not a crash."""
        plan = Plan(self.provider.base_url, "agent-slow", runs=runs, in_flight=runs, warm_up=1, least_cpu_s=0)
        for candidate, row in self._standing():
            before = self.provider.answered()
            row.burst = self._load(candidate, plan)
            if row.burst:
                row.burst_requests_per_run = (self.provider.answered() - before) / (runs + 1)
                print(f"burst: {row.name} {row.burst.failures} of {runs} failed", flush=True)

    def _standing(self) -> Iterator[tuple[Candidate, Row]]:
        """The candidates that have not crashed, each asked when its turn comes."""
        for candidate in self._candidates:
            row = self.rows[candidate.name]
            if not row.crashed:
                yield candidate, row

    def _load(self, candidate: Candidate, plan: Plan) -> Figures | None:
        """One load in one new process; notes on the candidate's row why there are no figures."""
        row = self.rows[candidate.name]
        with tempfile.TemporaryDirectory() as folder:
            own = replace(plan, store=candidate.store.format(folder=folder))
            try:
                return Figures(**run_process(self._pythons[candidate.name], candidate, own))
            except CrashedError as failure:
                row.crashed = str(failure)
                return None


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agent_loop", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--rounds", type=int, default=5, help="turns of each candidate")
    parser.add_argument("--runs", type=int, default=200, help="measured runs per turn, at least")
    parser.add_argument("--least-cpu", type=float, default=1.0, help="CPU seconds per turn, at least")
    parser.add_argument("--in-flight", type=int, default=4, help="runs at a time in a turn")
    parser.add_argument("--warm-up", type=int, default=20, help="uncounted runs before each turn")
    parser.add_argument("--burst", type=int, default=500, help="concurrent runs after the rounds; 0 for none")
    parser.add_argument("--import-rounds", type=int, default=15, help="interpreters started per import statement")
    parser.add_argument("--only", help=f"candidates, comma-separated, of {', '.join(c.name for c in CANDIDATES)}")
    parser.add_argument("--peers", choices=["all", "none"], default="all", help="none installs and runs no peer")
    parser.add_argument("--json", type=Path, help="file for every figure")
    return parser.parse_args()


def chosen(only: str | None, peers: str) -> list[Candidate]:
    """The candidates that the options leave; an unknown name ends the program."""
    candidates = [candidate for candidate in CANDIDATES if peers == "all" or not candidate.peer]
    if only is None:
        return candidates
    names = set(only.split(","))
    if unknown := names - {candidate.name for candidate in candidates}:
        sys.exit(f"no such candidate here: {', '.join(sorted(unknown))}")
    return [candidate for candidate in candidates if candidate.name in names]


def main() -> int:
    """Measure, print the report; 1 if a candidate crashed, else 0, bars met or not."""
    options = parse_arguments()
    candidates = chosen(options.only, options.peers)
    with mock_provider() as provider:
        benchmark = Benchmark(provider, candidates)
        turn = Plan(
            provider.base_url,
            "agent",
            warm_up=options.warm_up,
            runs=options.runs,
            in_flight=options.in_flight,
            least_cpu_s=options.least_cpu,
        )
        benchmark.rounds(options.rounds, turn)
        if options.burst:
            benchmark.burst(options.burst)
    imports = measure_imports(options.import_rounds)
    rows = list(benchmark.rows.values())
    bars = judge(rows, options.burst, imports)
    print("", loop_table(rows), "", import_table(imports), "", bar_table(bars), sep="\n")
    if options.json:
        result = {
            "python": platform.python_version(),
            "options": {name: value for name, value in vars(options).items() if name != "json"},
            "candidates": [{**asdict(row), "least": row.least, "median": row.median} for row in rows],
            "imports": [asdict(item) for item in imports],
            "bars": [asdict(bar) for bar in bars],
        }
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if any(row.crashed for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
