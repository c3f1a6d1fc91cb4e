"""Import of gRPC services: from a server by reflection, or from a descriptor set."""

from typing import TYPE_CHECKING

from pydantic import Base64Bytes, Field

from toolcrib.contracts import Discovery, GrpcConnection, NoAuth, Principal, ProviderAuth, ProviderDefinition
from toolcrib.core.kinds import ConnectionKind, ImportContext, Importer, ImportSource
from toolcrib.kinds.grpc.shape import GrpcImplementation

if TYPE_CHECKING:
    from toolcrib.core.providers import ImportedApi
    from toolcrib.core.providers.probes import Probe, ProbeResult
    from toolcrib.kinds.grpc.importer import Reflected
    from toolcrib.kinds.grpc.runtime import GrpcRuntime


class GrpcSource(ImportSource):
    """A gRPC server. Each unary or server-streaming method becomes a tool."""

    address: str
    """`grpc://host:port`, or `grpcs://host:port` over TLS."""
    descriptors: Base64Bytes | None = Field(default=None, repr=False)
    """A serialized `FileDescriptorSet`, in place of asking the server by reflection."""
    authority: str | None = None
    """Name that the server's certificate must have, if it is not the host."""
    auth: ProviderAuth | None = None
    """Authentication, also for reflection; that of the provider, if there is one already."""

    @property
    def references(self) -> tuple[str, ...]:
        """Those of its authentication."""
        from toolcrib.core.registry import references_of

        return () if self.auth is None else references_of(self.auth)


async def import_grpc_server(source: GrpcSource, context: ImportContext) -> "ImportedApi":
    """Import what a server serves.

    Args:
        source: The server.
        context: The context of the import.

    Raises:
        InvalidSettings: The packages for gRPC are not installed.
        InvalidDefinition: The address or the descriptors cannot be used.
        ReconnectRequired: The server refuses the credentials, or there are none.
        InvalidInput: The server has no reflection, or refuses it.
        Unavailable: The server cannot be reached.
        EgressDenied: The policy forbids the address.
        Conflict: A tool would take the name of one that is not the provider's.
    """
    from functools import partial

    from toolcrib.core.providers.import_names import names_before, under_free_names
    from toolcrib.core.registry import check_provider
    from toolcrib.kinds.grpc.runtime import GrpcRuntime

    runtime = context.runtime(GrpcRuntime)
    runtime.open()
    from toolcrib.kinds.grpc.importer import import_grpc, read_set

    url = source.address.rstrip("/")
    earlier = context.provider
    known = earlier if earlier is not None and earlier.address == url else None  # its credentials go nowhere else
    provider = ProviderDefinition(
        name=source.name,
        base_url=url,
        connection=GrpcConnection(authority=source.authority),
        auth=source.auth or (NoAuth() if known is None else known.auth),
        headers={} if known is None else known.headers,
    )
    check_provider(provider)
    make = partial(
        import_grpc, name=source.name, base_url=provider.base_url, auth=provider.auth, authority=source.authority
    )
    if source.descriptors is not None:
        read = partial(make, read_set(source.descriptors))
    else:
        found = await _reflect(runtime, provider, context.who)
        read = partial(make, found.files.values(), source=f"gRPC reflection {found.version}", services=found.services)
    names = names_before(source.name, context.tools, GrpcImplementation, lambda made: made.method)
    imported = await under_free_names(read, source.name, names, context.tools)
    for data in imported.descriptors.values():
        await context.blobs.put(
            data, realm=context.who.realm, made_by=context.who.id, content_type="application/x-protobuf"
        )
    return imported


async def _reflect(runtime: "GrpcRuntime", provider: ProviderDefinition, who: Principal) -> "Reflected":
    from toolcrib.core.executor import CallFailed
    from toolcrib.core.providers.import_names import in_the_tree

    try:
        return await runtime.open().reflect(provider, who)
    except CallFailed as failure:
        raise in_the_tree(failure.error) from failure


async def _sync(provider: ProviderDefinition, context: ImportContext) -> "ImportedApi":
    authority = provider.connection.authority if isinstance(provider.connection, GrpcConnection) else None
    source = GrpcSource(name=provider.name, address=provider.base_url, authority=authority)
    return await import_grpc_server(source, context)


class _GrpcProbe:
    """Asks a gRPC server for its services, by reflection."""

    def __init__(self, runtime: "GrpcRuntime") -> None:
        self._runtime = runtime

    async def test(self, provider: ProviderDefinition, principal: Principal) -> "ProbeResult":
        from toolcrib.core.providers.probes import ProbeResult, let_in

        found = await self._runtime.open().reflect(provider, principal)
        return ProbeResult(f"it describes {len(found.services)} services", let_in(provider))

    async def discover(self, provider: ProviderDefinition, principal: Principal) -> Discovery:
        from toolcrib.core.providers.probes import discovery

        found = await self._runtime.open().reflect(provider, principal)
        return discovery(provider, found.services, "services", f"`toolcrib provider sync {provider.name}`")


def _open_probe(context: ImportContext) -> "Probe":
    from toolcrib.kinds.grpc.runtime import GrpcRuntime

    return _GrpcProbe(context.runtime(GrpcRuntime))


IMPORTERS = (Importer(GrpcSource, import_grpc_server),)
CONNECTION = ConnectionKind(GrpcConnection, _open_probe, _sync)
