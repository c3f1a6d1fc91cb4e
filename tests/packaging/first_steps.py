"""What a new user does first, run by the tests with the installed package alone. Prints one JSON document."""

import asyncio
import importlib.metadata
import json
import sqlite3

from toolcrib import Crib, ScriptedModel, tool
from toolcrib.testing import calls, says


@tool(side_effects="reads")
async def find_order(order_id: str) -> dict[str, str]:
    """Find an order."""
    return {"id": order_id}


async def main() -> None:
    """Ask an agent on a store in a file, and open the store again."""
    model = ScriptedModel([calls("find_order", order_id="o1"), says("Found.")])
    async with Crib("sqlite:///shop.db", models={"scripted:m": model}) as crib:
        support = crib.agent("support", model="scripted:m", tools=[find_order])
        answer = await support("Where is o1?")
        page = "x" * 100_000  # a blob
        blob = await crib.store.blobs.put(page.encode(), realm="default", made_by="owner")
        assert await crib.store.blobs.get("default", blob) == page.encode()
    async with Crib("sqlite:///shop.db") as crib:
        trace = await crib.trace(answer.run_id)
    plugins = [point.name for point in importlib.metadata.entry_points(group="pytest11")]
    steps = [step.type for step in trace.steps]
    print(json.dumps({"answer": answer.output, "steps": steps, "plugins": plugins, "sqlite": sqlite3.sqlite_version}))


asyncio.run(main())
