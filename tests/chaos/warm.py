"""What each process of the chaos tests would do again, done once before they are forked: imports and first uses.

The forkserver imports it. One run is made in memory: blobs on disks are written by threads that a fork does not have.
"""

import asyncio
import tempfile
from pathlib import Path

from tests.chaos import crm, desk
from tests.chaos.ledger import Ledger, script, tools
from tests.chaos.world import jobs
from toolcrib import Crib, ScriptedModel
from toolcrib.infrastructure.store.database import sqlite
from toolcrib.infrastructure.store.sql import sql_store

__all__ = ["crm", "desk", "jobs", "sql_store", "sqlite"]


async def _once() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Crib("memory://", models={"scripted:clerk": ScriptedModel(script, name="clerk")}) as crib:
            crib.add(*tools(Ledger(Path(folder))))
            clerk = crib.agentic_tool("clerk", mode="agentic", model="scripted:clerk", tools=["look", "put"])
            await clerk("Do your work")


asyncio.run(_once())
