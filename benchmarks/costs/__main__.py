"""Count what fixed work costs, and hold it against the committed costs: docs/benchmarks.md.

python -m benchmarks.costs check                            what `make test` runs
python -m benchmarks.costs record --reason "..."            rewrite the last values; a growth needs a reason
python -m benchmarks.costs where "agent run, memory"        which modules and functions the calls are in
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.costs import gate
from benchmarks.costs.counting import ENVIRONMENT, CannotCountError, Counts

ROOT = Path(__file__).resolve().parent.parent.parent
KEPT = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR")
"""The only variables that a process of counts inherits: coverage and Python's own switches would change its work."""
LONGEST_S = 300
_BARE = "bare loop"
"""Counted as the unit, and not held to anything."""


def counted() -> dict[str, Counts]:
    """What each work costs, counted in a process of its own.

    Raises:
        CannotCountError: The process failed, or Python is another version than that of the recorded costs.
    """
    if not is_counted_here():
        raise CannotCountError(
            f"the recorded costs are those of Python {'.'.join(map(str, gate.PYTHON))}; use that one"
        )
    return {name: Counts(**counts) for name, counts in json.loads(in_own_process("count")).items()}


def in_own_process(*arguments: str) -> str:
    """What a process of counts prints."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ} | ENVIRONMENT
    command = [sys.executable, "-m", "benchmarks.costs", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST_S
    )
    if done.returncode:
        raise CannotCountError(f"the costs could not be counted: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def check() -> list[str]:
    """Every problem with the costs as they are now, and with what the file says of them."""
    ledger = gate.read(gate.LEDGER.read_text(encoding="utf-8"))
    before, versions = gate.committed()
    found = list(gate.history_problems(ledger, before, iter(versions)))
    counts = counted()
    counts.pop(_BARE, None)
    return [*found, *gate.problems(ledger, gate.named(counts))]


def is_counted_here() -> bool:
    """Whether the recorded costs are of this version of Python."""
    return sys.version_info[:2] == gate.PYTHON


def main() -> int:
    """0 if all is well, else 1."""
    options = _arguments()
    try:
        match options.command:
            case "count":
                _print_counts()
            case "follow":
                _print_tables(options.work, options.top)
            case "where":
                print(in_own_process("follow", options.work, "--top", str(options.top)))
            case "record":
                _record(options.reason, lower=options.lower_ceilings)
            case _:
                return _check()
    except (CannotCountError, gate.RefusedError, ValueError) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def _check() -> int:
    found = check()
    print("\n".join(found) or "every cost is as recorded")
    return 1 if found else 0


def _record(reason: str | None, *, lower: bool) -> None:
    text = gate.LEDGER.read_text(encoding="utf-8") if gate.LEDGER.exists() else ""
    old = gate.read(text) if text else {}
    counts = counted()
    bare = counts.pop(_BARE, None)
    new = gate.recorded(old, gate.named(counts), reason, lower_ceilings=lower)
    gate.LEDGER.write_text(gate.write(new), encoding="utf-8")
    print("| cost | before | counted | ceiling |\n| --- | ---: | ---: | ---: |")
    if bare is not None:
        for name, value in gate.named({_BARE: bare}).items():
            print(f"| {name} | | {value:g} | |")
    for name, value in gate.named(counts).items():
        before = f"{old[name].last:g}" if name in old else ""
        print(f"| {name} | {before} | {value:g} | {new[name].ceiling:g} |")


def _print_counts() -> None:
    from benchmarks.costs.works import BARE, NAMES, measure

    print(json.dumps({name: asdict(measure(name)) for name in (BARE, *NAMES)}))


def _print_tables(work: str, top: int) -> None:
    from benchmarks.costs.where import tables
    from benchmarks.costs.works import follow

    print(tables(*follow(work), top))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="hold the counts against the committed ones")
    record = commands.add_parser("record", help="rewrite the last values")
    record.add_argument("--reason", help="why costs grew by more than 1 %%")
    record.add_argument(
        "--lower-ceilings", action="store_true", help="to 20 %% above what is recorded, where that is less"
    )
    commands.add_parser("count", help="print the counts as JSON, in this process")
    for name in ("where", "follow"):
        one = commands.add_parser(name, help="which modules and functions the calls are in")
        one.add_argument("work", help='such as "agent run, memory"')
        one.add_argument("--top", type=int, default=25, help="rows of each table")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
