"""A provider: a system that tools talk to, with its address, its authentication and its default headers."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts._base import Contract, JsonObject
from toolcrib.contracts.tools import NAME_PATTERN


class NoAuth(Contract):
    """The system asks for no credentials."""

    kind: Literal["none"] = "none"


class BearerAuth(Contract):
    """`Authorization: Bearer …`."""

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


ProviderAuth: TypeAlias = Annotated[NoAuth | BearerAuth | ApiKeyAuth | BasicAuth, Field(discriminator="kind")]


class ProviderDefinition(Contract):
    """A system and how to reach it. Secrets only by reference."""

    name: str = Field(pattern=NAME_PATTERN)
    title: str | None = None
    base_url: str
    auth: ProviderAuth = NoAuth()
    headers: dict[str, str] = Field(default_factory=dict)
    metadata: JsonObject = Field(default_factory=dict)
    """Where it came from: document title, version, digest."""
