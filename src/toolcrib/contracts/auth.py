"""How callers authenticate to a provider. A credential stands here by reference only, never as a value.

A reference is `${env:NAME}`, a variable that the operator has released, or `${secret:NAME}`, which the vault keeps.
"""

import re
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts._base import Contract

SECRET_REFERENCE: Final = re.compile(r"\$\{(env|secret):([A-Za-z_][A-Za-z0-9_]{0,127})\}")
"""A reference to a secret: where it is kept, and its name."""


class NoAuth(Contract):
    """The system asks for no credentials."""

    kind: Literal["none"] = "none"


class BearerAuth(Contract):
    """`Authorization: Bearer …`: also for OAuth 2 flows in which a person gets the token."""

    kind: Literal["bearer"] = "bearer"
    token: str
    """Reference: `${env:NAME}`."""


class ApiKeyAuth(Contract):
    """A key in a header, a query parameter or a cookie."""

    kind: Literal["api_key"] = "api_key"
    key: str
    """Reference: `${env:NAME}`."""
    place: Literal["header", "query", "cookie"] = "header"
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
    """Reference: `${env:NAME}`."""
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


ProviderAuth: TypeAlias = Annotated[
    NoAuth | BearerAuth | ApiKeyAuth | BasicAuth | OAuth2Auth, Field(discriminator="kind")
]
SecurityRequirement: TypeAlias = dict[str, tuple[str, ...]]
"""Schemes by name, all of which are needed together, each with its scopes; empty if nothing is needed
(OpenAPI 3.1, Security Requirement Object)."""
