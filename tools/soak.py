"""Run the tests that take minutes, as many as a given time allows, and keep their results: `python -m tools.soak`.

    python -m tools.soak [--minutes M] [PYTEST ARGUMENT...]

The result goes to `tests/soak.json`, which is committed: for each test how it ended last, with the seconds that it took
and the commit that was tested; and how many passed, failed and were not run yet. It is written after each test, so that
a run may be stopped. The next run begins with the tests that were not run yet, then with those whose result is oldest;
with `--minutes`, no test begins after that time.
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from time import monotonic
from typing import Any, Final

import pytest

from tools.quick import git
from tools.shares import ROOT

RESULT: Final = "tests/soak.json"
OPTIONS: Final = ("-m", "soak", "-rs")
NOT_RUN: Final = "not run"


class Results:
    """A pytest plugin that keeps what became of each test, and begins none when the time is used.

    Args:
        root: Of the repository.
        minutes: After which no test begins; null for all of them.
        is_whole: All soak tests are asked for, so that a result of any other is of a test that is there no more.
    """

    def __init__(self, root: Path, minutes: float | None, *, is_whole: bool) -> None:
        self._file = root / RESULT
        self._end = None if minutes is None else monotonic() + 60 * minutes
        self._is_whole = is_whole
        self._outcomes: dict[str, tuple[str, float]] = {}
        """Of the tests of this run that have ended, and of the one that runs."""
        head = "".join(git(root, "rev-parse", "HEAD"))
        changed = [path for path in git(root, "status", "--porcelain") if not path.endswith(RESULT)]
        self._commit = f"{head} with changes" if changed else head
        self._kept: dict[str, dict[str, Any]] = (
            json.loads(self._file.read_text(encoding="utf-8"))["tests"] if self._file.exists() else {}
        )

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Order the tests by how long ago they were run; those that were never run come first."""
        ages = {test: age for age, test in enumerate(self._kept)}
        found = [item for item in items if item.get_closest_marker("soak")]
        never = [item for item in found if self._kept.get(item.nodeid, {}).get("outcome", NOT_RUN) == NOT_RUN]
        items[:] = [*never, *sorted((item for item in found if item not in never), key=lambda each: ages[each.nodeid])]
        ids = dict.fromkeys(item.nodeid for item in items)
        if self._is_whole:
            self._kept = {test: kept for test, kept in self._kept.items() if test in ids}
        for test in ids:
            self._kept.setdefault(test, {"outcome": NOT_RUN})
        self.write()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Run a test, and keep its result."""
        try:
            return (yield)
        finally:
            outcome, seconds = self._outcomes.pop(item.nodeid)
            self._kept.pop(item.nodeid, None)  # the newest is the last one
            self._kept[item.nodeid] = {"outcome": outcome, "seconds": round(seconds), "commit": self._commit}
            self.write()
            if self._end is not None and monotonic() > self._end:
                item.session.shouldstop = "the time is used"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how one part of a test has ended."""
        outcome, seconds = self._outcomes.get(report.nodeid, ("passed", 0.0))
        worse = report.outcome if report.outcome != "passed" and outcome != "failed" else outcome
        self._outcomes[report.nodeid] = worse, seconds + report.duration

    def write(self) -> None:
        """Write all results, those of earlier runs too."""
        counts = Counter(kept["outcome"] for kept in self._kept.values())
        whole = {
            "counts": {name: counts[name] for name in ("passed", "failed", "skipped", NOT_RUN)},
            "failures": sorted(test for test, kept in self._kept.items() if kept["outcome"] == "failed"),
            "tests": self._kept,
        }
        self._file.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")

    def __str__(self) -> str:
        counts = Counter(kept["outcome"] for kept in self._kept.values())
        return ", ".join(f"{counts[name]} {name}" for name in ("passed", "failed", "skipped", NOT_RUN))


def main(arguments: list[str]) -> int:
    """Returns what pytest returns; 0 if the time was used and nothing has failed."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    parser = argparse.ArgumentParser(prog="soak", description="Run the tests that take minutes.")
    parser.add_argument("--minutes", type=float)
    options, given = parser.parse_known_args(arguments)
    results = Results(ROOT, options.minutes, is_whole=not given)
    ended = int(pytest.main([*OPTIONS, *given], plugins=[results]))
    print(f"soak: {results}; the results are in {RESULT}; commit them")
    stopped = options.minutes is not None and ended == pytest.ExitCode.INTERRUPTED
    return 0 if stopped else ended


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
