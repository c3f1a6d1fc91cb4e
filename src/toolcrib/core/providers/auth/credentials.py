"""Credentials of a provider, as parts of a request, for runtimes of every kind.

Credentials go only to the provider's own origin. Of the alternatives of an operation, the first whose secrets are all
set is used; an alternative without credentials comes last. A token can come from a login request of the system.
"""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, assert_never, cast
from urllib.parse import urlencode, urlsplit

import orjson

from toolcrib.contracts import (
    SECRET_REFERENCE,
    ApiKeyAuth,
    AuthorizationCodeAuth,
    BasicAuth,
    BearerAuth,
    ErrorCode,
    InvalidExpression,
    Json,
    JsonObject,
    MutualTlsAuth,
    NoAuth,
    OAuth2Auth,
    Principal,
    ProtectedResourceAuth,
    ProviderAuth,
    ProviderDefinition,
    Reason,
    SecurityRequirement,
    ToolcribError,
    ToolRevision,
    TwoStepAuth,
    digest,
)
from toolcrib.core.executor import CallFailed, SecretResolver, error
from toolcrib.core.expressions.jsonpath import select_one
from toolcrib.core.providers.auth.consents import Consents
from toolcrib.core.providers.auth.oauth import Client, Grant
from toolcrib.core.providers.auth.tokens import (
    FORM,
    LIFE_S,
    Endpoints,
    IssuedToken,
    Tokens,
    json_object,
    seconds,
    token_failure,
    unusable,
)
from toolcrib.core.registry import references_of
from toolcrib.infrastructure.net import TlsIdentity
from toolcrib.infrastructure.net.origins import origin_of


@dataclass(frozen=True, slots=True)
class TokenTerms:
    """What a token is asked for with: the definition, where it goes, and the secrets behind its references."""

    auth: TwoStepAuth
    url: str
    """In full."""
    values: Mapping[str, str] = field(repr=False)
    tls: TlsIdentity | None = field(default=None, repr=False)
    """Who we are, if the system wants to know that too."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown."""
        return tuple(self.values.values())

    def key(self) -> str:
        """Equal for logins that get the same token; holds no secret."""
        certificate = None if self.tls is None else self.tls.certificate
        described = [self.auth.model_dump(mode="json"), self.url, certificate, sorted(self.values.items())]
        return digest(orjson.dumps(described))

    async def fetch(self, endpoints: Endpoints, refresh_token: str | None) -> IssuedToken:
        """A new token; see `TokenSource.fetch`."""
        del refresh_token  # a login has none
        login = self.auth.login
        headers = {name.lower(): self._fill_secrets(text) for name, text in login.headers.items()}
        body: bytes | None = None
        if login.body is not None:
            body, kind = self._body(login.body, as_form=login.encoding == "form")
            headers = {"accept": "application/json", "content-type": kind} | headers
        answer = await endpoints.ask(login.method, self.url, headers, body, tls=self.tls)
        if not 200 <= answer.status < 300:
            raise token_failure(self.url, answer)
        return self._read(json_object(self.url, answer))

    def _body(self, body: JsonObject, *, as_form: bool) -> tuple[bytes, str]:
        filled = cast("JsonObject", self._everywhere(body))
        if as_form:
            return urlencode({name: str(value) for name, value in filled.items()}).encode(), FORM["content-type"]
        return orjson.dumps(filled), "application/json"

    def _everywhere(self, value: Json) -> Json:
        if isinstance(value, str):
            return self._fill_secrets(value)
        if isinstance(value, dict):
            return {name: self._everywhere(item) for name, item in cast("JsonObject", value).items()}
        if isinstance(value, list):
            return [self._everywhere(item) for item in cast("list[Json]", value)]
        return value

    def _fill_secrets(self, text: str) -> str:
        """A text with the secrets in the place of their references; what is in a secret is not looked at again."""

        def fill(match: re.Match[str]) -> str:
            return self.values[match[0]]

        return SECRET_REFERENCE.sub(fill, text)

    def _read(self, answer: JsonObject) -> IssuedToken:
        auth = self.auth
        try:
            token = select_one(auth.path, answer)
            life = None if auth.life_path is None else select_one(auth.life_path, answer)
        except InvalidExpression as problem:
            raise unusable(self.url, f"gave an answer to which a path cannot be applied: {problem}") from problem
        if not isinstance(token, str) or not token:
            raise unusable(self.url, f"answered without a text at {auth.path}, where the token should be")
        return IssuedToken(token, seconds(life, auth.life_s or LIFE_S))


