"""Access tokens of an authorization server: what is accepted at `/mcp`, and what attackers try."""

import base64
import hashlib
import hmac
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import jwt
import orjson
import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from tests.twins import MASTER_KEYS, ManualClock
from tests.unit.mcp_server.served import client_of, on_a_port
from tests.unit.net.servers import serving
from tests.unit.providers.authority import REDIRECT
from tests.unit.providers.test_protected_resources import Registrar
from tests.unit.server.client import authenticate, search, update
from toolcrib import Crib, EgressPolicy
from toolcrib.contracts import (
    InvalidSettings,
    McpConnection,
    ProtectedResourceAuth,
    ProviderDefinition,
    Unauthenticated,
    Unavailable,
)
from toolcrib.crib.settings import AuthorizationSettings, load_settings
from toolcrib.infrastructure.net import HttpSession
from toolcrib.interfaces.server import create_app
from toolcrib.interfaces.server.http.access_tokens import AccessTokens

pytestmark = pytest.mark.requirement("mcp_server.access_tokens")

AUDIENCE = "https://tools.test/mcp"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def jwk_of(key: rsa.RSAPrivateKey, key_id: str, **changes: Any) -> dict[str, Any]:
    return orjson.loads(RSAAlgorithm.to_jwk(key.public_key())) | {"kid": key_id, "alg": "RS256", "use": "sig"} | changes


@dataclass
class Issuer(Registrar):
    """An authorization server whose tokens are JWTs."""

    keys: list[dict[str, Any]] = field(default_factory=lambda: [jwk_of(KEY, "k1")])
    clock: ManualClock = field(default_factory=ManualClock)
    fetched: int = 0
    down: bool = False
    audience: str = AUDIENCE

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/jwks":
            self.fetched += 1
            return web.Response(status=503) if self.down else web.json_response({"keys": self.keys})
        self.document = {"jwks_uri": f"{self.url}/jwks"} | self.document
        answer = await super().handle(request)
        if request.path == "/token" and isinstance(answer, web.Response) and answer.status == 200:
            issued = orjson.loads(answer.text or "") | {"access_token": self.token()}
            return web.json_response(issued)
        return answer

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = int(self.clock.now().timestamp())
        usual = {"iss": self.url, "aud": self.audience, "sub": "ann", "iat": now, "exp": now + 600, "scope": "crm.read"}
        return {name: value for name, value in (usual | changes).items() if value is not None}

    def token(self, *, key: Any = KEY, algorithm: str = "RS256", headers: Any = None, **changes: Any) -> str:
        return jwt.encode(self.claims(**changes), key, algorithm, headers={"kid": "k1"} | (headers or {}))


@asynccontextmanager
async def issuing(**settings: Any) -> AsyncGenerator[tuple[Issuer, AccessTokens]]:
    issuer = Issuer()
    async with serving(issuer.handle) as port, HttpSession(EgressPolicy(allow=(f"127.0.0.1:{port}",))) as session:
        issuer.url = f"http://127.0.0.1:{port}"
        usual: dict[str, Any] = {
            "issuer": issuer.url,
            "audience": AUDIENCE,
            "scopes": ("crm.read ai://tools/utility/*/execute",),
        }
        yield issuer, AccessTokens(AuthorizationSettings(**usual | settings), session, issuer.clock)


async def test_a_token_is_a_principal_of_its_own_with_the_grants_of_its_scopes() -> None:
    async with issuing(realm="acme") as (issuer, tokens):
        found = await tokens.authenticate(issuer.token(sub="owner", scope="crm.read admin"))
        none = await tokens.authenticate(issuer.token(scope=None, scp=["admin"]))
    assert (found.id, found.realm, found.grants) == ("oauth:owner", "acme", ("ai://tools/utility/*/execute",))
    assert none.grants == ()


def unsigned(issuer: Issuer) -> str:
    return jwt.encode(issuer.claims(), "", "none", headers={"kid": "k1"})


