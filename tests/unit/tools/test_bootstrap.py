"""Which uv the bootstrap takes; the installation itself is what every clean clone does first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import bootstrap

pytestmark = pytest.mark.requirement("repository.bootstrap")


def program(path: Path, body: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("body", "version"),
    [
        ("echo 'uv 0.13.9 (abc 2026-08-01)'", (0, 13, 9)),
        ("echo 'uv 1.0.0'", (1, 0, 0)),
        ("echo hello", ()),
        ("exit 3", ()),
    ],
)
def test_a_version_is_read_from_what_uv_says(tmp_path: Path, body: str, version: tuple[int, ...]):
    assert bootstrap.uv_version(program(tmp_path / "a folder" / "uv", body)) == version


def test_the_first_uv_that_is_new_enough_is_taken(tmp_path: Path):
    missing = str(tmp_path / "missing")
    old = program(tmp_path / "old", "echo uv 0.13.8")
    pinned = program(tmp_path / "pinned", "echo uv 0.13.9")
    newer = program(tmp_path / "newer", "echo uv 0.14.0")

    assert bootstrap.find_uv(None, missing, old, pinned, newer) == pinned
    assert bootstrap.find_uv(None, missing, old) is None


def test_the_environment_is_synced_from_the_lock_file_for_the_running_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    program(tmp_path / "uv", '[ "$1" = --version ] && echo uv 99.0.0 || echo "$UV_PROJECT_ENVIRONMENT: $@"')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    assert bootstrap.main() == 0
    assert f".venv: sync --quiet --frozen --no-python-downloads --python {sys.executable}\n" in capfd.readouterr().out


def test_a_failing_installation_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    program(tmp_path / "uv", '[ "$1" = --version ] && echo uv 99.0.0 || exit 7')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    assert bootstrap.main() == 1
    assert f"bootstrap: exit code 7 from: {tmp_path}/uv sync" in capsys.readouterr().err


def test_an_older_python_is_told_what_is_needed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(bootstrap, "OLDEST_PYTHON", (99, 0))

    assert bootstrap.main() == 1
    assert "bootstrap: needs Python 99.0 or newer; " in capsys.readouterr().err


def test_the_commands_are_listed_by_make_alone():
    listed = subprocess.run(
        ["make", "--no-print-directory"], cwd=bootstrap.ROOT, capture_output=True, text=True, check=True
    )

    assert "make test" in listed.stdout