_Way: TypeAlias = tuple[ProviderAuth, tuple[str, ...]]
"""One way to authenticate, and its scopes."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a request has to carry. Shows nothing of it in a representation."""

    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    """Names in lower case."""
    query: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    cookies: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    body: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    """Fields of a JSON object or form."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """The values that must not be shown, in every form in which they are sent."""
    fetched: tuple[str, ...] = field(default=(), repr=False)
    """Those of them that were fetched, which may be refused before they expire."""
    consented: bool = False
    """Whether a person has connected for them, who has to do so again if they are refused for good."""
    tls: TlsIdentity | None = None
    """Who we are to the server, and how it is known."""

    def __or__(self, other: "Credentials") -> "Credentials":
        """Both together."""
        return Credentials(
            self.headers | other.headers,
            self.query | other.query,
            self.cookies | other.cookies,
            self.body | other.body,
            self.secrets + other.secrets,
            self.fetched + other.fetched,
            self.consented or other.consented,
            self.tls or other.tls,
        )


@dataclass(frozen=True, slots=True)
class CredentialOwner:
    """In whose name credentials are taken, and where from."""

    principal: Principal
    secrets: SecretResolver = field(repr=False)
    tokens: Tokens = field(repr=False)
    consents: Consents = field(repr=False)

    async def secret(self, reference: str, hosts: Sequence[str] = ()) -> str | None:
        """The secret behind a reference, null if there is none.

        Args:
            reference: The reference.
            hosts: All hosts to which the secret is sent; none if it is used otherwise.

        Raises:
            CallFailed: `AUTH_REQUIRED`: the text is no reference, or what keeps the secret cannot be read.
        """
        try:
            return await self.secrets.resolve(reference, self.principal, hosts)
        except ToolcribError as problem:
            raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, str(problem))) from problem

    async def values(self, auth: ProviderAuth, provider: ProviderDefinition) -> dict[str, str]:
        """The secrets of a provider's way to authenticate by reference, empty where there is none."""
        hosts = hosts_of(auth, provider)
        return {reference: await self.secret(reference, hosts) or "" for reference in references_of(auth)}


def hosts_of(auth: ProviderAuth, provider: ProviderDefinition) -> Sequence[str]:
    """All hosts to which the secrets of a way to authenticate are sent; an empty name for one that cannot be read.

    A token endpoint that was discovered is trusted as the host of the document that names it.
    """
    match auth:
        case OAuth2Auth():
            urls = [auth.token_url or auth.discovery_url]
        case AuthorizationCodeAuth():
            urls = [auth.token_url or auth.discovery_url, *filter(None, [auth.revocation_url])]
        case ProtectedResourceAuth():
            urls = list(auth.authorization_servers)
        case TwoStepAuth():
            urls = [provider.locate(auth.login.url)]
        case _:
            urls = [provider.address]
    return [_host_of(url or "") for url in urls]


def all_ways(provider: ProviderDefinition) -> Sequence[ProviderAuth]:
    """All ways of a provider to authenticate."""
    return (provider.auth, *provider.schemes.values())


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


async def credentials_for(
    provider: ProviderDefinition,
    url: str,
    holder: CredentialOwner,
    security: Sequence[SecurityRequirement] | None = None,
) -> Credentials:
    """The provider's credentials for a request to a URL.

    Args:
        provider: Whose authentication is applied.
        url: Where the request goes.
        holder: Whose credentials they are.
        security: What the operation accepts; the provider's own if null.

    Raises:
        CallFailed: `AUTH_REQUIRED` if a secret is missing or the token endpoint refuses, `POLICY_DENIED` if the URL is
            not on the provider's origin; as `Tokens.token` otherwise.
    """
    chosen = await _choose_ways(provider, security, holder)
    if not chosen:
        return Credentials()
    origin = origin_of(url)
    if origin is None or origin != origin_of(provider.address):
        message = (
            f"the credentials of provider {provider.name!r} are for {provider.address} only and this tool calls "
            "another origin; correct its URL, or take its provider away"
        )
        raise CallFailed(error(ErrorCode.POLICY_DENIED, Reason.SSRF_BLOCKED, message))
    found = Credentials()
    for auth, scopes in sorted(chosen, key=lambda way: not isinstance(way[0], MutualTlsAuth)):  # others may need it
        found |= await _credentials(provider, auth, scopes, holder, found.tls)
    return found


