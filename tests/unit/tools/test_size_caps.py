"""The size caps, at their limits."""

from pathlib import Path

import pytest

from tools import size_caps

pytestmark = pytest.mark.requirement("repository.size_caps")

FILE = Path("src/m.py")


def function(lines: int, *, head: str = "def long():") -> str:
    return "\n".join([head, *["    pass"] * (lines - 1)]) + "\n"


def test_what_is_as_long_as_its_limit_passes():
    assert list(size_caps.check_source("x = 1\n" * 800, FILE)) == []
    assert list(size_caps.check_source(function(60), FILE)) == []


def test_a_file_over_the_limit_is_reported_once():
    assert [str(finding) for finding in size_caps.check_source("x = 1\n" * 801, FILE)] == [
        "src/m.py:1: the file has 801 lines; the limit is 800"
    ]


@pytest.mark.parametrize(
    ("source", "finding"),
    [
        (function(61), "src/m.py:1: long() has 61 lines; the limit is 60"),
        ("@decorated\n" + function(61), "src/m.py:2: long() has 61 lines; the limit is 60"),
        (function(61, head="async def long():"), "src/m.py:1: long() has 61 lines; the limit is 60"),
        ("if True:\n def long():\n" + "  pass\n" * 60, "src/m.py:2: long() has 61 lines; the limit is 60"),
        ("class C:\n def long(self):\n" + "  pass\n" * 60, "src/m.py:2: C.long() has 61 lines; the limit is 60"),
    ],
    ids=["plain", "decorated", "async", "in a block", "method"],
)
def test_a_function_over_the_limit_is_reported_with_its_place(source: str, finding: str):
    assert [str(found) for found in size_caps.check_source(source, FILE)] == [finding]


def test_a_nested_function_counts_by_itself_and_in_the_function_around_it():
    source = "def outer():\n def inner():\n" + "  pass\n" * 60

    assert [finding.name for finding in size_caps.check_source(source, FILE)] == ["outer()", "outer.inner()"]


def test_every_checked_folder_is_searched_and_others_are_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for folder in (*size_caps.FOLDERS, "web"):
        (tmp_path / folder / "deep").mkdir(parents=True)
        (tmp_path / folder / "deep" / "m.py").write_text(function(61), encoding="utf-8")

    assert size_caps.main(tmp_path) == 1
    reported = [line.split("/")[0] for line in capsys.readouterr().out.splitlines()]
    assert reported == list(size_caps.FOLDERS)


def test_a_tree_within_the_limits_succeeds(tmp_path: Path):
    assert size_caps.main(tmp_path) == 0
