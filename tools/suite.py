"""Run the whole suite on two processes and hold its coverage: `python -m tools.suite [PYTEST ARGUMENT...]`.

What is skipped is listed with its reason. The last line is always `N passed, N failed`, where a test that could not be
set up, torn down or collected has failed.
"""

import os
import sys

import pytest

from tools import coverage_gate

OPTIONS = ("-n", "2", "--dist", "worksteal", "-rs", "--cov", "--cov-report=")


class Tally:
    """A pytest plugin that counts the session's outcomes."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Read the counts that pytest's own closing line shows."""
        stats = terminalreporter.stats
        self.passed = len(stats.get("passed", []))
        self.failed = len(stats.get("failed", [])) + len(stats.get("error", []))


def main(arguments: list[str]) -> int:
    """Returns 0 only when every test passes and every package is covered as required."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process of a test compiles everything that it imports
    tally = Tally()
    tests = pytest.main([*OPTIONS, *arguments], plugins=[tally])
    coverage = coverage_gate.main()
    print(f"{tally.passed} passed, {tally.failed} failed")
    return int(tests) or coverage


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
