"""How the whole suite ends, on a small one."""

from subprocess import CompletedProcess

import pytest

from tests.unit.tools.conftest import Repository

pytestmark = [pytest.mark.requirement("repository.closing_line"), pytest.mark.slow]

HEAD = "import subprocess, sys\nimport pytest\npytestmark = pytest.mark.requirement('a.one')\n"
COVERED_IN_A_SUBPROCESS = """
def test_subprocess(tmp_path):
    subprocess.run([sys.executable, "-c", "import toolcrib.core.policy as p; p.f()"], cwd=tmp_path, check=True)
"""
FAILING = """
@pytest.fixture
def broken():
    raise OSError

def test_failure(): assert False
def test_error(broken): pass
"""


@pytest.fixture
def small_suite(repository: Repository) -> Repository:
    repository.write("tests/contract/requirements/a.yaml", "a.one: One.\n")
    repository.write("src/toolcrib/core/policy/__init__.py", "def f():\n    return 1\n")
    repository.write("src/toolcrib/core/__init__.py", "")
    repository.write("tests/test_m.py", HEAD + COVERED_IN_A_SUBPROCESS)
    return repository


def closing_line(run: CompletedProcess[str]) -> str:
    return run.stdout.splitlines()[-1]


def test_a_suite_that_passes_with_its_coverage_succeeds(small_suite: Repository):
    run = small_suite.python("-m", "tools.suite")

    assert closing_line(run) == "1 passed, 0 failed"
    assert "core/policy                 100%   100.00%        0\n" in run.stdout
    assert run.returncode == 0


def test_a_suite_that_passes_without_its_coverage_fails(small_suite: Repository):
    small_suite.write("src/toolcrib/core/policy/m.py", "def g():\n    return 2\n")

    run = small_suite.python("-m", "tools.suite", "-n", "0")

    assert closing_line(run) == "1 passed, 0 failed"
    assert run.returncode == 1


def test_failures_and_errors_both_count_as_failed(small_suite: Repository):
    small_suite.write("tests/test_m.py", HEAD + COVERED_IN_A_SUBPROCESS + FAILING)

    run = small_suite.python("-m", "tools.suite", "-n", "0")

    assert closing_line(run) == "1 passed, 2 failed"
    assert run.returncode == 1


def test_a_suite_that_cannot_be_collected_has_failed(small_suite: Repository):
    small_suite.write("tests/test_m.py", "def test_one(): pass\n")

    run = small_suite.python("-m", "tools.suite", "-n", "0")

    assert closing_line(run) == "0 passed, 1 failed"
    assert run.returncode == pytest.ExitCode.INTERRUPTED
