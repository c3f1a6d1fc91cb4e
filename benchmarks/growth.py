"""Costs that must not grow: of a call, whatever the catalogue, the run and the store hold, and of a run that waits.

    python -m benchmarks.growth

Function calls are counted in the thread of the event loop: they are the same on every machine. The tests hold the same
counts at smaller sizes.
"""

import argparse
import asyncio
import gc
import json
import sys
import tempfile
import tracemalloc
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from time import process_time
from types import FrameType
from typing import Any, TypeAlias

from benchmarks.durable_steps import HOST, Steps, put
from toolcrib import Crib, tool
from toolcrib.contracts import ToolDefinition
from toolcrib.kinds.http.openapi import import_openapi
from toolcrib.kinds.http.shape import HttpImplementation
from toolcrib.kinds.python.functions import FunctionTool

AnyTool: TypeAlias = FunctionTool[..., Any] | ToolDefinition

WAITING_BAR_KB = 20.0
ADD_BAR_S = 15.0
SAMPLES = 9
"""Of a count, whose median is taken: the engine looks after its leases meanwhile, now and then."""


async def counted(work: Callable[[], Awaitable[object]]) -> int:
    """Python functions that were called in this thread."""
    calls = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        await work()
    finally:
        sys.setprofile(before)
    return calls


def functions(count: int) -> list[FunctionTool[..., Any]]:
    """So many tools of a function."""

    async def look(deal: str, limit: int = 10) -> list[str]:
        """Find the contacts of a deal."""
        return [deal] * limit

    return [tool(name=f"look_{number}", side_effects="reads")(look) for number in range(count)]


def definitions(count: int) -> list[ToolDefinition]:
    """So many tools over HTTP, with schemas that are all different."""
    return [
        ToolDefinition(
            name=f"get_{number}",
            description="Get a deal.",
            side_effects="reads",
            input_schema={
                "type": "object",
                "properties": {
                    f"{name}_{number}": {"type": "string", "description": f"The {name}."}
                    for name in ("deal", "owner", "stage", "company", "amount", "currency")
                },
            },
            implementation=HttpImplementation(method="GET", url=f"https://deals.example/{number}"),
        )
        for number in range(count)
    ]


def document(operations: int) -> bytes:
    """An OpenAPI document whose operations share their components."""
    parts = {
        f"Part{number}": {
            "type": "object",
            "properties": {"id": {"type": "string"}, "next": {"$ref": f"#/components/schemas/Part{(number + 1) % 10}"}},
        }
        for number in range(10)
    }
    answer = {"description": "It.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Part0"}}}}
    wanted = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    paths = {
        f"/parts{number}/{{id}}": {
            "get": {"operationId": f"part_{number}", "parameters": [wanted], "responses": {"200": answer}}
        }
        for number in range(operations)
    }
    whole = {
        "openapi": "3.1.0",
        "info": {"title": "Parts", "version": "1"},
        "servers": [{"url": "https://parts.example"}],
        "paths": paths,
        "components": {"schemas": parts},
    }
    return json.dumps(whole).encode()


async def add_calls(tools: Iterable[AnyTool]) -> float:
    """Calls per tool that is added and saved, after some others."""
    first, *rest = tools
    async with Crib("memory://") as crib:
        crib.add(first)
        await crib.listing.page(limit=1)

        async def add() -> None:
            crib.add(*rest)
            await crib.listing.page(limit=1)

        return await counted(add) / len(rest)


async def import_calls(operations: int) -> float:
    """Calls per operation of a document that is read, and of tools that are checked, stored and listed."""

    async def read(count: int) -> int:
        async with Crib("memory://") as crib:

            async def both() -> None:
                await crib.imports.adopt(import_openapi(document(count), name="parts"))

            return await counted(both)

    await read(2)
    return (await read(2 * operations) - await read(operations)) / operations


async def call_calls(url: str, tools: int) -> float:
    """Calls per call of one of so many tools."""
    async with Crib(url) as crib:
        crib.add(*functions(tools))
        return await _calls_of_a_call(crib)


async def _calls_of_a_call(crib: Crib) -> float:
    async def look() -> None:
        answer = await crib.call("look_1", deal="Acme", limit=1)
        if not answer.ok:
            raise RuntimeError(answer.error)

    for _ in range(3):
        await look()
    return median([await counted(look) for _ in range(SAMPLES)])


