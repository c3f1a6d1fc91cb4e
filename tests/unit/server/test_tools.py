import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.twins import make_definition
from tests.unit.server.client import Server, body_of, checked, http_tool, serving
from toolcrib.contracts import Json, LLMConfig, SecretReference

PAGE = {"openapi": "3.1.0", "info": {"title": "Pages", "version": "1"}, "servers": [{"url": "https://api.example.com"}]}
DOCUMENT = {
    **PAGE,
    "paths": {"/pages": {"get": {"operationId": "list_pages", "responses": {"200": {"description": ""}}}}},
}


def agentic(**llm: Any) -> Json:
    implementation = {
        "kind": "agentic",
        "mode": "agentic",
        "llm": LLMConfig(**llm).model_dump(mode="json"),
        "system_prompt": "Do {{user_task}}",
        "tools": [{"tool": "search"}],
    }
    return {"name": "helper", "implementation": implementation}


@pytest.mark.requirement("server.tools")
async def test_tools_are_listed_by_name_page_by_page(server: Server) -> None:
    first = await server.get("/ai/tools", {"limit": 3})
    assert [item["definition"]["name"] for item in first["items"]] == ["assistant", "deals", "pick"]
    second = await server.get("/ai/tools", {"limit": 3, "after": first["next"]})
    assert [item["definition"]["name"] for item in second["items"]] == ["search", "update"]
    assert second["next"] is None


@pytest.mark.requirement("server.tools")
@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"kind": "agentic"}, ["assistant", "deals"]),
        ({"kind": "http"}, []),
        ({"category": "agentic"}, ["assistant", "deals"]),
        ({"tag": "crm"}, ["search"]),
        ({"q": "DEALS"}, ["deals", "search", "update"]),
        ({"q": "crm"}, ["search"]),
        ({"status": "deprecated"}, ["pick"]),
        ({"status": "active", "q": "find"}, ["search"]),
    ],
)
async def test_tools_are_filtered(server: Server, query: dict[str, str], names: list[str]) -> None:
    await server.post("/ai/tools/pick/status", {"status": "deprecated", "sunset": "2027-01-01T00:00:00Z"})
    page = await server.get("/ai/tools", query)
    assert [item["definition"]["name"] for item in page["items"]] == names


@pytest.mark.requirement("server.metadata")
async def test_metadata_of_a_tool_is_kept_shown_and_found_by_no_search(server: Server) -> None:
    noted = {"owner": "crm-team", "tickets": [17]}
    tool = body_of(http_tool("noted")) | {"metadata": noted}
    saved = await server.post("/ai/tools", tool, status=201)
    assert saved["definition"]["metadata"] == noted
    assert (await server.get("/ai/tools", {"q": "crm-team"}))["items"] == []

    helper = {"name": "flat", "mode": "agentic", "llm": {"model": "openai:gpt-4o"}, "tools": [{"tool": "search"}]}
    made = await server.post("/agentic-tools", helper | {"metadata": noted}, status=201)
    assert (await server.get("/agentic-tools/flat"))["metadata"] == made["metadata"] == noted


@pytest.mark.requirement("server.tools")
async def test_a_tool_is_created_once(server: Server) -> None:
    body = body_of(http_tool("deals_api"))
    response = await server.client.post("/api/v1/ai/tools", json=body)
    stored = checked(response, 201)
    assert (stored["revision"], stored["made_by"], stored["definition"]) == (1, "owner", body)
    assert response.headers["location"] == "/api/v1/ai/tools/deals_api"
    again = await server.post("/ai/tools", body, status=409)
    assert "PUT or PATCH" in again["detail"]


