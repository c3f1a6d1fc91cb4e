"""Credentials of a provider as parts of a request. Pure: whoever calls resolves the references and sends the request.

Credentials go to the provider's own origin and nowhere else, so that a tool whose URL leads elsewhere cannot carry them
away.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import assert_never

from toolcrib.contracts import (
    ApiKeyAuth,
    BasicAuth,
    BearerAuth,
    ErrorCode,
    NoAuth,
    ProviderDefinition,
    Reason,
)
from toolcrib.executor import CallFailed, error
from toolcrib.providers.origins import origin_of


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a request has to carry. Shows nothing of it in a representation."""

    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    """Names in lower case."""
    query: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    cookies: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """The values that must not be shown, in every form in which they are sent."""


def credentials_for(provider: ProviderDefinition, url: str, resolve: Callable[[str], str | None]) -> Credentials:
    """The provider's credentials for a request to a URL.

    Args:
        provider: Whose authentication is applied.
        url: Where the request goes.
        resolve: The secret behind a reference, null if there is none.

    Raises:
        CallFailed: `AUTH_REQUIRED` if a secret is missing, `POLICY_DENIED` if the URL is not on the provider's origin.
    """
    if isinstance(provider.auth, NoAuth):
        return Credentials()
    if origin_of(url) is None or origin_of(url) != origin_of(provider.base_url):
        message = (
            f"the credentials of provider {provider.name!r} are for {provider.base_url} only and this tool calls "
            "another origin; correct its URL, or take its provider away"
        )
        raise CallFailed(error(ErrorCode.POLICY_DENIED, Reason.SSRF_BLOCKED, message))
    return _credentials(provider.auth, lambda reference: _secret(provider, reference, resolve))


def _credentials(auth: BearerAuth | BasicAuth | ApiKeyAuth, secret: Callable[[str], str]) -> Credentials:
    match auth:
        case BearerAuth():
            token = secret(auth.token)
            return Credentials(headers={"authorization": f"Bearer {token}"}, secrets=(token,))
        case BasicAuth():
            username, password = secret(auth.username), secret(auth.password)
            pair = base64.b64encode(f"{username}:{password}".encode()).decode()
            return Credentials(headers={"authorization": f"Basic {pair}"}, secrets=(username, password, pair))
        case ApiKeyAuth():
            return _key(auth, secret(auth.key))
        case _:
            assert_never(auth)


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


def _secret(provider: ProviderDefinition, reference: str, resolve: Callable[[str], str | None]) -> str:
    value = resolve(reference)
    if value is None:
        message = (
            f"provider {provider.name!r} needs {reference}, which is not set or not released; set it and call again"
        )
        raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, message, reference=reference))
    return value
