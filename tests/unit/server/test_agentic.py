"""Agentic tools over HTTP: definitions, prompts, executions, exports (000, section 4.9)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.client import OWNER, PRINCIPALS, Server, body_of, checked, http_tool, serving
from toolcrib.contracts import JsonObject, Principal
from toolcrib.interfaces.server import create_app

BODY: JsonObject = {
    "name": "finder",
    "description": "Find deals.",
    "mode": "deterministic",
    "llm": {"model": "scripted:plan"},
    "steps": [{"id": "search", "tool": "search", "purpose": "Find the deals"}],
}
TASK = {"task": "find Acme's deals"}
PATH = "/api/v1/agentic-tools"


async def made(server: Server, **changes: Any) -> JsonObject:
    return await server.post("/agentic-tools", {**BODY, **changes}, status=201)


@pytest.mark.requirement("server.agentic_tools")
async def test_a_tool_is_created_with_the_default_prompt_and_read_back(server: Server) -> None:
    created = await made(server)
    read = await server.get("/agentic-tools/finder")

    assert read == created
    assert (created["id"], created["revision"], created["status"], created["mode"]) == (
        "finder",
        1,
        "active",
        "deterministic",
    )
    assert "1. search: Find the deals" in created["system_prompt"]
    assert created["side_effects"] == "reads"
    assert created["input_schema"]["required"] == ["task"]
    await server.post("/agentic-tools", BODY, status=409)


@pytest.mark.requirement("server.agentic_tools")
async def test_tools_are_listed_by_mode_status_text_and_page(server: Server) -> None:
    await made(server)
    await made(server, name="zoo", status="draft", description="Animals.")

    async def names(**query: str | int) -> list[str]:
        return [item["name"] for item in (await server.get("/agentic-tools", query))["items"]]

    assert await names() == ["assistant", "deals", "finder", "zoo"]
    assert await names(mode="agentic") == ["assistant"]
    assert await names(status="draft") == ["zoo"]
    assert await names(q="ANIM") == ["zoo"]
    assert await names(after="finder") == ["zoo"]
    assert (await server.get("/agentic-tools", {"limit": 2}))["next"] == "deals"


@pytest.mark.requirement("server.agentic_tools")
async def test_all_tools_are_listed_by_type(server: Server) -> None:
    async def names(**query: str | int) -> list[str]:
        return [item["name"] for item in (await server.get("/ai-tools", query))["items"]]

    assert await names() == ["assistant", "deals", "pick", "search", "update"]
    assert await names(type="agentic") == ["assistant", "deals"]
    assert await names(type="simple") == ["pick", "search", "update"]
    assert await names(type="composite") == []
    page = await server.get("/ai-tools", {"limit": 1})
    assert page["next"] == "assistant"
    assert page["items"][0]["type"] == "agentic"
    assert page["items"][0]["status"] == "active"


@pytest.mark.requirement("server.agentic_tools", "server.optimistic")
async def test_a_change_is_a_new_revision_unless_another_came_first(server: Server) -> None:
    await made(server)
    etag = (await server.client.get(f"{PATH}/finder")).headers["ETag"]
    first = await server.client.patch(f"{PATH}/finder", json={"title": "Finder"}, headers={"If-Match": etag})
    late = await server.client.patch(f"{PATH}/finder", json={"title": "Seeker"}, headers={"If-Match": etag})
    wrong = await server.client.patch(f"{PATH}/finder", json={"title": "Seeker"}, headers={"If-Match": "newest"})
    blind = await server.client.patch(f"{PATH}/finder", json={"status": "disabled"}, headers={"If-Match": "*"})

    assert (checked(first, 200)["revision"], first.headers["ETag"]) == (2, '"2"')
    assert "read it again" in checked(late, 409)["detail"]
    assert "If-Match" in checked(wrong, 422)["detail"]
    assert (checked(blind, 200)["title"], blind.json()["status"]) == ("Finder", "disabled")


@pytest.mark.requirement("server.agentic_tools")
async def test_a_prompt_that_is_taken_away_becomes_the_default_one(server: Server) -> None:
    created = await made(server, system_prompt="Find: {{user_task}}")
    changed = checked(await server.client.patch(f"{PATH}/finder", json={"system_prompt": None}), 200)

    assert created["system_prompt"] == "Find: {{user_task}}"
    assert "# Operations, in this order" in changed["system_prompt"]


@pytest.mark.requirement("server.agentic_tools")
@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ({"name": "other"}, "cannot be renamed"),
        ({"mode": "magic"}, "mode"),
        ({"system_prompt": "{{user_tsk}}"}, "user_task"),
        ({"nonsense": 1}, "nonsense"),
        ({"mode": "agentic"}, "mode 'agentic' works with tools, and there are only steps"),
        ({"steps": [], "tools": [{"tool": "search"}]}, "works with steps, and there are only tools"),
    ],
    ids=str,
)
async def test_a_change_that_is_not_valid_says_what_is_wrong(server: Server, patch: JsonObject, said: str) -> None:
    await made(server)

    assert said in checked(await server.client.patch(f"{PATH}/finder", json=patch), 422)["detail"]


@pytest.mark.requirement("server.agentic_tools")
async def test_a_name_that_is_none_is_refused_with_its_form(server: Server) -> None:
    refused = await server.post("/agentic-tools", {**BODY, "name": "x y"}, status=422)

    assert "body.name: String should match pattern" in refused["detail"]


@pytest.mark.requirement("server.agentic_tools")
async def test_a_tool_is_removed_and_its_runs_go_on(server: Server) -> None:
    await made(server, mode="agentic", tools=[{"tool": "update"}], steps=[], llm={"model": "scripted:free"})
    gone = checked(await server.client.delete(f"{PATH}/finder"), 200)

    assert gone == {
        "name": "finder",
        "removed": True,
        "message": "finder is gone from the catalogue and cannot be started any more",
        "under_way": [],
    }
    await server.get("/agentic-tools/finder", status=404)
    assert (await made(server, status="draft"))["revision"] == 2


@pytest.mark.requirement("server.agentic_tools")
async def test_runs_under_way_are_named_when_their_tool_is_removed() -> None:
    async with serving(driven=False) as server:
        accepted = await server.post(
            "/agentic-tools/invoke", {"tool": "deals", "params": TASK, "wait": False}, status=202
        )
        gone = checked(await server.client.delete(f"{PATH}/deals"), 200)

    assert gone["under_way"] == [{"run_id": accepted["meta"]["run_id"], "status": "queued"}]
    assert "1 active runs continue" in gone["message"]


@pytest.mark.requirement("server.agentic_tools")
async def test_a_tool_of_another_kind_is_none_here(server: Server) -> None:
    answer = await server.get("/agentic-tools/search", status=404)

    assert "GET /api/v1/ai/tools/search" in answer["detail"]


@pytest.mark.requirement("server.prompts")
async def test_a_prompt_is_tested_with_changes_that_are_not_saved(server: Server) -> None:
    await made(server)
    body = {"params": TASK, "system_prompt": "Look for it: {{user_task}}", "llm": {"model": "scripted:plan"}}
    tested = await server.post("/agentic-tools/finder/test-prompt", body)
    broken = await server.post("/agentic-tools/finder/test-prompt", {"params": TASK, "system_prompt": "{{user_tsk}}"})

    assert tested["system_prompt"] == "Look for it: find Acme's deals"
    assert [call["tool"] for call in tested["calls"]] == ["search"]
    assert tested["problems"] == []
    assert tested["usage"]["input_tokens"] > 0
    assert "user_task" in broken["problems"][0]
    assert (await server.get("/agentic-tools/finder"))["revision"] == 1
    assert (await server.get("/executions"))["items"] == []


@pytest.mark.requirement("server.bodies")
@pytest.mark.parametrize("what", ["prompt", "description"])
async def test_a_body_that_may_be_left_out_needs_no_content_type_either(server: Server, what: str) -> None:
    await made(server)
    proposal = checked(await server.client.post(f"{PATH}/finder/regenerate-{what}"), 200)

    assert proposal["source"] == "generator"


@pytest.mark.requirement("server.prompts")
async def test_a_prompt_is_regenerated_accepted_compared_and_rolled_back(server: Server) -> None:
    await made(server, system_prompt="Find: {{user_task}}")
    proposal = await server.post("/agentic-tools/finder/regenerate-prompt")
    assert (await server.get("/agentic-tools/finder"))["revision"] == 1

    accepted = await server.post("/agentic-tools/finder/accept-proposal", proposal)
    assert accepted["system_prompt"] == proposal["proposed"]
    await server.post("/agentic-tools/deals/accept-proposal", proposal, status=422)
    await server.post("/agentic-tools/finder/accept-proposal", proposal, status=409)

    history = await server.get("/agentic-tools/finder/revisions")
    compared = await server.get("/agentic-tools/finder/revisions/compare", {"older": 1, "newer": 2})
    assert [item["revision"] for item in history["items"]] == [1, 2]
    assert "-Find: {{user_task}}" in compared["diff"]

    back = await server.post("/agentic-tools/finder/roll-back", {"revision": 1})
    assert (back["revision"], back["system_prompt"]) == (3, "Find: {{user_task}}")


@pytest.mark.requirement("server.prompts")
async def test_a_description_for_parents_is_proposed(server: Server) -> None:
    proposal = await server.post("/agentic-tools/deals/regenerate-description")

    assert proposal["text"] == "long_description"
    assert proposal["proposed"].startswith("Use this tool")


@pytest.mark.requirement("server.prompts")
async def test_drift_is_reported(server: Server) -> None:
    assert (await server.get("/agentic-tools/deals/drift"))["drifted"] is False


@pytest.mark.requirement("server.tool_executions")
async def test_executions_are_listed_and_read_with_all_that_happened(server: Server) -> None:
    ran = await server.post("/agentic-tools/invoke", {"tool": "deals", "params": TASK})
    await server.post("/agentic-tools/invoke", {"tool": "assistant", "params": TASK})
    listed = await server.get("/agentic-tools/deals/executions")
    detail = await server.get(f"/agentic-tools/deals/executions/{ran['meta']['execution_id']}")

    assert [item["execution_id"] for item in listed["items"]] == [ran["meta"]["run_id"]]
    assert listed["next"] is None
    assert detail["parent_request"] == TASK
    assert detail["execution_plan"]["search"] == {"input": {"company": "Acme"}}
    assert (detail["status"], detail["result"], detail["error"]) == ("completed", {"summary": "one"}, None)
    assert detail["total_cost"] == 0
    assert detail["total_tokens"] == sum(call["input_tokens"] + call["output_tokens"] for call in detail["llm_calls"])
    assert detail["duration_ms"] >= 0
    assert [(call["call_sequence"], call["purpose"]) for call in detail["llm_calls"]] == [
        (1, "planning"),
        (2, "formatting"),
    ]
    assert "find Acme's deals" in detail["llm_calls"][0]["prompt"]
    assert detail["llm_calls"][0]["reasoning"] == "look first"
    assert detail["llm_calls"][1]["response"] == '{"summary": "one"}'
    assert [(call["action"], call["parameters"], call["response"]) for call in detail["tool_calls"]] == [
        ("search", {"company": "Acme"}, [{"name": "Acme"}])
    ]
    assert len(detail["cost_breakdown"]["llm_calls"]) == 2
    await server.get(f"/agentic-tools/assistant/executions/{ran['meta']['run_id']}", status=404)


@pytest.mark.requirement("server.tool_executions")
async def test_a_tool_that_never_was_has_no_list_of_executions(server: Server) -> None:
    assert "no tool 'deels'" in (await server.get("/agentic-tools/deels/executions", status=404))["detail"]
    assert (await server.get("/agentic-tools/deals/executions"))["items"] == []


@pytest.mark.requirement("server.tool_executions")
async def test_executions_come_in_pages_and_by_status() -> None:
    async with serving(driven=False) as server:
        for _ in range(3):
            await server.post("/agentic-tools/invoke", {"tool": "deals", "params": TASK, "wait": False}, status=202)
        first = await server.get("/agentic-tools/deals/executions", {"limit": 2})
        rest = await server.get("/agentic-tools/deals/executions", {"limit": 2, "before": first["next"]})
        ended = await server.get("/agentic-tools/deals/executions", {"status": "completed"})
        queued = await server.get(f"/agentic-tools/deals/executions/{first['next']}")

    assert (len(first["items"]), len(rest["items"]), ended["items"]) == (2, 1, [])
    assert (queued["duration_ms"], queued["completed_at"], queued["execution_plan"]) == (None, None, None)


@pytest.mark.requirement("server.export")
@pytest.mark.parametrize(
    ("form", "field"),
    [
        ("universal", "parameters"),
        ("langchain", "args_schema"),
        ("mcp", "inputSchema"),
        ("anthropic", "input_schema"),
        ("openai", "function"),
    ],
    ids=str,
)
async def test_a_tool_is_exported(server: Server, form: str, field: str) -> None:
    exported = await server.get(f"/agentic-tools/deals/tools/{form}")

    assert field in exported
    assert field in await server.get(f"/ai-tools/search/tools/{form}")


@pytest.mark.requirement("server.export")
async def test_an_unknown_form_is_refused(server: Server) -> None:
    await server.get("/agentic-tools/deals/tools/soap", status=422)


@pytest.mark.requirement("server.local_models")
async def test_a_model_on_the_server_s_own_machine_needs_the_operator(server: Server) -> None:
    local = {**BODY, "llm": {"model": "ollama:llama3.2"}}
    named = {**BODY, "llm": {"model": "openai:gpt-4o", "base_url": "http://127.0.0.1:1234/v1"}}
    hosts = {**BODY, "llm": {"model": "openai:gpt-4o", "base_url": "http://localhost:1234/v1"}}
    for body in (local, named, hosts):
        answer = await server.post("/agentic-tools", body, status=403)
        assert "only if the operator allows local models" in answer["detail"]
    await server.post("/agentic-tools/deals/test-prompt", {"params": TASK, "llm": local["llm"]}, status=403)

    server.app.state.allow_local_models = create_app(
        server.crib, lambda _: _owner(), allow_local_models=True
    ).state.allow_local_models
    await server.post("/agentic-tools", local, status=201)


async def _owner() -> Principal:
    return OWNER


@pytest.mark.requirement("server.scopes")
async def test_a_caller_sees_and_does_what_its_scopes_say(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = await server.post("/agentic-tools/invoke", {"tool": "deals", "params": TASK})
    run = f"/api/v1/executions/{ran['meta']['run_id']}"
    monkeypatch.setitem(PRINCIPALS, "viewer", Principal(id="viewer", grants=("ai://tools/agentic/*/read",)))
    monkeypatch.setitem(PRINCIPALS, "auditor", Principal(id="auditor", grants=("ai://runs/deals/read",)))

    async with server.client_of("viewer") as viewer:
        listed = checked(await viewer.get(PATH), 200)["items"]
        everything = checked(await viewer.get("/api/v1/ai-tools"), 200)["items"]
        tools = checked(await viewer.get("/api/v1/ai/tools"), 200)["items"]
        denied = [
            await viewer.get("/api/v1/ai/tools/search"),
            await viewer.get("/api/v1/ai-tools/search/tools/mcp"),
            await viewer.patch(f"{PATH}/deals", json={"title": "x"}),
            await viewer.delete(f"{PATH}/deals"),
            await viewer.post(f"{PATH}/deals/test-prompt", json={"params": TASK}),
            await viewer.post(f"{PATH}/deals/regenerate-prompt", json={}),
            await viewer.get(run),
            await viewer.get(f"{run}/events"),
            await viewer.get(f"{run}/events/stream"),
            await viewer.post(f"{run}/resume"),
            await viewer.get(f"{PATH}/deals/executions/{ran['meta']['run_id']}"),
        ]
        assert checked(await viewer.get("/api/v1/executions"), 200)["items"] == []
        assert checked(await viewer.get(f"{PATH}/deals/executions"), 200)["items"] == []
    async with server.client_of("auditor") as auditor:
        assert len(checked(await auditor.get("/api/v1/executions"), 200)["items"]) == 1
        checked(await auditor.get(run), 200)
        checked(await auditor.get(f"{PATH}/deals/executions/{ran['meta']['run_id']}"), 200)
        refused = checked(await auditor.post(f"{run}/resume"), 403)

    assert [item["name"] for item in listed] == [item["name"] for item in everything] == ["assistant", "deals"]
    assert [item["definition"]["name"] for item in tools] == ["assistant", "deals"]
    assert [answer.status_code for answer in denied] == [403] * len(denied)
    assert "ai://runs/deals/execute" in refused["detail"]


@pytest.mark.requirement("server.newest")
async def test_what_another_process_has_saved_is_listed(server: Server) -> None:
    from toolcrib import Crib

    async with Crib(server.crib.store) as other:
        await other.save(http_tool("theirs"))
        assert "theirs" in [item["name"] for item in (await server.get("/ai-tools"))["items"]]
        assert (await server.get("/ai/tools/theirs"))["definition"]["name"] == "theirs"


@pytest.mark.requirement("server.newest")
async def test_a_tool_that_another_process_has_blocked_is_not_run_any_more(server: Server) -> None:
    from toolcrib import Crib

    call = {"params": {"company": "Acme"}}
    assert (await server.post("/ai/tools/search/invoke", call))["success"]
    async with Crib(server.crib.store) as other:
        await other.registry.set_status("default", "search", "blocked", message="It leaks.")

    assert not (await server.post("/ai/tools/search/invoke", call))["success"]
    assert (await server.post("/ai/tools/search/execute", call))["status"] == "denied"
    assert not (await server.post("/ai/tools/search/validate", call))["valid"]


@pytest.mark.requirement("server.optimistic")
@pytest.mark.parametrize("path", ["/api/v1/agentic-tools/finder", "/api/v1/ai/tools/finder"])
async def test_of_two_changes_at_once_none_undoes_the_other(tmp_path: Path, path: str) -> None:
    async with serving(f"sqlite:///{tmp_path / 'crib.db'}", driven=False) as server:
        await made(server)
        title, tags = await asyncio.gather(
            server.client.patch(path, json={"title": "Finder"}), server.client.patch(path, json={"tags": ["crm"]})
        )
        stored = await server.get("/agentic-tools/finder")

    assert sorted([title.status_code, tags.status_code]) in ([200, 200], [200, 409])
    assert (stored["title"] == "Finder") == (title.status_code == 200)
    assert (stored["tags"] == ["crm"]) == (tags.status_code == 200)


@pytest.mark.requirement("server.optimistic")
async def test_other_tools_are_changed_under_the_same_check(server: Server) -> None:
    await server.post("/ai/tools", body_of(http_tool("pages")), status=201)
    etag = (await server.client.get("/api/v1/ai/tools/pages")).headers["ETag"]
    path, headers = "/api/v1/ai/tools/pages", {"If-Match": etag}

    checked(await server.client.patch(path, json={"title": "Pages"}, headers=headers), 200)
    checked(await server.client.patch(path, json={"title": "Sites"}, headers=headers), 409)
    checked(await server.client.put(path, json=body_of(http_tool("pages")), headers=headers), 409)


@pytest.mark.requirement("server.reference_data")
async def test_reference_data_of_a_provider_is_listed_and_synced(server: Server) -> None:
    from toolcrib.contracts import ProviderDefinition

    provider = ProviderDefinition.model_validate(
        {
            "name": "crm",
            "base_url": "https://crm.example",
            "reference_data": [
                {"name": "names", "tool": "search", "input": {"company": "Acme"}, "value": "name", "label": "name"}
            ],
        }
    )
    await server.crib.save_provider(provider)

    before = await server.get("/providers/crm/reference-data")
    after = await server.post("/providers/crm/reference-data/sync", {"names": ["names"]})
    assert (before["items"][0]["id"], after["items"][0]["size"], after["items"][0]["error"]) == (None, 1, None)
    await server.get("/providers/none/reference-data", status=404)
    history = await server.get("/providers/crm/reference-data/names/history")
    assert [reading["id"] for reading in history["items"]] == [after["items"][0]["id"]]
    await server.get("/providers/crm/reference-data/none/history", status=404)
    async with server.client_of("reader") as reader:
        checked(await reader.get("/api/v1/providers/crm/reference-data"), 403)
        checked(await reader.post("/api/v1/providers/crm/reference-data/sync", json={}), 403)
