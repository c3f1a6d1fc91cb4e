"""A tool, a resource or a prompt of an MCP server."""

from typing import Literal, TypeAlias

from toolcrib.contracts.base.base import Contract

McpCapability: TypeAlias = Literal["tool", "resource", "prompt"]


class McpImplementation(Contract):
    """What an MCP server offers under a name. Its server is the provider."""

    kind: Literal["mcp"] = "mcp"
    provider: str
    capability: McpCapability = "tool"
    name: str
    """The server's name of a tool or prompt; the URI, or the URI template (RFC 6570), of a resource."""
    fingerprint: dict[str, str]
    """Hash of each thing that the server said about it when it was trusted, by the server's name of it: `description`,
    `inputSchema`, `annotations`… A server that says something else is not called until a person has looked at the
    difference."""
