"""gRPC servers into a crib: described by themselves or by a descriptor set, imported in a thread, under free names.

MCP servers into a crib: connected, asked what they list, imported under free names.

Nothing is started that the operator has not allowed, and nothing that a server offers is called. A server that refuses
the credentials is an error that says so, never an import without tools.
"""

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

from toolcrib.contracts import (
    GrpcConnection,
    GrpcImplementation,
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
from toolcrib.crib.providers.names import in_the_tree, names_before, under_free_names
from toolcrib.kinds.grpc.runtime import GrpcRuntime
from toolcrib.kinds.mcp.importer import NAMED_BY, import_mcp
from toolcrib.kinds.mcp.runtime import McpServers

if TYPE_CHECKING:
    from toolcrib.kinds.grpc.importer import GrpcApi, Reflected
    from toolcrib.kinds.grpc.runtime.calls import GrpcCalls


async def import_server(
    runtime: GrpcRuntime,
    address: str,
    *,
    name: str,
    descriptors: bytes | None,
    auth: ProviderAuth | None,
    authority: str | None,
    who: Principal,
    provider: ProviderDefinition | None,
    tools: Collection[ToolRevision],
) -> "GrpcApi":
    """Import what a server serves.

    Args:
        runtime: Has the way to the server.
        address: `grpc://host:port`, or `grpcs://host:port`.
        name: The provider's name.
        descriptors: A serialized `FileDescriptorSet`; null to ask the server.
        auth: How to authenticate; null for what the provider of this name and address has.
        authority: Name that the server's certificate is held against, if it is not the host.
        who: In whose name the server is asked.
        provider: The provider of this name, if there is one.
        tools: All tools of the realm.

    Raises:
        InvalidSettings: The packages for gRPC are not installed.
        InvalidDefinition: The address is none, or the descriptors cannot be used.
        ReconnectRequired: The server refuses the credentials, or there are none.
        InvalidInput: The server has no reflection, or refuses it.
        Unavailable: The server cannot be reached.
        EgressDenied: The policy forbids the address.
        Conflict: A tool would take the name of one that is not the provider's.
    """
    calls = runtime.open()
    from toolcrib.kinds.grpc.importer import import_grpc, read_set  # noqa: PLC0415 - loads grpcio

    url = address.rstrip("/")
    known = provider if provider is not None and provider.address == url else None  # what is for it goes nowhere else
    asked = ProviderDefinition(
        name=name,
        base_url=url,
        connection=GrpcConnection(authority=authority),
        auth=auth or (NoAuth() if known is None else known.auth),
        headers={} if known is None else known.headers,
    )
    check_provider(asked)
    made = partial(import_grpc, name=name, base_url=asked.base_url, auth=asked.auth, authority=authority)
    if descriptors is not None:
        read = partial(made, read_set(descriptors))
    else:
        found = await _reflect(calls, asked, who)
        source = f"gRPC reflection {found.version}"
        read = partial(made, found.files.values(), source=source, services=found.services)
    names = names_before(name, tools, GrpcImplementation, lambda made: made.method)
    return await under_free_names(read, name, names, tools)


async def _reflect(calls: "GrpcCalls", asked: ProviderDefinition, who: Principal) -> "Reflected":
    try:
        return await calls.reflect(asked, who)
    except CallFailed as failure:
        raise in_the_tree(failure.error) from failure


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
