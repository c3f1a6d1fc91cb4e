"""Providers over REST: replaced, removed, what depends on them, and how they were used."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import pytest
from aiohttp import web

from tests.twins import make_definition
from tests.unit.net.servers import serving as system
from tests.unit.server.client import PRINCIPALS, Server, checked
from tests.unit.server.test_views import provided
from toolcrib import Crib, EgressPolicy
from toolcrib.contracts import InvalidInput, NotFound, PermissionDenied, Principal, ProviderDefinition
from toolcrib.kinds.http.shape import HttpImplementation

NONE = {"kind": "none"}


@pytest.mark.requirement("views.provider_changes", "server.providers")
async def test_a_provider_is_replaced_under_its_name(server: Server):
    body = {"name": "crm", "base_url": "https://crm.example"}
    made = checked(await server.client.put("/api/v1/providers/crm", json=body), 200)
    changed = {**body, "title": "The CRM", "connection": {"kind": "http", "test_path": "/me"}}
    checked(await server.client.put("/api/v1/providers/crm", json=changed), 200)

    found = await server.get("/providers/crm")
    assert (made["title"], found["title"], found["connection"]["test_path"]) == (None, "The CRM", "/me")
    refused = checked(await server.client.put("/api/v1/providers/other", json=body), 422)
    assert "cannot be renamed" in refused["detail"]
    async with server.client_of("reader") as reader:
        assert (await reader.put("/api/v1/providers/crm", json=body)).status_code == 403


@pytest.mark.requirement("views.provider_changes")
async def test_a_provider_in_use_is_not_removed_and_what_would_break_is_named(server: Server):
    name = await provided(server, "crm", NONE)
    agent = {"name": "desk", "llm": {"model": "scripted:free"}, "tools": [{"tool": name}]}
    await server.post("/ai/agents", agent, 201)

    refused = checked(await server.client.delete("/api/v1/providers/crm"), 409)
    impact = await server.get("/providers/crm/impact")

    assert f"http {name}@1.0.0" in refused["detail"]
    assert "agent desk@1.0.0" in refused["detail"]
    assert [(each["kind"], each["name"]) for each in impact["dependents"]] == [
        ("http", f"{name}@1.0.0"),
        ("agent", "desk@1.0.0"),
    ]
    assert (await server.get("/providers/crm"))["name"] == "crm"
    removed = checked(await server.client.delete("/api/v1/providers/crm?tools=remove"), 200)
    assert (removed["removed_tools"], removed["broken"]) == ([name], ["desk@1.0.0"])
    await server.get(f"/ai/tools/{name}", status=404)
    await server.get("/providers/crm", status=404)


@pytest.mark.requirement("views.provider_changes")
async def test_a_provider_is_removed_and_its_tools_are_kept_on_request(server: Server):
    name = await provided(server, "crm", NONE)
    removed = checked(await server.client.delete("/api/v1/providers/crm?tools=keep"), 200)
    assert (removed["removed_tools"], removed["broken"]) == ([], [f"{name}@1.0.0"])
    assert (await server.get(f"/ai/tools/{name}"))["revision"] == 1
    await provided(server, "free", NONE)
    checked(await server.client.delete("/api/v1/ai/tools/free_deals"), 204)
    assert checked(await server.client.delete("/api/v1/providers/free"), 200)["message"] == "provider free is removed"
    checked(await server.client.delete("/api/v1/providers/free"), 404)


@pytest.mark.requirement("views.provider_changes", "server.grants")
async def test_tools_are_removed_with_their_provider_only_by_who_may_write_them(
    server: Server, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(PRINCIPALS, "clerk", Principal(id="clerk", grants=("ai://providers/*/write",)))
    name = await provided(server, "crm", NONE)
    async with server.client_of("clerk") as clerk, server.client_of("reader") as reader:
        refused = checked(await clerk.delete("/api/v1/providers/crm?tools=remove"), 403)
        assert (await reader.delete("/api/v1/providers/crm")).status_code == 403
    assert "ai://tools/utility/crm_deals/write" in refused["detail"]
    assert (await server.get(f"/ai/tools/{name}"))["revision"] == 1


@pytest.mark.requirement("views.provider_impact")
async def test_agentic_tools_with_a_providers_lists_depend_on_it(server: Server):
    lists = [{"name": "stages", "values": [{"id": "won", "label": "Won"}]}]
    body = {"name": "crm", "base_url": "https://crm.example", "reference_data": lists}
    await server.post("/providers", body, 201)
    tool = {"name": "mover", "mode": "agentic", "llm": {"model": "scripted:free"}, "tools": [{"tool": "search"}]}
    context = {"provider_data": [{"provider": "crm", "data_types": ["stages"]}]}
    await server.post("/agentic-tools", {**tool, "context": context}, 201)

    impact = await server.get("/providers/crm/impact")

    assert [(each["kind"], each["name"]) for each in impact["dependents"]] == [("agentic", "mover@1.0.0")]


@pytest.mark.requirement("views.provider_impact", "server.scopes")
async def test_dependents_that_a_caller_may_not_see_are_only_counted(server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(PRINCIPALS, "clerk", Principal(id="clerk", grants=("ai://providers/*/read",)))
    await provided(server, "crm", NONE)
    async with server.client_of("clerk") as clerk:
        found = checked(await clerk.get("/api/v1/providers/crm/impact"), 200)
    assert (found["dependents"], found["hidden"]) == ([], 1)


async def answer(request: web.BaseRequest) -> web.StreamResponse:
    """A system that knows one deal."""
    return web.json_response({"id": 1}) if request.path == "/deals" else web.Response(status=404)


@asynccontextmanager
async def used() -> AsyncGenerator[Crib]:
    """A crib that has called a provider: twice with success, once with an error, and once
    denied by policy."""
    async with system(answer) as port, Crib("memory://", egress=EgressPolicy(allow=(f"127.0.0.1:{port}",))) as crib:
        await crib.save_provider(ProviderDefinition(name="crm", base_url=f"http://127.0.0.1:{port}"))
        await crib.save_provider(ProviderDefinition(name="idle", base_url="https://idle.example"))
        for name, path, fields in (
            ("deals", "/deals", {"cost_usd_per_call": Decimal("0.25"), "side_effects": "reads"}),
            ("gone", "/gone", {"side_effects": "reads"}),
            ("free", "/deals", {"side_effects": "reads"}),
        ):
            made: dict[str, Any] = fields
            implementation = HttpImplementation(method="GET", url=path, provider="crm")
            await crib.save(make_definition(name, implementation=implementation, **made))
        for name in ("deals", "gone", "free", "deals"):
            await crib.invoke(name, {})
        await crib.lifecycle.block("gone")
        await crib.invoke("gone", {})
        yield crib


@pytest.mark.requirement("views.provider_usage")
async def test_calls_errors_latency_and_cost_of_a_provider_are_added_up():
    async with used() as crib:
        [crm, idle] = await crib.connections.usage()

    assert (crm.provider, crm.calls, crm.succeeded, crm.failed, crm.denied) == ("crm", 5, 3, 1, 1)
    assert sum(crm.errors.values()) == 1
    assert (crm.cost_usd, crm.unpriced_calls) == (Decimal("0.50"), 1)
    assert crm.latency_ms is not None
    assert 0 < crm.latency_ms.p50 <= crm.latency_ms.p95 <= crm.latency_ms.p99 == crm.latency_ms.most
    assert crm.last_used_at is not None
    assert (crm.complete, idle.calls, idle.latency_ms, idle.cost_usd, idle.last_used_at) == (True, 0, None, None, None)


@pytest.mark.requirement("views.provider_usage")
async def test_only_runs_that_began_in_the_time_are_counted_and_never_more_than_was_asked_for():
    async with used() as crib:
        middle = (await crib.connections.usage("crm"))[0].until
        [later] = await crib.connections.usage("crm", since=middle)
        [before] = await crib.connections.usage("crm", until=middle)
        [newest] = await crib.connections.usage("crm", most_runs=2)
        with pytest.raises(InvalidInput, match="exchange"):
            await crib.connections.usage("crm", since=middle, until=middle.replace(year=2000))
        with pytest.raises(NotFound):
            await crib.connections.usage("unknown")

    assert (later.calls, later.runs, before.calls) == (0, 0, 5)
    assert (newest.runs, newest.complete) == (2, False)


@pytest.mark.requirement("views.provider_usage", "server.scopes")
async def test_usage_is_shown_over_rest_of_providers_that_the_caller_may_read(
    server: Server, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(PRINCIPALS, "clerk", Principal(id="clerk", grants=("ai://providers/crm/read",)))
    for name in ("crm", "other"):
        await provided(server, name, NONE)
    query = {"since": "2020-01-01T00:00:00Z"}
    whole = (await server.get("/usage/providers", query))["items"]
    async with server.client_of("clerk") as clerk, server.client_of("reader") as reader:
        some = checked(await clerk.get("/api/v1/usage/providers"), 200)["items"]
        assert (await clerk.get("/api/v1/providers/other/usage")).status_code == 403
        assert checked(await reader.get("/api/v1/usage/providers"), 200)["items"] == []
    assert [each["provider"] for each in whole] == ["crm", "other"]
    assert [each["provider"] for each in some] == ["crm"]
    assert (await server.get("/providers/crm/usage"))["calls"] == 0


@pytest.mark.requirement("views.provider_changes")
async def test_removing_from_python_checks_the_principal():
    async with used() as crib:
        clerk = crib.acting_as(Principal(id="clerk", grants=("ai://providers/*/write",)))
        with pytest.raises(PermissionDenied):
            await clerk.connections.remove("crm", tools="remove")
        removed = await crib.connections.remove("crm", tools="remove")
    assert removed.removed_tools == ("deals", "free", "gone")
    assert "with 3 tools" in removed.message
