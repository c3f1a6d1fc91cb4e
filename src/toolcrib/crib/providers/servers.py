"""gRPC servers into a crib: described by themselves or by a descriptor set, imported in a thread, under free names."""

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

from toolcrib.contracts import (
    GrpcConnection,
    GrpcImplementation,
    NoAuth,
    Principal,
    ProviderAuth,
    ProviderDefinition,
    ToolRevision,
)
from toolcrib.core.executor import CallFailed
from toolcrib.core.registry.checks.http import check_provider
from toolcrib.crib.providers.failures import in_the_tree
from toolcrib.crib.providers.names import names_before, under_free_names
from toolcrib.kinds.grpc.runtime import GrpcRuntime

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
        found = await _reflected(calls, asked, who)
        source = f"gRPC reflection {found.version}"
        read = partial(made, found.files.values(), source=source, services=found.services)
    names = names_before(name, tools, GrpcImplementation, lambda made: made.method)
    return await under_free_names(read, name, names, tools)


async def _reflected(calls: "GrpcCalls", asked: ProviderDefinition, who: Principal) -> "Reflected":
    try:
        return await calls.reflect(asked, who)
    except CallFailed as failure:
        raise in_the_tree(failure.error) from failure
