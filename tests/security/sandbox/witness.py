"""What is outside a sandbox, to be looked at after an attack: a secret, listeners, a process."""

import contextlib
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

from toolcrib.contracts import JsonObject

SECRET = "HUNTER2-is-what-no-code-may-read"


class Witness:
    """Tells attackers where things are, and tells whether they got there."""

    def __init__(self, folder: Path, victim: subprocess.Popen[bytes]) -> None:
        self._secret = folder / "secret"
        self._secret.write_text(SECRET)
        self._secret.chmod(0o666)
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self._abstract = f"toolcrib-{self._tcp.getsockname()[1]}"
        self._unix = socket.socket(socket.AF_UNIX)
        self._unix.bind(f"\0{self._abstract}")
        self._unix.listen()
        self._victim = victim
        for listener in (self._tcp, self._unix):
            listener.setblocking(False)

    @property
    def known(self) -> JsonObject:
        """What attackers are told."""
        return {
            "secret": str(self._secret),
            "port": self._tcp.getsockname()[1],
            "abstract": self._abstract,
            "pid": self._victim.pid,
            "machine": platform.machine(),
        }

    def is_untouched(self) -> bool:
        """Whether nobody has connected, and the secret and the process are what they were."""
        for listener in (self._tcp, self._unix):
            with contextlib.suppress(BlockingIOError):
                listener.accept()[0].close()
                return False
        return self._secret.read_text() == SECRET and self._victim.poll() is None

    def close(self) -> None:
        """Stop listening."""
        self._tcp.close()
        self._unix.close()


@contextlib.contextmanager
def witnessed(folder: Path) -> Generator[Witness]:
    """A witness with a process that everybody may see, and that has the secret in its environment."""
    environment = {**os.environ, "TOOLCRIB_SECRET_OF_TESTS": SECRET}
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment
    ) as victim:
        witness = Witness(folder, victim)
        try:
            yield witness
        finally:
            witness.close()
            victim.kill()


def left_behind() -> list[str]:
    """Processes and control groups of ours that are still there."""
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    jails = [
        pid
        for file in children
        for pid in file.read_text().split()
        if b"bwrap" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    # `os.walk` goes on where the group of another process vanishes while it looks.
    found = (f"{folder}/{name}" for folder, names, _ in os.walk("/sys/fs/cgroup") for name in names)
    return [*jails, *(group for group in found if Path(group).name.startswith(f"toolcrib-{os.getpid()}-"))]
