"""The shape of an A2A tool: an agent of another system."""

from typing import Literal, TypeAlias

from toolcrib.contracts.base.base import JsonObject
from toolcrib.contracts.base.implementations import Implementation

A2aBinding: TypeAlias = Literal["JSONRPC", "HTTP+JSON"]


class A2aImplementation(Implementation):
    """An agent, as its card describes it. Address and credentials come from its provider."""

    kind: Literal["a2a"] = "a2a"
    has_outside_text = True
    is_agent = True

    provider: str
    agent: str
    """Its own name."""
    binding: A2aBinding = "JSONRPC"
    """How its protocol is carried."""
    protocol_version: str = "1.0"
    """Of A2A: `1.0`, or `0.3` for older agents."""

    @property
    def provider_name(self) -> str:
        """Name of the provider, the agent's address."""
        return self.provider

    def client_operation(self) -> JsonObject:
        """The agent and its provider."""
        return {"provider": self.provider, "agent": self.agent}