@pytest.mark.requirement("server.unique")
@pytest.mark.parametrize("url", ["memory://", "sqlite:///{folder}/crib.db"])
async def test_of_two_tools_of_one_name_that_are_made_at_once_one_is_refused(tmp_path: Path, url: str) -> None:
    async def make(server: Server, description: str) -> httpx2.Response:
        body = {**body_of(http_tool("deals_api")), "description": description}
        return await server.client.post("/api/v1/ai/tools", json=body)

    where = url.format(folder=tmp_path)
    async with serving(where, driven=False) as one, serving(where, driven=False) as two:
        other = one if where == "memory://" else two
        answers = await asyncio.gather(make(one, "ours"), make(other, "theirs"), make(one, "third"))

    assert sorted(answer.status_code for answer in answers) == [201, 409, 409]
    assert [answer.headers.get("etag") for answer in answers if answer.status_code == 201] == ['"1"']
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} == {"conflict"}


@pytest.mark.requirement("server.optimistic")
async def test_every_answer_with_a_revision_names_it_for_the_next_change(server: Server) -> None:
    body = body_of(http_tool("deals_api"))
    made = await server.client.post("/api/v1/ai/tools", json=body)
    put = await server.client.put("/api/v1/ai/tools/deals_api", json={**body, "description": "b"})
    patched = await server.client.patch("/api/v1/ai/tools/deals_api", json={"description": "c"})

    assert [answer.headers["etag"] for answer in (made, put, patched)] == ['"1"', '"2"', '"3"']


@pytest.mark.requirement("server.tools")
async def test_put_stores_a_revision_and_equal_content_none(server: Server) -> None:
    body = body_of(http_tool("deals_api"))
    await server.post("/ai/tools", body, status=201)
    same = checked(await server.client.put("/api/v1/ai/tools/deals_api", json=body), 200)
    changed = checked(await server.client.put("/api/v1/ai/tools/deals_api", json={**body, "version": "1.1.0"}), 200)
    assert (same["revision"], changed["revision"]) == (1, 2)
    view = await server.get("/ai/tools/deals_api")
    assert view["definition"]["version"] == "1.1.0"
    listed = (await server.get("/ai/tools/deals_api/revisions"))["items"]
    assert [revision["revision"] for revision in listed] == [1, 2]
    older = await server.get("/ai/tools/deals_api@=1.0.0")
    assert older["revision"] == 1


@pytest.mark.requirement("server.tools")
async def test_a_tool_cannot_be_renamed_and_an_unknown_one_not_be_put(server: Server) -> None:
    body = body_of(http_tool("deals_api"))
    await server.post("/ai/tools", body, status=201)
    renamed = await server.client.put("/api/v1/ai/tools/deals_api", json={**body, "name": "other"})
    assert "cannot be renamed" in checked(renamed, 422)["detail"]
    checked(await server.client.put("/api/v1/ai/tools/other", json={**body, "name": "other"}), 404)


@pytest.mark.requirement("server.tools")
async def test_a_merge_patch_changes_what_it_names(server: Server) -> None:
    await server.post("/ai/tools", body_of(http_tool("deals_api", title="Deals")), status=201)
    patch = {
        "title": None,
        "retry": {"count": 2},
        "tags": ["crm"],
        "implementation": {"headers": {"Accept": "text/csv"}},
    }
    stored = checked(await server.client.patch("/api/v1/ai/tools/deals_api", json=patch), 200)
    definition = stored["definition"]
    assert (stored["revision"], definition["title"], definition["tags"]) == (2, None, ["crm"])
    assert definition["retry"] == {"count": 2, "backoff": "exponential", "base_s": 0.5, "max_s": 30.0}
    assert definition["implementation"]["headers"] == {"Accept": "text/csv"}
    wrong = await server.client.patch("/api/v1/ai/tools/deals_api", json={"timeout_s": -1, "nmae": "x"})
    problems = {found["path"] for found in checked(wrong, 422)["details"]["problems"]}
    assert problems == {"body.timeout_s", "body.nmae"}


@pytest.mark.requirement("server.tools")
async def test_a_removed_tool_is_gone(server: Server) -> None:
    checked(await server.client.delete("/api/v1/ai/tools/search"), 204)
    await server.get("/ai/tools/search", status=404)
    checked(await server.client.delete("/api/v1/ai/tools/search"), 404)


