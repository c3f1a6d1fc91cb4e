"""Hold each package to its branch coverage: `python -m tools.coverage_gate`.

It reads the coverage data in the working directory. Lines and branches count alike, as in coverage's own total. Only
packages that exist are judged; under the table, coverage's own report names what the failing ones miss.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

SOURCE = PurePath("src/toolcrib")
GROUPS = frozenset({"core", "infrastructure", "interfaces", "kinds"})
"""Folders of packages; each of these packages is judged by itself."""
COMPLETE = frozenset({"contracts", "core/executor", "core/policy", "core/runs"})
"""Packages in which every line and every branch is covered."""
DEFAULT_PERCENT = 90.0


@dataclass(slots=True)
class Package:
    """Covered and total points (lines and branches) of one package of `toolcrib`."""

    name: str
    covered: int = 0
    total: int = 0

    @property
    def required(self) -> float:
        """Percent."""
        return 100.0 if self.name in COMPLETE else DEFAULT_PERCENT

    @property
    def reached(self) -> float:
        """Percent; a package without code is complete."""
        return 100.0 * self.covered / self.total if self.total else 100.0

    @property
    def pattern(self) -> str:
        """The package's files, as `coverage report --include` wants them."""
        if self.name == SOURCE.name:
            return f"{SOURCE}/*"
        return f"{SOURCE}/{self.name}/*" if self.name in GROUPS else f"{SOURCE}/{self.name}/**"

    @property
    def passes(self) -> bool:
        """Whether the package reaches what is required of it."""
        return self.reached >= self.required


def packages(report: Mapping[str, Any]) -> list[Package]:
    """The packages of a `coverage json` report (format 3) by name; modules beside packages count as their folder."""
    found: dict[str, Package] = {}
    for path, file in report["files"].items():
        name = _package_of(PurePath(path))
        package = found.setdefault(name, Package(name))
        summary = file["summary"]
        package.covered += summary["covered_lines"] + summary["covered_branches"]
        package.total += summary["num_statements"] + summary["num_branches"]
    return [found[name] for name in sorted(found)]


def _package_of(path: PurePath) -> str:
    inside = path.relative_to(SOURCE).parts
    depth = 2 if inside[0] in GROUPS else 1
    return "/".join(inside[: min(depth, len(inside) - 1)]) or SOURCE.name


def table(judged: Iterable[Package]) -> Iterator[str]:
    """One line per package; `missing` counts lines and branches."""
    yield f"{'package':<22} {'required':>9} {'reached':>9} {'missing':>8}"
    for package in judged:
        verdict = "" if package.passes else "  FAILS"
        missing = package.total - package.covered
        yield f"{package.name:<22} {package.required:>8.0f}% {package.reached:>8.2f}% {missing:>8}{verdict}"


def measure() -> list[Package]:
    """The packages as the coverage data in the working directory has them."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        _coverage("json", "--quiet", "-o", str(report))
        return packages(json.loads(report.read_text(encoding="utf-8")))


def _coverage(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "coverage", *arguments], check=True)


def main() -> int:
    """Print the table, and what failing packages miss; returns 1 if there are any, or nothing was measured."""
    try:
        judged = measure()
    except subprocess.CalledProcessError:
        return 1  # coverage has said why
    for line in table(judged):
        print(line, flush=True)
    failing = [package.pattern for package in judged if not package.passes]
    if failing:
        _coverage("report", f"--include={','.join(failing)}")
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
