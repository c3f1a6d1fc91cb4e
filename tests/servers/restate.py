"""A Restate server of our own for tests: on free ports of this machine, with its data in a folder that goes away.

It is configured by exactly the file that `toolcrib restate config` prints. The program comes from the npm registry, as
`tests.node` installs it, and is started directly: Node.js has no part in it.
"""

import contextlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL, SIGTERM, Signals
from types import MappingProxyType
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import orjson

from tests.node import installed
from tests.servers.ports import free_port, until_it_listens
from toolcrib.contracts import Json
from toolcrib.core.engines.restate import RestateOptions
from toolcrib.core.engines.restate.options import server_config

_MACHINES: Final = {"x86_64": "x64", "aarch64": "arm64"}
_STOP_S: Final = 30
_ATTEMPTS: Final = 1000
NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})


class RestateServer:
    """A server that can be started, stopped, killed and robbed of its data.

    Args:
        folder: For its data and its log.
        options: Where it listens; workers take any free port.
        variables: Override what stands in its file.
    """

    def __init__(self, folder: Path, options: RestateOptions, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.options: Final = options
        self._folder = folder
        self._config = folder / "restate.toml"
        self._config.write_text(server_config(options, self.data, node_port=free_port()))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        """What it has kept."""
        return self._folder / "data"

    @property
    def log(self) -> str:
        """What it has said."""
        return (self._folder / "log").read_text(errors="replace")

    def environment(self) -> dict[str, str]:
        """The variables by which a process of ours finds it."""
        names = ("ingress_url", "admin_url", "worker_port", "sweep_s", "max_retry_s")
        given = {f"TOOLCRIB_RESTATE_{name.upper()}": str(getattr(self.options, name)) for name in names}
        return {"TOOLCRIB_ENGINE": "restate", **given}

    def start(self) -> None:
        """Start it; it takes requests on return."""
        with (self._folder / "log").open("ab") as log:
            command = [_program(), "--config-file", self._config, "--no-logo"]
            variables = {**os.environ, **self._variables}
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, cwd=self._folder, env=variables
            )
        for url in (self.options.admin_url, self.options.ingress_url):
            until_it_listens(int(url.rpartition(":")[2]), self._process)
        self._until_it_answers()

    def stop(self) -> None:
        """Stop it, as an operator does."""
        self._end(SIGTERM)

    def kill(self) -> None:
        """Kill it, as a power cut does."""
        self._end(SIGKILL)

    def wipe(self) -> None:
        """Take all its data; it must not run."""
        shutil.rmtree(self.data)

    def query(self, statement: str) -> Any:
        """Rows of what it knows, by SQL: the table of invocations is `sys_invocation`."""
        return self.ask("POST", "/query", {"query": statement})["rows"]

    def ask(self, method: str, path: str, body: Json = None) -> Any:
        """Ask its admin interface."""
        headers = {"content-type": "application/json", "accept": "application/json"}
        data = None if body is None else orjson.dumps(body)
        request = Request(f"{self.options.admin_url}{path}", data=data, headers=headers, method=method)
        with urlopen(request, timeout=60) as answer:
            text = answer.read()
        return orjson.loads(text) if text else None

    @property
    def workers(self) -> Sequence[str]:
        """The URLs that are registered."""
        return [deployment["uri"] for deployment in self.ask("GET", "/deployments")["deployments"]]

    def _until_it_answers(self) -> None:
        """Wait until the parts of its data are open: it listens before that."""
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(HTTPError):
                self.query("SELECT id FROM sys_invocation LIMIT 1")
                return
        raise RuntimeError(f"Restate does not come to itself:\n{self.log[-2000:]}")

    def _end(self, number: Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.wait(_STOP_S)  # its ports are free, and its data unlocked


@contextmanager
def running_restate(variables: Mapping[str, str] = NO_VARIABLES, **changes: Any) -> Generator[RestateServer]:
    """Start a server, and stop it in the end.

    Args:
        variables: Override what stands in its file, to make a test shorter.
        **changes: Options that a test wants to be others.
    """
    defaults = RestateOptions(
        ingress_url=f"http://127.0.0.1:{free_port()}",
        admin_url=f"http://127.0.0.1:{free_port()}",
        worker_port=0,
        sweep_s=0.2,
        max_retry_s=1.0,
    )
    folder = Path(tempfile.mkdtemp(prefix="toolcrib-restate-"))
    server = RestateServer(folder, defaults.model_copy(update=changes), variables)
    try:
        server.start()
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _program() -> Path:
    """The server's program.

    Raises:
        RuntimeError: The npm registry has none for this machine, or npm did not install it.
    """
    package = f"@restatedev/restate-server-linux-{_MACHINES.get(platform.machine(), platform.machine())}"
    program = installed() / "node_modules" / package / "bin" / "restate-server"
    if not program.is_file():
        msg = f"there is no {program}: is {package} in tests/node/package.json? Remove .tools/node/ to install again"
        raise RuntimeError(msg)
    return program
