"""Connections to providers: looked at, and made by people in a browser.

request = await crib.connections.begin("crm", redirect_uri="http://127.0.0.1:8765/callback")
print("open", request.url)                              # the person grants what is asked for
await crib.connections.finish("http://127.0.0.1:8765/callback?code=…&state=…")

Looks at providers by their kind of connection, through the runtimes that have the connections.
"""

from collections.abc import Mapping, Sequence

from toolcrib.contracts import (
    AuthorizationCodeAuth,
    Consent,
    ConsentRequest,
    Discovery,
    ErrorCode,
    InvalidInput,
    NoAuth,
    NotFound,
    Principal,
    ProviderCheck,
    ProviderDefinition,
    Revocation,
    ToolcribError,
    ToolError,
)
from toolcrib.core.executor import CallFailed
from toolcrib.core.providers import Client, answer_of
from toolcrib.core.providers.probes import HttpProbe, Probe, ProbeResult
from toolcrib.crib.container.access import Actor
from toolcrib.crib.container.container import CribServices
from toolcrib.crib.providers.names import as_a_call, in_the_tree
from toolcrib.infrastructure.secrets import Redactor
from toolcrib.kinds.mcp.importer import NAMED_BY
from toolcrib.kinds.runtimes import EntityRuntime, GrpcRuntime, McpServers


class GrpcProbe:
    """Asks a gRPC server for its services, by reflection."""

    def __init__(self, runtime: GrpcRuntime) -> None:
        self._runtime = runtime

    async def test(self, provider: ProviderDefinition, principal: Principal) -> ProbeResult:
        """See `Probe.test`."""
        found = await self._runtime.open().reflect(provider, principal)
        return ProbeResult(f"it describes {len(found.services)} services", _let_in(provider))

    async def discover(self, provider: ProviderDefinition, principal: Principal) -> Discovery:
        """See `Probe.discover`."""
        found = await self._runtime.open().reflect(provider, principal)
        return _discovery(provider, found.services, "services", f"`toolcrib provider sync {provider.name}`")


class McpProbe:
    """Connects to an MCP server, or starts it if the operator has allowed that, and asks for its lists."""

    def __init__(self, servers: McpServers) -> None:
        self._servers = servers

    async def test(self, provider: ProviderDefinition, principal: Principal) -> ProbeResult:
        """See `Probe.test`."""
        offers = await self._offers(provider, principal)
        return ProbeResult(f"it offers {len(offers)} tools, resources and prompts", _let_in(provider))

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

    async def test(self, provider: ProviderDefinition, principal: Principal) -> ProbeResult:
        """See `Probe.test`."""
        return ProbeResult(f"it has {len(await self._tables(provider, principal))} tables", authenticated=True)

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


