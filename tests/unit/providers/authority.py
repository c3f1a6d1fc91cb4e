"""An authorization server on loopback that keeps to its RFCs, and ends a grant when a refresh token is replayed."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from aiohttp import web

from tests.twins import DictSecrets, ManualClock, make_safe
from tests.unit.net.servers import serving
from toolcrib.contracts import OWNER, AuthorizationCodeAuth, Consent, ConsentRequest, Principal, ProviderDefinition
from toolcrib.core.providers import Client, Consents, Credentials, Tokens, answer_of, credentials_for
from toolcrib.core.providers.auth.credentials import CredentialOwner
from toolcrib.infrastructure.net import EgressPolicy, HttpSession
from toolcrib.infrastructure.secrets import Safe

REDIRECT = "http://127.0.0.1:8765/callback"
SECRETS = {"${secret:CRM_SECRET}": "client-secret-0123"}


@dataclass
class Authority:
    """The server's side."""

    url: str = ""
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """What was asked for, by code."""
    tokens: int = 0
    current: str | None = None
    """The refresh token that may be used next."""
    ended: bool = False
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list[Any])
    revoked: list[dict[str, str]] = field(default_factory=list[Any])
    document: dict[str, Any] = field(default_factory=dict[str, Any])
    before: Callable[[], Awaitable[object]] | None = None
    """Awaited before a token is given."""
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when somebody waits for `before`."""
    refusal: int | None = None
    """A status, instead of a token."""
    rotates: bool = True
    life_s: int = 3600

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        fields = dict(parse_qsl((await request.read()).decode(), keep_blank_values=True))
        if request.path.startswith("/.well-known/"):
            return web.json_response(
                {
                    "issuer": self.url,
                    "authorization_endpoint": f"{self.url}/authorize",
                    "token_endpoint": f"{self.url}/token",
                    "revocation_endpoint": f"{self.url}/revoke",
                    "code_challenge_methods_supported": ["plain", "S256"],
                    "authorization_response_iss_parameter_supported": True,
                }
                | self.document
            )
        if request.path == "/revoke":
            self.revoked.append(fields)
            return web.Response(status=self.refusal or 200)
        self.asked.append((fields["grant_type"], fields | {"authorization": request.headers.get("authorization", "")}))
        if self.before is not None:
            self.reached.set()
            await self.before()
        if self.refusal is not None:
            return web.json_response({"error": "temporarily_unavailable"}, status=self.refusal)
        problem = self._problem(fields)
        if problem is not None:
            return web.json_response({"error": problem}, status=400)
        self.tokens += 1
        if self.rotates or self.current is None:
            self.current = f"refresh-token-{self.tokens}"
        given = {"access_token": f"access-token-{self.tokens}", "token_type": "Bearer", "expires_in": self.life_s}
        return web.json_response(given | ({"refresh_token": self.current} if self.rotates or self.tokens == 1 else {}))

    def _problem(self, fields: dict[str, str]) -> str | None:
        if fields["grant_type"] == "authorization_code":
            asked = self.codes.pop(fields["code"], None)
            proof = base64.urlsafe_b64encode(hashlib.sha256(fields["code_verifier"].encode()).digest()).decode()
            expected = {"code_challenge": proof.rstrip("="), "redirect_uri": fields["redirect_uri"]}
            return None if asked is not None and expected.items() <= asked.items() else "invalid_grant"
        if self.ended or fields["refresh_token"] != self.current:
            self.ended = True  # a token that was used before is a stolen one: all of the grant ends
            return "invalid_grant"
        return None

    def grant(self, url: str, **changes: str) -> str:
        """What a person does in the browser; returns where they are sent back to."""
        asked = dict(parse_qsl(urlsplit(url).query))
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        code = f"code-{len(self.codes) + 1}"
        self.codes[code] = asked
        answer = {"code": code, "state": asked["state"], "iss": self.url} | changes
        return f"{asked['redirect_uri']}?{urlencode({name: text for name, text in answer.items() if text})}"


@dataclass
class Desk:
    """One process that people connect with."""

    authority: Authority
    session: HttpSession
    clock: ManualClock
    safe: Safe
    provider: ProviderDefinition
    consents: Consents

    @property
    def auth(self) -> AuthorizationCodeAuth:
        assert isinstance(self.provider.auth, AuthorizationCodeAuth)
        return self.provider.auth

    @property
    def client(self) -> Client:
        return Client.of(self.auth, SECRETS)

    async def begin(self, who: Principal = OWNER, redirect: str = REDIRECT) -> ConsentRequest:
        return await self.consents.begin(self.provider, self.auth, self.client, who, redirect)

    async def finish(self, redirected: str, who: Principal = OWNER) -> Consent:
        return await self.consents.finish(self.provider, self.auth, self.client, who, answer_of(redirected))

    async def connect(self, who: Principal = OWNER) -> Consent:
        return await self.finish(self.authority.grant((await self.begin(who)).url), who)

    async def credentials(self, who: Principal = OWNER) -> Credentials:
        tokens = Tokens(self.session, self.clock)
        holder = CredentialOwner(who, DictSecrets(SECRETS), tokens, self.consents)
        return await credentials_for(self.provider, f"{self.provider.base_url}/x", holder)

    def define(self, **changes: Any) -> None:
        """Change the provider's authentication."""
        self.provider = self.provider.model_copy(update={"auth": self.auth.model_copy(update=changes)})

    def elsewhere(self, safe: Safe | None = None) -> "Desk":
        """Another process on the same store, if it is not given another safe."""
        kept = safe or self.safe
        consents = Consents(Tokens(self.session, self.clock).endpoints, kept, self.clock)
        return Desk(self.authority, self.session, self.clock, kept, self.provider, consents)


@asynccontextmanager
async def desk(**changes: Any) -> AsyncGenerator[Desk]:
    """A process, and an authorization server that it can reach."""
    authority = Authority()
    async with serving(authority.handle) as port:
        authority.url = f"http://127.0.0.1:{port}"
        fields: dict[str, Any] = {
            "discovery_url": f"{authority.url}/.well-known/oauth-authorization-server",
            "client_id": "toolcrib-client",
            "client_secret": "${secret:CRM_SECRET}",
            "scopes": ("deals.read", "offline_access"),
        }
        auth = AuthorizationCodeAuth(**fields | changes)
        provider = ProviderDefinition(name="crm", base_url="https://api.test", auth=auth)
        async with HttpSession(EgressPolicy(allow=(f"127.0.0.1:{port}",))) as session:
            clock, safe = ManualClock(), make_safe()
            consents = Consents(Tokens(session, clock).endpoints, safe, clock)
            yield Desk(authority, session, clock, safe, provider, consents)
