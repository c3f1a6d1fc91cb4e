"""Import of MCP servers: at a URL, or as a program that is started."""

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field

from toolcrib.contracts import (
    Discovery,
    InvalidInput,
    JsonObject,
    McpConnection,
    McpTransport,
    NoAuth,
    Principal,
    ProviderAuth,
    ProviderDefinition,
)
from toolcrib.core.kinds import ConnectionKind, ImportContext, Importer, ImportSource, Option
from toolcrib.kinds.mcp.shape import McpImplementation

if TYPE_CHECKING:
    from toolcrib.core.providers import ImportedApi
    from toolcrib.core.providers.probes import Probe, ProbeResult
    from toolcrib.kinds.mcp.runtime import McpServers


class McpSource(ImportSource):
    """An MCP server. Each tool, resource, template and prompt that it offers becomes a tool.

    A program has to be allowed by TOOLCRIB_MCP_COMMANDS.
    """

    url: Annotated[
        str, Option(metavar="URL_OR_COMMAND", help="Where the server is; or the command, in quotes, that starts it.")
    ] = ""
    transport: Annotated[
        McpTransport, Option("--sse", help="The server uses the older transport, server-sent events.", value="sse")
    ] = "streamable_http"
    command: tuple[str, ...] = ()
    """Program and arguments, instead of a URL."""
    environment: Annotated[
        dict[str, str], Option("--env", "NAME=REF", "A variable of the command; may be repeated.")
    ] = Field(default_factory=dict)
    """Variables of the program: text, or references such as `${env:NAME}`."""
    auth: Annotated[
        ProviderAuth | None, Option("--token", "REF", "Where its bearer token is kept, such as '${env:NAME}'.")
    ] = None
    """Authentication; that of the provider, if there is one already at the same URL."""

    @property
    def references(self) -> tuple[str, ...]:
        """Its variables, and the references of its authentication."""
        from toolcrib.core.registry import references_of

        return (*self.environment.values(), *(() if self.auth is None else references_of(self.auth)))

    @classmethod
    def of_options(cls, options: Mapping[str, Any]) -> Self:
        """The source, whose positional argument is a URL or a command."""
        given = str(options["url"])
        if given.startswith(("http://", "https://")):
            return cls(**options)
        try:
            command = shlex.split(given)
        except ValueError as problem:
            msg = f"{given!r} is neither an http(s) address nor a command: {problem}"
            raise InvalidInput(msg) from problem
        fields: dict[str, Any] = {**options, "url": "", "command": tuple(command)}
        return cls(**fields)


async def import_mcp_server(source: McpSource, context: ImportContext) -> "ImportedApi":
    """Import what a server offers.

    Args:
        source: The server.
        context: The context of the import.

    Raises:
        InvalidDefinition: The name or the address cannot be used, or there is a program and a URL.
        PermissionDenied: The program may not be started, or the policy forbids the address.
        ReconnectRequired: The server refuses the credentials, or there are none.
        Unavailable: It cannot be connected, or does not answer.
        InvalidInput: Its answers are not MCP.
    """
    earlier = context.provider
    known = earlier.connection if earlier is not None and isinstance(earlier.connection, McpConnection) else None
    connection = (known or McpConnection()).model_copy(
        update={
            "transport": "stdio" if source.command else source.transport,
            "command": source.command,
            "environment": dict(source.environment),
        }
    )
    return await _read(_provider(source, connection, earlier), context)


async def _read(provider: ProviderDefinition, context: ImportContext) -> "ImportedApi":
    from toolcrib.core.executor import CallFailed
    from toolcrib.core.providers.import_names import in_the_tree, names_before
    from toolcrib.core.registry import check_provider
    from toolcrib.kinds.mcp.importer import NAMED_BY, import_mcp

    check_provider(provider)
    try:
        async with _servers(context).connection(context.who.realm, provider, context.who) as connection:
            listing = await connection.listing(tuple(NAMED_BY))
    except CallFailed as failure:
        raise in_the_tree(failure.error) from failure
    names_in_use = {tool.name for tool in context.tools if tool.definition.provider != provider.name}
    known = names_before(provider.name, context.tools, McpImplementation, lambda made: (made.capability, made.name))
    return import_mcp(listing, provider, known=known, names_in_use=names_in_use)


def _provider(source: McpSource, connection: McpConnection, earlier: ProviderDefinition | None) -> ProviderDefinition:
    """The provider to import: the given values, and the previous ones for the rest.

    Credentials that are not given again stay only where the address stays: they are not for another server.
    """
    auth = source.auth or NoAuth()
    if earlier is None:
        return ProviderDefinition(name=source.name, connection=connection, base_url=source.url, auth=auth)
    same = earlier.base_url == source.url and source.auth is None
    kept = {"auth": earlier.auth, "schemes": earlier.schemes, "security": earlier.security} if same else {}
    given: JsonObject = {
        "connection": connection,
        "base_url": source.url,
        "auth": auth,
        "schemes": {},
        "security": None,
    }
    return earlier.model_copy(update={**given, **kept})


def _servers(context: ImportContext) -> "McpServers":
    from toolcrib.kinds.mcp.runtime import McpRuntime

    return context.runtime(McpRuntime).servers


class _McpProbe:
    """Connects to an MCP server, or starts it if the operator has allowed that, and asks for its lists."""

    def __init__(self, servers: "McpServers") -> None:
        self._servers = servers

    async def test(self, provider: ProviderDefinition, principal: Principal) -> "ProbeResult":
        from toolcrib.core.providers.probes import ProbeResult, let_in

        offers = await self._offers(provider, principal)
        return ProbeResult(f"it offers {len(offers)} tools, resources and prompts", let_in(provider))

    async def discover(self, provider: ProviderDefinition, principal: Principal) -> Discovery:
        from toolcrib.core.providers.probes import discovery

        offers = await self._offers(provider, principal)
        return discovery(provider, offers, "tools", f"`toolcrib provider sync {provider.name}`")

    async def _offers(self, provider: ProviderDefinition, principal: Principal) -> list[str]:
        from toolcrib.kinds.mcp.importer import NAMED_BY

        async with self._servers.connection(principal.realm, provider, principal) as connection:
            listing = await connection.listing(tuple(NAMED_BY))
        return [offer.name for offer in listing.offers]


def _open_probe(context: ImportContext) -> "Probe":
    return _McpProbe(_servers(context))


IMPORTERS = (Importer(McpSource, import_mcp_server, "import-mcp"),)
CONNECTION = ConnectionKind(McpConnection, _open_probe, _read)
