"""A catalogue of a hundred thousand tools: what it costs to have it, to resolve an agent's set, to search, to list.

The tools are made up, with a vocabulary of sixty words, so that most words stand in a third of all descriptions: for a
search by words that is the worst that there is. Everything is timed by the processor's clock of this process, warm; the
first answer, which builds the index, is shown apart.

    python -m benchmarks.catalogue --tools 100000
"""

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable
from random import Random
from statistics import median
from time import process_time

import httpx2

from benchmarks.catalogue_tools import stored
from toolcrib import Crib
from toolcrib.agents.toolset.allocation import AllocationEntry, meant
from toolcrib.contracts import OWNER, Principal
from toolcrib.core.policy import permit
from toolcrib.infrastructure.store import MemoryStore
from toolcrib.interfaces.server import create_app

BARS_MS = {"resolve": 5.0, "search": 20.0, "page": 50.0}
QUERIES = (
    "update the deal of a contact",
    "list invoices",
    "incident",
    "delete stripe refund",
    "merge commit branch repo",
)


async def timed(work: Callable[[], Awaitable[object]], repeats: int) -> float:
    """Milliseconds of CPU, the median of some repetitions."""
    found: list[float] = []
    for _ in range(repeats):
        before = process_time()
        await work()
        found.append((process_time() - before) * 1000)
    return median(found)


class Catalogue:
    """A crib with many tools, and the questions that are asked of it."""

    def __init__(self, crib: Crib, client: httpx2.AsyncClient, tools: int) -> None:
        self._crib = crib
        self._client = client
        self._narrow = Principal(id="narrow", grants=("ai://tools/p7/*", "ai://tools/p8/*/execute"))
        self._shares = [
            *(AllocationEntry(name) for name in Random(3).sample(list(crib.registry.names("default")), 20)),
            AllocationEntry("group:p1/deal"),
            AllocationEntry("p2_update_*"),
        ]
        self._middle = crib.registry.names("default")[tools // 2]

    async def resolve(self) -> None:
        """Twenty tools by name, a group of a provider, and a pattern; each with the permission of who asks."""
        for share in self._shares:
            for tool in meant(share, self._crib.registry, "default", "agent"):
                permit(tool, OWNER)

    async def search(self) -> None:
        """Five queries; the figure is divided by their number."""
        for query in QUERIES:
            await self._crib.listing.search(query)

    async def page(self) -> None:
        """The two hundred tools after the middle."""
        await self._crib.listing.page(after=self._middle, limit=200)

    async def narrow_page(self) -> None:
        """The first fifty that a principal with two grants may see."""
        await self._crib.acting_as(self._narrow).listing.page()

    async def text_page(self) -> None:
        """The first fifty with a text that only the last tool has: every tool is looked at."""
        await self._crib.listing.page(text=self._crib.registry.names("default")[-1])

    async def rest_page(self) -> None:
        """Fifty tools over the REST API, JSON included."""
        answer = await self._client.get("/api/v1/ai/tools", params={"after": self._middle})
        answer.raise_for_status()


async def measure(tools: int, repeats: int) -> dict[str, float]:
    """Milliseconds by what was asked."""
    store = MemoryStore()
    for definition in stored(tools):
        await store.definitions.save(definition)

    async def owner(_: str | None) -> Principal:
        return OWNER

    before = process_time()
    async with Crib(store) as crib:
        found = {"first read of everything": (process_time() - before) * 1000}
        transport = httpx2.ASGITransport(create_app(crib, owner))
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://crib.test", headers={"authorization": "Bearer x"}
        ) as client:
            catalogue = Catalogue(crib, client, tools)
            found["first search (builds the index)"] = await timed(catalogue.search, 1)
            found["resolve"] = await timed(catalogue.resolve, repeats)
            found["search"] = await timed(catalogue.search, repeats) / len(QUERIES)
            found["page"] = await timed(catalogue.page, repeats)
            found["page, two grants"] = await timed(catalogue.narrow_page, repeats)
            found["page, by a rare text"] = await timed(catalogue.text_page, repeats)
            found["page over REST"] = await timed(catalogue.rest_page, repeats)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = asyncio.run(measure(options.tools, options.repeats))
    if options.json:
        print(json.dumps(found))
        return
    for what, took in found.items():
        bar = BARS_MS.get(what.partition(",")[0].partition(" over")[0])
        verdict = "" if bar is None else f"   bar {bar:.0f} ms: {'met' if took < bar else 'missed'}"
        print(f"{what:<34} {took:9.2f} ms{verdict}")


if __name__ == "__main__":
    main()
