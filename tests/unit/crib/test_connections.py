"""Looking at providers of every kind of connection, and what a person asks of connections from Python."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.twins import MASTER_KEYS
from tests.unit.net.servers import serving
from tests.unit.providers.authority import Authority
from toolcrib import Crib
from toolcrib.contracts import (
    ApiKeyAuth,
    AuthorizationCodeAuth,
    BearerAuth,
    DatabaseConnection,
    EgressDenied,
    ErrorCode,
    GrpcConnection,
    HttpConnection,
    InvalidInput,
    McpConnection,
    NotFound,
    ProviderAuth,
    ProviderDefinition,
    ReconnectRequired,
    Unavailable,
)
from toolcrib.infrastructure.net import EgressPolicy

REDIRECT = "http://127.0.0.1:1/callback"


async def system(request: web.BaseRequest) -> web.StreamResponse:
    """A system that wants a key, in one way or another, and describes itself to who has it."""
    if "key-0123456789" not in {request.query.get("key"), request.headers.get("x-key"), request.cookies.get("key")}:
        return web.Response(status=401)
    if request.path.endswith("/openapi.json"):
        return web.json_response({"openapi": "3.1.0", "paths": {}})
    return web.Response(status=404, text="x" * 100_000)


@asynccontextmanager
async def house(*ports: int, **environment: str) -> AsyncGenerator[Crib]:
    allow = tuple(f"127.0.0.1:{port}" for port in ports)
    around = {"TOOLCRIB_MASTER_KEYS": MASTER_KEYS, **environment}
    async with Crib("memory://", egress=EgressPolicy(allow=allow), environment=around) as crib:
        yield crib


@pytest.mark.requirement("crib.probes")
@pytest.mark.parametrize("place", ["query", "header", "cookie"])
async def test_a_system_that_answers_is_reachable_and_says_whether_the_credentials_count(place: Any) -> None:
    async with serving(system) as port, house(port, KEY="key-0123456789", WRONG="nope") as crib:
        ways: dict[str, ProviderAuth] = {
            "right": ApiKeyAuth(key="${env:KEY}", name="x-key" if place == "header" else "key", place=place),
            "wrong": BearerAuth(token="${env:WRONG}"),
            "unset": BearerAuth(token="${env:NONE}"),
        }
        for name, auth in ways.items():
            provider = ProviderDefinition(name=name, base_url=f"http://127.0.0.1:{port}/v1", auth=auth)
            await crib.save_provider(provider)
        right, wrong, unset = [await crib.connections.test(name) for name in ways]
        assert (right.reachable, right.authenticated, right.http_status, right.error) == (True, True, 404, None)
        assert (wrong.reachable, wrong.authenticated, wrong.http_status) == (True, False, 401)
        assert (unset.reachable, unset.authenticated, unset.http_status) == (None, False, None)
        assert unset.error is not None
        assert unset.error.code == ErrorCode.AUTH_REQUIRED
        found = await crib.connections.discover("right")
        base = f"http://127.0.0.1:{port}/v1"
        places = ("/.well-known/openapi.json", "/api/openapi.json", "/openapi.json")
        assert (found.kind, found.items) == ("documents", tuple(base + path for path in places))
        assert (await crib.connections.discover("wrong")).items == ()
        with pytest.raises(ReconnectRequired):
            await crib.connections.discover("unset")


async def open_front(request: web.BaseRequest) -> web.StreamResponse:
    """A system whose base address is not there for anybody, and whose `/me` wants a key."""
    if request.path == "/v1/me":
        is_known = request.headers.get("authorization") == "Bearer key-0123456789"
        return web.json_response({"me": 1}) if is_known else web.Response(status=401)
    return web.Response(status=503 if request.path == "/v1/down" else 404)


@pytest.mark.requirement("crib.probes")
@pytest.mark.parametrize(
    ("token", "path", "known", "said"),
    [
        (
            "WRONG",
            None,
            None,
            "does not tell whether it accepts the credentials at its base address; set",
        ),
        ("KEY", None, None, "answers with status 404, which does not tell"),
        ("WRONG", "/me", False, "the credentials are not accepted"),
        ("KEY", "/me", True, "it answers with status 200, and accepts the credentials"),
        (
            "KEY",
            "/down",
            None,
            "which does not tell whether it accepts the credentials at this path",
        ),
    ],
)
async def test_0_6_a_probe_that_cannot_tell_of_the_credentials_says_so(
    token: str, path: str | None, known: bool | None, said: str
) -> None:
    async with serving(open_front) as port, house(port, KEY="key-0123456789", WRONG="nope") as crib:
        provider = ProviderDefinition(
            name="crm",
            base_url=f"http://127.0.0.1:{port}/v1",
            auth=BearerAuth(token=f"${{env:{token}}}"),
            connection=HttpConnection(test_path=path),
        )
        await crib.save_provider(provider)
        check = await crib.connections.test("crm")

    assert (check.reachable, check.authenticated, check.has_credentials) == (True, known, True)
    assert said in check.message


@pytest.mark.requirement("crib.probes")
async def test_what_cannot_be_reached_is_said_to_be_and_why() -> None:
    async with house(9) as crib:
        await crib.save_provider(ProviderDefinition(name="down", base_url="http://127.0.0.1:9"))
        await crib.save_provider(ProviderDefinition(name="forbidden", base_url="http://127.0.0.1:10"))
        await crib.save_provider(
            ProviderDefinition(name="rpc", base_url="grpc://127.0.0.1:9", connection=GrpcConnection())
        )
        await crib.save_provider(
            ProviderDefinition(name="server", base_url="http://127.0.0.1:9/mcp", connection=McpConnection())
        )
        codes = {name: await crib.connections.test(name) for name in ("down", "forbidden", "rpc", "server")}
        assert not any(check.reachable or check.authenticated for check in codes.values())
        errors = [check.error.code for check in codes.values() if check.error is not None]
        assert errors[:2] == [ErrorCode.NETWORK_ERROR, ErrorCode.POLICY_DENIED]
        assert set(errors[2:]) <= {ErrorCode.NETWORK_ERROR, ErrorCode.TIMEOUT}
        with pytest.raises(Unavailable):
            await crib.connections.discover("down")
        with pytest.raises(EgressDenied):
            await crib.connections.discover("forbidden")
        with pytest.raises(NotFound, match="there is no provider 'none'; `toolcrib provider list` shows all"):
            await crib.connections.test("none")


@pytest.mark.requirement("crib.probes")
async def test_a_database_is_reached_and_names_its_tables(tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        connection.commit()
    async with house(SHOP=f"sqlite:///{tmp_path}/shop.db") as crib:
        database = DatabaseConnection(url="${env:SHOP}")
        await crib.save_provider(ProviderDefinition(name="shop", connection=database))
        check = await crib.connections.test("shop")
        assert (check.reachable, check.message) == (True, "it has 1 tables")
        assert (await crib.connections.discover("shop")).items == ("orders",)


@pytest.mark.requirement("crib.connections")
async def test_a_person_connects_from_python() -> None:
    authority = Authority()
    async with serving(authority.handle) as port, house(port) as crib:
        authority.url = f"http://127.0.0.1:{port}"
        document = f"{authority.url}/.well-known/openid-configuration"
        auth = AuthorizationCodeAuth(discovery_url=document, client_id="us")
        provider = ProviderDefinition(
            name="crm", base_url=authority.url, schemes={"person": auth}, security=({"person": ()},)
        )
        await crib.save_provider(provider)
        begun = await crib.connections.begin("crm", redirect_uri=REDIRECT)
        connected = await crib.connections.finish(authority.grant(begun.url))
        (listed,) = await crib.connections.list()
        assert (listed.provider, listed.user, listed.scopes) == ("crm", "owner", connected.scopes)
        again = await crib.connections.begin("crm", redirect_uri=REDIRECT)
        with pytest.raises(ReconnectRequired, match="invalid_grant"):
            await crib.connections.finish({"state": again.state, "code": "guessed", "iss": authority.url})
        await crib.save_provider(provider.model_copy(update={"schemes": {}, "security": None}))
        assert not (await crib.connections.revoke("crm")).revoked


@pytest.mark.requirement("crib.connections")
async def test_what_nobody_can_connect_to_in_a_browser_is_said_to_be() -> None:
    async with house() as crib:
        await crib.save_provider(ProviderDefinition(name="crm", base_url="https://api.test"))
        with pytest.raises(InvalidInput, match="provider 'crm' authenticates by 'none', without a browser"):
            await crib.connections.begin("crm", redirect_uri=REDIRECT)
        for secret in ("${env:NONE}", None):
            auth = AuthorizationCodeAuth(discovery_url="http://127.0.0.1:9/x", client_id="us", client_secret=secret)
            await crib.save_provider(ProviderDefinition(name="crm", base_url="https://api.test", auth=auth))
            problem, words = (InvalidInput, "${env:NONE} is not set") if secret else (EgressDenied, "egress denied")
            with pytest.raises(problem) as caught:
                await crib.connections.begin("crm", redirect_uri=REDIRECT)
            assert words in str(caught.value)


@pytest.mark.requirement("crib.connections")
async def test_secrets_are_set_and_used_from_python() -> None:
    async with serving(system) as port, house(port) as crib:
        await crib.secrets.set("KEY", "key-0123456789")
        auth = ApiKeyAuth(key="${secret:KEY}", name="x-key")
        await crib.save_provider(ProviderDefinition(name="crm", base_url=f"http://127.0.0.1:{port}", auth=auth))
        assert (await crib.connections.test("crm")).authenticated
        assert [entry.name for entry in await crib.secrets.list()] == ["KEY"]
        assert await crib.secrets.rotate() == 0
        await crib.secrets.remove("KEY")
        assert not (await crib.connections.test("crm")).authenticated