@pytest.mark.requirement("server.tools")
async def test_one_version_is_blocked_and_brought_back(server: Server) -> None:
    body = body_of(http_tool("deals_api"))
    await server.post("/ai/tools", body, status=201)
    checked(await server.client.put("/api/v1/ai/tools/deals_api", json={**body, "version": "2.0.0"}), 200)
    blocked = await server.post("/ai/tools/deals_api/status", {"status": "blocked", "version": "2.0.0"})
    assert (blocked["status"], blocked["definition"]["version"]) == ("blocked", "2.0.0")
    assert (await server.get("/ai/tools/deals_api"))["definition"]["version"] == "1.0.0"
    await server.post("/ai/tools/deals_api/status", {"status": "active", "version": "2.0.0"})
    assert (await server.get("/ai/tools/deals_api"))["definition"]["version"] == "2.0.0"
    await server.post("/ai/tools/deals_api/status", {"status": "active", "version": "3.0.0"}, status=404)


@pytest.mark.requirement("server.validate")
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, None),
        ({"input_schema": {"type": "array"}}, "arguments are an object"),
        ({"version": "one"}, "one"),
        (agentic(model="scripted:free", max_tokens=10), "max_tokens"),
        (agentic(model="gpt-4o"), "provider:model"),
    ],
)
async def test_a_definition_is_checked_and_not_stored(server: Server, changes: Json, problem: str | None) -> None:
    report = await server.post("/ai/tools/validate", {**body_of(http_tool("draft")), **changes})
    assert report["valid"] is (problem is None)
    if problem is not None:
        assert problem in report["problems"][0]["problem"]
    await server.get("/ai/tools/draft", status=404)
    await server.get("/ai/tools/helper", status=404)


@pytest.mark.requirement("server.no_code")
async def test_python_code_is_refused(server: Server) -> None:
    body = body_of(make_definition("shell"))
    assert "crib.add" in (await server.post("/ai/tools", body, status=422))["detail"]
    assert (await server.post("/ai/tools/validate", body))["valid"] is False
    changed = await server.client.patch("/api/v1/ai/tools/search", json={"description": "other"})
    assert checked(changed, 422)["code"] == "invalid_definition"


@pytest.mark.requirement("server.no_reach")
@pytest.mark.parametrize(
    "llm",
    [
        {"model": "openai:gpt-4o", "api_key_env": "AWS_SECRET_ACCESS_KEY"},
        {"model": "openai:gpt-4o", "base_url": "https://collector.example.com/v1"},
    ],
)
async def test_a_clients_model_gets_no_variable_that_is_not_released(server: Server, llm: dict[str, str]) -> None:
    refused = await server.post("/ai/tools", agentic(**llm), status=422)
    assert "not released" in refused["detail"]


@pytest.mark.requirement("server.no_reach")
async def test_released_variables_and_the_catalogues_own_are_allowed(server: Server) -> None:
    own = agentic(model="openai:gpt-4o")
    released = agentic(
        model="openai:gpt-4o", base_url="https://proxy.example.com/v1", api_key_env="TOOLCRIB_SECRET_PROXY"
    )
    for definition in (own, released):
        report = await server.post("/ai/tools/validate", definition)
        assert report == {"valid": True, "problems": [], "warnings": [], "error": None}


@pytest.mark.requirement("server.no_reach")
async def test_a_clients_tool_gets_no_variable_that_is_not_released() -> None:
    environment = {"HOME_SECRET": "swordfish", "TOOLCRIB_SECRET_CRM": "open"}
    async with serving(environment=environment) as server:
        secret = SecretReference(name="token", reference="${env:HOME_SECRET}")
        await server.post("/ai/tools", body_of(http_tool("thief", secrets=(secret,))), status=201)
        envelope = await server.post("/ai/tools/thief/execute")
    assert envelope["error"]["details"]["reason"] == "missing_secret"
    assert "swordfish" not in str(envelope)


