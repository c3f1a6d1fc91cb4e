"""Credentials of a provider as parts of a request. Whoever calls resolves the references and sends the request.

Credentials go to the provider's own origin and nowhere else, so that a tool whose URL leads elsewhere cannot carry them
away. Of the alternatives that an operation accepts, the first whose secrets are all there is met; doing without
credentials is the last one, wherever it stands.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from toolcrib.contracts import (
    ApiKeyAuth,
    BasicAuth,
    BearerAuth,
    ErrorCode,
    NoAuth,
    OAuth2Auth,
    Principal,
    ProviderAuth,
    ProviderDefinition,
    Reason,
    SecurityRequirement,
)
from toolcrib.executor import CallFailed, Secrets, error
from toolcrib.providers.origins import origin_of
from toolcrib.providers.tokens import Grant, Tokens

_Way: TypeAlias = tuple[ProviderAuth, tuple[str, ...]]
"""One way to authenticate, and its scopes."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a request has to carry. Shows nothing of it in a representation."""

    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    """Names in lower case."""
    query: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    cookies: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """The values that must not be shown, in every form in which they are sent."""
    fetched: tuple[str, ...] = field(default=(), repr=False)
    """Those of them that a token endpoint has issued, which may be refused before they expire."""

    def __or__(self, other: "Credentials") -> "Credentials":
        """Both together."""
        return Credentials(
            self.headers | other.headers,
            self.query | other.query,
            self.cookies | other.cookies,
            self.secrets + other.secrets,
            self.fetched + other.fetched,
        )


@dataclass(frozen=True, slots=True)
class Holder:
    """In whose name credentials are taken, and where from."""

    principal: Principal
    secrets: Secrets = field(repr=False)
    tokens: Tokens = field(repr=False)

    async def secret(self, reference: str) -> str | None:
        """The secret behind a reference, null if there is none."""
        return await self.secrets.resolve(reference, self.principal)


async def credentials_for(
    provider: ProviderDefinition,
    url: str,
    holder: Holder,
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
    chosen = await _chosen(provider, security, holder)
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
    for auth, scopes in chosen:
        found |= await _credentials(auth, scopes, holder)
    return found


async def _chosen(
    provider: ProviderDefinition, security: Sequence[SecurityRequirement] | None, holder: Holder
) -> Sequence[_Way]:
    """The ways to authenticate that are used together; empty for none."""
    accepted = provider.security if security is None else security
    if accepted is None:
        alternatives = [[(provider.auth, tuple[str, ...]())]]
    else:
        alternatives = [_schemes(provider, requirement) for requirement in accepted if requirement]
        if len(alternatives) < len(accepted) or not accepted:
            alternatives.append([])
    lacking: list[list[str]] = []
    for schemes in alternatives:
        used = [(auth, scopes) for auth, scopes in schemes if not isinstance(auth, NoAuth)]
        named = [name for auth, _ in used for name in _references(auth)]
        missing = [name for name in named if await holder.secret(name) is None]
        if not missing:
            return used
        lacking.append(missing)
    needed = ", or ".join(" and ".join(dict.fromkeys(missing)) for missing in lacking)
    verb = "are" if len(lacking) > 1 or len(lacking[0]) > 1 else "is"
    message = f"provider {provider.name!r} needs {needed}, which {verb} not set or not released; set it and call again"
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


def _references(auth: ProviderAuth) -> Iterable[str]:
    match auth:
        case NoAuth():
            return ()
        case BearerAuth():
            return (auth.token,)
        case BasicAuth():
            return (auth.username, auth.password)
        case ApiKeyAuth():
            return (auth.key,)
        case OAuth2Auth():
            return filter(None, (auth.client_id, auth.client_secret, auth.refresh_token))
        case _:
            assert_never(auth)


async def _credentials(auth: ProviderAuth, scopes: tuple[str, ...], holder: Holder) -> Credentials:
    values = {reference: await holder.secret(reference) or "" for reference in _references(auth)}
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
            return _key(auth, values[auth.key])
        case OAuth2Auth():
            grant = Grant.of(auth, auth.scopes or scopes, values)
            token = await holder.tokens.token(grant)
            return Credentials(secrets=grant.secrets, fetched=(token,)) | _bearer(token)
        case _:
            assert_never(auth)


def _bearer(token: str) -> Credentials:
    return Credentials(headers={"authorization": f"Bearer {token}"}, secrets=(token,))


def _key(auth: ApiKeyAuth, key: str) -> Credentials:
    match auth.place:
        case "header":
            return Credentials(headers={auth.name.lower(): key}, secrets=(key,))
        case "query":
            return Credentials(query={auth.name: key}, secrets=(key,))
        case "cookie":
            return Credentials(cookies={auth.name: key}, secrets=(key,))
        case _:
            assert_never(auth.place)
