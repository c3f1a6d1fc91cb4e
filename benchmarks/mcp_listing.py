"""`tools/list` over ten thousand tools: what the server needs for a page, all pages of the list one after another.

Each page is a request to the MCP endpoint of the server: key, routes, protocol, and the JSON of a hundred tools; only
the socket is missing. Shown are the wall clock's median, 95th percentile and maximum. The first page is shown apart:
the SDK is loaded for it, and the names of all tools are worked out, as for the first page after each change.

    python -m benchmarks.mcp_listing --tools 10000
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import httpx2

from benchmarks.catalogue_tools import stored
from benchmarks.growth import counted
from toolcrib import Crib
from toolcrib.contracts import OWNER, McpServerDefinition, Principal
from toolcrib.infrastructure.store import MemoryStore
from toolcrib.interfaces.mcp.offers import ToolOffers
from toolcrib.interfaces.server import create_app

BAR_MS = 50.0
"""Of the 95th percentile of a page."""
REVISION = "2026-07-28"
_ABOUT = "io.modelcontextprotocol"
_META = {
    f"{_ABOUT}/protocolVersion": REVISION,
    f"{_ABOUT}/clientInfo": {"name": "benchmark", "version": "1"},
    f"{_ABOUT}/clientCapabilities": {},
}
_HEADERS = {
    "authorization": "Bearer x",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": REVISION,
}


class Listing:
    """A client that lists tools."""

    def __init__(self, client: httpx2.AsyncClient, path: str = "/mcp") -> None:
        self._client = client
        self._path = path
        self.tools = 0

    async def page(self, cursor: str | None) -> tuple[float, str | None]:
        """Milliseconds of a page, and the cursor of the next one."""
        params: dict[str, Any] = {"_meta": _META, **({} if cursor is None else {"cursor": cursor})}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
        before = perf_counter()
        answer = await self._client.post(self._path, json=request, headers={**_HEADERS, "mcp-method": "tools/list"})
        took = (perf_counter() - before) * 1000
        answer.raise_for_status()
        result = _result(answer)
        self.tools += len(result["tools"])
        return took, result.get("nextCursor")

    async def all(self) -> list[float]:
        """Milliseconds of every page."""
        found: list[float] = []
        cursor: str | None = None
        while True:
            took, cursor = await self.page(cursor)
            found.append(took)
            if cursor is None:
                return found


def _result(answer: httpx2.Response) -> dict[str, Any]:
    text = answer.text
    if answer.headers["content-type"].startswith("text/event-stream"):
        text = next(line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {"))
    return json.loads(text)["result"]


async def measure(tools: int, repeats: int) -> dict[str, Sequence[float]]:
    """Milliseconds of pages, by what was listed."""
    store = MemoryStore()
    for definition in stored(tools):
        await store.definitions.save(definition)

    async def owner(_: str | None) -> Principal:
        return OWNER

    async with Crib(store) as crib:
        await crib.mcp_servers.save(McpServerDefinition(name="small", tools=("p7_*",)))
        await crib.mcp_servers.save(McpServerDefinition(name="pair", tools=("*",), offer="search"))
        app = create_app(crib, owner)
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            everything = Listing(client)
            first, _ = await everything.page(None)
            pages = [took for _ in range(repeats) for took in await everything.all()]
            small = [(await Listing(client, "/mcp/servers/small").page(None))[0] for _ in range(10 * repeats)]
            pair = [(await Listing(client, "/mcp/servers/pair").page(None))[0] for _ in range(10 * repeats)]
        await app.state.mcp.close()
    if everything.tools < tools * repeats:
        raise RuntimeError(f"listed {everything.tools} tools, not {tools * repeats}")
    return {"first page": [first], "page": pages, "page of a virtual server": small, "search pair": pair}


async def page_calls(tools: int) -> int:
    """Python functions that are called for the second page of so many tools."""
    store = MemoryStore()
    for definition in stored(tools):
        await store.definitions.save(definition)
    async with Crib(store) as crib:
        offers = ToolOffers(crib)
        first = await offers.page(None)
        await offers.page(first.cursor)
        return await counted(lambda: offers.page(first.cursor))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = asyncio.run(measure(options.tools, options.repeats))
    told = {what: _shown(times) for what, times in found.items()}
    if options.json:
        print(json.dumps(told))
        return
    for what, times in told.items():
        met = "met" if times["p95"] < BAR_MS else "missed"
        verdict = "" if what == "first page" else f"   bar {BAR_MS:.0f} ms: {met}"
        print(f"{what:<26} median {times['median']:7.1f}  p95 {times['p95']:7.1f}  max {times['max']:7.1f} ms{verdict}")


def _shown(times: Sequence[float]) -> dict[str, float]:
    p95 = quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
    return {"median": median(times), "p95": p95, "max": max(times)}


if __name__ == "__main__":
    main()
