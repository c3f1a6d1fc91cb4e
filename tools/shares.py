"""Hold the suites to their shares of the time that the whole suite may take: `python -m tools.shares`.

`tests/suites.toml` gives each suite, which is a folder of tests, its share in seconds. Only the file is checked: the
shares add up to the bar at most, and each folder that has tests is in a suite. How long tests take is recorded and
shown (`tools/suite.py`) but never asserted, because it depends on the machine.
"""

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
FILE = "tests/suites.toml"
DURATIONS = "tests/durations.json"
"""Seconds of test files in the last full run that was recorded; files under a second are left out."""


@dataclass(frozen=True, slots=True)
class Shares:
    """What `tests/suites.toml` says."""

    minutes: float
    """The bar of the whole suite."""
    processes: int
    """That share the work."""
    share_s: Mapping[str, int]
    """Seconds of one process by suite."""
    unmeasured: frozenset[str]
    """Suites that run without coverage."""

    @property
    def bar_s(self) -> float:
        """Seconds of all processes."""
        return self.minutes * 60 * self.processes

    def suite_of(self, path: str) -> str | None:
        """The innermost suite of a test file or a test's id; null if there is none."""
        folders = PurePosixPath(path.partition("::")[0]).parents
        return next((str(folder) for folder in folders if str(folder) in self.share_s), None)


@cache
def load(root: Path = ROOT) -> Shares | None:
    """The shares of the repository in a folder; null if it has none."""
    file = root / FILE
    if not file.exists():
        return None
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    unmeasured = frozenset(content.get("unmeasured", ()))
    return Shares(content["minutes"], content["processes"], content["share_s"], unmeasured)


def durations(root: Path = ROOT) -> Mapping[str, float]:
    """Recorded seconds by test file; empty if nothing was recorded."""
    file = root / DURATIONS
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def faults(root: Path = ROOT) -> Iterator[str]:
    """One line per finding."""
    shares = load(root)
    if shares is None:
        yield f"{FILE} is missing; it gives each suite its share in seconds"
        return
    total = sum(shares.share_s.values())
    if total > shares.bar_s:
        yield (
            f"{FILE}: the shares are {total} s together; the limit is {shares.bar_s:.0f} s: {shares.minutes} min on "
            f"{shares.processes} processes; make tests cheaper, or mark those that take minutes `soak`"
        )
    files = [path.relative_to(root).as_posix() for path in sorted((root / "tests").rglob("test_*.py"))]
    suites = {path: shares.suite_of(path) for path in files}
    for folder in sorted({str(PurePosixPath(path).parent) for path, suite in suites.items() if suite is None}):
        yield f"{FILE}: the tests in {folder} have no share; add a line to [share_s]"
    for suite in sorted(shares.share_s.keys() - set(suites.values())):
        yield f"{FILE}: {suite} has no tests; remove its share"
    for suite in sorted(shares.unmeasured - shares.share_s.keys()):
        yield f"{FILE}: unmeasured names {suite}, which is no suite"


def main(root: Path) -> int:
    """Print one line per finding; returns 1 if there is any."""
    found = list(faults(root))
    for fault in found:
        print(fault)
    if not found and (shares := load(root)) is not None:
        print(f"shares: {sum(shares.share_s.values())} s of {shares.bar_s:.0f} s in {len(shares.share_s)} suites")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
