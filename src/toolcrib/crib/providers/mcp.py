"""MCP servers into a crib: connected, asked what they list, imported under free names.

Nothing is started that the operator has not allowed, and nothing that a server offers is called. A server that refuses
the credentials is an error that says so, never an import without tools.
"""

from collections.abc import Collection

from toolcrib.contracts import (
    JsonObject,
    McpConnection,
    McpImplementation,
    NoAuth,
    Principal,
    ProviderAuth,
    ProviderDefinition,
    ToolRevision,
)
from toolcrib.core.executor import CallFailed
from toolcrib.core.providers import ImportedApi
from toolcrib.core.registry.checks.http import check_provider
from toolcrib.crib.providers.failures import in_the_tree
from toolcrib.crib.providers.names import names_before
from toolcrib.kinds.mcp.importer import NAMED_BY, import_mcp
from toolcrib.kinds.mcp.runtime import McpServers


async def import_mcp_server(
    servers: McpServers, provider: ProviderDefinition, who: Principal, tools: Collection[ToolRevision]
) -> ImportedApi:
    """Import what a server offers.

    Args:
        servers: Connects to it.
        provider: The server.
        who: In whose name it is asked.
        tools: All tools of the realm.

    Raises:
        InvalidDefinition: The provider is not well formed.
        PermissionDenied: Its program may not be started, or the policy forbids its address.
        ReconnectRequired: It refuses the credentials, or there are none.
        Unavailable: It cannot be connected, or does not answer.
        InvalidInput: Its answers are no MCP.
    """
    check_provider(provider)
    try:
        async with servers.connection(who.realm, provider, who) as connection:
            listing = await connection.listing(tuple(NAMED_BY))
    except CallFailed as failure:
        raise in_the_tree(failure.error) from failure
    taken = {tool.name for tool in tools if tool.definition.provider != provider.name}
    known = names_before(provider.name, tools, McpImplementation, lambda made: (made.capability, made.name))
    return import_mcp(listing, provider, known=known, taken=taken)


def mcp_provider(
    name: str,
    connection: McpConnection,
    url: str,
    auth: ProviderAuth | None,
    earlier: ProviderDefinition | None,
) -> ProviderDefinition:
    """The provider that is imported: what is said of it now, and for the rest what it was before.

    Without being said so, credentials stay only where the address stays: they are not for another server.
    """
    if earlier is None:
        return ProviderDefinition(name=name, connection=connection, base_url=url, auth=auth or NoAuth())
    same = earlier.base_url == url and auth is None
    kept = {"auth": earlier.auth, "schemes": earlier.schemes, "security": earlier.security} if same else {}
    said: JsonObject = {
        "connection": connection,
        "base_url": url,
        "auth": auth or NoAuth(),
        "schemes": {},
        "security": None,
    }
    return earlier.model_copy(update={**said, **kept})
