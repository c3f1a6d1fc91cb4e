"""How calls authenticate to a provider. Credentials are references here, never values.

A reference is `${env:NAME}` (a variable that the operator has released) or `${secret:NAME}` (a secret in the vault).
"""

import re
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, JsonObject

SECRET_REFERENCE: Final = re.compile(r"\$\{(env|secret):([A-Za-z_][A-Za-z0-9_]{0,127})\}")
"""A reference to a secret: where it is kept, and its name."""


class NoAuth(Contract):
    """The system asks for no credentials."""

    kind: Literal["none"] = "none"


class BearerAuth(Contract):
    """`Authorization: Bearer …`: a token that was created in the provider's system."""

    kind: Literal["bearer"] = "bearer"
    token: str
    """Reference: `${env:NAME}`."""


class ApiKeyAuth(Contract):
    """A key in a header, a query parameter, a cookie, or a field of the body."""

    kind: Literal["api_key"] = "api_key"
    key: str
    """Reference: `${env:NAME}`."""
    place: Literal["header", "query", "cookie", "body"] = "header"
    """`body`: only tools whose body has a field of this name send it."""
    name: str


class BasicAuth(Contract):
    """`Authorization: Basic …` (RFC 7617)."""

    kind: Literal["basic"] = "basic"
    username: str
    """Reference: `${env:NAME}`."""
    password: str
    """Reference: `${env:NAME}`."""


class OAuth2Auth(Contract):
    """A bearer token that is fetched from a token endpoint and kept in memory until shortly before it expires.

    The endpoint is `token_url`, or what the document at `discovery_url` names (OpenID Connect Discovery 1.0).
    """

    kind: Literal["oauth2"] = "oauth2"
    grant: Literal["client_credentials", "refresh_token"] = "client_credentials"
    """RFC 6749, sections 4.4 and 6."""
    token_url: str | None = None
    discovery_url: str | None = None
    """`…/.well-known/openid-configuration`."""
    client_id: str
    """The id itself, or a reference."""
    client_secret: str | None = None
    """Reference: `${env:NAME}`; null for a public client, which only refreshes."""
    refresh_token: str | None = None
    """Reference: `${env:NAME}`, for the grant of that name. A token that the endpoint puts in its place is kept in
    memory only."""
    client_auth: Literal["basic", "body"] = "basic"
    """Where the client's secret goes (RFC 6749, section 2.3.1)."""
    scopes: tuple[str, ...] = ()
    """Asked for; those that the operation names if empty."""
    audience: str | None = None
    """Sent as `audience`, which some servers want."""


class AuthorizationCodeAuth(Contract):
    """A bearer token that a person grants in a browser (RFC 6749, section 4.1, with PKCE, RFC 7636).

    Each user connects for themselves, or one person for the whole realm if `shared`. The tokens are kept sealed and
    refreshed when they expire. The endpoints are given, or found in the document at `discovery_url` (OpenID Connect
    Discovery 1.0 or RFC 8414).
    """

    kind: Literal["authorization_code"] = "authorization_code"
    authorization_url: str | None = None
    """Where the person is sent: https, or http on this machine."""
    token_url: str | None = None
    revocation_url: str | None = None
    """RFC 7009; null if the server has none, or discovery finds it."""
    discovery_url: str | None = None
    """`…/.well-known/openid-configuration` or `…/.well-known/oauth-authorization-server`."""
    client_id: str
    """The id itself, or a reference."""
    client_secret: str | None = None
    """Reference; null for a public client."""
    client_auth: Literal["basic", "body"] = "basic"
    """Where the client's secret goes (RFC 6749, section 2.3.1)."""
    scopes: tuple[str, ...] = ()
    resource: str | None = None
    """The API that the token is for (RFC 8707)."""
    parameters: dict[str, str] = Field(default_factory=dict)
    """Further parameters of the authorization request that a server wants: `access_type`, `prompt`, `audience`."""
    shared: bool = False
    """Whether all of the realm use one connection, instead of each user their own."""


class ProtectedResourceAuth(Contract):
    """A bearer token that a person grants at the authorization server which the provider itself names (RFC 9728).

    The authorization server, its endpoints and the scopes are looked up when somebody connects, from the challenge of
    the provider (`WWW-Authenticate`) and the documents that it leads to. If the provider moves to another server, or
    wants further scopes, calls fail with `reconnect_required`, and the next connection is made there and with those
    scopes too. A client is registered at each server (RFC 7591), unless one is named here.
    """

    kind: Literal["protected_resource"] = "protected_resource"
    authorization_servers: tuple[str, ...] = ()
    """Issuers that people may be sent to; any one that the provider names if empty."""
    client_id: str | None = None
    """The id itself, or a reference: of a client at the one issuer in `authorization_servers`. Null to register one."""
    client_secret: str | None = None
    """Reference; null for a public client."""
    client_metadata_url: str | None = None
    """Where the client describes itself, for servers that know clients by that (Client ID Metadata Documents)."""
    scopes: tuple[str, ...] = ()
    """Asked for beside those that the provider wants."""
    shared: bool = False
    """Whether all of the realm use one connection, instead of each user their own."""


class LoginRequest(Contract):
    """The request that returns a token. Texts in headers and body may contain references to secrets."""

    method: Literal["GET", "POST", "PUT"] = "POST"
    url: str
    """From `/` on below the provider's `base_url`, or absolute."""
    headers: dict[str, str] = Field(default_factory=dict)
    body: JsonObject | None = None
    encoding: Literal["json", "form"] = "json"


class TwoStepAuth(Contract):
    """A token from a login of the system's own, which is sent with each request until it expires or is refused."""

    kind: Literal["two_step"] = "two_step"
    login: LoginRequest
    path: str = "$.token"
    """Where the token is in the answer (JSONPath, RFC 9535)."""
    life_path: str | None = None
    """Where the answer has the seconds that it lives (JSONPath); null if it does not say."""
    life_s: float | None = Field(default=None, gt=0)
    """Seconds that it lives, where the answer does not say; five minutes if null."""
    place: Literal["header", "query", "cookie"] = "header"
    name: str = "Authorization"
    template: str = "Bearer {token}"
    """What is sent: `Token {token}`, `{token}`."""


class MutualTlsAuth(Contract):
    """A client certificate (mutual TLS), a private authority for the server's, or both. Texts in PEM.

    It goes together with any other kind, as schemes of one alternative in `security`.
    """

    kind: Literal["mutual_tls"] = "mutual_tls"
    certificate: str | None = None
    """Reference: our certificate, followed by those between it and its authority."""
    key: str | None = None
    """Reference: the private key of our certificate."""
    password: str | None = None
    """Reference: of the key, if it is encrypted."""
    ca: str | None = None
    """Reference: the authorities that the server's certificate may come from; null for the usual ones."""


ProviderAuth: TypeAlias = Annotated[
    NoAuth
    | BearerAuth
    | ApiKeyAuth
    | BasicAuth
    | OAuth2Auth
    | AuthorizationCodeAuth
    | ProtectedResourceAuth
    | TwoStepAuth
    | MutualTlsAuth,
    Field(discriminator="kind"),
]
SecurityRequirement: TypeAlias = dict[str, tuple[str, ...]]
"""Schemes by name, all of which are needed together, each with its scopes; empty if nothing is needed
(OpenAPI 3.1, Security Requirement Object)."""
