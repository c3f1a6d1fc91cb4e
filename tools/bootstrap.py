"""Bring `.venv` to what `uv.lock` says, on a machine that has only Python: `python3 tools/bootstrap.py`.

It runs before anything is installed: the standard library only, and syntax that an older Python still parses, so that
it can be told that it is too old. It installs uv into `.tools/` if there is none, and downloads no Python.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST_PYTHON = (3, 11)
UV_VERSION = (0, 13, 9)
"""The uv that is installed, and the oldest that is accepted from the path."""


def find_uv(*candidates: str | None) -> str | None:
    """The first candidate that runs and is at least `UV_VERSION`."""
    return next((uv for uv in candidates if uv and uv_version(uv) >= UV_VERSION), None)


def uv_version(uv: str) -> tuple[int, ...]:
    """What `uv --version` says, as numbers; empty when it does not run or does not say."""
    try:
        answer = subprocess.run([uv, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ()
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", answer.stdout)
    return tuple(int(part) for part in found.groups()) if found else ()


def install_uv(folder: Path) -> str:
    """Make a virtual environment in the folder and install uv into it."""
    version = ".".join(str(part) for part in UV_VERSION)
    print(f"bootstrap: installing uv {version} into {folder.name}/", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    subprocess.run([*pip, f"uv=={version}"], check=True)
    return str(folder / "bin" / "uv")


def sync(uv: str) -> None:
    """Install exactly what `uv.lock` names into `.venv`, for the Python that runs this."""
    print(f"bootstrap: installing the locked packages into .venv/ (Python {sys.version.split()[0]})", flush=True)
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    environment["UV_PROJECT_ENVIRONMENT"] = ".venv"
    command = [uv, "sync", "--quiet", "--frozen", "--no-python-downloads", "--python", sys.executable]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def main() -> int:
    """Returns 0, or 1 after one line that says what failed."""
    if sys.version_info[:2] < OLDEST_PYTHON:
        oldest = ".".join(str(part) for part in OLDEST_PYTHON)
        print(
            f"bootstrap: needs Python {oldest} or newer; {sys.executable} is {sys.version.split()[0]}", file=sys.stderr
        )
        print("bootstrap: install one, or name it: make PYTHON=/path/to/python3", file=sys.stderr)
        return 1
    tools = ROOT / ".tools"
    try:
        sync(find_uv(shutil.which("uv"), str(tools / "bin" / "uv")) or install_uv(tools))
    except subprocess.CalledProcessError as error:
        print(f"bootstrap: exit code {error.returncode} from: {' '.join(error.cmd)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
