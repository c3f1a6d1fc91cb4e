"""A tool that orders something in the store's own database; its process may die before the call has an outcome."""

import asyncio
import os
import signal

import sqlalchemy as sa

from toolcrib import Crib, SharingOptions, ToolContext, tool
from toolcrib.contracts import Json, JsonObject
from toolcrib.infrastructure.store.ports.transactions import Work

LEASE_S = 0.5


def buys(item: str) -> Work:
    """Work that writes an order down."""

    def work(connection: sa.Connection) -> Json:
        number = connection.execute(
            sa.text("INSERT INTO purchases (item) VALUES (:item) RETURNING number"), {"item": item}
        ).scalar_one()
        return {"number": number}

    return work


@tool(side_effects="writes", transactional=True)
async def buy(item: str, ctx: ToolContext) -> JsonObject:
    """Order something."""
    ordered = await ctx.transact(buys(item))
    if os.environ.get("BUYER_DIES"):
        os.kill(os.getpid(), signal.SIGKILL)
    return ordered


def order(url: str) -> None:
    """Order in a process of its own."""
    asyncio.run(_order(url))


async def _order(url: str) -> None:
    async with Crib(url, sharing=SharingOptions(lease_s=LEASE_S)) as crib:
        crib.add(buy)
        await crib.call("buy", {"item": "x"})
