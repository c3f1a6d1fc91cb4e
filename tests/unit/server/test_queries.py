"""Queries over REST: one grammar on every resource, pages that hold only what the caller may see, counts likewise."""

from typing import Any, get_args

import pytest

from tests.unit.server.client import PRINCIPALS, Server, checked, http_tool
from toolcrib.contracts import Principal
from toolcrib.crib.tools.resources import RESOURCES, ResourceName
from toolcrib.interfaces.server.queries import Count

pytestmark = pytest.mark.requirement("queries.rest")

PATHS = {
    "tools": "/ai/tools",
    "ai-tools": "/ai-tools",
    "agentic-tools": "/agentic-tools",
    "runs": "/executions",
    "approvals": "/approvals",
    "providers": "/providers",
    "secrets": "/secrets",
} | {
    name: f"/ai/{name}"
    for name in (
        "agents",
        "workflows",
        "drafts",
        "instances",
        "conversations",
        "fragments",
        "accounts",
        "steps",
        "conditions",
        "mcp_servers",
        "triggers",
    )
}


async def invoked(server: Server, *companies: str, by: str = "owner") -> None:
    client = server.client_of(by)
    for company in companies:
        checked(await client.post("/api/v1/ai/tools/search/invoke", json={"params": {"company": company}}), 200)


def inputs(page: Any) -> list[str]:
    return [run["request"]["input"]["company"] for run in page["items"]]


def test_every_resource_has_a_path_here():
    assert set(PATHS) == set(get_args(ResourceName)) == set(RESOURCES)


@pytest.mark.parametrize("resource", PATHS)
async def test_every_resource_is_listed_queried_and_counted_by_each_of_its_fields(server: Server, resource: str):
    path, fields = PATHS[resource], RESOURCES[resource].fields  # pyright: ignore[reportArgumentType] - a resource's name
    for name, field in fields.items():
        text = f"not ({name})" if field.type == "boolean" else f"{name} eq null or {name} ne null"
        if field.type == "strings":
            text = f"{name} ne 'x'"
        every = await server.get(path, {"filter": text, "limit": 200})
        assert every["items"] == (await server.post(f"{path}/query", {"filter": text, "limit": 200}))["items"]
        assert await server.get(f"{path}/count", {"filter": text}) == {"count": len(every["items"])}
        if field.type != "strings":
            ordered = await server.get(path, {"filter": text, "sort": f"{name} desc", "limit": 200})
            assert len(ordered["items"]) == len(every["items"])
    assert Count.model_validate(await server.get(f"{path}/count")).count >= 0
    wrong = await server.get(path, {"filter": "nmae eq 'x'"}, status=422)
    assert "'nmae', which is no field to filter by; there are: " in wrong["detail"]
    wrong = await server.get(path, {"sort": "nmae"}, status=422)
    assert "sort has 'nmae', which is no field to order by" in wrong["detail"]


async def test_a_field_that_is_misspelt_is_told_the_nearest_one(server: Server):
    wrong = await server.post("/executions/query", {"filter": "stauts eq 'failed'"}, status=422)
    assert wrong["detail"].endswith("; nearest: status")
    wrong = await server.post("/executions/query", {"filter": "status eq 'done'"}, status=422)
    assert "status takes one of queued, running, awaiting_approval" in wrong["detail"]


async def test_runs_are_found_by_text_outcome_dates_and_cost(server: Server):
    await invoked(server, "Acme", "Broken", "Globex")
    failed = await server.post("/executions/query", {"filter": "status eq 'failed' and error_code ne null"})
    assert inputs(failed) == ["Broken"]
    assert inputs(await server.get("/executions", {"filter": "contains(text,'Acme')"})) == ["Acme"]
    assert inputs(await server.get("/executions", {"filter": "ended_at ne null", "sort": "text"})) == [
        "Acme",
        "Broken",
        "Globex",
    ]
    assert await server.get("/executions/count", {"filter": "created_at gt now() sub duration'PT1H'"}) == {"count": 3}
    assert await server.get("/executions/count", {"filter": "cost_usd lt 1"}) == {"count": 3}
    assert await server.get(
        "/executions/count",
        {
            "filter": "stop_reason eq 'final_answer'",
        },
    ) == {"count": 2}


async def test_a_cost_that_is_unknown_is_neither_little_nor_much(server: Server):
    await server.post("/ai/tools/update/invoke", {"params": {"stage": "won"}}, status=202)
    assert (await server.get("/executions", {"filter": "cost_usd eq null"}))["items"][0]["cost_usd"] is None
    for text in ("cost_usd le 0", "cost_usd ge 0", "tokens lt 1"):
        assert await server.get("/executions/count", {"filter": text}) == {"count": 0}


