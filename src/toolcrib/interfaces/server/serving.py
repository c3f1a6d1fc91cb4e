"""Runs the server as a process: creates the first API key, and starts uvicorn.

When the process is stopped, it accepts no more requests, and active calls have some seconds to end. Then its runs are
queued for other processes. A run that was interrupted during an effect waits until its lease expires.
"""

import asyncio
import math
import os
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final, TextIO

import uvicorn
from fastapi import FastAPI

from toolcrib.contracts import InvalidSettings, Principal
from toolcrib.core.engines import LocalEngine
from toolcrib.crib import Crib
from toolcrib.crib.settings import ServerSettings, Settings
from toolcrib.infrastructure.net import HttpSession
from toolcrib.infrastructure.store import Store, open_store
from toolcrib.interfaces.server.app import create_app
from toolcrib.interfaces.server.http.access_tokens import AccessTokens
from toolcrib.interfaces.server.http.keys import KeyRing, read_pepper
from toolcrib.interfaces.server.http.middleware import ShutdownResponses

_TURN_S: Final = 10.0
"""Seconds in which a process that has the turn issues the first key; after that another start of a server may."""


def serve(settings: Settings, crib: Crib | None = None, ready: Callable[[str], None] | None = None) -> None:
    """Serve the REST API until the process is stopped.

    Prints one line with the address. At the first start of a store, it also makes the first API key: if a terminal
    reads stderr, the key is shown there once; otherwise it is written to a file that only its owner can read, and a
    line names the file, so that no log has the key.

    Args:
        settings: The operator's settings: store, address, egress and the rest.
        crib: The crib of an application, with its Python functions; one that the settings describe if null.
        ready: Gets the address, in place of the line on stdout; other lines go to stderr then.

    Raises:
        InvalidSettings: The pepper is unusable, or the address; or the crib has another store or engine than the
            settings.
    """
    asyncio.run(_serve(settings, crib, ready))


async def _serve(settings: Settings, given: Crib | None, ready: Callable[[str], None] | None) -> None:
    if given is not None:
        _require_same(given, settings)
    async with (
        HttpSession(settings.egress.policy()) as session,
        Crib.from_settings(settings) if given is None else given as crib,
    ):
        by_issuer = settings.authorization
        tokens = None if by_issuer.issuer is None else AccessTokens(by_issuer, session, crib.clock)
        keys = await crib.store.api_keys.count()
        ring = KeyRing(crib.store.api_keys, read_pepper(settings.store, os.environ, keys=keys), crib.clock)
        app = create_app(
            crib,
            ring.authenticate,
            allow_local_models=settings.server.allow_local_models,
            self_approval=settings.server.self_approval,
            drain_s=settings.server.drain_s,
            tokens=tokens,
        )
        server, listening, url = _listen(app, settings.server, partial(crib.engine.drain, settings.server.drain_s))
        if ready is None:
            _say(f"Toolcrib listens on {url}", sys.stdout)
        if not keys and await _is_first(crib):
            await _hand_out_key(ring, crib.principal, settings.store, sys.stdout if ready is None else sys.stderr)
        if ready is not None:
            ready(url)
        await server.serve(sockets=[listening])


def _require_same(crib: Crib, settings: Settings) -> None:
    """Refuse an application's crib that has another store or engine than the settings.

    Raises:
        InvalidSettings: It has; the message names both.
    """
    engine = "local" if isinstance(crib.engine, LocalEngine) else "restate"
    if engine != settings.engine:
        msg = f"the application's crib has the engine {engine!r} and the settings say {settings.engine!r}"
        raise InvalidSettings(f"{msg}; make it with Crib.from_settings(), so that both have the same")
    store, wanted = _name_of(crib.store), _name_of(open_store(settings.store, blobs=settings.blobs))
    if store != wanted:
        msg = f"the application's crib has the store {store} and the settings say {wanted}"
        raise InvalidSettings(f"{msg}; make it with Crib.from_settings(), or name its store with --store")


