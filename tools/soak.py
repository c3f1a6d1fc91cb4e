"""Run the tests that take minutes and keep their result: `python -m tools.soak [PYTEST ARGUMENT...]`.

The result goes to `tests/soak.json`, which is committed with what it is about: the commit, the counts, the seconds of
all tests and the ids of those that failed. A run with arguments is of a part of them, and is not kept.
"""

import json
import os
import sys
from pathlib import Path

import pytest

from tools.quick import git
from tools.shares import ROOT
from tools.suite import Tally

RESULT = "tests/soak.json"
OPTIONS = ("-m", "soak", "-rs")


def keep(tally: Tally, root: Path = ROOT) -> None:
    """Write the result of a run of all of them."""
    head = "".join(git(root, "rev-parse", "HEAD"))
    changed = [path for path in git(root, "status", "--porcelain") if not path.endswith(RESULT)]
    result = {
        "commit": f"{head} with changes" if changed else head,
        "passed": tally.passed,
        "failed": tally.failed,
        "seconds": round(sum(tally.seconds.values())),
        "failures": sorted(tally.failures),
    }
    (root / RESULT).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Returns what pytest returns."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    tally = Tally()
    tests = pytest.main([*OPTIONS, *arguments], plugins=[tally])
    if not arguments and tests in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        keep(tally)
        print(f"soak: the result is in {RESULT}; commit it")
    return int(tests)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