async def call_calls_after(url: str, runs: int) -> float:
    """Calls per call if the store holds so many runs."""
    async with Crib(url) as crib:
        crib.add(*functions(2))
        for _ in range(runs):
            await crib.call("look_1", deal="Acme", limit=1)
        return await _calls_of_a_call(crib)


async def step_calls(url: str, steps: int, more: int = 10) -> float:
    """Calls per step of a run that has so many steps behind it."""
    async with Crib(url) as crib:
        crib.add(put)
        await crib.save(HOST.tool())
        run = Steps(crib)
        await run.take(1, 2)
        short = median([await counted(lambda: run.take(1, steps)) for _ in range(3)])
        long = median([await counted(lambda: run.take(1, steps + more)) for _ in range(3)])
        await run.engine.close()
        return (long - short) / more


@tool(side_effects="writes", requires_confirmation=True)
async def send(to: str) -> str:
    """Send something."""
    return to


PRINT = ToolDefinition(
    name="print",
    side_effects="writes",
    runs_on="client",
    input_schema={"type": "object", "properties": {"to": {"type": "string"}}},
    implementation=HttpImplementation(method="POST", url="https://printer.example/"),
)
WAITING = {"send": "awaiting_approval", "print": "awaiting_client"}
"""What a run of a tool waits for."""


async def waiting_kb(url: str, runs: int, name: str = "send") -> float:
    """Kilobytes of Python's memory per run that waits, for a person or for a client that performs the act."""
    async with Crib(url) as crib:
        crib.add(send, PRINT)
        for number in range(50):
            await crib.invoke(name, {"to": f"first {number}"})
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(runs):
            waits = await crib.invoke(name, {"to": f"person {number}"})
            if waits.status != WAITING[name]:
                raise RuntimeError(waits.status)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        return grown / runs / 1000


async def add_seconds(tools: Iterable[AnyTool]) -> float:
    """CPU seconds to add tools and have them saved."""
    made = list(tools)
    async with Crib("memory://") as crib:
        before = process_time()
        crib.add(*made)
        await crib.listing.page(limit=1)
        return process_time() - before


@asynccontextmanager
async def stores() -> AsyncGenerator[dict[str, Callable[[], str]]]:
    """Makes addresses of new stores, by the name of their kind."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = iter(range(1000))
        yield {
            "memory": lambda: "memory://",
            "SQLite": lambda: f"sqlite:///{Path(folder) / f'{next(numbers)}.db'}",
        }


async def measure(tools: int, steps: int, runs: int) -> None:
    """Print everything."""
    for what, made in (("functions", functions(tools)), ("definitions", definitions(tools))):
        took = await add_seconds(made)
        print(f"{tools} {what} added: {took:.1f} s CPU, bar {ADD_BAR_S:.0f}: {'met' if took < ADD_BAR_S else 'missed'}")
    async with stores() as urls:
        for kind, url in urls.items():
            found = [await call_calls(url(), count) for count in (10, tools if kind == "memory" else tools // 10)]
            print(f"{kind}: calls per call, few and many tools: {found}", flush=True)
            found = [await step_calls(url(), count) for count in (10, steps)]
            print(f"{kind}: calls per step, at the beginning and after {steps}: {found}", flush=True)
            found = [await call_calls_after(url(), count) for count in (0, runs if kind == "memory" else runs // 10)]
            print(f"{kind}: calls per call, no and many stored runs: {found}", flush=True)
            for name, status in WAITING.items():
                waiting = await waiting_kb(url(), 500, name)
                verdict = "met" if waiting < WAITING_BAR_KB else "missed"
                print(f"{kind}: {waiting:.1f} kB per run {status}, bar {WAITING_BAR_KB:.0f}: {verdict}", flush=True)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tools", type=int, default=100_000)
    options.add_argument("--steps", type=int, default=9_000)
    options.add_argument("--runs", type=int, default=100_000)
    chosen = options.parse_args()
    asyncio.run(measure(chosen.tools, chosen.steps, chosen.runs))


if __name__ == "__main__":
    main()
