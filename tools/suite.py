"""Run the whole suite on two processes and hold its coverage: `python -m tools.suite [--record] [PYTEST ARGUMENT...]`.

What is skipped is listed with its reason. Then come the suites with their shares of the time (`tests/suites.toml`) and
what they used, and the ten slowest tests. With `--record`, the seconds of each test file go to `tests/durations.json`,
which is committed: long files begin first, and `make quick` chooses by it. The last line is always `N passed, N
failed`, where a test that could not be set up, torn down or collected has failed.
"""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping

import pytest

from tools import coverage_gate
from tools.shares import DURATIONS, ROOT, Shares, faults, load

OPTIONS = ("-n", "2", "--dist", "worksteal", "-rs", "--cov", "--cov-report=")
SHOWN = 10
"""Slowest tests that are listed."""
RECORDED_S = 1.0
"""From this many seconds on, a test file is recorded."""


class Tally:
    """A pytest plugin that counts the session's outcomes, and the seconds of its tests."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0
        self.failures: set[str] = set()
        """Ids of the tests that failed."""
        self.seconds: defaultdict[str, float] = defaultdict(float)
        """By id of the test, with its set-up and its end."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the seconds of one part of a test."""
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failures.add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Read the counts that pytest's own closing line shows."""
        stats = terminalreporter.stats
        self.passed = len(stats.get("passed", []))
        self.failed = len(stats.get("failed", [])) + len(stats.get("error", []))

    def by_file(self) -> Mapping[str, float]:
        """Seconds of each test file."""
        found: dict[str, float] = {}
        for test, seconds in self.seconds.items():
            path = test.partition("::")[0]
            found[path] = found.get(path, 0.0) + seconds
        return found


def usage(shares: Shares, seconds: Mapping[str, float]) -> Iterator[str]:
    """One line per suite that ran, and one for all: its share and what it used.

    Args:
        shares: Of the suites.
        seconds: By test file.
    """
    used = dict.fromkeys(shares.share_s, 0.0)
    for path, spent in seconds.items():
        if suite := shares.suite_of(path):
            used[suite] += spent
    yield f"{'suite':<32} {'share':>8} {'used':>8}"
    for suite, spent in sorted(used.items(), key=lambda entry: -entry[1]):
        if spent:
            warning = "  more than its share" if spent > shares.share_s[suite] else ""
            yield f"{suite:<32} {shares.share_s[suite]:>6} s {spent:>6.0f} s{warning}"
    title = f"all, of {shares.bar_s:.0f} s"
    yield f"{title:<32} {sum(shares.share_s.values()):>6} s {sum(used.values()):>6.0f} s"


def slowest(seconds: Mapping[str, float]) -> Iterator[str]:
    """One line for each of the slowest tests."""
    yield f"the {SHOWN} slowest tests"
    for test, spent in sorted(seconds.items(), key=lambda entry: -entry[1])[:SHOWN]:
        yield f"{spent:>8.1f} s  {test}"


def record(seconds: Mapping[str, float]) -> None:
    """Write the seconds of each test file that takes any, for the order of the next runs and for `make quick`."""
    kept = {path: round(spent) for path, spent in sorted(seconds.items()) if spent >= RECORDED_S}
    (ROOT / DURATIONS).write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Returns 0 only when every test passes, every package is covered as required, and every suite has its share."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process of a test compiles everything that it imports
    given = [argument for argument in arguments if argument != "--record"]
    tally = Tally()
    tests = pytest.main([*OPTIONS, *given], plugins=[tally])
    coverage = coverage_gate.main()
    found = list(faults())
    if shares := load():
        print(*usage(shares, tally.by_file()), *slowest(tally.seconds), sep="\n")
    print(*found, sep="\n", end="\n" if found else "")
    if "--record" in arguments and not tests:
        record(tally.by_file())
    print(f"{tally.passed} passed, {tally.failed} failed")
    return int(tests) or coverage or int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