def confused(issuer: Issuer) -> str:
    """Signed with the public key as if it were a shared secret."""
    public = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    parts = [{"alg": "HS256", "kid": "k1", "typ": "JWT"}, issuer.claims()]
    text = ".".join(base64.urlsafe_b64encode(orjson.dumps(part)).decode().rstrip("=") for part in parts)
    mac = hmac.new(public, text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


ATTACKS: Mapping[str, Callable[[Issuer], str]] = {
    "no signature": unsigned,
    "public key as a secret": confused,
    "key of somebody else": lambda issuer: issuer.token(key=OTHER_KEY),
    "key in the token": lambda issuer: issuer.token(
        key=OTHER_KEY, headers={"jwk": jwk_of(OTHER_KEY, "k1"), "jku": "http://127.0.0.1:9/keys"}
    ),
    "unknown key": lambda issuer: issuer.token(headers={"kid": "k9"}),
    "other algorithm of the same key": lambda issuer: issuer.token(algorithm="PS256"),
    "critical header": lambda issuer: issuer.token(headers={"crit": ["exp"]}),
    "other audience": lambda issuer: issuer.token(aud="https://elsewhere.test/mcp"),
    "no audience": lambda issuer: issuer.token(aud=None),
    "other issuer": lambda issuer: issuer.token(iss="https://evil.test"),
    "issuer with a slash": lambda issuer: issuer.token(iss=f"{issuer.url}/"),
    "expired": lambda issuer: issuer.token(exp=int(issuer.clock.now().timestamp()) - 31),
    "no expiry": lambda issuer: issuer.token(exp=None),
    "expiry that is no time": lambda issuer: issuer.token(exp="tomorrow"),
    "not yet valid": lambda issuer: issuer.token(nbf=int(issuer.clock.now().timestamp()) + 31),
    "from the future": lambda issuer: issuer.token(iat=int(issuer.clock.now().timestamp()) + 31),
    "no subject": lambda issuer: issuer.token(sub=None),
    "subject with a line break": lambda issuer: issuer.token(sub="ann\nroot"),
    "no token at all": lambda _: "a.b.c",
    "endless": lambda _: "a" * 20_000,
}


@pytest.mark.parametrize("attack", list(ATTACKS))
async def test_no_other_token_is_accepted(attack: str) -> None:
    async with issuing() as (issuer, tokens):
        assert (await tokens.authenticate(issuer.token())).id == "oauth:ann"
        forged = ATTACKS[attack](issuer)
        with pytest.raises(Unauthenticated) as refused:
            await tokens.authenticate(forged)
    assert forged not in str(refused.value)


async def test_a_clock_that_differs_a_little_does_no_harm() -> None:
    async with issuing() as (issuer, tokens):
        now = int(issuer.clock.now().timestamp())
        assert await tokens.authenticate(issuer.token(exp=now - 29, nbf=now + 29))


async def test_keys_are_fetched_once_again_for_a_new_key_and_never_for_each_invented_one() -> None:
    async with issuing() as (issuer, tokens):
        await tokens.authenticate(issuer.token())
        for number in range(5):
            with pytest.raises(Unauthenticated):
                await tokens.authenticate(issuer.token(headers={"kid": f"k{number + 5}"}))
        assert issuer.fetched == 1
        issuer.keys = [jwk_of(KEY, "old"), jwk_of(OTHER_KEY, "k2"), {"kty": "oct", "k": "c2VjcmV0", "kid": "k3"}, {}]
        issuer.clock.advance(31)
        await tokens.authenticate(issuer.token(key=OTHER_KEY, headers={"kid": "k2"}))
        issuer.down = True
        issuer.clock.advance(3_700)
        await tokens.authenticate(issuer.token(key=OTHER_KEY, headers={"kid": "k2"}))
    assert issuer.fetched == 3


async def test_without_keys_nobody_comes_in_and_the_server_says_whose_fault_it_is() -> None:
    async with issuing() as (issuer, tokens):
        issuer.document = {"issuer": issuer.url, "jwks_uri": "http://127.0.0.1:9/keys"}
        with pytest.raises(Unavailable, match="the keys of http"):
            await tokens.authenticate(issuer.token())


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"authorization.issuer": "https://a.test"}, "set audience"),
        ({"authorization.issuer": "http://a.test", "authorization.audience": AUDIENCE}, "is not https"),
        ({"authorization.scopes": ["crm.read"]}, "grants nothing"),
        ({"authorization.algorithms": ["HS256"]}, "algorithms"),
        ({"authorization.leeway_s": 600}, "leeway_s"),
    ],
)
def test_settings_that_would_let_others_in_are_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidSettings, match=problem):
        load_settings(given, environment={})


