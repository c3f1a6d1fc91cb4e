"""Both directions of the requirement manifest, on a small suite."""

import pytest

from tests.unit.tools.conftest import Repository

MANIFEST = "tests/contract/requirements/area.yaml"
PROVEN = 'import pytest\n\n@pytest.mark.requirement("a.one")\ndef test_one():\n    pass\n'


@pytest.mark.requirement("repository.tests_name_requirements")
@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("def test_one(): pass\n", "test_m.py::test_one: names no requirement; add @pytest.mark.requirement('id')"),
        ("class TestX:\n    def test_one(self): pass\n", "test_m.py::TestX::test_one: names no requirement"),
        (PROVEN.replace("a.one", "a.other"), "test_m.py::test_one: unknown requirement 'a.other'"),
        (PROVEN.replace('"a.one"', '"a.one", "a.other"'), "test_m.py::test_one: unknown requirement 'a.other'"),
    ],
    ids=["none", "none, in a class", "unknown", "one of two unknown"],
)
def test_a_test_without_a_known_requirement_is_an_error_of_its_module(repository: Repository, test: str, message: str):
    repository.write(MANIFEST, "a.one: One.\n")
    repository.write("tests/test_m.py", test)

    run = repository.python("-m", "pytest")

    assert run.returncode == pytest.ExitCode.INTERRUPTED
    assert message in run.stdout
    assert "1 error in" in run.stdout


@pytest.mark.requirement("repository.tests_name_requirements")
def test_a_malformed_manifest_stops_every_run(repository: Repository):
    repository.write(MANIFEST, "one: One.\n")
    repository.write("tests/test_m.py", PROVEN)

    run = repository.python("-m", "pytest")

    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "requirement manifest: area.yaml: 'one' is no id" in run.stderr


@pytest.mark.requirement("repository.requirements_have_tests")
def test_a_requirement_without_a_test_is_a_fault_and_a_known_gap_is_listed(repository: Repository):
    repository.write(MANIFEST, "a.one: One.\na.two: Two.\na.three: {text: Three., gap: no Windows machine}\n")
    repository.write("tests/test_m.py", PROVEN)

    check = repository.python("-m", "tools.requirements_check")

    assert check.returncode == 1
    assert check.stdout.splitlines() == [
        "requirements: known gap: a.three: no Windows machine",
        "requirements: area.yaml: a.two: no test names this requirement; write one, or name the gap",
        "requirements: 3 in the manifest, 1 with a known gap, 1 without a test",
    ]


@pytest.mark.requirement("repository.requirements_have_tests")
def test_a_soak_test_proves_its_requirement_too(repository: Repository):
    repository.write(MANIFEST, "a.one: One.\n")
    repository.write("tests/test_m.py", PROVEN.replace("\n\n", "\n\n@pytest.mark.soak\n"))

    check = repository.python("-m", "tools.requirements_check")

    assert (check.returncode, check.stdout) == (
        0,
        "requirements: 1 in the manifest, 0 with a known gap, 0 without a test\n",
    )


@pytest.mark.requirement("repository.requirements_have_tests")
def test_a_suite_that_cannot_be_collected_proves_nothing(repository: Repository):
    repository.write(MANIFEST, "a.one: One.\n")
    repository.write("tests/test_m.py", PROVEN)
    repository.write("tests/test_broken.py", "import nothing_of_that_name\n")

    check = repository.python("-m", "tools.requirements_check")

    assert check.returncode == 1
    assert "No module named 'nothing_of_that_name'" in check.stdout
