"""The file of shares, and what it is held to."""

from pathlib import Path

import pytest

from tools import shares

pytestmark = pytest.mark.requirement("repository.shares")

FILE = """minutes = 2
processes = 2
unmeasured = ["tests/a"]
[share_s]
"tests/a" = 100
"tests/a/b" = 60
"""


def repository(root: Path, file: str, *tests: str) -> Path:
    for test in tests:
        path = root / test
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (root / "tests/suites.toml").write_text(file)
    return root


def test_a_test_is_of_the_innermost_suite(tmp_path: Path):
    found = shares.load(repository(tmp_path, FILE, "tests/a/b/test_m.py"))

    assert found is not None
    assert found.suite_of("tests/a/b/c/test_m.py::test_x[tests/a]") == "tests/a/b"
    assert found.suite_of("tests/a/test_m.py") == "tests/a"
    assert found.suite_of("tests/other/test_m.py") is None


def test_shares_that_fit_and_name_every_folder_are_right(tmp_path: Path):
    assert list(shares.faults(repository(tmp_path, FILE, "tests/a/test_m.py", "tests/a/b/test_m.py"))) == []


def test_what_is_wrong_is_told_with_what_to_do(tmp_path: Path):
    file = FILE.replace("100", "200").replace('["tests/a"]', '["tests/c"]')

    total, *others = shares.faults(repository(tmp_path, file, "tests/a/test_m.py", "tests/d/test_m.py"))
    assert total.startswith(
        "tests/suites.toml: the shares are 260 s together; the limit is 240 s: 2 min on 2 processes"
    )
    assert total.endswith("make tests cheaper, or mark those that take minutes `soak`")
    assert others == [
        "tests/suites.toml: the tests in tests/d have no share; add a line to [share_s]",
        "tests/suites.toml: tests/a/b has no tests; remove its share",
        "tests/suites.toml: unmeasured names tests/c, which is no suite",
    ]


def test_a_repository_without_shares_is_told_so(tmp_path: Path):
    assert list(shares.faults(tmp_path)) == ["tests/suites.toml is missing; it gives each suite its share in seconds"]


def test_what_is_recorded_is_of_files_that_there_are():
    assert [path for path in shares.durations() if not (shares.ROOT / path).exists()] == []
