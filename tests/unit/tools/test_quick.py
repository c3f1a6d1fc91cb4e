"""Which tests a change touches."""

import subprocess
from pathlib import Path

import pytest

from tools import quick

pytestmark = pytest.mark.requirement("repository.quick")

FILES = {
    "src/toolcrib/__init__.py": "from toolcrib.core import run\n",
    "src/toolcrib/core/__init__.py": "from toolcrib.core.runs import run\nfrom toolcrib.core.other import wait\n",
    "src/toolcrib/core/runs.py": "def run():\n    from toolcrib.core import late\n",
    "src/toolcrib/core/other.py": "wait = 1\n",
    "src/toolcrib/core/late.py": "",
    "tests/helper.py": "import toolcrib.core.other\n",
    "tests/unit/test_run.py": "from toolcrib import run\n",
    "tests/unit/test_wait.py": "from toolcrib.core import wait\n",
    "tests/unit/test_helped.py": "if True:\n    from tests.helper import x\n",
    "tests/unit/test_alone.py": "",
    "tests/unit/data.json": "{}\n",
    "docs/page.md": "",
    "tests/docs/test_pages.py": "",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose branch `main` has these files."""
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    git(tmp_path, "init", "--initial-branch", "main")
    git(tmp_path, "add", ".")
    commit(tmp_path)
    git(tmp_path, "switch", "--create", "work")
    return tmp_path


def git(root: Path, *arguments: str) -> None:
    subprocess.run([quick.GIT, *arguments], cwd=root, check=True, capture_output=True)


def commit(root: Path) -> None:
    git(root, "-c", "user.name=n", "-c", "user.email=e@example.com", "commit", "--message", "m")


def change(root: Path, path: str, text: str = "# changed\n") -> None:
    with (root / path).open("a") as file:
        file.write(text)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/toolcrib/core/runs.py", ["tests/unit/test_run.py"]),
        ("src/toolcrib/core/late.py", ["tests/unit/test_run.py"]),
        ("src/toolcrib/core/other.py", ["tests/unit/test_wait.py", "tests/unit/test_helped.py"]),
        ("tests/unit/test_alone.py", ["tests/unit/test_alone.py"]),
        ("docs/page.md", ["tests/docs/test_pages.py"]),
    ],
)
def test_the_tests_that_import_what_was_changed_run_the_nearest_first(repository: Path, path: str, expected: list[str]):
    change(repository, path)

    assert quick.select(repository) == (expected, 0)


def test_what_is_committed_on_the_branch_and_what_is_new_are_changes(repository: Path):
    change(repository, "src/toolcrib/core/late.py")
    git(repository, "add", ".")
    commit(repository)
    change(repository, "tests/unit/test_new.py")

    assert quick.select(repository)[0] == ["tests/unit/test_new.py", "tests/unit/test_run.py"]


def test_data_is_of_the_tests_beside_it(repository: Path):
    change(repository, "tests/unit/data.json")

    found, left = quick.select(repository)
    assert (len(found), left) == (4, 0)


def test_what_takes_too_long_is_left_out_and_counted(repository: Path):
    change(repository, "src/toolcrib/core/other.py")
    (repository / "tests/durations.json").write_text('{"tests/unit/test_wait.py": 91}')

    assert quick.select(repository) == (["tests/unit/test_helped.py"], 1)


def test_a_changed_test_runs_whatever_it_takes(repository: Path):
    change(repository, "tests/unit/test_wait.py")
    (repository / "tests/durations.json").write_text('{"tests/unit/test_wait.py": 91}')

    assert "tests/unit/test_wait.py" in quick.select(repository)[0]


def test_without_a_change_a_few_tests_run_that_there_are():
    assert [path for path in quick.SMOKE if not (quick.ROOT / path).exists()] == []


def test_without_a_change_nothing_else_runs(repository: Path):
    assert quick.select(repository) == ([], 0)
