"""Serves the web on the loopback address, with a search engine, and remembers every request.

It is a foreign system: it knows nothing of Toolcrib. What a client claims to have read can be held against `Web.log`.
"""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml
from aiohttp import web
from aiohttp.typedefs import Handler

from examples.research.ranking import Index
from examples.research.site import Document, documents

HOST: Final = "127.0.0.1"
SEARCH_PATH: Final = "/search/v1/search"
DOCUMENT_PATH: Final = "/openapi.json"
MAX_PER_PAGE: Final = 10

_OPENAPI: Final = Path(__file__).with_name("openapi.yaml")
_TAG: Final = re.compile(r"<[^>]*>")


@dataclass(frozen=True, slots=True)
class Visit:
    """One request."""

    method: str
    path: str
    """Without the query, as it was decoded."""
    query: str
    status: int


@dataclass(slots=True)
class Web:
    """The running web."""

    url: str
    """`http://127.0.0.1:port`."""
    log: list[Visit] = field(default_factory=list[Visit])
    """Every request so far, in the order of the answers."""


@asynccontextmanager
async def running_web(port: int = 0) -> AsyncGenerator[Web]:
    """The web, for as long as the block lasts; on any free port unless one is named."""
    served = Web("")
    pages: dict[str, Document] = {}
    runner = web.AppRunner(_app(served, pages), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
        served.url = f"http://{HOST}:{runner.addresses[0][1]}"
        pages.update((document.path, document) for document in documents(served.url))
        yield served
    finally:
        await runner.cleanup()


def _app(served: Web, pages: dict[str, Document]) -> web.Application:
    site = _Site(served, pages)
    app = web.Application(middlewares=[site.remember])
    app.router.add_get(DOCUMENT_PATH, site.describe)
    app.router.add_get(SEARCH_PATH, site.search)
    app.router.add_get("/{path:.*}", site.read)
    return app


class _Site:
    """The handlers; one object for the life of the server."""

    def __init__(self, served: Web, pages: dict[str, Document]) -> None:
        self._served = served
        self._pages = pages
        self._index: Index | None = None

    @web.middleware
    async def remember(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Log the request with the status that it gets."""
        try:
            response = await handler(request)
        except web.HTTPException as refusal:
            self._note(request, refusal.status)
            raise
        self._note(request, response.status)
        return response

    async def describe(self, request: web.Request) -> web.Response:
        """The OpenAPI document of the search engine."""
        document = yaml.safe_load(_OPENAPI.read_text(encoding="utf-8"))
        return web.json_response({**document, "servers": [{"url": self._served.url}]})

    async def search(self, request: web.Request) -> web.Response:
        """A page of results."""
        query = request.query.get("q", "").strip()
        page, size = _number(request, "page", 1, 100), _number(request, "per_page", 5, MAX_PER_PAGE)
        if not query or page is None or size is None:
            message = f"q must not be empty, page be 1 to 100, and per_page be 1 to {MAX_PER_PAGE}"
            return web.json_response({"message": message}, status=400)
        found = list(self._pages.values())
        index = self._index = self._index or Index([(item.title, _TAG.sub(" ", item.text)) for item in found])
        hits = index.search(query)
        results = [self._result(found[hit.index], index.snippet(hit.index, query)) for hit in hits]
        return web.json_response(
            {
                "query": query,
                "total": len(hits),
                "page": page,
                "pages": -(-len(hits) // size),
                "results": results[(page - 1) * size : page * size],
            }
        )

    async def read(self, request: web.Request) -> web.Response:
        """A page or a file."""
        document = self._pages.get(request.path)
        if document is None:
            return web.Response(status=404, text="<h1>Not found</h1>", content_type="text/html")
        return web.Response(body=document.body, headers={"Content-Type": document.content_type})

    def _result(self, document: Document, snippet: str) -> dict[str, Any]:
        return {
            "title": document.title,
            "url": self._served.url + document.path,
            "kind": document.kind,
            "updated": document.updated,
            "snippet": snippet,
        }

    def _note(self, request: web.Request, status: int) -> None:
        self._served.log.append(Visit(request.method, request.path, request.query_string, status))


def _number(request: web.Request, name: str, default: int, most: int) -> int | None:
    """A parameter as a number of 1 to `most`; null if it is none."""
    text = request.query.get(name, str(default))
    return int(text) if text.isascii() and text.isdigit() and 1 <= int(text) <= most else None
