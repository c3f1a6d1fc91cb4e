"""A PostgreSQL server of our own for tests: in a folder that goes away, on a free port, with nothing synced to disk.

It can be stopped and started again, to see what its users do without it.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import psycopg
from psycopg.sql import SQL, Identifier

from tests.servers.ports import free_port

PASSWORD = "swordfish"
_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=16MB", "max_connections=60")
_HINT = "the tests need a PostgreSQL server: run `make deps-system` as root, or put initdb and postgres on the PATH"
_STOPS: Final = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}


class PostgresServer:
    """A server that can be stopped and started.

    Args:
        folder: Has its password, socket and data.
    """

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._programs = _programs()
        self._identity: dict[str, Any] = {"user": "postgres"} if os.geteuid() == 0 else {}
        self._process: subprocess.Popen[Any] | None = None
        self._made = 0

    def url(self, database: str, *, user: str = "owner", password: str = PASSWORD, port: int | None = None) -> str:
        """The URL of one of its databases; by another port if what listens there leads to it."""
        return f"postgresql://{user}:{password}@127.0.0.1:{port or self.port}/{database}"

    def database(self) -> str:
        """The URL of a new, empty database."""
        self._made += 1
        name = f"made_{self._made}"
        with self.connect() as connection:
            connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
        return self.url(name)

    def clear(self, database: str) -> None:
        """Take all rows out of the tables of a store, which is ten times as quick as another one."""
        with self.connect(database) as connection:
            found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            tables = [Identifier(name) for (name,) in found if name != "alembic_version"]
            connection.execute(SQL("TRUNCATE {}").format(SQL(", ").join(tables)))

    def connect(self, database: str = "postgres") -> "psycopg.Connection[tuple[Any, ...]]":
        """A connection of its own, to see and do what a user of the server does not."""
        return psycopg.connect(self.url(database), autocommit=True)

    def initialize(self) -> None:
        """Make its data."""
        secret = self._folder / "password"
        secret.write_text(PASSWORD)
        if self._identity:
            for place in (self._folder, secret):
                shutil.chown(place, "postgres")
        options = ["-U", "owner", "-A", "scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        command = [self._programs / "initdb", "-D", self._folder / "data", f"--pwfile={secret}", *options]
        subprocess.run(command, check=True, **self._quiet())

    def start(self) -> None:
        """Start it, with what it had."""
        places = (f"port={self.port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={self._folder}")
        options = [argument for option in (*_FAST, *places) for argument in ("-c", option)]
        command = [self._programs / "postgres", "-D", self._folder / "data", *options]
        self._process = subprocess.Popen(command, **self._quiet())
        _wait(self.url("postgres"), self._process)

    def stop(self, how: Literal["fast", "immediate"] = "immediate") -> None:
        """Stop it: after it has cut off everybody, or as if the machine had died."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(_STOPS[how])
            process.wait(30)

    def _quiet(self) -> dict[str, Any]:
        return {
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
            "cwd": self._folder,
            **self._identity,
        }


@contextmanager
def running_postgres() -> Generator[PostgresServer]:
    """Start a server, and stop it in the end."""
    folder = Path(tempfile.mkdtemp(prefix="toolcrib-postgres-"))
    server = PostgresServer(folder)
    try:
        server.initialize()
        server.start()
        yield server
    finally:
        server.stop("fast")
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


def _wait(url: str, server: subprocess.Popen[Any]) -> None:
    """Until it takes connections: libpq waits for each attempt, so nothing here sleeps."""
    for _ in range(3000):
        if server.poll() is not None:
            raise RuntimeError(f"the PostgreSQL server ended with status {server.returncode}; {_HINT}")
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError:
            continue
        return
    raise RuntimeError("the PostgreSQL server takes no connections")
