"""A worker process: HTTP/2 on its own port, registered with Restate, drained when it stops.

The path has the protocol's version (`/restate/v1`); a release with another protocol serves both versions.
"""

import asyncio
import importlib.util
import logging
import signal
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import Any, Final

from toolcrib.contracts import InvalidSettings, ToolcribError
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.core.engines.restate.drives import RestateDriver
from toolcrib.core.engines.restate.ingress import RestateClient
from toolcrib.core.engines.restate.options import RestateOptions
from toolcrib.core.engines.restate.outbox import Outbox
from toolcrib.core.executor import Clock

PATH: Final = "/restate/v1"
"""Where a worker serves."""

_RETRY_S: Final = 1.0
_ANSWER_S: Final = 0.2
"""Seconds in which Restate is told how the runs stand that a stopping worker has let go of."""
_CLOSE_S: Final = 2.0
"""Seconds in which connections are closed then."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerTerms:
    """How a worker is to serve."""

    register: bool = True
    """Whether Restate is told of this worker, and again if it has forgotten it."""
    host: str | None = None
    """Where it listens; as the options say, if null."""
    port: int | None = None
    """Likewise."""
    drain_s: float = 5.0
    """Seconds that what is under way has to end when it is told to stop."""


class RestateWorker:
    """Drives what Restate asks for.

    Args:
        drives: Drives the runs.
        outbox: Tells Restate of what can go on; a worker serves it too.
        client: Registers the worker.
        options: Where it listens.
        clock: Time between attempts to register.
    """

    def __init__(
        self, drives: RestateDriver, outbox: Outbox, client: RestateClient, options: RestateOptions, clock: Clock
    ) -> None:
        self._drives = drives
        self._outbox = outbox
        self._client = client
        self._options = options
        self._clock = clock
        self._problem: str | None = None
        """Why it could not be registered the last time; each problem is said once."""

    async def serve(self, terms: WorkerTerms, ready: Callable[[str], None]) -> None:
        """Serve until SIGTERM or SIGINT; then take no run any more, and let go of those that are driven.

        Args:
            terms: How.
            ready: Is told the URL, once the worker listens.

        Raises:
            InvalidSettings: A package is missing, it cannot listen there, or nobody says how Restate reaches it.
        """
        _require()
        host = terms.host or self._options.worker_host
        if self._options.worker_url is None and _is_everywhere(host):
            msg = f"a worker that listens on {host} needs restate.worker_url: the address by which Restate reaches it"
            raise InvalidSettings(msg)
        listening = _listen(host, self._options.worker_port if terms.port is None else terms.port)
        url = self._options.worker_url or _url(host, listening.getsockname()[1])
        stop, hangup = asyncio.Event(), asyncio.Event()
        _on_signals(stop)
        ready(url)
        async with asyncio.TaskGroup() as beside:
            tasks = [beside.create_task(self._outbox.serve())]
            if terms.register:
                self._outbox.unknown = partial(self._register, url)
                tasks.append(beside.create_task(self._until_registered(url)))
            app, drained = _until(hangup, self._app(stop)), partial(self._drain_on_stop, stop, terms.drain_s, hangup)
            try:
                await _serve(app, listening, drained)
            except ExceptionGroup:  # of connections on which Restate spoke while they were being closed
                if not hangup.is_set():
                    raise
            for task in tasks:
                task.cancel()

    # Inside -----------------------------------------------------------------------------------------------------------

    def _app(self, stop: asyncio.Event) -> Any:
        from toolcrib.core.engines.restate import service  # noqa: PLC0415 - needs Restate's library, an extra

        service.on_sigterm(stop.set)
        return service.make_app(self._drives.drive, self._options)

    async def _drain_on_stop(self, stop: asyncio.Event, grace_s: float, hangup: asyncio.Event) -> None:
        _on_signals(stop)  # Restate's library has set a handler, which would also cut off what is under way
        await stop.wait()
        await self._drives.drain(grace_s)
        await self._clock.sleep(_ANSWER_S)
        hangup.set()

    async def _until_registered(self, url: str) -> None:
        while not await self._register(url):
            await self._clock.sleep(_RETRY_S)

    async def _register(self, url: str) -> bool:
        try:
            await self._client.register(url.rstrip("/") + PATH)
        except ToolcribError as problem:
            if self._problem != str(problem):
                self._problem = str(problem)
                _logger.warning("the worker is not registered yet: %s", problem)
            return False
        self._problem = None
        _logger.info("Restate reaches this worker at %s", url)
        return True


def _require() -> None:
    missing = [name for name in ("hypercorn", "restate") if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidSettings(missing_extra("a worker of Restate", missing[0], "restate"))


def _listen(host: str, port: int) -> socket.socket:
    """A socket whose port other workers of this machine may share: the system spreads Restate's connections."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind((host, port))
        listening.listen()
    except OSError as problem:
        listening.close()
        msg = f"a worker cannot listen on {host} port {port}: {problem.strerror}; set restate.worker_host and _port"
        raise InvalidSettings(msg) from problem
    return listening


def _on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)


def _is_everywhere(host: str) -> bool:
    """Whether it is an address to listen on that says nothing of where a worker is."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _until(hangup: asyncio.Event, app: Any) -> Any:
    """The application, which hears from then on that whoever has asked has hung up.

    Restate's library waits for its server to end a stream, however long, and is not cancelled in the meantime.
    """

    async def answer(scope: Any, receive: Callable[[], Awaitable[Any]], send: Any) -> None:
        over = asyncio.ensure_future(hangup.wait())

        async def heard() -> Any:
            message = asyncio.ensure_future(receive())
            try:
                await asyncio.wait({message, over}, return_when=asyncio.FIRST_COMPLETED)
                return message.result() if message.done() else {"type": "http.disconnect"}
            finally:
                message.cancel()

        try:
            await app(scope, heard, send)
        finally:
            over.cancel()

    return answer


async def _serve(app: Any, listening: socket.socket, stopped: Callable[[], Awaitable[None]]) -> None:
    from hypercorn import asyncio as hypercorn  # noqa: PLC0415 - an extra, and heavy
    from hypercorn.config import Config  # noqa: PLC0415 - likewise

    logging.getLogger("restate.server_context").setLevel(logging.CRITICAL)  # a traceback for each attempt that failed
    config = Config()
    config.bind = [f"fd://{listening.detach()}"]
    config.graceful_timeout = _CLOSE_S
    config.accesslog = None
    config.errorlog = None
    http: Any = hypercorn  # its types are not known in full
    await http.serve(app, config, shutdown_trigger=stopped)
