"""Where a provider is, as its kind of connection says it: a URL, a program, a database. Nothing is opened for it."""

import re
from collections.abc import Iterator
from typing import Final, assert_never

from toolcrib.contracts import DatabaseConnection, GrpcConnection, HttpConnection, McpConnection, ProviderDefinition

ABSOLUTE: Final = re.compile(r"https?://[^/?#\s]+([/?#][^\x00-\x1f\x7f]*)?", re.IGNORECASE)
"""A space may stand behind the host, also in the name of a placeholder: it is encoded when it is sent."""

_GRPC: Final = re.compile(r"grpcs?://[^/?#\s]+", re.IGNORECASE)


def address_problems(provider: ProviderDefinition) -> Iterator[str]:
    """What is wrong with a provider's address, and with the address for this kind of connection."""
    address = provider.address
    match provider.connection:
        case McpConnection() as mcp:
            yield from _mcp_problems(mcp, address)
        case HttpConnection():
            yield from _web_problems(address)
        case GrpcConnection():
            if not _GRPC.fullmatch(address):
                yield f"base_url {address!r} names no gRPC server; write it as grpc://host:port or grpcs://host:port"
        case DatabaseConnection():
            if address:
                yield "a database has its URL in connection.url, not in base_url; take base_url away"
        case _:
            assert_never(provider.connection)


def _mcp_problems(connection: McpConnection, address: str) -> Iterator[str]:
    if connection.transport != "stdio":
        yield from _web_problems(address)
        if connection.command or connection.environment:
            yield f"an MCP server over {connection.transport} starts no program; take command and environment away"
        return
    if not connection.command:
        yield "an MCP server over stdio has a command; give the program and its arguments"
    if address:
        yield f"an MCP server over stdio has no base_url, and this one has {address!r}; take it away"


def _web_problems(address: str) -> Iterator[str]:
    if not ABSOLUTE.fullmatch(address):
        yield f"base_url {address!r} is not absolute; write it as https://host/path"