async def test_no_page_and_no_count_tells_of_what_the_caller_may_not_see(
    server: Server, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(PRINCIPALS, "nobody", Principal(id="nobody", grants=("ai://tools/utility/search/execute",)))
    await invoked(server, "Mine", by="nobody")
    await invoked(server, "A", "B", "C")
    await invoked(server, "Also mine", by="nobody")
    nobody = server.client_of("nobody")

    first = checked(await nobody.get("/api/v1/executions", params={"limit": 1}), 200)
    assert inputs(first) == ["Also mine"]
    assert first["next"] == first["items"][0]["run_id"]
    second = checked(await nobody.get("/api/v1/executions", params={"limit": 1, "after": first["next"]}), 200)
    assert inputs(second) == ["Mine"]
    assert second["next"] is None
    assert checked(await nobody.get("/api/v1/executions/count"), 200) == {"count": 2}
    assert checked(await nobody.get("/api/v1/ai/tools/count"), 200) == {"count": 1}
    strangers = (await server.get("/executions", {"filter": "contains(text,'B')"}))["items"][0]["run_id"]
    refused = checked(await nobody.get("/api/v1/executions", params={"after": strangers}), 404)
    assert "there is no run" in refused["detail"]


async def test_tools_are_found_by_every_state_that_a_filter_names(server: Server):
    await server.post("/ai/tools", http_tool("get_deals", tags=("crm",), category="sales").model_dump(mode="json"), 201)
    await server.post("/ai/tools/get_deals/status", {"version": "1.0.0", "status": "deprecated", "message": "old"})

    async def names(path: str, **query: str | int) -> list[str]:
        return [item.get("name") or item["definition"]["name"] for item in (await server.get(path, query))["items"]]

    assert await names("/ai/tools", filter="tag eq 'crm'") == ["get_deals", "search"]
    assert await names("/ai/tools", filter="tag ne 'crm'", kind="python") == ["pick", "update"]
    assert "get_deals" not in await names("/ai/tools")
    assert await names("/ai/tools", filter="tag eq 'crm'", status="active") == ["search"]
    assert await names("/ai-tools", filter="life_cycle eq 'deprecated' and category in ('sales')") == ["get_deals"]
    assert await names("/ai-tools", filter="model eq 'scripted:plan'") == ["deals"]
    assert await names("/agentic-tools", filter="startswith(model,'scripted:')", sort="name desc") == [
        "deals",
        "assistant",
    ]


async def test_pages_of_a_sort_end_with_a_cursor_that_holds_for_that_sort_only(server: Server):
    first = await server.get("/ai/tools", {"sort": "side_effects desc,name", "limit": 2})
    rest = await server.get("/ai/tools", {"sort": "side_effects desc,name", "limit": 200, "after": first["next"]})
    every = await server.get("/ai/tools", {"sort": "side_effects desc,name", "limit": 200})
    assert first["items"] + rest["items"] == every["items"]
    for query in ({"after": first["next"]}, {"sort": "name", "after": first["next"]}, {"sort": "name", "after": "~x"}):
        wrong = await server.get("/ai/tools", query, status=422)
        assert "send `next` of the page before" in wrong["detail"]


async def test_a_tool_may_be_called_count_without_being_taken_for_one(server: Server):
    await server.post("/ai/tools", http_tool("count").model_dump(mode="json"), 201)
    assert (await server.get("/ai/tools/count"))["count"] == 6
    [tool] = (await server.post("/ai/tools/query", {"filter": "name eq 'count'"}))["items"]
    assert tool["definition"]["name"] == "count"


@pytest.mark.requirement("queries.crib")
async def test_the_crib_finds_counts_and_selects_what_rest_does(server: Server):
    await invoked(server, "Acme", "Broken")
    queries = server.crib.queries

    page = await queries.page("runs", filter="status eq 'failed'", sort="created_at desc")
    assert [run.run_id for run in page.items] == [
        run["run_id"] for run in (await server.get("/executions", {"filter": "status eq 'failed'"}))["items"]
    ]
    assert await queries.count("runs", filter="status ne null") == 2
    tools = await server.crib.listing.visible()
    chosen = queries.select("tools", tools, filter="kind eq 'python'", sort="name desc")
    assert [tool.name for tool in chosen] == ["update", "search", "pick"]
    assert [tool.name for tool in queries.select("tools", chosen, filter="side_effects eq 'reads'")] == [
        "search",
        "pick",
    ]
