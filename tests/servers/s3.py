"""A server that speaks S3 over HTTP, for tests: moto's, in a process of its own, on a free port of this machine.

Not Amazon's: it keeps objects in memory and lets anybody in. What it has of the protocol is what blobs use: conditional
puts, its errors and their codes.
"""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final
from urllib.request import Request, urlopen

from tests.servers.ports import free_port, until_it_listens

SECRET: Final = "swordfish-of-s3"
CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": SECRET}
"""What a client has to have in its environment; the server takes any."""


class S3Server:
    """A server that runs.

    Args:
        port: On 127.0.0.1.
    """

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self._made = 0

    def bucket(self) -> str:
        """The name of a new, empty bucket."""
        self._made += 1
        name = f"made-{self._made}"
        self.write(name, b"")
        return name

    def url(self, bucket: str, prefix: str = "") -> str:
        """The URL of blobs in a bucket."""
        return f"s3://{bucket}/{prefix}?region=us-east-1&endpoint={self.address}"

    def write(self, path: str, data: bytes) -> None:
        """Put an object, or make a bucket, past all conditions."""
        self._ask("PUT", path, data)

    def remove(self, path: str) -> None:
        """Take an object away."""
        self._ask("DELETE", path)

    def read(self, path: str) -> bytes:
        """What an object has."""
        return self._ask("GET", path)

    def _ask(self, method: str, path: str, data: bytes | None = None) -> bytes:
        # The server asks for a signature and does not check it.
        headers = {"Authorization": "AWS tester:any", "Content-Type": "application/octet-stream"}
        with urlopen(Request(f"{self.address}/{path}", data=data, headers=headers, method=method)) as answer:
            return answer.read()


@contextmanager
def running_s3() -> Generator[S3Server]:
    """Start a server, and stop it in the end."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until_it_listens(port, server)
            yield S3Server(port)
        finally:
            server.terminate()
            server.wait(30)