def _name_of(store: Store) -> str:
    """A store as messages call it; a file by its absolute path."""
    from toolcrib.infrastructure.store.sql.sql_store import SqlStore  # noqa: PLC0415 - loads SQLAlchemy

    if not isinstance(store, SqlStore):
        return "memory://"
    return store.name if " at " in store.name else str(Path(store.name).absolute())


async def _hand_out_key(ring: KeyRing, principal: Principal, store: str, out: TextIO) -> None:
    """Make the first key, and show it where only the operator sees it."""
    if sys.stderr.isatty():
        sys.stderr.write(f"API key, shown only now: {await ring.issue(principal)}\n")
        sys.stderr.flush()
        return
    file = key_file(store)
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as problem:
        _say(f"No API key was made, because {file} cannot be written ({problem.strerror}): run toolcrib key add", out)
        return
    with os.fdopen(handle, "w") as opened:
        opened.write(f"{await ring.issue(principal)}\n")
    draft.replace(file)
    _say(f"The first API key is in {file}", out)


def key_file(store: str) -> Path:
    """The file for the first API key of a store.

    It is `NAME-api-key` beside a SQLite file, otherwise `toolcrib-api-key` in the working directory.

    Args:
        store: The store's URL.
    """
    scheme, _, path = store.partition("://")
    if scheme != "sqlite":
        return Path.cwd() / "toolcrib-api-key"
    database = Path(path[1:])
    return database.with_name(f"{database.stem}-api-key")


async def _is_first(crib: Crib) -> bool:
    """Whether this process is to issue the first key, of several that find none at the same moment."""
    now, who = crib.clock.now(), crib.principal
    return await crib.store.cache.add(
        "first-api-key", {}, realm=who.realm, made_by=who.id, now=now, expires_at=now + timedelta(seconds=_TURN_S)
    )


class _Server(uvicorn.Server):
    """Notifies the engine at once that the process is about to stop, while requests are still active.

    Args:
        config: The configuration of the server.
        drain: Lets go of runs.
    """

    def __init__(self, config: uvicorn.Config, drain: Callable[[], Awaitable[object]]) -> None:
        super().__init__(config)
        self._loop = asyncio.get_running_loop()
        self._drain = drain
        self._draining: asyncio.Future[object] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called by a signal, at any moment of the loop."""
        super().handle_exit(sig, frame)
        self._loop.call_soon_threadsafe(self._begin_to_drain)

    def _begin_to_drain(self) -> None:
        self._draining = self._draining or asyncio.ensure_future(self._drain())


def _listen(
    app: FastAPI, settings: ServerSettings, drain: Callable[[], Awaitable[object]]
) -> tuple[uvicorn.Server, socket.socket, str]:
    host = settings.host
    config = uvicorn.Config(
        ShutdownResponses(app),
        host=host,
        port=settings.port,
        lifespan="on",
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=math.ceil(settings.drain_s),
    )
    listening = open_listener(host, settings.port, backlog=config.backlog)
    address = f"[{host}]" if ":" in host else host
    return _Server(config, drain), listening, f"http://{address}:{listening.getsockname()[1]}"


def open_listener(host: str, port: int, *, backlog: int = 128) -> socket.socket:
    """The socket that the server accepts connections from. A client can connect at once, before the server answers.

    Args:
        host: Name or address.
        port: 0 for any free one.
        backlog: Connections that wait to be accepted.

    Raises:
        InvalidSettings: The address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=backlog)
    except OSError as problem:
        why = str(problem.strerror).partition(" (")[0]  # the address, once more
        msg = f"the server cannot listen on {host} port {port}: {why}; set server.host or server.port"
        raise InvalidSettings(msg) from problem
    # Connections inherit it. Without it, each answer on a kept connection waits 40 ms for the client's acknowledgement.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _say(line: str, out: TextIO) -> None:
    out.write(f"{line}\n")
    out.flush()
