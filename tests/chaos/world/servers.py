"""How the servers behind a world are killed: at once, as if the machine had died, and started again."""

import asyncio

from tests.chaos.world.disorder import Outage
from tests.servers.postgres import PostgresServer

_AWAY_S = 0.7


def outage_of(server: PostgresServer) -> Outage:
    """Takes a PostgreSQL server away for a moment."""

    async def outage() -> None:
        await asyncio.to_thread(server.stop, "immediate")
        await asyncio.sleep(_AWAY_S)
        await asyncio.to_thread(server.start)

    return outage
