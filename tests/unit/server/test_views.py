"""Views of tools and runs: one shape for a tool, times and realms, sign-ins and where secrets come from."""

from typing import Any

import pytest

from tests.twins import MASTER_KEYS
from tests.unit.server.client import PRINCIPALS, Server, body_of, checked, http_tool, serving
from toolcrib.contracts import JsonObject, Principal

CLERK = Principal(id="clerk", grants=("ai://tools/*/*/read", "ai://providers/*/read"))


@pytest.mark.requirement("views.one_shape", "server.tools")
async def test_reading_making_changing_and_listing_a_tool_answer_in_one_shape(server: Server):
    made = await server.post("/ai/tools", body_of(http_tool("deals_api")), 201)
    changed = await server.client.patch("/api/v1/ai/tools/deals_api", json={"description": "new"})
    read = await server.get("/ai/tools/deals_api")
    [listed] = (await server.get("/ai/tools", {"q": "deals_api"}))["items"]
    [found] = (await server.get("/ai/tools", {"search": "deals_api", "limit": 1}))["items"]
    blocked = await server.post("/ai/tools/deals_api/status", {"status": "blocked"})

    assert set(made) == set(read) == set(listed) == set(changed.json()) == set(blocked)
    assert read == listed == found == changed.json()
    assert "first_created_at" not in read
    assert (read["realm"], read["made_by"], read["access"]) == ("default", "owner", None)
    assert (made["created_at"], made["updated_at"]) == (read["created_at"], made["created_at"])
    assert read["updated_at"] > read["created_at"]


@pytest.mark.requirement("views.times", "server.agentic_tools")
async def test_definitions_say_when_they_were_made_and_changed_and_in_which_realm(server: Server):
    agent = {"name": "desk", "llm": {"model": "scripted:free"}, "tools": [{"tool": "search"}]}
    before = await server.post("/ai/agents", agent, 201)
    after = checked(await server.client.patch("/api/v1/ai/agents/desk", json={"title": "Desk"}), 200)
    short = {each["name"]: each for each in (await server.get("/ai-tools"))["items"]}

    assert before["created_at"] == before["updated_at"] == after["created_at"] < after["updated_at"]
    assert (after["realm"], short["desk"]["updated_at"]) == ("default", after["updated_at"])
    tool = checked(await server.client.patch("/api/v1/agentic-tools/assistant", json={"title": "A"}), 200)
    assert tool["created_at"] < tool["updated_at"]
    assert short["search"]["created_at"] == short["search"]["updated_at"]


@pytest.mark.requirement("views.times", "server.tool_executions")
async def test_an_execution_says_whose_it_is_and_when_it_changed_last(server: Server):
    done = await server.post("/ai/tools/assistant/invoke", {"params": {"task": "find"}})
    [listed] = (await server.get("/agentic-tools/assistant/executions"))["items"]

    assert (listed["execution_id"], listed["realm"], listed["made_by"]) == (done["meta"]["run_id"], "default", "owner")
    assert listed["updated_at"] == listed["completed_at"] >= listed["created_at"]


async def provided(server: Server, name: str, auth: JsonObject, **fields: Any) -> str:
    """A provider and a tool of it; returns the tool's name."""
    await server.post("/providers", {"name": name, "base_url": "https://crm.example", "auth": auth, **fields}, 201)
    definition = body_of(http_tool(f"{name}_deals", "/deals"))
    definition["implementation"]["provider"] = name
    await server.post("/ai/tools", definition, 201)
    return f"{name}_deals"


@pytest.mark.requirement("views.access")
async def test_a_tool_says_where_its_secret_comes_from_and_never_what_it_is():
    variables = {"TOOLCRIB_SECRET_A": "canary-a", "OTHER": "x", "TOOLCRIB_MASTER_KEYS": MASTER_KEYS}
    async with serving(environment=variables) as server:
        names = {
            name: await provided(server, name, {"kind": "bearer", "token": reference})
            for name, reference in (
                ("env", "${env:TOOLCRIB_SECRET_A}"),
                ("unset", "${env:TOOLCRIB_SECRET_B}"),
                ("closed", "${env:OTHER}"),
                ("vault", "${secret:CRM_TOKEN}"),
            )
        }
        missing = (await server.get(f"/ai/tools/{names['vault']}/access"))["secrets"]
        for scope in ("realm", "user"):
            body = {"value": f"canary-{scope}", "scope": scope}
            checked(await server.client.put("/api/v1/secrets/CRM_TOKEN", json=body), 200)
        answer = await server.client.get("/api/v1/ai/tools", params={"access": "true", "limit": 200})
        found = {each["definition"]["name"]: each["access"] for each in answer.json()["items"]}
        single = await server.get(f"/ai/tools/{names['env']}", {"access": "true"})

    assert "canary" not in answer.text
    sources = {name: [use["found_in"] for use in found[tool]["secrets"]] for name, tool in names.items()}
    assert sources == {"env": ["environment"], "unset": [None], "closed": [None], "vault": ["user"]}
    assert [found[tool]["ready"] for tool in names.values()] == [True, False, False, True]
    assert "not set" in found[names["unset"]]["secrets"][0]["problem"]
    assert "not released" in found[names["closed"]]["secrets"][0]["problem"]
    assert (missing[0]["found_in"], "secret set" in missing[0]["problem"]) == (None, True)
    assert (found["search"]["provider"], found["search"]["ready"]) == (None, True)
    assert single["access"] == found[names["env"]]


