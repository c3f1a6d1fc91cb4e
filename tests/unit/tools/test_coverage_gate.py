"""The coverage gate on small reports, and once on real coverage data."""

from typing import Any

import pytest

from tests.unit.tools.conftest import Repository
from tools import coverage_gate

pytestmark = pytest.mark.requirement("repository.coverage_gate")


def report(**covered: tuple[int, int]) -> dict[str, Any]:
    """A report of one file per package, from (covered, total) lines."""
    return {
        "files": {
            f"src/toolcrib/{name}/m.py": {
                "summary": {"covered_lines": part, "num_statements": total, "covered_branches": 0, "num_branches": 0}
            }
            for name, (part, total) in covered.items()
        }
    }


@pytest.mark.parametrize(
    ("name", "covered", "passes"),
    [
        ("contracts", 1000, True),
        ("contracts", 999, False),
        ("core/executor", 999, False),
        ("core/policy", 999, False),
        ("core/runs", 999, False),
        ("infrastructure/store", 900, True),
        ("infrastructure/store", 899, False),
    ],
)
def test_each_package_is_held_to_its_own_percentage(name: str, covered: int, passes: bool):
    [package] = coverage_gate.packages(report(**{name: (covered, 1000)}))

    assert package.passes is passes


def test_a_package_without_code_is_complete():
    [package] = coverage_gate.packages(report(contracts=(0, 0)))

    assert package.passes


def test_lines_and_branches_of_all_files_of_a_package_count_alike():
    counts = {"covered_lines": 3, "num_statements": 4, "covered_branches": 1, "num_branches": 2}
    paths = (
        "src/toolcrib/infrastructure/store/sql/a.py",
        "src/toolcrib/infrastructure/store/b.py",
        "src/toolcrib/agents/turn/c.py",
        "src/toolcrib/kinds/d.py",
        "src/toolcrib/crib.py",
    )

    found = coverage_gate.packages({"files": {path: {"summary": counts} for path in paths}})

    assert [(each.name, each.covered, each.total, each.pattern) for each in found] == [
        ("agents", 4, 6, "src/toolcrib/agents/**"),
        ("infrastructure/store", 8, 12, "src/toolcrib/infrastructure/store/**"),
        ("kinds", 4, 6, "src/toolcrib/kinds/*"),
        ("toolcrib", 4, 6, "src/toolcrib/*"),
    ]


def test_the_table_marks_what_fails():
    table = list(coverage_gate.table(coverage_gate.packages(report(contracts=(99, 100), agents=(99, 100)))))

    assert table == [
        "package                 required   reached  missing",
        "agents                       90%    99.00%        1",
        "contracts                   100%    99.00%        1  FAILS",
    ]


def test_real_coverage_data_is_judged_and_the_missing_branch_is_shown(repository: Repository):
    repository.write("src/toolcrib/core/policy/m.py", "import sys\nif sys.argv:\n    x = 1\ny = 2\n")
    repository.write("src/toolcrib/core/policy/__init__.py", "")
    repository.write("src/toolcrib/core/__init__.py", "")
    repository.python("-m", "coverage", "run", "-m", "toolcrib.core.policy.m")
    repository.python("-m", "coverage", "combine", "--quiet")

    gate = repository.python("-m", "tools.coverage_gate")

    assert gate.returncode == 1
    assert "core/policy                 100%    83.33%        1  FAILS" in gate.stdout
    assert "src/toolcrib/core/policy/m.py       4      0      2      1    83%   2->4" in gate.stdout


def test_a_folder_without_coverage_data_fails(repository: Repository):
    gate = repository.python("-m", "tools.coverage_gate")

    assert (gate.returncode, gate.stdout) == (1, "No data to report.\n")