def ways_accepted(
    provider: ProviderDefinition, security: Sequence[SecurityRequirement] | None
) -> Sequence[Sequence[_Way]]:
    """Alternatives of ways to authenticate, each with its scopes, in order of preference; an empty one needs nothing.

    Raises:
        CallFailed: `AUTH_REQUIRED`: a scheme is named that the provider does not define.
    """
    accepted = provider.security if security is None else security
    if accepted is None:
        return [[(provider.auth, ())]]
    alternatives = [_schemes(provider, requirement) for requirement in accepted if requirement]
    if len(alternatives) < len(accepted) or not accepted:
        alternatives.append([])
    return alternatives


async def _choose_ways(
    provider: ProviderDefinition, security: Sequence[SecurityRequirement] | None, holder: CredentialOwner
) -> Sequence[_Way]:
    """The ways to authenticate that are used together; empty for none."""
    lacking: list[list[str]] = []
    for schemes in ways_accepted(provider, security):
        used = [(auth, scopes) for auth, scopes in schemes if not isinstance(auth, NoAuth)]
        named = [(name, hosts_of(auth, provider)) for auth, _ in used for name in references_of(auth)]
        missing = [name for name, hosts in named if await holder.secret(name, hosts) is None]
        if not missing:
            return used
        lacking.append(missing)
    needed = ", or ".join(" and ".join(dict.fromkeys(missing)) for missing in lacking)
    verb, them = ("are", "them") if len(lacking) > 1 or len(lacking[0]) > 1 else ("is", "it")
    state = f"which {verb} not set or not released; set {them}, release variables by TOOLCRIB_RELEASED_ENV, call again"
    message = f"provider {provider.name!r} needs {needed}, {state}"
    first = {"reference": lacking[0][0], "alternatives": lacking}
    raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, message, **first))


def _schemes(provider: ProviderDefinition, requirement: Mapping[str, tuple[str, ...]]) -> Sequence[_Way]:
    unknown = sorted(set(requirement) - set(provider.schemes))
    if unknown:
        known = ", ".join(provider.schemes) or "none"
        message = (
            f"the tool authenticates with scheme {unknown[0]!r}, which provider {provider.name!r} does not define; "
            f"it has: {known}"
        )
        raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, message))
    return [(provider.schemes[name], scopes) for name, scopes in requirement.items()]


async def _credentials(
    provider: ProviderDefinition,
    auth: ProviderAuth,
    scopes: tuple[str, ...],
    holder: CredentialOwner,
    tls: TlsIdentity | None,
) -> Credentials:
    values = await holder.values(auth, provider)
    match auth:
        case NoAuth():
            return Credentials()
        case BearerAuth():
            return _bearer(values[auth.token])
        case BasicAuth():
            username, password = values[auth.username], values[auth.password]
            pair = base64.b64encode(f"{username}:{password}".encode()).decode()
            return Credentials(headers={"authorization": f"Basic {pair}"}, secrets=(username, password, pair))
        case ApiKeyAuth():
            return _place_credential(auth.place, auth.name, values[auth.key], values[auth.key])
        case OAuth2Auth():
            grant = Grant.of(auth, auth.scopes or scopes, values)
            token = await holder.tokens.token(grant)
            return Credentials(secrets=grant.secrets, fetched=(token,)) | _bearer(token)
        case AuthorizationCodeAuth():
            client = Client.of(auth, values)
            token = await holder.consents.token(provider, auth, client, holder.principal)
            return Credentials(secrets=client.secrets, fetched=(token,), consented=True) | _bearer(token)
        case ProtectedResourceAuth():
            token = await holder.consents.token(provider, auth, None, holder.principal)
            return Credentials(secrets=tuple(values.values()), fetched=(token,), consented=True) | _bearer(token)
        case TwoStepAuth():
            login = TokenTerms(auth, provider.locate(auth.login.url), values, tls)
            token = await holder.tokens.token(login)
            sent = _place_credential(auth.place, auth.name, auth.template.replace("{token}", token), token)
            return Credentials(secrets=login.secrets, fetched=(token,)) | sent
        case MutualTlsAuth():
            texts = (auth.certificate, auth.key, auth.password, auth.ca)
            identity = TlsIdentity(*(None if text is None else values[text] for text in texts))
            return Credentials(secrets=tuple(filter(None, (identity.key, identity.password))), tls=identity)
        case _:
            assert_never(auth)


