"""The servers behind a world: how they are killed, as if the machine had died, and what they still mean to do."""

import asyncio
from collections.abc import Collection
from typing import Protocol

from tests.servers.postgres import PostgresServer
from tests.servers.restate import RestateServer

_AWAY_S = 0.7
_OPEN = "SELECT target_service_key FROM sys_invocation WHERE status NOT IN ('completed', 'scheduled')"


class Servers(Protocol):
    """What a world asks of them."""

    async def outage(self) -> None:
        """Take one away for a moment."""
        ...

    async def open_runs(self) -> Collection[str]:
        """The runs that somebody outside of our processes still means to drive."""
        ...


class Postgres:
    """The database of a world.

    Args:
        server: Has it.
    """

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    async def outage(self) -> None:
        """Stop it without a word, and start it again."""
        await asyncio.to_thread(self._server.stop, "immediate")
        await asyncio.sleep(_AWAY_S)
        await asyncio.to_thread(self._server.start)

    async def open_runs(self) -> Collection[str]:
        """None: a database drives nothing."""
        return ()


class Restate:
    """What calls the processes of a world.

    Args:
        server: The whole cluster.
    """

    def __init__(self, server: RestateServer) -> None:
        self._server = server

    async def outage(self) -> None:
        """Kill it, and start it again."""
        await asyncio.to_thread(self._server.kill)
        await asyncio.sleep(_AWAY_S)
        await asyncio.to_thread(self._server.start)

    async def open_runs(self) -> Collection[str]:
        """Runs whose invocations have not come to their ends; one that is due later is none yet."""
        return {row["target_service_key"] for row in await asyncio.to_thread(self._server.query, _OPEN)}