@pytest.mark.requirement("views.access")
async def test_a_tool_says_whether_its_provider_needs_a_sign_in_and_how_that_stands():
    async with serving(environment={"TOOLCRIB_MASTER_KEYS": MASTER_KEYS}) as server:
        login = {"authorization_url": "https://login.example/a", "token_url": "https://login.example/t"}
        auth = {"kind": "authorization_code", "client_id": "toolcrib", **login}
        name = await provided(server, "mail", auth)
        shared = await provided(server, "shared", {**auth, "shared": True})
        missing = await server.get(f"/ai/tools/{name}/access")
        kept = await server.get(f"/ai/tools/{shared}/access")

    assert (missing["sign_in"], missing["shared"], missing["ready"]) == ("missing", False, False)
    assert (kept["sign_in"], kept["shared"]) == ("missing", True)


@pytest.mark.requirement("views.access")
async def test_of_several_ways_to_authenticate_the_one_counts_that_calls_take():
    async with serving(environment={"TOOLCRIB_SECRET_B": "b"}) as server:
        schemes = {
            "first": {"kind": "bearer", "token": "${env:TOOLCRIB_SECRET_A}"},
            "second": {"kind": "bearer", "token": "${env:TOOLCRIB_SECRET_B}"},
        }
        name = await provided(
            server, "crm", {"kind": "none"}, schemes=schemes, security=[{"first": []}, {"second": []}]
        )
        found = await server.get(f"/ai/tools/{name}/access")

    assert ([use["reference"] for use in found["secrets"]], found["ready"]) == (["${env:TOOLCRIB_SECRET_B}"], True)


@pytest.mark.requirement("views.access")
async def test_a_missing_or_disabled_provider_is_told(server: Server):
    name = await provided(server, "crm", {"kind": "none"}, enabled=False)
    disabled = await server.get(f"/ai/tools/{name}/access")
    assert ("disabled" in disabled["problem"], disabled["ready"]) == (True, False)

    await server.crib.providers.remove("default", "crm")
    gone = await server.get(f"/ai/tools/{name}/access")
    assert ("define it" in gone["problem"], gone["ready"]) == (True, False)


@pytest.mark.requirement("views.access", "server.secrets")
async def test_secrets_that_a_caller_may_not_know_of_are_only_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(PRINCIPALS, "clerk", CLERK)
    async with serving(environment={"TOOLCRIB_SECRET_A": "a"}) as server, server.client_of("clerk") as clerk:
        name = await provided(server, "crm", {"kind": "bearer", "token": "${env:TOOLCRIB_SECRET_A}"})
        found = checked(await clerk.get(f"/api/v1/ai/tools/{name}/access"), 200)

    assert (found["secrets"], found["hidden_secrets"], found["ready"]) == ([], 1, True)


@pytest.mark.requirement("views.one_shape", "server.validate")
async def test_the_flat_form_of_an_agentic_tool_is_validated_too(server: Server):
    flat = {"name": "helper", "mode": "agentic", "llm": {"model": "scripted:free"}, "tools": [{"tool": "search"}]}

    assert (await server.post("/ai/tools/validate", flat))["valid"]
    refused = await server.post("/ai/tools/validate", flat | {"tools": [{"tool": "serch"}]})
    assert (refused["valid"], "serch" in refused["problems"][0]["problem"]) == (False, True)
    broken = await server.post("/ai/tools/validate", flat | {"llm": {}}, 422)
    assert broken["details"]["problems"][0]["path"].endswith("llm.model")
    await server.get("/ai/tools/helper", status=404)


@pytest.mark.requirement("views.seed_paths")
async def test_paths_of_the_specifications_answer_as_those_that_they_have_here(server: Server):
    body = {"name": "crm", "base_url": "https://crm.example"}
    await server.post("/ai/tool-providers", body, 201)
    assert await server.get("/ai/tool-providers") == await server.get("/providers")
    assert await server.get("/ai/tool-providers/crm") == await server.get("/providers/crm")
    checked(await server.client.put("/api/v1/ai/tool-providers/crm", json={**body, "title": "CRM"}), 200)
    assert (await server.get("/providers/crm"))["title"] == "CRM"
    refused = await server.get("/ai/tool-providers/crm", {"surprise": 1}, 422)
    assert "surprise" in refused["detail"]
    checked(await server.client.delete("/api/v1/ai/tool-providers/crm"), 200)
    source = {"name": "files", "url": "http://127.0.0.1:1/mcp"}
    assert await server.post("/ai/tools/import/mcp", source, 403) == await server.post(
        "/ai/tools/import-mcp", source, 403
    )
    async with server.client_of(None) as nobody:
        assert (await nobody.get("/api/v1/ai/tool-providers")).status_code == 401