def _bearer(token: str) -> Credentials:
    return Credentials(headers={"authorization": f"Bearer {token}"}, secrets=(token,))


def _place_credential(
    place: Literal["header", "query", "cookie", "body"], name: str, text: str, secret: str
) -> Credentials:
    match place:
        case "header":
            return Credentials(headers={name.lower(): text}, secrets=(secret,))
        case "query":
            return Credentials(query={name: text}, secrets=(secret,))
        case "cookie":
            return Credentials(cookies={name: text}, secrets=(secret,))
        case "body":
            return Credentials(body={name: text}, secrets=(secret,))
        case _:
            assert_never(place)


FindProvider: TypeAlias = Callable[[str, str], ProviderDefinition | None]
"""The provider of a realm (first) by name (second)."""


class ProviderAccess:
    """Finds providers for calls, and the credentials that a call may use there.

    Args:
        find: Finds providers.
        secrets: Resolves the references of their authentication.
        tokens: Fetches and keeps what token endpoints issue to us.
        consents: Has what they issue to people.
    """

    def __init__(self, find: FindProvider, secrets: SecretResolver, tokens: Tokens, consents: Consents) -> None:
        self._find = find
        self._secrets = secrets
        self._tokens = tokens
        self._consents = consents

    def require(self, tool: ToolRevision, name: str) -> ProviderDefinition:
        """The provider of a tool.

        Raises:
            CallFailed: `AUTH_REQUIRED` if there is none, `POLICY_DENIED` if it is disabled.
        """
        provider = self._find(tool.realm, name)
        if provider is None:
            message = f"tool {tool.name!r} authenticates with provider {name!r}, which does not exist; define it"
            raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, message))
        if not provider.enabled:
            message = f"tool {tool.name!r} needs provider {name!r}, which is disabled; enable it to call its tools"
            raise CallFailed(error(ErrorCode.POLICY_DENIED, Reason.PROVIDER_DISABLED, message))
        return provider

    async def secret(self, reference: str, principal: Principal) -> str | None:
        """The secret behind a reference that stands elsewhere than in the authentication; null if there is none.

        Raises:
            CallFailed: `AUTH_REQUIRED` if what keeps it cannot be read.
        """
        return await self.holder(principal).secret(reference)

    def holder(self, principal: Principal) -> CredentialOwner:
        """What a principal may take credentials from."""
        return CredentialOwner(principal, self._secrets, self._tokens, self._consents)

    async def credentials(
        self,
        provider: ProviderDefinition,
        url: str,
        principal: Principal,
        security: Sequence[SecurityRequirement] | None = None,
    ) -> Credentials:
        """The credentials of a principal for a request to a URL; see `credentials_for`."""
        return await credentials_for(provider, url, self.holder(principal), security)

    async def note_wanted_scopes(
        self, provider: ProviderDefinition, principal: Principal, scopes: tuple[str, ...]
    ) -> None:
        """A call has lacked these scopes: the next connection to a protected resource asks for them."""
        auth = next((way for way in all_ways(provider) if isinstance(way, ProtectedResourceAuth)), None)
        if auth is not None:
            await self._consents.note_wanted_scopes(provider, auth, principal, scopes)

    def forget(self, credentials: Credentials) -> bool:
        """These credentials were refused: returns whether there are tokens among them to fetch anew."""
        self._consents.forget(credentials.fetched)
        return self._tokens.forget(credentials.fetched)
