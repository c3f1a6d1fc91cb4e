"""Builds the package, and finds Pythons to install it for."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.bootstrap import find_uv

ROOT = Path(__file__).parents[2]
_LIBRARIES = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


class NoUv(Exception):
    """The machine has no uv."""


@dataclass(frozen=True, slots=True)
class Built:
    """The files of a release."""

    wheel: Path
    sdist: Path


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment of its own with the package."""

    folder: Path

    def run(self, *command: str, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, without anything of this one."""
        program = self.folder / "bin" / command[0]
        environment = clean_environment() | {"PATH": os.defpath}
        return subprocess.run(
            [str(program), *command[1:]], capture_output=True, text=True, cwd=cwd, env=environment, check=check
        )

    @property
    def megabytes(self) -> float:
        """The size of the packages, without compiled files and the installer's records."""
        [site] = self.folder.glob("lib/python3.*/site-packages")
        files = (file for file in site.rglob("*") if file.is_file() and file.suffix != ".pyc")
        return sum(file.stat().st_size for file in files) / 1e6

    @property
    def distributions(self) -> int:
        """How many packages there are, Toolcrib included."""
        return len(list(self.folder.glob("lib/python3.*/site-packages/*.dist-info")))


def uv() -> str:
    """The program.

    Raises:
        NoUv: There is none; `tools/bootstrap.py` installs it.
    """
    found = find_uv(shutil.which("uv"), str(ROOT / ".tools" / "bin" / "uv"))
    if found is None:
        raise NoUv
    return found


def clean_environment() -> dict[str, str]:
    """The environment without what leads to the libraries of this process, or measures it."""
    return {name: value for name, value in os.environ.items() if name not in _LIBRARIES and not name.startswith("COV")}


def run_uv(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run uv, which may not download a Python."""
    command = [uv(), *arguments, "--no-python-downloads", "--no-config"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=clean_environment(), check=False)


def build(folder: Path) -> Built:
    """The sdist, and the wheel that is built from it."""
    done = run_uv("build", "--quiet", "--out-dir", str(folder))
    assert done.returncode == 0, done.stderr
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Built(wheel, sdist)


def find_python(version: str) -> Path | None:
    """A Python of a version, such as `3.12`, that this machine has."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [Path(sys.executable), *sorted(root.glob(f"versions/{version}.*/bin/python"))]
    candidates += [Path(found)] if (found := shutil.which(f"python{version}")) else []
    return next((python for python in candidates if _version(python) == version), None)


def install(package: str, python: Path, folder: Path) -> Installed:
    """The package in an empty environment, from wheels only: no compiler is needed."""
    done = run_uv("venv", "--quiet", "--python", str(python), str(folder))
    assert done.returncode == 0, done.stderr
    done = run_uv(
        "pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), "--only-binary", ":all:", package
    )
    assert done.returncode == 0, done.stderr
    return Installed(folder)


def resolve(package: str, version: str, platforms: Iterable[str], folder: Path) -> dict[str, str]:
    """For each platform where a package cannot be installed from wheels: why."""
    problems: dict[str, str] = {}
    for platform in platforms:
        target = ("--python-version", version, "--python-platform", platform, "--target", str(folder))
        done = run_uv(
            "pip", "install", "--dry-run", "--python", sys.executable, *target, "--only-binary", ":all:", package
        )
        if done.returncode:
            problems[platform] = done.stderr
    return problems


def _version(python: Path) -> str:
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answered = subprocess.run([str(python), "-c", program], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return answered.stdout.strip()
