"""One virtual environment per peer or suite under `.tools/bench/`, made with uv from its pinned requirement file.

An environment is made once and made again when its requirement file or the Python version changes; a stamp file in it
says what it was made from. Prints what it does, because the first run downloads.
"""

import fcntl
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
BENCHMARKS = ROOT / "benchmarks"


def find_uv() -> Path:
    """Find uv in `.tools/uv` or on the path; else install it into `.tools/uv` with pip."""
    own = executable(TOOLS / "uv", "uv")
    if own.exists():
        return own
    if found := shutil.which("uv"):
        return Path(found)
    print(f"installing uv into {TOOLS / 'uv'}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", TOOLS / "uv"], check=True)
    subprocess.run([executable(TOOLS / "uv", "python"), "-m", "pip", "install", "--quiet", "uv"], check=True)
    return own


def executable(environment: Path, name: str) -> Path:
    """Path of a program in a virtual environment."""
    return environment / "bin" / name


def peer_python(name: str) -> Path:
    """The interpreter of a peer's environment, which is made first if it is missing or out of date.

    Raises:
        subprocess.CalledProcessError: uv could not make the environment; its own message is on stderr.
    """
    return environment_python(BENCHMARKS / "peers" / f"{name}.txt")


def suite_python(name: str) -> Path:
    """As `peer_python`, of a suite: its file names all that is needed, and not all that the suite says it needs."""
    return environment_python(BENCHMARKS / "suites" / f"{name}.txt", "--no-deps")


def environment_python(requirements: Path, *options: str) -> Path:
    """The interpreter of the environment that has what a file names; several processes may ask at once.

    Args:
        requirements: The file. Its name without the ending is that of the environment.
        *options: Of `uv pip install`.

    Raises:
        subprocess.CalledProcessError: uv could not make the environment; its own message is on stderr.
    """
    environment = TOOLS / "bench" / requirements.stem
    environment.parent.mkdir(parents=True, exist_ok=True)
    with environment.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made_from = f"{platform.python_version()}\n{requirements.read_text()}"
        stamp = environment / "made-from.txt"
        if not stamp.exists() or stamp.read_text() != made_from:
            _make(environment, requirements, options)
            stamp.write_text(made_from)
    return executable(environment, "python")


def _make(environment: Path, requirements: Path, options: Sequence[str]) -> None:
    uv = find_uv()
    python = executable(environment, "python")
    print(f"installing {environment.name} into {environment}", flush=True)
    subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, environment], check=True)
    install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python, *options, "-r", requirements]
    subprocess.run(install, check=True)
