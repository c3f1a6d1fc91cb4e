"""Looks at providers by their kind of connection, through the runtimes that have the connections."""

from toolcrib.contracts import Discovery, NoAuth, Principal, ProviderDefinition
from toolcrib.core.providers.probes import Look
from toolcrib.kinds.mcp.importer import NAMED_BY
from toolcrib.kinds.runtimes_part import EntityRuntime, GrpcRuntime, McpServers


class GrpcProbe:
    """Asks a gRPC server for its services, by reflection."""

    def __init__(self, runtime: GrpcRuntime) -> None:
        self._runtime = runtime

    async def test(self, provider: ProviderDefinition, principal: Principal) -> Look:
        """See `Probe.test`."""
        found = await self._runtime.open().reflect(provider, principal)
        return Look(f"it describes {len(found.services)} services", _let_in(provider))

    async def discover(self, provider: ProviderDefinition, principal: Principal) -> Discovery:
        """See `Probe.discover`."""
        found = await self._runtime.open().reflect(provider, principal)
        return _discovery(provider, found.services, "services", f"`toolcrib provider sync {provider.name}`")


class McpProbe:
    """Connects to an MCP server, or starts it if the operator has allowed that, and asks for its lists."""

    def __init__(self, servers: McpServers) -> None:
        self._servers = servers

    async def test(self, provider: ProviderDefinition, principal: Principal) -> Look:
        """See `Probe.test`."""
        offers = await self._offers(provider, principal)
        return Look(f"it offers {len(offers)} tools, resources and prompts", _let_in(provider))

    async def discover(self, provider: ProviderDefinition, principal: Principal) -> Discovery:
        """See `Probe.discover`."""
        offers = await self._offers(provider, principal)
        return _discovery(provider, offers, "tools", f"`toolcrib provider sync {provider.name}`")

    async def _offers(self, provider: ProviderDefinition, principal: Principal) -> list[str]:
        async with self._servers.connection(principal.realm, provider, principal) as connection:
            listing = await connection.listing(tuple(NAMED_BY))
        return [offer.name for offer in listing.offers]


class DatabaseProbe:
    """Connects to a database and reads the names of its tables."""

    def __init__(self, runtime: EntityRuntime) -> None:
        self._runtime = runtime

    async def test(self, provider: ProviderDefinition, principal: Principal) -> Look:
        """See `Probe.test`."""
        return Look(f"it has {len(await self._tables(provider, principal))} tables", authenticated=True)

    async def discover(self, provider: ProviderDefinition, principal: Principal) -> Discovery:
        """See `Probe.discover`."""
        tables = await self._tables(provider, principal)
        return _discovery(provider, tables, "tables", f"`toolcrib tool import-database URL --name {provider.name}`")

    async def _tables(self, provider: ProviderDefinition, principal: Principal) -> list[str]:
        from sqlalchemy import inspect  # noqa: PLC0415 - a memory store without databases does not need it

        return await self._runtime.look(provider, principal, lambda connection: inspect(connection).get_table_names())


def _let_in(provider: ProviderDefinition) -> bool | None:
    return None if isinstance(provider.auth, NoAuth) and not provider.security else True


def _discovery(provider: ProviderDefinition, items: list[str], kind: str, how: str) -> Discovery:
    return Discovery(provider=provider.name, items=tuple(sorted(items)), kind=kind, message=f"import them: {how}")
