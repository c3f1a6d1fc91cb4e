"""A provider: a system that tools talk to, with its address, its authentication and its default headers."""

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts._base import Contract, JsonObject
from toolcrib.contracts.connections import Connection, HttpConnection
from toolcrib.contracts.references import ReferenceSource
from toolcrib.contracts.retries import RetryPolicy

NAME_PATTERN = r"^[A-Za-z][A-Za-z0-9_.\-]{0,127}$"
"""Names of providers and tools."""

_VARIABLE = re.compile(r"\{([^{}]*)\}")


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


class ServerVariable(Contract):
    """A part of the base address that differs between installations (OpenAPI 3.1, Server Variable Object)."""

    default: str
    value: str | None = None
    """What is used; the default if null."""
    enum: tuple[str, ...] = ()
    """The values that are allowed; empty for any."""
    description: str = ""


class ProviderDefinition(Contract):
    """A system and how to reach it. Secrets only by reference."""

    name: str = Field(pattern=NAME_PATTERN)
    title: str | None = None
    enabled: bool = True
    """Its tools are not called while it is not."""
    connection: Connection = HttpConnection()
    base_url: str = ""
    """Absolute, with `{name}` for variables; empty for a program, and for a database."""
    variables: dict[str, ServerVariable] = Field(default_factory=dict)
    auth: ProviderAuth = NoAuth()
    """The one way to authenticate, where `security` is null and the operation names no other."""
    schemes: dict[str, ProviderAuth] = Field(default_factory=dict)
    """Ways to authenticate by name, for `security` here and in operations."""
    security: tuple[SecurityRequirement, ...] | None = None
    """For operations that say nothing: alternatives of which one is met, in order of preference."""
    headers: dict[str, str] = Field(default_factory=dict)
    timeout_s: float | None = Field(default=None, gt=0)
    """Seconds of one request; a tool's own `timeout_s` bounds all of its call."""
    retry: RetryPolicy | None = None
    """For tools whose own `retry` has a count of 0."""
    reference_data: tuple[ReferenceSource, ...] = ()
    """Lists of valid values that agentic tools may name, read by tools of this provider."""
    metadata: JsonObject = Field(default_factory=dict)
    """Where it came from: document title, version, digest."""

    @property
    def address(self) -> str:
        """The base address with its variables filled in; a name that is no variable stays."""

        def fill(match: re.Match[str]) -> str:
            variable = self.variables.get(match[1])
            if variable is None:
                return match[0]
            return variable.default if variable.value is None else variable.value

        return _VARIABLE.sub(fill, self.base_url)

    def locate(self, url: str) -> str:
        """An operation's URL in full: below the base address if it is a path, with the variables filled in either case.

        Args:
            url: From `/` on, or absolute; one that does not begin with `base_url` stays as it is.
        """
        if url.startswith("/"):
            return self.address.rstrip("/") + url
        return self.address + url.removeprefix(self.base_url) if url.startswith(self.base_url) else url
