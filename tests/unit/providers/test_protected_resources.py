"""Providers that name the authorization server of their tokens themselves (RFC 9728)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from aiohttp import web

from tests.twins import MASTER_KEYS
from tests.unit.net.servers import serving
from tests.unit.providers.authority import REDIRECT, Authority
from toolcrib import Crib
from toolcrib.contracts import (
    InvalidDefinition,
    InvalidInput,
    McpConnection,
    ProtectedResourceAuth,
    ProviderDefinition,
    ReconnectRequired,
)
from toolcrib.core.providers.auth.protected_resources import challenge_of, wanted_scopes
from toolcrib.infrastructure.net import EgressPolicy

pytestmark = pytest.mark.requirement("authentication.protected_resources")


@dataclass
class Registrar(Authority):
    """An authorization server that registers clients."""

    name: str = "first"
    registered: list[dict[str, Any]] = field(default_factory=list[Any])
    issues_secrets: bool = True

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path != "/register":
            self.document = {"registration_endpoint": f"{self.url}/register"} | self.document
            return await super().handle(request)
        self.registered.append(orjson.loads(await request.read()))
        secret = {"client_secret": f"secret-of-{self.name}"} if self.issues_secrets else {}
        return web.json_response({"client_id": f"client-of-{self.name}", **secret}, status=201)


@dataclass
class Resource:
    """An MCP server that wants a token, and says from whom."""

    servers: list[str] = field(default_factory=list[str])
    url: str = ""
    described: dict[str, Any] = field(default_factory=dict[str, Any])
    challenge: str = 'Bearer scope="deals.read"'
    asked: list[str] = field(default_factory=list[str])

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path}")
        if request.path == "/.well-known/oauth-protected-resource/mcp":
            whole = {"resource": f"{self.url}/mcp", "authorization_servers": self.servers} | self.described
            return web.json_response(whole, status=404 if "gone" in self.described else 200)
        if request.method != "POST":
            return web.Response(status=404)
        return web.Response(status=401, headers={"WWW-Authenticate": self.challenge})


@dataclass
class Place:
    crib: Crib
    resource: Resource
    authority: Registrar
    other: Registrar

    async def save(self, **fields: Any) -> None:
        auth = ProtectedResourceAuth(**fields)
        url = f"{self.resource.url}/mcp"
        await self.crib.save_provider(
            ProviderDefinition(name="crm", connection=McpConnection(), base_url=url, auth=auth)
        )

    async def connect(self, authority: Registrar) -> dict[str, str]:
        """Connect as a person does; returns what the token endpoint was asked."""
        request = await self.crib.connections.begin("crm", redirect_uri=REDIRECT)
        await self.crib.connections.finish(authority.grant(request.url))
        return authority.asked[-1][1]


@asynccontextmanager
async def place() -> AsyncGenerator[Place]:
    resource, authority, other = Resource(), Registrar(), Registrar(name="second")
    async with (
        serving(resource.handle) as at,
        serving(authority.handle) as first,
        serving(other.handle) as second,
    ):
        egress = EgressPolicy(allow=tuple(f"127.0.0.1:{port}" for port in (at, first, second)))
        resource.url, authority.url, other.url = (f"http://127.0.0.1:{port}" for port in (at, first, second))
        resource.servers = [authority.url]
        environment = {"TOOLCRIB_MASTER_KEYS": MASTER_KEYS, "TOOLCRIB_SECRET_CRM": "secret-of-ours"}
        async with Crib("memory://", egress=egress, environment=environment) as crib:
            yield Place(crib, resource, authority, other)


async def test_a_person_is_sent_to_the_server_that_the_provider_names_with_a_client_that_is_registered_once() -> None:
    async with place() as here:
        await here.save()
        asked = await here.connect(here.authority)
        await here.connect(here.authority)
        [consent] = await here.crib.connections.list()
    [registered] = here.authority.registered
    assert registered["redirect_uris"] == [REDIRECT]
    assert registered["grant_types"] == ["authorization_code", "refresh_token"]
    assert asked["resource"] == f"{here.resource.url}/mcp"
    assert asked["authorization"].startswith("Basic ")
    assert consent.scopes == ("deals.read",)


async def test_a_provider_that_moves_to_another_server_gets_a_client_there_and_nothing_of_the_first() -> None:
    async with place() as here:
        await here.save()
        await here.connect(here.authority)
        here.resource.servers = [here.other.url]
        await here.connect(here.other)
    assert len(here.other.registered) == 1
    seen = repr((here.other.asked, here.other.codes))
    assert "client-of-first" not in seen
    assert "secret-of-first" not in seen


async def test_a_client_of_the_definition_goes_to_its_issuer_only() -> None:
    async with place() as here:
        fields = {"client_id": "ours", "client_secret": "${env:TOOLCRIB_SECRET_CRM}"}
        await here.save(**fields, authorization_servers=(here.authority.url,))
        asked = await here.connect(here.authority)
        here.resource.servers = [here.other.url]
        with pytest.raises(InvalidInput, match=r"names the authorization servers .* its definition allows"):
            await here.connect(here.other)
        revoked = await here.crib.connections.revoke("crm")
    assert asked["authorization"].startswith("Basic ")
    assert here.authority.registered == here.other.asked == []
    assert revoked.revoked
    assert here.authority.revoked[0]["token"] == "refresh-token-1"


@pytest.mark.parametrize("method", ["client_secret_post", "none"])
async def test_a_client_authenticates_as_its_server_wants_it(method: str) -> None:
    async with place() as here:
        here.authority.document = {"token_endpoint_auth_methods_supported": [method]}
        here.authority.issues_secrets = method != "none"
        await here.save()
        asked = await here.connect(here.authority)
    assert here.authority.registered[0]["token_endpoint_auth_method"] == method
    assert (asked["client_id"], asked.get("client_secret")) == (
        "client-of-first",
        "secret-of-first" if method == "client_secret_post" else None,
    )


async def test_a_server_that_reads_documents_of_clients_is_given_the_address_of_ours() -> None:
    async with place() as here:
        here.authority.document = {"client_id_metadata_document_supported": True}
        await here.save(client_metadata_url="https://toolcrib.test/client.json")
        asked = await here.connect(here.authority)
    assert asked["client_id"] == "https://toolcrib.test/client.json"
    assert here.authority.registered == []


@pytest.mark.parametrize(
    ("described", "document", "problem"),
    [
        ({"resource": "https://evil.example/mcp"}, {}, "says that it is 'https://evil.example/mcp'"),
        ({"resource": "RESOURCE/other"}, {}, "says that it is"),
        ({"authorization_servers": []}, {}, "names the authorization servers none"),
        ({"authorization_servers": ["http://login.example"]}, {}, "is not https"),
        ({"gone": True}, {}, "does not say where its tokens come from"),
        ({}, {"issuer": "https://evil.example"}, "is of the issuer 'https://evil.example'"),
        ({}, {"registration_endpoint": None}, "registers no clients"),
    ],
)
async def test_what_does_not_belong_together_sends_nobody_anywhere(
    described: dict[str, Any], document: dict[str, Any], problem: str
) -> None:
    async with place() as here:
        here.resource.described = {
            key: value.replace("RESOURCE", here.resource.url) if isinstance(value, str) else value
            for key, value in described.items()
        }
        here.authority.document = document
        await here.save()
        with pytest.raises(InvalidInput, match=problem):
            await here.crib.connections.begin("crm", redirect_uri=REDIRECT)
    assert here.authority.registered == []


async def test_a_server_without_a_document_or_that_refuses_to_register_is_told() -> None:
    async with place() as here:
        await here.save()
        here.resource.servers = [f"{here.resource.url}/nowhere"]
        with pytest.raises(InvalidInput, match="has no document about itself"):
            await here.crib.connections.begin("crm", redirect_uri=REDIRECT)
        here.resource.servers = [here.authority.url]
        here.authority.document = {"registration_endpoint": f"{here.resource.url}/mcp"}
        with pytest.raises(ReconnectRequired, match="registered no client: status 401"):
            await here.crib.connections.begin("crm", redirect_uri=REDIRECT)


def test_a_challenge_is_read_with_quotes_and_without() -> None:
    header = r'Bearer realm="a \"b\"", scope="x y", resource_metadata="https://a/b", error=insufficient_scope'
    assert challenge_of(header) == {
        "realm": 'a "b"',
        "scope": "x y",
        "resource_metadata": "https://a/b",
        "error": "insufficient_scope",
    }
    assert wanted_scopes(header) == ("x", "y")
    assert wanted_scopes('Bearer error="invalid_token", scope="x"') == ()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"client_secret": "${env:X}"}, "give client_id too"),
        ({"client_id": "us"}, "name its issuer in authorization_servers"),
        ({"authorization_servers": ("login.example",)}, "is not absolute"),
        ({"client_secret": "x", "client_id": "us", "authorization_servers": ("https://a.example",)}, "instead of"),
    ],
)
async def test_a_definition_that_could_not_work_is_refused(fields: dict[str, Any], problem: str) -> None:
    async with place() as here:
        with pytest.raises(InvalidDefinition, match=problem):
            await here.save(**fields)
