"""A document at an address with those that it refers to, fetched under bounds by whatever the caller fetches with.

Only documents of the same origin are asked for, unless the caller names others: a document must not make its reader ask
where it pleases. What could not be had is left out, and the import reports the references that lead there.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import Final, TypeAlias, cast
from urllib.parse import urldefrag

from toolcrib.contracts import Json, JsonObject, ToolcribError
from toolcrib.core.providers.losses import Losses
from toolcrib.infrastructure.net.origins import origin_of
from toolcrib.kinds.http.openapi.read.library import uri_of
from toolcrib.kinds.http.openapi.read.limits import Bounds
from toolcrib.kinds.http.openapi.read.sources_part import read_source

MAX_DOCUMENTS: Final = 50
"""Documents of one import, the first included."""

Fetch: TypeAlias = Callable[[str], Awaitable[bytes]]
"""Asks for the bytes at an address; raises a `ToolcribError` if there are none."""


async def fetch_documents(
    url: str, fetch: Fetch, *, origins: Collection[str] = (), bounds: Bounds | None = None
) -> dict[str, bytes]:
    """The document at a URL and all that it refers to, by URL.

    Args:
        url: Where the main document is.
        fetch: Called once for each document.
        origins: Further origins that may be asked, like `https://schemas.example.com`.
        bounds: Limits of each document; all of them together take at most `max_bytes`.

    Raises:
        ToolcribError: The main document cannot be had.
        InvalidDefinition: It exceeds a bound or cannot be read.
    """
    bounds = bounds or Bounds()
    allowed = {origin_of(url), *map(origin_of, origins)} - {None}
    main = await fetch(url)
    bounds.check_bytes(len(main))
    documents = {url: main}
    waiting = deque(await asyncio.to_thread(_others, url, main, bounds))
    size = len(main)
    asked = {url}
    while waiting and len(asked) < MAX_DOCUMENTS:
        found = waiting.popleft()
        if found in asked or origin_of(found) not in allowed:
            continue
        asked.add(found)
        try:
            text = await fetch(found)
            size += len(text)
            bounds.check_bytes(size)
            waiting += await asyncio.to_thread(_others, found, text, bounds)
        except ToolcribError:
            continue  # the references that lead there are reported
        documents[found] = text
    return documents


def _others(base: str, text: bytes, bounds: Bounds) -> Sequence[str]:
    """The documents that one refers to, each once. Reading a large one takes seconds, so not in the event loop."""
    return list(dict.fromkeys(_referred(base, text, bounds)))


def _referred(base: str, text: bytes, bounds: Bounds) -> Iterator[str]:
    waiting: list[Json] = [read_source(text, bounds, Losses())]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            members = cast("JsonObject", value)
            reference = members.get("$ref")
            if isinstance(reference, str) and not reference.startswith("#"):
                yield from _address(base, reference)
            waiting.extend(members.values())
        elif isinstance(value, list):
            waiting.extend(cast("list[Json]", value))


def _address(base: str, reference: str) -> Iterator[str]:
    try:
        yield urldefrag(uri_of(base, reference))[0]
    except ValueError:
        return
