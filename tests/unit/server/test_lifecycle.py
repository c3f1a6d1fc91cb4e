"""The life of tools over HTTP."""

from typing import Any

import pytest

from tests.twins import make_definition
from tests.unit.server.client import Server, body_of, http_tool
from toolcrib.kinds.composite.shape import CompositeImplementation, CompositeRoute

pytestmark = pytest.mark.requirement("server.life_cycle")

STAGE = {"name": "stage", "in": "query", "schema": {"type": "string"}}


def document(*parameters: Any) -> Any:
    operation = {"operationId": "crm_deals", "parameters": list(parameters), "responses": {"200": {"description": ""}}}
    info = {"title": "C", "version": "1"}
    servers = [{"url": "https://api.example.com"}]
    return {"openapi": "3.1.0", "info": info, "servers": servers, "paths": {"/deals": {"get": operation}}}


def composite(tool: str) -> Any:
    implementation = CompositeImplementation(routes=(CompositeRoute(id="only", tool=tool, input={"company": "x"}),))
    return body_of(make_definition("front", implementation=implementation))


async def bring(server: Server, *parameters: Any, **more: Any) -> dict[str, str]:
    view = await server.post("/ai/tools/import", {"name": "crm", "document": document(*parameters), **more}, 201)
    return {found["tool"]: found["adoption"] for found in view["outcome"]["tools"]}


async def test_who_saves_or_checks_something_bound_to_a_deprecated_tool_is_warned(server: Server) -> None:
    await server.post("/ai/tools/search/status", {"status": "deprecated", "replacement": "deals"})
    expected = ["tool 'search@1.0.0' is deprecated; use 'deals' instead"]

    assert (await server.post("/ai/tools/validate", composite("search")))["warnings"] == expected
    assert (await server.post("/ai/tools", composite("search"), 201))["warnings"] == expected
    agent = {"name": "helper", "mode": "agentic", "llm": {"model": "scripted:free"}, "tools": [{"tool": "search"}]}
    assert (await server.post("/agentic-tools", agent, 201))["warnings"] == expected
    assert (await server.get("/agentic-tools/helper"))["warnings"] == []


async def test_searches_leave_out_what_is_not_in_service_unless_they_ask_for_it(server: Server) -> None:
    def names(page: Any) -> list[str]:
        return [item["definition"]["name"] for item in page["items"]]

    await server.post("/ai/tools/search/status", {"status": "deprecated"})

    assert "search" not in names(await server.get("/ai/tools", {"q": "find deals"}))
    assert "search" not in names(await server.get("/ai/tools", {"q": "search"}))
    assert names(await server.get("/ai/tools", {"q": "search", "status": "deprecated"})) == ["search"]
    assert names(await server.get("/ai/tools", {"search": "find deals", "status": "deprecated"})) == ["search"]
    assert "search" in names(await server.get("/ai/tools", {"search": "find deals", "status": "all"}))


@pytest.mark.parametrize("state", ["deprecated", "blocked"])
async def test_lists_have_deprecated_and_blocked_tools_only_if_they_ask_for_them(server: Server, state: str) -> None:
    async def names(path: str, **query: Any) -> set[str]:
        items = (await server.get(path, query))["items"]
        return {item["definition"]["name"] if "definition" in item else item["name"] for item in items}

    everything = await names("/ai/tools")
    await server.post("/ai/tools/search/status", {"status": state})

    for path in ("/ai/tools", "/ai-tools"):
        assert await names(path) == everything - {"search"}
        assert await names(path, status=state) == {"search"}
        assert await names(path, status="all") == everything


async def test_a_change_that_was_held_is_reviewed_and_decided(server: Server) -> None:
    assert await bring(server, STAGE) == {"crm_deals": "new"}
    assert await bring(server) == {"crm_deals": "held"}
    [waiting] = (await server.get("/ai/proposals"))["items"]
    review = await server.get("/ai/tools/crm_deals/review")

    assert (waiting["tool"], review["status"]) == ("crm_deals", "active")
    assert [found["change_class"] for found in review["proposal"]["change"]["differences"]] == ["breaking"]
    assert (await server.post("/ai/tools/crm_deals/reject"))["status"] == "active"
    await server.post("/ai/tools/crm_deals/accept", status=404)
    assert await bring(server, accept=True) == {"crm_deals": "changed"}
    assert await bring(server, STAGE) == {"crm_deals": "changed"}
    assert await bring(server) == {"crm_deals": "held"}
    assert (await server.post("/ai/tools/crm_deals/accept"))["status"] == "active"
    assert (await server.get("/ai/proposals"))["items"] == []


async def test_the_impact_of_a_version_is_told(server: Server) -> None:
    schema = {"type": "object", "properties": {"company": {"type": "string"}}}
    await server.post("/ai/tools", body_of(http_tool("base", input_schema=schema)), 201)
    await server.post("/ai/tools", composite("base@^1"), 201)
    report = await server.get("/ai/tools/base/impact", {"version": "1.0.0"})

    assert [(each["name"], each["satisfied"]) for each in report["dependents"]] == [("front@1.0.0", True)]
    await server.get("/ai/tools/base/impact", {"version": "9.0.0"}, 404)


async def test_only_who_may_change_a_tool_sees_what_is_bound_to_it_and_decides(server: Server) -> None:
    await bring(server, STAGE)
    await bring(server)
    async with server.client_of("reader") as reader:
        for method, path in (
            ("GET", "/ai/tools/search/impact"),
            ("GET", "/ai/tools/crm_deals/review"),
            ("POST", "/ai/tools/crm_deals/accept"),
            ("POST", "/ai/tools/crm_deals/reject"),
        ):
            assert (await reader.request(method, f"/api/v1{path}")).status_code == 403
        assert (await reader.get("/api/v1/ai/proposals")).json() == {"items": []}
