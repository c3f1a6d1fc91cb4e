"""The server as a process: settings from the environment, the first API key, uvicorn.

A process that is told to stop finishes what it can within seconds and drops the rest; their leases run out, and
the next process carries the runs on.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

import uvicorn
from fastapi import FastAPI

from toolcrib.contracts import InvalidSettings
from toolcrib.crib import Crib
from toolcrib.net import EgressPolicy
from toolcrib.server.app import create_app
from toolcrib.server.edge import Farewell
from toolcrib.server.keys import KeyRing, read_pepper

_GRACE_S: Final = 5
_RELEASED: Final = "TOOLCRIB_SECRET_*"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What an operator decides, beside the store and the address."""

    released: tuple[str, ...] = (_RELEASED,)
    """Patterns of the variables that definitions may use as secrets."""
    egress: EgressPolicy = field(default_factory=EgressPolicy)
    """What tools may reach."""
    lease_s: float = 10.0
    """Seconds after which the runs of a dead process are taken over."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read `TOOLCRIB_RELEASED_ENV`, `TOOLCRIB_EGRESS_ALLOW` (comma lists) and `TOOLCRIB_LEASE_S`.

        Raises:
            InvalidSettings: A setting is malformed.
        """
        released = environment.get("TOOLCRIB_RELEASED_ENV", _RELEASED)
        lease = environment.get("TOOLCRIB_LEASE_S", "10")
        try:
            lease_s = float(lease)
        except ValueError:
            lease_s = 0.0
        if not 0.5 <= lease_s <= 3600:
            msg = f"TOOLCRIB_LEASE_S is {lease!r}; give seconds from 0.5 to 3600"
            raise InvalidSettings(msg)
        return cls(
            released=tuple(pattern for part in released.split(",") if (pattern := part.strip())),
            egress=EgressPolicy.from_settings(environment.get("TOOLCRIB_EGRESS_ALLOW", "")),
            lease_s=lease_s,
        )


def serve(store: str = "sqlite:///toolcrib.db", host: str = "127.0.0.1", port: int = 8700) -> None:
    """Serve the REST surface until told to stop.

    Prints one line with the address, and at the first start of a store one line with its first API key, which is shown
    nowhere else and never again.

    Args:
        store: The store's URL.
        host: Address to listen on; only this machine reaches the default.
        port: 0 takes any free one.

    Raises:
        InvalidSettings: The environment's settings are malformed, or the pepper is unusable.
    """
    asyncio.run(_serve(store, host, port, ServerSettings.from_environment(os.environ)))


async def _serve(store: str, host: str, port: int, settings: ServerSettings) -> None:
    crib = Crib(store, egress=settings.egress, released=settings.released, lease_s=settings.lease_s)
    async with crib:
        keys = await crib.store.api_keys.count()
        ring = KeyRing(crib.store.api_keys, read_pepper(store, os.environ, keys=keys), crib.clock)
        server, listening = _listen(create_app(crib, ring.authenticate), host, port)
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