@asynccontextmanager
async def server_of(issuer: Issuer, tokens: AccessTokens) -> AsyncGenerator[str]:
    crib = Crib("memory://")
    crib.add(search, update)
    app = create_app(crib, authenticate, tokens=tokens)
    async with app.router.lifespan_context(app), on_a_port(app) as url:
        del issuer
        yield url


async def test_clients_with_tokens_and_clients_with_keys_see_what_they_may_use() -> None:
    async with issuing() as (issuer, tokens), server_of(issuer, tokens) as url:
        async with client_of(url, key=issuer.token()) as client:
            with_token = {each.name for each in (await client.list_tools()).tools}
            called = await client.call_tool("search", {"company": "Acme"})
        async with client_of(url) as client:
            with_key = {each.name for each in (await client.list_tools()).tools}
        async with httpx2.AsyncClient(trust_env=False) as http:
            elsewhere = await http.get(
                url.replace("/mcp", "/api/v1/tools"), headers={"Authorization": f"Bearer {issuer.token()}"}
            )
            none = await http.post(url, json={})
            wrong = await http.post(url, json={}, headers={"Authorization": f"Bearer {issuer.token(aud='x')}"})
            lacking = await http.post(url, json={}, headers={"Authorization": f"Bearer {issuer.token(scope='x')}"})
            root = url.removesuffix("/mcp")
            described = await http.get(f"{root}/.well-known/oauth-protected-resource/mcp/servers/crm")
    assert not called.is_error
    assert with_token == with_key == {"search", "update"}
    assert elsewhere.status_code == 401
    metadata = 'resource_metadata="https://tools.test/.well-known/oauth-protected-resource/mcp", scope="crm.read"'
    assert (none.status_code, none.headers["WWW-Authenticate"]) == (401, f'Bearer realm="toolcrib", {metadata}')
    assert (wrong.status_code, wrong.headers["WWW-Authenticate"].endswith('error="invalid_token"')) == (401, True)
    assert lacking.status_code == 403
    assert lacking.headers["WWW-Authenticate"].endswith('error="insufficient_scope"')
    assert described.json()["authorization_servers"] == [issuer.url]
    assert described.json()["resource"] == AUDIENCE


async def test_a_server_without_an_issuer_describes_nothing() -> None:
    app = create_app(Crib("memory://"), authenticate)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test") as http:
        answer = await http.get("/.well-known/oauth-protected-resource/mcp")
    assert answer.status_code == 401


async def test_another_crib_signs_in_at_the_server_and_calls_its_tools() -> None:
    issuer = Issuer()
    crib = Crib("memory://")
    crib.add(search)
    apps: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        """The application, which is made when its address is known."""
        await apps[0](scope, receive, send)

    async with serving(issuer.handle) as port, on_a_port(app) as url:
        egress = EgressPolicy(allow=(f"127.0.0.1:{port}", f"127.0.0.1:{httpx2.URL(url).port}"))
        issuer.url, issuer.audience = f"http://127.0.0.1:{port}", url
        grants = ("crm.read ai://tools/*/*/execute",)
        settings = AuthorizationSettings(issuer=issuer.url, audience=url, scopes=grants)
        async with HttpSession(egress) as session:
            apps.append(create_app(crib, authenticate, tokens=AccessTokens(settings, session, issuer.clock)))
            environment = {"TOOLCRIB_MASTER_KEYS": MASTER_KEYS}
            async with (
                apps[0].router.lifespan_context(apps[0]),
                Crib("memory://", egress=egress, environment=environment) as ours,
            ):
                auth = ProtectedResourceAuth()
                provider = ProviderDefinition(name="far", connection=McpConnection(), base_url=url, auth=auth)
                await ours.save_provider(provider)
                request = await ours.connections.begin("far", redirect_uri=REDIRECT)
                await ours.connections.finish(issuer.grant(request.url))
                await ours.imports.sync("far")
                envelope = await ours.call("search", company="Acme")
                [run] = await crib.store.journal.runs("default", limit=2)
    assert envelope.ok, envelope.error
    assert run.request.principal.id == "oauth:ann"
