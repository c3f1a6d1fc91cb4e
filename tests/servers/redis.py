"""A Redis server of our own for tests: on a free port of this machine, with a password, keeping nothing on disk.

It can be stopped and started again, to see what its users do without it.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import redis

from tests.servers.ports import free_port, until_it_listens

PASSWORD = "swordfish-of-redis"
_HINT = "the tests need a Redis server: run `make deps-system` as root, or put redis-server on the PATH"


class RedisTestServer:
    """A server that can be started and stopped.

    Args:
        folder: Its working directory.
    """

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._process: subprocess.Popen[Any] | None = None

    def url(self, database: int = 0, *, password: str = PASSWORD) -> str:
        """The URL of one of its databases."""
        return f"redis://:{password}@127.0.0.1:{self.port}/{database}"

    def start(self, *options: str) -> None:
        """Start it, empty."""
        program = shutil.which("redis-server")
        if program is None:
            raise RuntimeError(_HINT)
        place = ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder))
        command = [program, *place, "--requirepass", PASSWORD, "--save", "", "--appendonly", "no", *options]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until_it_listens(self.port, self._process)

    def stop(self) -> None:
        """Stop it; what it had is gone."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(30)

    def forget(self) -> None:
        """Forget all that is stored."""
        with self.client() as client:
            cast("Any", client).flushall()

    def client(self, database: int = 0) -> "redis.Redis":
        """A client of its own, to look at what is stored."""
        return redis.Redis(host="127.0.0.1", port=self.port, password=PASSWORD, db=database)


@contextmanager
def running_redis() -> Generator[RedisTestServer]:
    """Start a server, and stop it in the end."""
    with tempfile.TemporaryDirectory(prefix="toolcrib-redis-") as folder:
        server = RedisTestServer(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.stop()
