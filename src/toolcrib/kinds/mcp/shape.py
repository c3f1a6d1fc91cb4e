"""The shape of an MCP tool: a tool, a resource or a prompt of an MCP server."""

from typing import Literal, TypeAlias

from toolcrib.contracts.base.base import JsonObject
from toolcrib.contracts.base.implementations import Implementation

McpCapability: TypeAlias = Literal["tool", "resource", "prompt"]


class McpImplementation(Implementation):
    """What an MCP server offers under a name. Its server is the provider."""

    kind: Literal["mcp"] = "mcp"
    has_outside_text = True

    provider: str
    capability: McpCapability = "tool"
    name: str
    """The server's name of a tool or prompt; the URI, or the URI template (RFC 6570), of a resource."""
    fingerprint: dict[str, str]
    """Hash of each thing that the server said about it when it was trusted, by the server's name of it: `description`,
    `inputSchema`, `annotations`… A server that says something else is not called until a person has looked at the
    difference."""

    @property
    def provider_name(self) -> str:
        """Name of the provider, the MCP server."""
        return self.provider

    def client_operation(self) -> JsonObject:
        """The name of the offer and of its server."""
        return {"provider": self.provider, "capability": self.capability, "name": self.name}
