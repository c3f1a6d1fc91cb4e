"""The server as a process: the first API key, uvicorn.

A process that is told to stop finishes what it can within seconds and drops the rest; their leases run out, and
the next process carries the runs on.
"""

import asyncio
import os
import socket
import sys
from typing import Final

import uvicorn
from fastapi import FastAPI

from toolcrib.crib import Crib
from toolcrib.server.app import create_app
from toolcrib.server.edge import Farewell
from toolcrib.server.keys import KeyRing, read_pepper
from toolcrib.settings import Settings

_GRACE_S: Final = 5


def serve(settings: Settings) -> None:
    """Serve the REST surface until told to stop.

    Prints one line with the address, and at the first start of a store one line with its first API key, which is shown
    nowhere else and never again.

    Args:
        settings: What the operator wants: store, address, egress and the rest.

    Raises:
        InvalidSettings: The pepper is unusable.
    """
    asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    async with Crib.from_settings(settings) as crib:
        keys = await crib.store.api_keys.count()
        ring = KeyRing(crib.store.api_keys, read_pepper(settings.store, os.environ, keys=keys), crib.clock)
        app = create_app(
            crib,
            ring.authenticate,
            allow_local_models=settings.server.allow_local_models,
            self_approval=settings.server.self_approval,
        )
        server, listening = _listen(app, settings.server.host, settings.server.port)
        if not keys:
            _say(f"API key, shown only now: {await ring.issue(crib.principal)}")
        await server.serve(sockets=[listening])


def _listen(app: FastAPI, host: str, port: int) -> tuple[uvicorn.Server, socket.socket]:
    config = uvicorn.Config(
        Farewell(app),
        host=host,
        port=port,
        lifespan="on",
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    listening = config.bind_socket()
    listening.listen(config.backlog)  # who reads the next line can connect at once, and is answered after the start
    address = f"[{host}]" if ":" in host else host
    _say(f"Toolcrib listens on http://{address}:{listening.getsockname()[1]}")
    return uvicorn.Server(config), listening


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