class Connections:
    """What people do with connections.

    Args:
        parts: Of the crib.
        actor: Who acts.
    """

    def __init__(self, parts: CribServices, actor: Actor) -> None:
        self._providers = parts.providers
        self._access = parts.keeping.access
        self._consents = parts.keeping.consents
        self._clock = parts.outside.clock
        self._actor = actor
        self._probes: Mapping[str, Probe] = {
            "http": HttpProbe(parts.session, self._access),
            "grpc": GrpcProbe(parts.grpc),
            "mcp": McpProbe(parts.mcp),
            "database": DatabaseProbe(parts.entities),
        }

    # Looking ----------------------------------------------------------------------------------------------------------

    async def provider(self, name: str) -> ProviderDefinition:
        """The provider of this name in the caller's realm.

        Raises:
            NotFound: There is none.
        """
        return self._provider(name, await self._actor.authorize(newest=True))

    async def test(self, name: str) -> ProviderCheck:
        """Reach a provider with the caller's credentials, by one harmless request or connection.

        Raises:
            NotFound: There is no such provider. All else that goes wrong is in the answer.
        """
        who = await self._actor.authorize(newest=True)
        provider = self._provider(name, who)
        started = self._clock.monotonic()
        try:
            look = await self._probes[provider.connection.kind].test(provider, who)
        except CallFailed as failure:
            shown = Redactor(failure.secrets)
            said = failure.error.model_copy(update={"message": shown.text(failure.error.message)})
            return _check_from_error(name, said, failure.http_status, self._clock.monotonic() - started)
        except ToolcribError as problem:
            return _check_from_error(name, as_a_call(problem), None, self._clock.monotonic() - started)
        return ProviderCheck(
            provider=name,
            reachable=True,
            authenticated=look.authenticated,
            message=look.message,
            seconds=self._clock.monotonic() - started,
            http_status=look.http_status,
        )

    async def discover(self, name: str) -> Discovery:
        """What a provider offers for import; nothing is imported.

        Raises:
            NotFound: There is no such provider.
            ReconnectRequired: It refuses the credentials, or there are none.
            Unavailable: It cannot be reached.
            PermissionDenied: The egress policy or the operator forbids it.
            InvalidInput: It answers with something else than expected.
        """
        who = await self._actor.authorize(newest=True)
        provider = self._provider(name, who)
        try:
            return await self._probes[provider.connection.kind].discover(provider, who)
        except CallFailed as failure:
            raise in_the_tree(failure.error) from failure

    # Connecting -------------------------------------------------------------------------------------------------------

    async def begin(self, name: str, *, redirect_uri: str) -> ConsentRequest:
        """Where to send a person to connect to a provider.

        Args:
            name: Of the provider; its authentication is an `AuthorizationCodeAuth`.
            redirect_uri: Where the person comes back to: https, or http on this machine.

        Raises:
            NotFound: There is no such provider.
            InvalidInput: Nobody connects to it in a browser, or an address is not protected.
            InvalidSettings: There are no master keys.
            ReconnectRequired: The client's own id or secret is missing.
            Unavailable: The authorization server cannot be reached.
        """
        who = await self._actor.authorize(newest=True)
        provider = self._provider(name, who)
        auth = self._way(provider)
        try:
            return await self._consents.begin(provider, auth, await self._client(auth, who), who, redirect_uri)
        except CallFailed as failure:
            raise in_the_tree(failure.error) from failure

    async def finish(self, redirected: str | Mapping[str, str]) -> Consent:
        """Take in what a person has come back with.

        Args:
            redirected: The whole URL that the browser was sent to, or its parameters: `state` and `code`.

        Raises:
            NotFound: The state is unknown, used, expired or somebody else's, or the provider is gone.
            InvalidInput: The server refused, or the answer is not its.
            ReconnectRequired: The token endpoint refused.
            Unavailable: The authorization server cannot be reached.
        """
        who = await self._actor.authorize(newest=True)
        answer = answer_of(redirected) if isinstance(redirected, str) else redirected
        provider = self._provider((await self._consents.login(who, answer.get("state", ""))).provider, who)
        auth = self._way(provider)
        try:
            return await self._consents.finish(provider, auth, await self._client(auth, who), who, answer)
        except CallFailed as failure:
            raise in_the_tree(failure.error) from failure

    def ticket(self, state: str) -> str:
        """A text for the caller's browser: it comes back with it as this caller, once, for a state.

        Without it, whoever is led to a redirect could be made to grant access to somebody else's connection.
        """
        return self._consents.ticket(self._actor.principal, state)

    def holder_of(self, ticket: str, state: str) -> Principal | None:
        """Whose ticket it is; null if it is not one for this state."""
        return self._consents.holder_of(ticket, state)

    async def list(self) -> Sequence[Consent]:
        """The connections that the caller's calls use."""
        return await self._consents.list(await self._actor.authorize())

    async def revoke(self, name: str, *, shared: bool = False) -> Revocation:
        """Give up a connection; the answer says whether the server has taken its tokens back.

        Raises:
            NotFound: There is no such connection.
        """
        who = await self._actor.authorize(newest=True)
        provider = self._providers.find(who.realm, name)
        way: tuple[ProviderDefinition, Client, AuthorizationCodeAuth] | None = None
        if provider is not None and _ways(provider):
            auth = self._way(provider)
            way = provider, await self._client(auth, who), auth
        return await self._consents.revoke(name, who, shared=shared, way=way)

    # Inside -----------------------------------------------------------------------------------------------------------

    def _provider(self, name: str, who: Principal) -> ProviderDefinition:
        found = self._providers.find(who.realm, name)
        if found is None:
            raise NotFound(f"there is no provider {name!r}; `toolcrib provider list` shows all")
        return found

    def _way(self, provider: ProviderDefinition) -> AuthorizationCodeAuth:
        ways = _ways(provider)
        if not ways:
            kind = provider.auth.kind
            raise InvalidInput(f"provider {provider.name!r} authenticates by {kind!r}: nobody connects in a browser")
        return ways[0]

    async def _client(self, auth: AuthorizationCodeAuth, who: Principal) -> Client:
        values = await self._access.holder(who).values(auth)
        missing = [reference for reference, value in values.items() if not value]
        if missing:
            raise InvalidInput(f"the client's {missing[0]} is not set or not released; set it and connect again")
        return Client.of(auth, values)


def _check_from_error(name: str, said: ToolError, status: int | None, seconds: float) -> ProviderCheck:
    return ProviderCheck(
        provider=name,
        reachable=status is not None,
        authenticated=False if said.code is ErrorCode.AUTH_REQUIRED else None,
        message=said.message,
        seconds=seconds,
        http_status=status,
        error=said,
    )


def _ways(provider: ProviderDefinition) -> Sequence[AuthorizationCodeAuth]:
    """The ways of a provider that a person can connect by; all of them share one connection."""
    return [auth for auth in (provider.auth, *provider.schemes.values()) if isinstance(auth, AuthorizationCodeAuth)]
