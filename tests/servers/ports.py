"""Ports of this machine: a free one, and the moment from which somebody listens on it."""

import socket
import subprocess
from typing import Any

_ATTEMPTS = 60_000


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until_it_listens(port: int, server: subprocess.Popen[Any]) -> None:
    """Wait until a server takes connections, or has ended.

    Raises:
        RuntimeError: It has ended, or takes none for a minute.
    """
    for _ in range(_ATTEMPTS):
        try:
            server.wait(0.001)
        except subprocess.TimeoutExpired:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
            except OSError:
                continue
            return
        raise RuntimeError(f"the server {server.args!r} ended with status {server.returncode}")
    raise RuntimeError(f"the server {server.args!r} takes no connections on port {port}")
