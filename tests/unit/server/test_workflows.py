"""Workflows over REST: checked, drafted, published, read in every form, taken back and taken out."""

import json
from typing import Any

import pytest
import yaml

from tests.unit.server.client import PRINCIPALS, Server, checked
from toolcrib.contracts import JsonObject, Principal

FIND: JsonObject = {
    "name": "find",
    "description": "Finds the deals of a company.",
    "input_schema": {"type": "object", "properties": {"company": {"type": "string"}}, "required": ["company"]},
    "steps": [{"name": "look", "tool": "search", "input": {"company": "${input.company}"}}],
    "output": "${look}",
}
PATH = "/api/v1/ai/workflows/find"
DRAFT = "/api/v1/ai/drafts/find"


async def published(server: Server, **fields: Any) -> JsonObject:
    """The workflow, published."""
    answer = await server.client.post(f"{PATH}/publish", json={"definition": {**FIND, **fields}})
    return checked(answer, 200)["workflow"]


def as_principal(monkeypatch: pytest.MonkeyPatch, name: str, *grants: str, **fields: Any) -> dict[str, str]:
    """Headers of somebody with some grants."""
    monkeypatch.setitem(PRINCIPALS, name, Principal(id=name, grants=grants, **fields))
    return {"Authorization": f"Bearer {name}"}


@pytest.mark.requirement("workflow_server.definitions")
async def test_a_workflow_is_published_read_reverted_and_removed(server: Server):
    made = await server.client.post(f"{PATH}/publish", json={"definition": FIND})
    assert (made.status_code, made.headers["ETag"]) == (200, '"1"')
    await published(server, title="Find deals")

    read = await server.client.get(PATH)
    assert (read.json()["title"], read.json()["revision"], read.headers["ETag"]) == ("Find deals", 2, '"2"')
    assert (await server.get("/ai/workflows/find", {"version": "1.0.0"}))["revision"] == 2
    await server.get("/ai/workflows/find", {"version": "2.0.0"}, status=404)
    stale = await server.client.post(f"{PATH}/publish", json={"definition": FIND}, headers={"If-Match": '"1"'})
    checked(stale, 409)
    back = await server.client.post(f"{PATH}/revert", json={"revision": 1})
    assert (checked(back, 200)["workflow"]["title"], back.headers["ETag"]) == (None, '"3"')
    revisions = await server.get("/ai/workflows/find/revisions")
    assert [(item["revision"], item["title"]) for item in revisions["items"]] == [
        (1, None),
        (2, "Find deals"),
        (3, None),
    ]
    assert (await server.get("/ai/workflows/find/impact"))["dependents"] == []
    assert checked(await server.client.delete(PATH), 200)["message"].startswith("find is gone")
    checked(await server.client.get(PATH), 404)


@pytest.mark.requirement("workflow_server.definitions")
async def test_workflows_are_listed_by_what_they_are_and_other_tools_are_none(server: Server):
    await published(server)
    answer = await server.client.post(
        "/api/v1/ai/workflows/audit/publish", json={"definition": {**FIND, "name": "audit", "tags": ["daily"]}}
    )
    checked(answer, 200)

    page = await server.get("/ai/workflows", {"limit": 1})
    assert ([item["name"] for item in page["items"]], page["next"]) == (["audit"], "audit")
    for query in ({"tag": "daily"}, {"q": "audit"}, {"category": "workflow", "tag": "daily"}):
        assert [item["name"] for item in (await server.get("/ai/workflows", query))["items"]] == ["audit"]
    assert (await server.get("/ai/workflows", {"category": "crm"}))["items"] == []
    tools = (await server.get("/ai/tools", {"kind": "workflow"}))["items"]
    assert [tool["definition"]["name"] for tool in tools] == ["audit", "find"]
    short = await server.get("/ai-tools", {"type": "composite"})
    assert [(item["name"], item["kind"]) for item in short["items"]] == [("audit", "workflow"), ("find", "workflow")]
    await server.get("/ai/workflows/search", status=404)


@pytest.mark.requirement("workflow_server.definitions")
@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
async def test_a_workflow_is_exported_as_the_document_that_makes_it(server: Server, form: str, read: Any):
    first = await published(server)
    document = read((await server.client.get(f"{PATH}/export", params={"format": form})).text)

    assert document == FIND
    assert (await published(server, **document))["content_hash"] == first["content_hash"]


