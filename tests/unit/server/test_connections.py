"""Providers, connections and secrets over REST."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from aiohttp import web

from tests.twins import MASTER_KEYS
from tests.unit.net.servers import serving as http
from tests.unit.providers.authority import Authority
from tests.unit.server.client import PRINCIPALS, Server, body_of, checked, http_tool, serving
from toolcrib import Crib
from toolcrib.contracts import Principal
from toolcrib.infrastructure.net import EgressPolicy

SECRET = "swordfish-0123456789"
VAULT = {"TOOLCRIB_MASTER_KEYS": MASTER_KEYS}


@asynccontextmanager
async def connected() -> AsyncGenerator[tuple[Server, Authority]]:
    """A server, and an authorization server that it can reach; the provider `crm` needs its consent."""
    authority = Authority()
    async with http(authority.handle) as port:
        authority.url = f"http://127.0.0.1:{port}"
        policy = EgressPolicy(allow=(f"127.0.0.1:{port}",))

        def make_crib(*arguments: Any, **keywords: Any) -> Crib:
            return Crib(*arguments, **keywords | {"egress": policy})

        async with serving(environment=VAULT, make_crib=make_crib) as server:
            await server.client.put("/api/v1/secrets/CRM_SECRET", json={"value": SECRET})
            auth = {
                "kind": "authorization_code",
                "authorization_url": f"{authority.url}/authorize",
                "token_url": f"{authority.url}/token",
                "revocation_url": f"{authority.url}/revoke",
                "client_id": "toolcrib",
                "client_secret": "${secret:CRM_SECRET}",
            }
            await server.post("/providers", {"name": "crm", "base_url": authority.url, "auth": auth}, 201)
            yield server, authority


@pytest.mark.requirement("server.secrets")
async def test_a_secret_is_written_listed_and_removed_and_never_read() -> None:
    async with serving(environment=VAULT) as server:
        made = checked(await server.client.put("/api/v1/secrets/KEY", json={"value": SECRET}), 200)
        assert (made["name"], made["scope"], made["version"]) == ("KEY", "realm", 1)
        checked(await server.client.put("/api/v1/secrets/KEY", json={"value": SECRET, "scope": "user"}), 200)
        listed = await server.get("/secrets")
        assert [(entry["name"], entry["scope"]) for entry in listed["items"]] == [("KEY", "user"), ("KEY", "realm")]
        assert SECRET not in str(listed) + str(made)
        checked(await server.client.delete("/api/v1/secrets/KEY?scope=user"), 204)
        checked(await server.client.delete("/api/v1/secrets/KEY?scope=user"), 404)
        assert len((await server.get("/secrets"))["items"]) == 1


@pytest.mark.requirement("server.secrets")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"value": SECRET, "scope": "org"}, 403),
        ({"value": SECRET, "scope": "galaxy"}, 422),
        ({"value": [SECRET]}, 422),
        ({"valeu": SECRET}, 422),
        ({"value": ""}, 422),
    ],
)
async def test_what_is_refused_is_not_repeated(body: dict[str, Any], status: int) -> None:
    async with serving(environment=VAULT) as server:
        answer = await server.client.put("/api/v1/secrets/KEY", json=body)
        checked(answer, status)
        assert SECRET not in answer.text
        assert (await server.get("/secrets"))["items"] == []


@pytest.mark.requirement("server.secrets")
async def test_without_master_keys_the_setting_is_named() -> None:
    async with serving(environment={}) as server:
        refused = checked(await server.client.put("/api/v1/secrets/KEY", json={"value": SECRET}), 422)
        assert "TOOLCRIB_MASTER_KEYS" in refused["detail"]


@pytest.mark.requirement("server.secrets", "server.providers")
async def test_grants_decide_who_sees_sets_and_names_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    clerk = Principal(id="clerk", grants=("ai://providers/*/write", "ai://secrets/OTHER/*"))
    monkeypatch.setitem(PRINCIPALS, "clerk", clerk)
    async with serving(environment=VAULT) as server, server.client_of("clerk") as client:
        checked(await server.client.put("/api/v1/secrets/KEY", json={"value": SECRET}), 200)
        checked(await client.put("/api/v1/secrets/KEY", json={"value": SECRET}), 403)
        checked(await client.put("/api/v1/secrets/OTHER", json={"value": SECRET}), 200)
        assert [each["name"] for each in (await client.get("/api/v1/secrets")).json()["items"]] == ["OTHER"]
        for name, status in (("KEY", 403), ("OTHER", 201)):
            auth = {"kind": "bearer", "token": f"${{secret:{name}}}"}
            body = {"name": "crm", "base_url": "https://evil.test", "auth": auth}
            checked(await client.post("/api/v1/providers", json=body), status)
        checked(await client.get("/api/v1/providers/crm"), 403)
        assert (await client.get("/api/v1/providers")).json()["items"] == []


@pytest.mark.requirement("server.secrets", "server.providers")
async def test_no_way_to_save_a_definition_takes_a_secret_without_a_grant_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clerk = Principal(id="clerk", grants=("ai://providers/*/write", "ai://tools/*/*/write"))
    monkeypatch.setitem(PRINCIPALS, "clerk", clerk)
    bearer = {"kind": "bearer", "token": "${secret:KEY}"}
    paths = {"/a": {"get": {"operationId": "look"}}}
    document = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": paths}
    secrets = [{"name": "key", "reference": "${secret:KEY}"}]
    tool: dict[str, Any] = body_of(http_tool("thief")) | {"secrets": secrets}
    database = {"kind": "database", "url": "${secret:KEY}"}
    moved: dict[str, Any] = {"name": "crm", "base_url": "https://evil.test", "document": document, "accept": True}
    async with serving(environment=VAULT) as server, server.client_of("clerk") as client:
        await server.post("/providers", {"name": "crm", "base_url": "https://api.test", "auth": bearer}, 201)
        await server.post("/ai/tools", body_of(http_tool("honest")), 201)
        attempts: list[tuple[str, str, dict[str, Any]]] = [
            ("POST", "/providers", {"name": "db", "connection": database}),
            ("POST", "/ai/tools", tool),
            ("PUT", "/ai/tools/honest", tool | {"name": "honest"}),
            ("PATCH", "/ai/tools/honest", {"secrets": secrets}),
            ("POST", "/ai/tools/import", moved),
            ("POST", "/ai/tools/generate", {"name": "db", "url": "${secret:KEY}"}),
            ("POST", "/ai/tools/import-mcp", {"name": "m", "command": ["m"], "environment": {"K": "${secret:KEY}"}}),
            ("POST", "/ai/tools/import-mcp", {"name": "m", "url": "https://evil.test", "auth": bearer}),
            ("POST", "/ai/tools/import-mcp", {"name": "crm", "url": "https://evil.test", "accept": True}),
            ("POST", "/ai/tools/import", moved | {"name": "new", "auth": bearer}),
        ]
        for method, path, body in attempts:
            refused = checked(await client.request(method, f"/api/v1{path}", json=body), 403)
            assert "ai://secrets/KEY/execute" in refused["detail"]
        assert (await server.get("/providers/crm"))["base_url"] == "https://api.test"
        checked(await client.post("/api/v1/ai/tools", json=body_of(http_tool("thief"))), 201)


@pytest.mark.requirement("server.tools")
async def test_who_may_not_write_a_tool_does_not_learn_whether_it_exists() -> None:
    async with serving() as server, server.client_of("reader") as client:
        for name in ("update", "nothing"):
            refused = await client.post("/api/v1/ai/tools", json=body_of(http_tool(name)))
            assert "ai://tools" in checked(refused, 403)["detail"]


@pytest.mark.requirement("server.providers")
async def test_a_provider_is_defined_read_and_listed_and_no_value_of_a_secret_is_taken() -> None:
    async with serving() as server:
        body = {"name": "crm", "base_url": "https://api.test", "auth": {"kind": "bearer", "token": "${env:T}"}}
        await server.post("/providers", body, 201)
        assert (await server.get("/providers/crm"))["auth"] == body["auth"]
        assert [each["name"] for each in (await server.get("/providers"))["items"]] == ["crm"]
        await server.get("/providers/other", status=404)
        for wrong in ({"auth": {"kind": "bearer", "token": SECRET}}, {"headers": {"X-Api-Key": SECRET}}):
            refused = await server.post("/providers", body | wrong, 422)
            assert SECRET not in str(refused)
            assert "${env:CRM_TOKEN}" in refused["detail"]


@pytest.mark.requirement("server.providers")
async def test_a_provider_is_tested_and_asked_what_it_offers() -> None:
    async with connected() as (server, authority):
        before = await server.post("/providers/crm/test")
        assert (before["reachable"], before["authenticated"], before["has_credentials"]) == (None, False, True)
        assert "reconnect with `toolcrib provider connect crm`" in before["message"]
        assert before["error"]["details"]["reason"] == "reconnect_required"
        await server.post("/providers", {"name": "open", "base_url": f"{authority.url}/.well-known/"}, 201)
        assert (await server.post("/providers/open/test"))["reachable"] is True
        assert (await server.post("/providers/open/discover"))["items"] == []
        await server.post("/providers/none/test", status=404)


async def consent(server: Server, authority: Authority) -> tuple[str, dict[str, str]]:
    """Begin to connect; returns where the person is sent back to, and the cookies of their browser."""
    here = "http://127.0.0.1:8700/api/v1/connections/callback"
    answer = await server.client.post("/api/v1/providers/crm/connect", json={"redirect_uri": here})
    begun = checked(answer, 200)
    assert (await server.post("/providers/crm/connect", status=422))["detail"].startswith(
        "the redirect URI 'http://crib/api/v1/connections/callback' must be https"
    )
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=lax" in answer.headers["set-cookie"]
    cookie = answer.headers["set-cookie"].partition(";")[0].partition("=")
    return authority.grant(begun["url"]), {cookie[0]: cookie[2].strip('"')}


def _path(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


async def _visit(server: Server, url: str, cookies: dict[str, str]) -> httpx2.Response:
    async with server.client_of(None) as browser:
        header = "; ".join(f'{name}="{text}"' for name, text in cookies.items())
        return await browser.get(_path(url), headers={"cookie": header} if header else {})


@pytest.mark.requirement("server.connections")
async def test_the_browser_that_began_comes_back_without_a_key_and_is_connected() -> None:
    async with connected() as (server, authority):
        back, cookies = await consent(server, authority)
        page = await _visit(server, back, cookies)
        assert (page.status_code, "Provider crm is connected" in page.text) == (200, True)
        assert page.headers["content-security-policy"] == "default-src 'none'"
        (entry,) = (await server.get("/connections"))["items"]
        assert (entry["provider"], entry["user"], entry["status"]) == ("crm", "owner", "connected")
        assert "token-1" not in str(entry)
        assert (await _visit(server, back, cookies)).status_code == 404


@pytest.mark.requirement("server.connections")
async def test_another_browser_cannot_be_led_into_a_connection_of_somebody_else() -> None:
    async with connected() as (server, authority):
        back, cookies = await consent(server, authority)
        other, others = await consent(server, authority)
        for given in ({}, others, {name: text[:-4] + "AAAA" for name, text in cookies.items()}):
            page = await _visit(server, back, given)
            assert (page.status_code, "did not begin to connect" in page.text) == (403, True)
        assert authority.asked == []
        assert (await server.post("/connections", {"url": back}))["status"] == "connected"
        refused = f"{other}&error=<script>".replace("code=", "kode=")
        page = await _visit(server, refused, others)
        assert (page.status_code, "<script>" in page.text) == (422, False)


@pytest.mark.requirement("server.connections")
async def test_a_connection_is_given_up_and_the_answer_says_what_the_server_did() -> None:
    async with connected() as (server, authority):
        back, _ = await consent(server, authority)
        await server.post("/connections", {"url": back})
        told = checked(await server.client.delete("/api/v1/connections/crm"), 200)
        assert (told["revoked"], len(authority.revoked)) == (True, 1)
        checked(await server.client.delete("/api/v1/connections/crm"), 404)
        checked(await server.client.post("/api/v1/connections", json={"url": back}), 404)


@pytest.mark.requirement("server.connections")
async def test_who_connects_needs_a_grant_for_the_provider() -> None:
    async with connected() as (server, _), server.client_of("reader") as reader:
        for method, path in (
            ("POST", "/providers/crm/connect"),
            ("DELETE", "/connections/crm"),
            ("POST", "/providers"),
        ):
            body = {"name": "crm", "base_url": "https://x.test"} if path == "/providers" else None
            answer = await reader.request(method, f"/api/v1{path}", json=body)
            checked(answer, 403)


@pytest.mark.requirement("server.provider_syncs")
async def test_a_provider_is_scheduled_synced_and_shown_with_its_last_sync() -> None:
    offer: list[str] = ["deals"]

    async def answer(request: Any) -> Any:
        paths = {f"/{name}": {"get": {"operationId": name}} for name in offer}
        servers = [{"url": f"http://{request.host}"}]
        info = {"title": "D", "version": "1"}
        return web.json_response({"openapi": "3.1.0", "info": info, "servers": servers, "paths": paths})

    async with http(answer) as port:

        def make_crib(*arguments: Any, **keywords: Any) -> Crib:
            return Crib(*arguments, **keywords | {"egress": EgressPolicy(allow=(f"127.0.0.1:{port}",))})

        async with serving(make_crib=make_crib) as server:
            document = f"http://127.0.0.1:{port}/openapi.json"
            await server.post("/ai/tools/import", {"name": "crm", "url": document}, 201)
            planned = checked(await server.client.put("/api/v1/providers/crm/schedule", json={"every_s": 3600}), 200)
            offer.append("people")
            await server.post("/providers/crm/sync")
            shown = await server.get("/providers/crm")
            [listed] = (await server.get("/providers"))["items"]
            await server.post("/providers", shown | {"title": "Deals"}, 201)
            again = await server.get("/providers/crm")
            off = checked(await server.client.delete("/api/v1/providers/crm/schedule"), 200)
            wrong = checked(await server.client.put("/api/v1/providers/crm/schedule", json={"every_s": 5}), 422)

    assert (planned["result"], planned["counts"], planned["next_at"] is None) == ("changed", {"new": 1}, False)
    assert shown["last_sync"]["counts"] == {"new": 1, "unchanged": 1}
    assert (shown["auto_discover"]["every_s"], shown["imported_from"]) == (3600, {"kind": "http", "document": document})
    assert (listed["auto_discover"], again["last_sync"]) == (shown["auto_discover"], shown["last_sync"])
    assert again["title"] == "Deals"
    assert (off["next_at"], "every_s" in str(wrong)) == (None, True)


@pytest.mark.requirement("server.provider_syncs")
async def test_who_has_a_provider_synced_may_write_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    clerk = Principal(id="clerk", grants=("ai://providers/*/write",))
    source = {"kind": "http", "document": "https://api.test/openapi.json"}
    monkeypatch.setitem(PRINCIPALS, "clerk", clerk)
    async with serving() as server, server.client_of("clerk") as client:
        body = {"name": "crm", "base_url": "https://api.test"}
        checked(await client.post("/api/v1/providers", json=body), 201)
        for more in ({"auto_discover": {"every_s": 3600}}, {"imported_from": source}):
            refused = checked(await client.post("/api/v1/providers", json=body | more), 403)
            assert "ai://tools/" in str(refused)
        checked(await client.put("/api/v1/providers/crm/schedule", json={"every_s": 3600}), 403)
        checked(await client.delete("/api/v1/providers/crm/schedule"), 403)
