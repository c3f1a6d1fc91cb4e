"""`ETag`, `If-Match` and `If-None-Match` of every resource with revisions."""

from typing import Any

import pytest

from tests.unit.server.client import Server, body_of, checked, http_tool
from toolcrib.contracts import AgentDefinition, JsonObject, LLMConfig

pytestmark = pytest.mark.requirement("server.revisions")

STEPS = [{"name": "look", "tool": "search", "input": {"company": "${input.company}"}}]
DESK = AgentDefinition(name="desk", llm=LLMConfig(model="scripted:free")).model_dump(mode="json")
RESOURCES: dict[str, tuple[JsonObject, str]] = {
    "/ai/fragments/tone": ({"name": "tone", "text": "Be brief."}, "description"),
    "/ai/accounts/bot": ({"name": "bot", "grants": ["ai://tools/*"]}, "description"),
    "/ai/steps/deals.find": ({"name": "deals.find", "tool": "search"}, "description"),
    "/ai/conditions/is_won": (
        {"name": "is_won", "parameters": ["stage"], "expression": "${stage == 'Won'}"},
        "description",
    ),
    "/ai/mcp_servers/crm": ({"name": "crm", "tools": ["search"]}, "description"),
}


async def _put(server: Server, path: str, body: JsonObject, match: str | None = None) -> Any:
    headers = {} if match is None else {"If-Match": match}
    return await server.client.put(f"/api/v1{path}", json=body, headers=headers)


@pytest.mark.parametrize("path", RESOURCES)
async def test_what_is_kept_by_name_has_an_etag_that_a_change_and_a_look_may_name(server: Server, path: str) -> None:
    body, field = RESOURCES[path]
    first = await _put(server, path, body)
    read = await server.client.get(f"/api/v1{path}")
    known = await server.client.get(f"/api/v1{path}", headers={"If-None-Match": f'W/{first.headers["etag"]}, "99"'})
    changed = await _put(server, path, {**body, field: "Changed"}, first.headers["etag"])
    stale = await _put(server, path, {**body, field: "Late"}, first.headers["etag"])
    new = await server.client.get(f"/api/v1{path}", headers={"If-None-Match": first.headers["etag"]})

    assert first.headers["etag"] == read.headers["etag"] == '"1"'
    assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", '"1"')
    assert (changed.status_code, changed.headers["etag"]) == (200, '"2"')
    assert "read it again" in checked(stale, 409)["detail"]
    assert checked(new, 200)[field] == "Changed"


async def test_a_trigger_has_an_etag_too(server: Server) -> None:
    await _put(server, "/ai/accounts/bot", {"name": "bot", "grants": ["ai://tools/*"]})
    body = {
        "name": "daily",
        "when": {"kind": "cron", "cron": "0 6 * * *", "timezone": "UTC"},
        "start": "search",
        "input": {"company": "Acme"},
        "account": "bot",
    }
    first = await _put(server, "/ai/triggers/daily", body)
    read = await server.client.get("/api/v1/ai/triggers/daily", headers={"If-None-Match": first.headers["etag"]})
    stale = await _put(server, "/ai/triggers/daily", {**body, "enabled": False}, '"7"')

    assert read.status_code == 304
    assert checked(stale, 409)["code"] == "conflict"


async def test_definitions_are_not_sent_to_a_client_that_has_them(server: Server) -> None:
    await server.post("/ai/tools", body_of(http_tool("crm_deals")), status=201)
    await server.post("/ai/agents", DESK, status=201)
    await server.post("/ai/workflows/find/publish", {"definition": {"name": "find", "steps": STEPS}})
    await _put(server, "/ai/drafts/find", {"definition": {"name": "find", "steps": STEPS}})
    for path in ("tools/crm_deals", "agents/desk", "workflows/find", "drafts/find"):
        read = await server.client.get(f"/api/v1/ai/{path}")
        again = await server.client.get(f"/api/v1/ai/{path}", headers={"If-None-Match": read.headers["etag"]})
        any_of = await server.client.get(f"/api/v1/ai/{path}", headers={"If-None-Match": "*"})
        assert (again.status_code, any_of.status_code) == (304, 304), path
    agentic = await server.client.get("/api/v1/agentic-tools/deals")
    again = await server.client.get("/api/v1/agentic-tools/deals", headers={"If-None-Match": agentic.headers["etag"]})
    assert again.status_code == 304
