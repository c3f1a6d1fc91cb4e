"""A PostgreSQL server of our own for tests: in a folder that goes away, on a free port, with nothing made durable.

Not a twin in memory: what is tested against it is what only a real server does.
"""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier

PASSWORD = "swordfish"
_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=16MB", "max_connections=40")
_HINT = "the tests need a PostgreSQL server: run `make deps-system` as root, or put initdb and postgres on the PATH"


class PostgresServer:
    """A server that runs.

    Args:
        port: On 127.0.0.1.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self._made = 0

    def url(self, database: str, *, user: str = "owner", password: str = PASSWORD) -> str:
        """The URL of one of its databases."""
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def database(self) -> str:
        """The URL of a new, empty database."""
        self._made += 1
        name = f"made_{self._made}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
        return self.url(name)


@contextmanager
def running_postgres() -> Generator[PostgresServer]:
    """Start a server, and stop it in the end."""
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="toolcrib-postgres-"))
    identity: dict[str, Any] = {"user": "postgres"} if os.geteuid() == 0 else {}
    try:
        (folder / "password").write_text(PASSWORD)
        if identity:
            for place in (folder, folder / "password"):
                shutil.chown(place, "postgres")
        data = folder / "data"
        command = [
            programs / "initdb",
            "-D",
            data,
            "-U",
            "owner",
            "-A",
            "scram-sha-256",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        ]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, **identity}
        subprocess.run([*command, f"--pwfile={folder / 'password'}", "--no-sync"], check=True, **quiet)
        port = _free_port()
        options = [argument for option in _FAST for argument in ("-c", option)]
        listen = ["-c", f"port={port}", "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}"]
        with subprocess.Popen([programs / "postgres", "-D", data, *options, *listen], **quiet) as server:
            try:
                _wait(port, server)
                yield PostgresServer(port)
            finally:
                server.terminate()
                server.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """The folder of the newest server that is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    program = shutil.which("initdb")
    if program is None:
        raise RuntimeError(_HINT)
    return Path(program).resolve().parent


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(port: int, server: subprocess.Popen[Any]) -> None:
    """Until it takes connections: libpq waits for each attempt, so nothing here sleeps."""
    for _ in range(3000):
        if server.poll() is not None:
            raise RuntimeError(f"the PostgreSQL server ended with status {server.returncode}; {_HINT}")
        try:
            psycopg.connect(f"postgresql://owner:{PASSWORD}@127.0.0.1:{port}/postgres", connect_timeout=2).close()
        except psycopg.OperationalError:
            continue
        return
    raise RuntimeError("the PostgreSQL server takes no connections")