@pytest.mark.requirement("server.grants")
async def test_changing_tools_needs_a_grant_that_is_named(server: Server) -> None:
    body = body_of(http_tool("deals_api"))
    await server.post("/ai/tools", body, status=201)
    path = "/api/v1/ai/tools/deals_api"
    async with server.client_of("reader") as reader:
        answers = [
            await reader.post("/api/v1/ai/tools", json=body_of(http_tool("mine"))),
            await reader.put(path, json=body),
            await reader.patch(path, json={"title": "x"}),
            await reader.delete(path),
            await reader.post(f"{path}/status", json={"status": "blocked"}),
            await reader.post("/api/v1/ai/tools/import", json={"name": "pages", "document": DOCUMENT}),
        ]
    messages = [checked(answer, 403)["detail"] for answer in answers]
    assert "'ai://tools/utility/mine/write'" in messages[0]
    assert all("'ai://tools/utility/deals_api/write'" in message for message in messages[1:5])
    assert "'ai://providers/pages/write'" in messages[5]
    assert (await server.get("/ai/tools/deals_api"))["status"] == "active"


@pytest.mark.requirement("server.import")
@pytest.mark.parametrize("form", ["object", "text"])
async def test_a_document_becomes_tools_of_the_callers_realm(server: Server, form: str) -> None:
    text = 'openapi: 3.1.0\ninfo: {title: Pages, version: "1"}\nservers: [{url: "https://api.example.com"}]\n'
    text += 'paths: {/pages: {get: {operationId: list_pages, responses: {"200": {description: ok}}}}}'
    document = DOCUMENT if form == "object" else text
    async with server.client_of("stranger") as stranger:
        body = {"name": "pages", "document": document, "overrides": {"list_pages": {"timeout_s": 5}}}
        report = checked(await stranger.post("/api/v1/ai/tools/import", json=body), 201)
        stored = checked(await stranger.get("/api/v1/ai/tools/list_pages"), 200)
    assert (report["provider"]["name"], report["tools"]) == ("pages", ["list_pages@1.0.0"])
    assert report["report"]["operations"][0]["tool"] == "list_pages"
    assert (stored["realm"], stored["definition"]["timeout_s"]) == ("elsewhere", 5.0)
    await server.get("/ai/tools/list_pages", status=404)


@pytest.mark.requirement("server.import", "providers.import_bounds")
async def test_the_bounds_of_an_import_are_given_over_rest(server: Server) -> None:
    body = {"name": "pages", "document": DOCUMENT, "bounds": {"max_values": 2}}
    refused = await server.post("/ai/tools/import", body, status=422)
    assert "more than 2 values" in refused["detail"]
    await server.post("/ai/tools/import", body | {"bounds": {"max_values": 5_000_000}}, status=201)


@pytest.mark.requirement("server.import", "server.no_reach")
async def test_a_document_is_fetched_under_the_egress_policy(server: Server) -> None:
    body = {"name": "inner", "url": "http://127.0.0.1:8000/openapi.json"}
    refused = await server.post("/ai/tools/import", body, status=403)
    assert refused["code"] == "egress_denied"
    address_as_text = {"name": "inner", "document": "http://127.0.0.1:8000/openapi.json"}
    await server.post("/ai/tools/import", address_as_text, status=422)


@pytest.mark.requirement("server.import")
@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ({}, "give one of them"),
        ({"document": DOCUMENT, "url": "https://api.example.com/openapi.json"}, "give one of them"),
        ({"url": "file:///etc/passwd"}, "give an absolute one"),
        ({"document": {"swagger": "1.2"}}, "OpenAPI"),
    ],
)
async def test_an_import_that_cannot_be_read_says_what_to_give(server: Server, source: Json, advice: str) -> None:
    refused = await server.post("/ai/tools/import", {"name": "pages", **source}, status=422)
    assert advice in refused["detail"]
