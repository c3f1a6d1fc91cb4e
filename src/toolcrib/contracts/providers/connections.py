"""How a provider is reached (HTTP, MCP, gRPC, a database), what a test of it found, and metadata of secrets and grants.

Nothing here contains the value of a secret or a token.
"""

from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Timestamp
from toolcrib.contracts.base.errors import ToolError

McpTransport: TypeAlias = Literal["streamable_http", "sse", "stdio"]
McpInputRequests: TypeAlias = Literal["refuse", "defaults", "ask"]


class HttpConnection(Contract):
    """Requests to the provider's `base_url`."""

    kind: Literal["http"] = "http"
    test_path: str | None = Field(default=None, pattern=r"^/", max_length=2_000)
    """Path below `base_url` of a GET that changes nothing and needs credentials, such as `/me`, for connection tests;
    the base address itself if null."""


class McpConnection(Contract):
    """An MCP server (modelcontextprotocol.io): at the provider's `base_url`, or a program that is started here."""

    kind: Literal["mcp"] = "mcp"
    transport: McpTransport = "streamable_http"
    command: tuple[str, ...] = ()
    """The program and its arguments, for `stdio`. Only what the operator has allowed is ever started."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables of the program: text, or references such as `${env:NAME}`. It gets nothing else of ours."""
    verify_s: float = Field(default=0.0, ge=0)
    """Seconds for which a tool that was compared with what it was when it was trusted is not compared again; 0: before
    each call."""
    input_requests: McpInputRequests = "refuse"
    """What a server gets that asks for input during a call (elicitation): a refusal; a form that is filled with the
    defaults of its fields, if every required field has one; or the answer of who has started the run (`ask`), which
    waits for it. Only servers of protocol revision 2026-07-28 can wait; `ask` refuses others."""


class GrpcConnection(Contract):
    """A gRPC server at the provider's `base_url`: `grpc://host:port`, or `grpcs://host:port` over TLS."""

    kind: Literal["grpc"] = "grpc"
    authority: str | None = None
    """Name that the server's certificate must have, if it is not the host."""


class DatabaseConnection(Contract):
    """A database that SQLAlchemy knows."""

    kind: Literal["database"] = "database"
    url: str | None = None
    """Reference to the database's URL: `${env:NAME}`; null if the application binds an engine in code."""


Connection: TypeAlias = Annotated[
    HttpConnection | McpConnection | GrpcConnection | DatabaseConnection, Field(discriminator="kind")
]


class ProviderCheck(Contract):
    """What harmless requests or a connection to a provider have shown, made with the caller's credentials."""

    provider: str
    reachable: bool | None
    """Whether it answered at all; null if nothing was sent, because a secret is missing or an address is forbidden."""
    authenticated: bool | None
    """Whether it accepted the credentials; null if unknown: it was not reached, requires none, or answers alike without
    them."""
    has_credentials: bool = False
    """Whether its definition names credentials."""
    message: str
    seconds: float
    http_status: int | None = None
    error: ToolError | None = None
    """What a call would fail with."""


class Discovery(Contract):
    """What a provider offers for import."""

    provider: str
    items: tuple[str, ...]
    """Names of tools, services or tables, or addresses of documents; sorted."""
    kind: str
    """What they are: `tools`, `services`, `tables`, `documents`."""
    message: str
    """How to import them."""


SecretScope: TypeAlias = Literal["user", "realm", "org"]
"""Whose a secret is: one user's in a realm, the realm's, or that of all realms."""

SECRET_SCOPES: Final[tuple[SecretScope, ...]] = get_args(SecretScope)
"""In the order in which a name is looked up."""


class SecretEntry(Contract):
    """A secret in the vault. Its value is written and used, never read back."""

    name: str
    scope: SecretScope
    version: int
    """Number of times it was set."""
    made_by: str
    created_at: Timestamp
    """When this version was set."""


ConsentStatus: TypeAlias = Literal["connected", "reconnect_required"]


class ConsentRequest(Contract):
    """Where a person is sent to connect, and what comes back with them."""

    provider: str
    url: str
    """To be opened in the person's browser."""
    state: str
    """Returned once in the redirect; it belongs to the principal that began."""
    redirect_uri: str
    expires_at: Timestamp


class Consent(Contract):
    """A connection of a user, or of the whole realm, to a provider."""

    provider: str
    user: str | None
    """Whose it is; null if it is shared by all of the realm."""
    status: ConsentStatus
    problem: str | None = None
    """Why it has to be made again."""
    scopes: tuple[str, ...] = ()
    expires_at: Timestamp | None = None
    """When the current token expires; it is then refreshed if possible."""
    refreshable: bool
    made_by: str
    updated_at: Timestamp


class Revocation(Contract):
    """The result of revoking a connection. It is deleted here in any case."""

    provider: str
    user: str | None
    revoked: bool
    """Whether the server has taken its tokens back."""
    message: str