@pytest.mark.requirement("workflow_server.problems")
async def test_everything_that_is_wrong_is_told_with_its_place(server: Server):
    good = await server.post("/ai/workflows/validate", FIND)
    assert (good["valid"], [node["name"] for node in good["graph"]["nodes"]]) == (True, ["look"])
    wrong = {**FIND, "steps": [{"name": "look", "tool": "serach"}, {"name": "look", "tool": "search"}]}
    found = await server.post("/ai/workflows/validate", wrong)
    assert not found["valid"]
    assert all(problem["message"] for problem in found["problems"])

    refused = checked(await server.client.post(f"{PATH}/publish", json={"definition": wrong}), 422)
    assert refused["details"]["problems"]


@pytest.mark.requirement("workflow_server.problems")
async def test_what_has_not_the_shape_of_a_definition_is_told_as_well(server: Server):
    shapeless = {**FIND, "steps": [{"name": "look", "tol": "search"}], "colour": "red"}
    found = await server.post("/ai/workflows/validate", shapeless)
    assert not found["valid"]
    assert {problem["path"] for problem in found["problems"]} >= {"/steps/0/tol", "/colour"}

    for refused in (
        await server.client.put(DRAFT, json={"definition": shapeless}),
        await server.client.post(f"{PATH}/publish", json={"definition": shapeless}),
    ):
        problems = checked(refused, 422)["details"]["problems"]
        assert {problem["path"] for problem in problems} >= {"/steps/0/tol", "/colour"}
    await server.post("/ai/workflows/find/publish", {"definition": {}}, status=422)


@pytest.mark.requirement("workflow_server.problems")
async def test_a_definition_is_not_sent_to_the_path_of_another(server: Server):
    for path, body in ((DRAFT, {"definition": {**FIND, "name": "other"}}),):
        assert "send it to its own name" in checked(await server.client.put(path, json=body), 422)["detail"]
    await server.post("/ai/workflows/other/publish", {"definition": FIND}, status=422)


@pytest.mark.requirement("workflow_server.drafts")
async def test_a_draft_is_kept_beside_what_is_published_until_it_is_published_itself(server: Server):
    await published(server)
    kept = await server.client.put(DRAFT, json={"definition": {**FIND, "title": "New"}, "note": "look at it"})
    assert (checked(kept, 200)["note"], kept.headers["ETag"]) == ("look at it", '"1"')
    assert (await server.get("/ai/workflows/find"))["title"] is None
    assert [draft["definition"]["title"] for draft in (await server.get("/ai/drafts"))["items"]] == ["New"]
    assert (await server.get("/ai/drafts/find"))["problems"] == []
    lost = await server.client.put(DRAFT, json={"definition": FIND}, headers={"If-Match": '"7"'})
    checked(lost, 409)

    answer = checked(await server.client.post(f"{PATH}/publish"), 200)
    assert (answer["workflow"]["title"], answer["impact"]["dependents"]) == ("New", [])
    await server.get("/ai/drafts/find", status=404)
    assert (await server.client.post(f"{PATH}/publish")).status_code == 404


@pytest.mark.requirement("workflow_server.drafts")
async def test_a_draft_is_discarded(server: Server):
    checked(await server.client.put(DRAFT, json={"definition": FIND}), 200)

    assert (await server.client.delete(DRAFT)).status_code == 204
    checked(await server.client.delete(DRAFT), 404)


@pytest.mark.requirement("workflow_server.grants", "workflow_server.drafts")
async def test_who_drafts_does_not_publish_by_any_door(server: Server, monkeypatch: pytest.MonkeyPatch):
    writer = as_principal(monkeypatch, "writer", "ai://workflows/*/write", "ai://tools/*")
    checked(await server.client.put(DRAFT, json={"definition": FIND}, headers=writer), 200)
    assert (await server.client.get(DRAFT, headers=writer)).status_code == 200
    doors = [
        server.client.post(f"{PATH}/publish", headers=writer),
        server.client.post(f"{PATH}/publish", json={"definition": FIND}, headers=writer),
        server.client.post("/api/v1/ai/tools", json=await _as_tool(server), headers=writer),
    ]
    assert [(await door).status_code for door in doors] == [403, 403, 403]

    await published(server)
    doors = [
        server.client.put("/api/v1/ai/tools/find", json=await _as_tool(server), headers=writer),
        server.client.patch("/api/v1/ai/tools/find", json={"title": "mine"}, headers=writer),
        server.client.post("/api/v1/ai/tools/find/status", json={"status": "blocked"}, headers=writer),
        server.client.post(f"{PATH}/revert", json={"revision": 1}, headers=writer),
        server.client.delete("/api/v1/ai/tools/find", headers=writer),
        server.client.delete(PATH, headers=writer),
    ]
    assert [(await door).status_code for door in doors] == [403] * len(doors)
    assert (await server.get("/ai/workflows/find"))["revision"] == 1


