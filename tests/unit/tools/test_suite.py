"""How the whole suite ends, on a small one."""

import json
from subprocess import CompletedProcess

import pytest

from tests.unit.tools.conftest import Repository

pytestmark = [pytest.mark.requirement("repository.closing_line"), pytest.mark.slow]

HEAD = "import subprocess, sys\nimport pytest\npytestmark = pytest.mark.requirement('a.one')\n"
COVERED_IN_A_SUBPROCESS = """
def test_subprocess(tmp_path):
    subprocess.run([sys.executable, "-c", "import toolcrib.core.policy as p; p.f()"], cwd=tmp_path, check=True)
"""
SUITES = "minutes = 1\nprocesses = 2\nunmeasured = []\n[share_s]\ntests = 100\n"
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
    repository.write("tests/suites.toml", SUITES)
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


@pytest.mark.requirement("repository.shares")
def test_suites_are_shown_with_their_shares_and_the_slowest_tests_and_recorded(small_suite: Repository):
    small_suite.write("tests/suites.toml", SUITES.replace("100", "0"))
    slow = "\ndef test_slow():\n    import time\n    time.sleep(1.1)\n"
    small_suite.write("tests/test_m.py", HEAD + COVERED_IN_A_SUBPROCESS + slow)

    run = small_suite.python("-m", "tools.suite", "-n", "0", "--record")

    assert run.returncode == 0, "time fails nothing"
    (suite,) = [line for line in run.stdout.splitlines() if line.startswith("tests ")]
    assert suite.split()[1:3] == ["0", "s"]
    assert suite.endswith("more than its share")
    assert "tests/test_m.py::test_slow\n" in run.stdout.partition("the 10 slowest tests\n")[2]
    recorded = json.loads((small_suite.root / "tests/durations.json").read_text())
    assert recorded.keys() == {"tests/test_m.py"}


@pytest.mark.requirement("repository.shares")
def test_shares_beyond_the_bar_fail(small_suite: Repository):
    small_suite.write("tests/suites.toml", SUITES.replace("100", "121"))

    run = small_suite.python("-m", "tools.suite", "-n", "0")

    assert "the shares are 121 s together; the limit is 120 s" in run.stdout
    assert run.returncode == 1


@pytest.mark.requirement("repository.unmeasured")
def test_an_unmeasured_suite_and_its_processes_run_without_coverage(small_suite: Repository):
    small_suite.write("tests/suites.toml", SUITES.replace("[]", '["tests"]'))

    run = small_suite.python("-m", "tools.suite", "-n", "0")

    assert closing_line(run) == "1 passed, 0 failed"
    assert "No data to report" in run.stdout
    assert run.returncode == 1


@pytest.mark.requirement("repository.soak_result")
def test_the_results_of_soak_tests_are_kept_test_by_test(small_suite: Repository):
    def outcomes() -> dict[str, str]:
        tests = json.loads((small_suite.root / "tests/soak.json").read_text())["tests"]
        return {test.partition("::")[2]: kept["outcome"] for test, kept in tests.items()}

    names = ("long", "wrong", "longer")
    soak = "".join(f"\n@pytest.mark.soak\ndef test_{name}(): assert {name!r} != 'wrong'\n" for name in names)
    small_suite.write("tests/test_m.py", HEAD + soak)

    run = small_suite.python("-m", "tools.soak", "--minutes", "0")
    assert run.returncode == 0
    assert "soak: 1 passed, 0 failed, 0 skipped, 2 not run" in run.stdout
    assert outcomes() == {"test_wrong": "not run", "test_longer": "not run", "test_long": "passed"}

    assert small_suite.python("-m", "tools.soak", "-k", "wrong").returncode == 1
    assert outcomes() == {"test_longer": "not run", "test_long": "passed", "test_wrong": "failed"}

    small_suite.write("tests/test_m.py", HEAD + soak.replace("test_long()", "test_other()"))
    assert small_suite.python("-m", "tools.soak").returncode == 1
    kept = json.loads((small_suite.root / "tests/soak.json").read_text())
    assert list(outcomes().items()) == [("test_other", "passed"), ("test_longer", "passed"), ("test_wrong", "failed")]
    assert kept["counts"] == {"passed": 2, "failed": 1, "skipped": 0, "not run": 0}
    assert kept["failures"] == ["tests/test_m.py::test_wrong"]
    assert all(each.keys() == {"outcome", "seconds", "commit"} for each in kept["tests"].values())
