"""The page about the server against the server."""

import re
from pathlib import Path

import pytest

from tests.unit.server.client import Server

PAGE = Path(__file__).parents[3] / "docs" / "server.md"
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
    named = {
        (method, path)
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
        for method, path in ROUTE.findall(line)
    }

    assert named == served