@pytest.mark.requirement("workflow_server.grants")
async def test_who_publishes_takes_no_tool_of_another_kind_away(server: Server, monkeypatch: pytest.MonkeyPatch):
    publisher = as_principal(monkeypatch, "publisher", "ai://workflows/*", "ai://tools/utility/*/execute")
    definition = {"name": "search", "steps": [{"name": "forged", "output": [{"name": "Evil"}]}]}
    refused = await server.client.post(
        "/api/v1/ai/workflows/search/publish", json={"definition": definition}, headers=publisher
    )

    assert "ai://tools/utility/search/write" in checked(refused, 403)["detail"]


@pytest.mark.requirement("workflow_server.grants")
async def test_a_service_publishes_only_with_a_grant_that_names_the_verb(
    server: Server, monkeypatch: pytest.MonkeyPatch
):
    broad = as_principal(monkeypatch, "broad", "ai://*", kind="service")
    named = as_principal(monkeypatch, "named", "ai://*", "ai://workflows/*/publish", kind="service")

    assert (await server.client.post(f"{PATH}/publish", json={"definition": FIND}, headers=broad)).status_code == 403
    assert (await server.client.post(f"{PATH}/publish", json={"definition": FIND}, headers=named)).status_code == 200


@pytest.mark.requirement("workflow_server.grants")
async def test_who_may_not_read_is_told_nothing_of_drafts_and_workflows(
    server: Server, monkeypatch: pytest.MonkeyPatch
):
    await published(server)
    checked(await server.client.put(DRAFT, json={"definition": FIND}), 200)
    runner = as_principal(monkeypatch, "runner", "ai://workflows/find/execute")
    stranger = as_principal(monkeypatch, "elsewhere", "ai://*", realm="elsewhere")

    for headers, drafts, seen in ((runner, 403, 200), (stranger, 404, 404)):
        assert (await server.client.get(DRAFT, headers=headers)).status_code == drafts
        assert (await server.client.get(PATH, headers=headers)).status_code == seen
        listed = checked(await server.client.get("/api/v1/ai/drafts", headers=headers), 200)
        assert listed == {"items": [], "next": None}


@pytest.mark.requirement("workflow_server.grants")
async def test_a_check_tells_nothing_of_tools_that_the_caller_may_not_see(
    server: Server, monkeypatch: pytest.MonkeyPatch
):
    checked(await server.client.put("/api/v1/ai/steps/finder", json={"name": "finder", "tool": "search"}), 200)
    writer = as_principal(monkeypatch, "writer", "ai://workflows/*")
    for call in ({"tool": "search"}, {"handler_ref": "finder"}):
        probe = {"name": "find", "steps": [{"name": "look", "input": {"wrong": 1}, **call}]}
        answers = [
            await server.client.post("/api/v1/ai/workflows/validate", json=probe, headers=writer),
            await server.client.put(DRAFT, json={"definition": probe}, headers=writer),
            await server.client.post(f"{PATH}/publish", json={"definition": probe}, headers=writer),
        ]
        assert [answer.status_code for answer in answers] == [403, 403, 403]
        assert not any("company" in answer.text for answer in answers)
    reader = as_principal(monkeypatch, "reader", "ai://workflows/*/read", "ai://tools/*")
    asked = await server.client.post("/api/v1/ai/workflows/validate", json=FIND, headers=reader)
    assert "ai://workflows/find/write" in checked(asked, 403)["detail"]


@pytest.mark.requirement("workflow_server.grants")
async def test_a_secret_is_named_only_by_who_may_use_it(server: Server, monkeypatch: pytest.MonkeyPatch):
    secret = {"name": "key", "reference": "${secret:CRM_KEY}"}
    definition = {**FIND, "secrets": [secret]}
    writer = as_principal(monkeypatch, "writer", "ai://workflows/*", "ai://tools/*")

    drafted = await server.client.put(DRAFT, json={"definition": definition}, headers=writer)
    direct = await server.client.post(f"{PATH}/publish", json={"definition": definition}, headers=writer)
    assert [drafted.status_code, direct.status_code] == [403, 403], (drafted.text, direct.text)
    checked(await server.client.put(DRAFT, json={"definition": definition}), 200)
    assert (await server.client.post(f"{PATH}/publish", headers=writer)).status_code == 403


async def _as_tool(server: Server) -> JsonObject:
    """The definition as the tool that it would be."""
    from toolcrib.contracts.workflows import WorkflowDefinition

    return WorkflowDefinition.model_validate(FIND).tool().model_dump(mode="json")
