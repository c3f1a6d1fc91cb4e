"""What a provider says about reaching it, for the runtime of any kind.

That is how long one request may take, and how often a call is tried again: not authentication, not the request itself.
"""

from collections.abc import Callable
from typing import TypeAlias

from toolcrib.contracts import (
    EntityImplementation,
    GrpcImplementation,
    HttpImplementation,
    McpImplementation,
    ProviderDefinition,
    ToolDefinition,
    ToolRevision,
)

Providers: TypeAlias = Callable[[str, str], ProviderDefinition | None]
"""The provider of a realm (first) by name (second)."""


def provider_of(tool: ToolRevision, providers: Providers) -> ProviderDefinition | None:
    """The provider that a tool names; null if it names none, or one that does not exist."""
    match tool.definition.implementation:
        case HttpImplementation() | McpImplementation() | GrpcImplementation() | EntityImplementation() as reaching:
            return None if reaching.provider is None else providers(tool.realm, reaching.provider)
        case _:
            return None


def request_limit_s(tool: ToolDefinition, provider: ProviderDefinition | None) -> float:
    """Seconds that one request of a tool may take: the provider's limit within that of the whole call."""
    if provider is None or provider.timeout_s is None:
        return tool.timeout_s
    return min(tool.timeout_s, provider.timeout_s)
