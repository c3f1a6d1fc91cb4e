"""How a provider is reached: over plain HTTP, as an MCP server, as a gRPC server, or as a database."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract

McpTransport: TypeAlias = Literal["streamable_http", "sse", "stdio"]


class HttpConnection(Contract):
    """Requests to the provider's `base_url`."""

    kind: Literal["http"] = "http"


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


class GrpcConnection(Contract):
    """A gRPC server at the provider's `base_url`: `grpc://host:port`, or `grpcs://host:port` over TLS."""

    kind: Literal["grpc"] = "grpc"
    authority: str | None = None
    """Name that the server's certificate is held against, if it is not the host."""


class DatabaseConnection(Contract):
    """A database that SQLAlchemy knows."""

    kind: Literal["database"] = "database"
    url: str | None = None
    """Reference to the database's URL: `${env:NAME}`; null if the application binds an engine in code."""


Connection: TypeAlias = Annotated[
    HttpConnection | McpConnection | GrpcConnection | DatabaseConnection, Field(discriminator="kind")
]
