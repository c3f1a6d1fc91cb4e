"""A small repository that has this one's tools and settings, to run them on trees that break the rules."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
COPIED = ("pyproject.toml", "tools", "tests/conftest.py", "tests/contract/manifest.py", "tests/servers")


class Repository:
    """A folder with `src/toolcrib`, `tests` and a copy of the tools; commands run in it with its own `toolcrib`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in COPIED:
            source, target = ROOT / name, root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        self.write("src/toolcrib/__init__.py", "")

    def write(self, path: str, text: str) -> None:
        """Write a file, and the folders on the way to it."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the interpreter in the repository; the caller judges the exit code."""
        return subprocess.run([sys.executable, *arguments], cwd=self.root, capture_output=True, text=True, check=False)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """An empty small repository whose processes the suite's own coverage does not measure."""
    for variable in ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "src"))
    return Repository(tmp_path)
