"""The page about the server against the server."""

import re
from pathlib import Path

import pytest

from tests.unit.server.client import Server

PAGE = Path(__file__).parents[3] / "docs" / "server.md"
LIST = re.compile(r"`(/[^`]*)`")
NOT_IN_THE_DOCUMENT = ("/a2a/", "/.well-known/")
"""Paths of protocols that describe themselves."""
ROUTE = re.compile(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`?]*)`")


@pytest.mark.requirement("server.docs")
async def test_the_page_names_every_route_and_no_other(server: Server) -> None:
    schema = (await server.client.get("/openapi.json")).json()
    served = {
        (method.upper(), path.removeprefix("/api/v1"))
        for path, methods in schema["paths"].items()
        for method in methods
        if path != "/health"
    }
    page = PAGE.read_text(encoding="utf-8")
    named = {
        (method, path)
        for line in page.splitlines()
        if line.startswith("| `")
        for method, path in ROUTE.findall(line)
        if not path.startswith(NOT_IN_THE_DOCUMENT)
    }
    lists = LIST.findall(page.partition("## Queries")[2].partition("[Queries]")[0])
    named |= {("POST", f"{path}/query") for path in lists} | {("GET", f"{path}/count") for path in lists}

    assert named == served
