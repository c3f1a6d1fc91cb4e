"""One virtual environment per peer or suite under `.tools/bench/`, made with uv from its pinned requirement file.

An environment is made once and made again when its requirement file or the Python version changes; a stamp file in it
says what it was made from. Prints what it does, because the first run downloads.
"""

import platform
import shutil
import subprocess
import sys
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
    return _python(name, BENCHMARKS / "peers" / f"{name}.txt")


def suite_python(name: str) -> Path:
    """As `peer_python`, of a suite: its file names all that is needed, and not all that the suite says it needs."""
    return _python(name, BENCHMARKS / "suites" / f"{name}.txt", "--no-deps")


def _python(name: str, requirements: Path, *options: str) -> Path:
    environment = TOOLS / "bench" / name
    python = executable(environment, "python")
    made_from = f"{platform.python_version()}\n{requirements.read_text()}"
    stamp = environment / "made-from.txt"
    if stamp.exists() and stamp.read_text() == made_from:
        return python
    uv = find_uv()
    print(f"installing {name} into {environment}", flush=True)
    subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, environment], check=True)
    install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python, *options, "-r", requirements]
    subprocess.run(install, check=True)
    stamp.write_text(made_from)
    return python
