"""Hold each package to its branch coverage: `python -m tools.coverage_gate [REPORT.json]`.

It reads the report of `coverage json` (format 3), or makes one from the data file in the working directory. Lines and
branches count alike, as in coverage's own total. Only packages that exist are judged.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

COMPLETE = frozenset({"contracts", "executor", "policy", "runs"})
"""Packages in which every line and every branch is covered."""
DEFAULT_PERCENT = 90.0


@dataclass(slots=True)
class Package:
    """Covered and total points (lines and branches) of one package of `toolcrib`."""

    name: str
    covered: int = 0
    total: int = 0
    gaps: list[str] = field(default_factory=list[str])
    """One line per incomplete file: its path, missing lines and missing branches."""

    @property
    def required(self) -> float:
        """Percent."""
        return 100.0 if self.name in COMPLETE else DEFAULT_PERCENT

    @property
    def reached(self) -> float:
        """Percent; a package without code is complete."""
        return 100.0 * self.covered / self.total if self.total else 100.0

    @property
    def passes(self) -> bool:
        """Whether the package reaches what is required of it."""
        return self.reached >= self.required


def packages(report: Mapping[str, Any]) -> list[Package]:
    """The packages of a coverage report, by name; modules beside the packages are listed as `toolcrib`."""
    found: dict[str, Package] = {}
    for path, file in sorted(report["files"].items()):
        name = _package_of(PurePath(path))
        package = found.setdefault(name, Package(name))
        summary = file["summary"]
        package.covered += summary["covered_lines"] + summary["covered_branches"]
        package.total += summary["num_statements"] + summary["num_branches"]
        if summary["missing_lines"] or summary["missing_branches"]:
            package.gaps.append(f"{path}: {_missing(file)}")
    return [found[name] for name in sorted(found)]


def _package_of(path: PurePath) -> str:
    inside = path.parts[path.parts.index("toolcrib") + 1 :]
    return inside[0] if len(inside) > 1 else "toolcrib"


def _missing(file: Mapping[str, Any]) -> str:
    lines = ", ".join(str(line) for line in file["missing_lines"])
    branches = ", ".join(f"{start}->{'exit' if end < 0 else end}" for start, end in file["missing_branches"])
    return "; ".join(f"{kind} {numbers}" for kind, numbers in (("lines", lines), ("branches", branches)) if numbers)


def table(judged: Iterable[Package]) -> Iterator[str]:
    """One line per package, and under a package that fails the gaps to close."""
    yield f"{'package':<14} {'required':>9} {'reached':>9} {'missing':>8}"
    for package in judged:
        verdict = "" if package.passes else "  FAILS"
        missing = package.total - package.covered
        yield f"{package.name:<14} {package.required:>8.0f}% {package.reached:>8.2f}% {missing:>8}{verdict}"
        if not package.passes:
            yield from (f"    {gap}" for gap in package.gaps)


def read_report(path: Path | None) -> Mapping[str, Any]:
    """The report in the file, or one made now from the working directory's coverage data."""
    if path is not None:
        return json.loads(path.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "coverage.json"
        subprocess.run([sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(made)], check=True)
        return json.loads(made.read_text(encoding="utf-8"))


def main(path: Path | None = None) -> int:
    """Print the table; returns 1 if a package fails."""
    judged = packages(read_report(path))
    for line in table(judged):
        print(line)
    return 0 if all(package.passes for package in judged) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
