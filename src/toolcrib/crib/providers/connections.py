"""Connections to providers: test a provider, and let people grant access in a browser.

request = await crib.connections.begin("crm", redirect_uri="http://127.0.0.1:8765/callback")
print("open", request.url)                              # the person grants what is asked for
await crib.connections.finish("http://127.0.0.1:8765/callback?code=…&state=…")
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from typing import Final

from toolcrib.contracts import (
    AuthorizationCodeAuth,
    Conflict,
    Consent,
    ConsentRequest,
    Dependent,
    Discovery,
    ErrorCode,
    InvalidInput,
    NotFound,
    Principal,
    ProviderCheck,
    ProviderDefinition,
    Reason,
    Revocation,
    ToolcribError,
    ToolError,
    ToolRevision,
)
from toolcrib.contracts.providers.tool_access import ToolAccess
from toolcrib.contracts.workflows.provider_use import ProviderImpact, ProviderRemoval, ProviderUsage, ToolsOfProvider
from toolcrib.core.executor import CallFailed
from toolcrib.core.policy import require_grant
from toolcrib.core.providers import BrowserAuth, Client, answer_of
from toolcrib.core.providers.import_names import as_a_call, in_the_tree
from toolcrib.core.providers.probes import Probe, has_credentials
from toolcrib.crib.container.access import Actor
from toolcrib.crib.container.container import CribServices
from toolcrib.crib.providers.provider_use import UsageReader
from toolcrib.crib.providers.tool_access import AccessReader
from toolcrib.infrastructure.secrets import Redactor
from toolcrib.kinds.table import connection_kind
from toolcrib.workflows.edit.impact import users_of


class Connections:
    """Tests providers, and makes, lists and revokes connections.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, parts: CribServices, actor: Actor) -> None:
        self._providers = parts.providers
        self._access = parts.keeping.access
        self._consents = parts.keeping.consents
        self._clock = parts.outside.clock
        self._actor = actor
        self._parts = parts

    # Looking ----------------------------------------------------------------------------------------------------------

    async def provider(self, name: str) -> ProviderDefinition:
        """The provider of this name in the caller's realm.

        Raises:
            NotFound: There is none.

        Example:
            crm = await crib.connections.provider("crm")
            print(crm.base_url)
        """
        return self._provider(name, await self._actor.authorize(newest=True))

    async def test(self, name: str) -> ProviderCheck:
        """Reach a provider with the caller's credentials, by harmless requests or a connection.

        Raises:
            NotFound: There is no such provider. All other errors are in the result.

        Example:
            check = await crib.connections.test("crm")
            print(check.reachable, check.authenticated, check.message)
        """
        who = await self._actor.authorize(newest=True)
        provider = self._provider(name, who)
        started = self._clock.monotonic()
        try:
            look = await self._probe(provider, who).test(provider, who)
        except CallFailed as failure:
            shown = Redactor(failure.secrets)
            tool_error = failure.error.model_copy(update={"message": shown.text(failure.error.message)})
            return _check_from_error(provider, tool_error, failure.http_status, self._clock.monotonic() - started)
        except ToolcribError as problem:
            return _check_from_error(provider, as_a_call(problem), None, self._clock.monotonic() - started)
        return ProviderCheck(
            provider=name,
            reachable=True,
            authenticated=look.authenticated,
            has_credentials=has_credentials(provider),
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

        Example:
            from toolcrib.contracts import DatabaseConnection, ProviderDefinition

            shop = DatabaseConnection(url="${env:SHOP_DATABASE_URL}")
            await crib.save_provider(ProviderDefinition(name="shop", connection=shop))
            print((await crib.connections.discover("shop")).items)
        """
        who = await self._actor.authorize(newest=True)
        provider = self._provider(name, who)
        try:
            return await self._probe(provider, who).discover(provider, who)
        except CallFailed as failure:
            raise in_the_tree(failure.error) from failure

    async def access(self, *tools: ToolRevision | str) -> Sequence[ToolAccess]:
        """What stands between the caller and the systems behind tools: sign-ins and secrets, never their values.

        Args:
            *tools: The tools, or their names.

        Raises:
            NotFound: No such tool.

        Example:
            [access] = await crib.connections.access("search_deals")
            print(access.ready, access.sign_in, [(use.reference, use.found_in) for use in access.secrets])
        """
        who = await self._actor.authorize(newest=True)
        reader = await AccessReader.open(
            who, self._providers, self._parts.keeping, is_application=self._actor.is_application
        )
        registry = self._parts.registry
        found = (registry.require(who.realm, tool) if isinstance(tool, str) else tool for tool in tools)
        return [reader.of(tool) for tool in found]

    # Keeping ----------------------------------------------------------------------------------------------------------

    async def impact(self, name: str) -> ProviderImpact:
        """What depends on a provider: its tools, agentic tools with its lists, and what is bound to these.

        Raises:
            NotFound: There is no such provider.

        Example:
            from toolcrib.contracts import ProviderDefinition

            await crib.save_provider(ProviderDefinition(name="crm", base_url="https://crm.example"))
            print([(each.kind, each.name) for each in (await crib.connections.impact("crm")).dependents])
        """
        who = await self._actor.authorize(newest=True)
        self._provider(name, who)
        around = self._parts.catalogue.around(who.realm)
        found = users_of(name, "provider", around)
        visible: Sequence[AbstractSet[str]] = () if self._actor.caller is None else self._parts.visibility.of(who)
        shown = [each for each in found if all(self._sees(each, names) for names in visible)]
        return ProviderImpact(provider=name, dependents=tuple(shown), hidden=len(found) - len(shown))

    async def remove(self, name: str, *, tools: ToolsOfProvider = "refuse") -> ProviderRemoval:
        """Remove a provider. Its connections and secrets stay; disconnect and remove them first if they are to go.

        Args:
            name: Of the provider.
            tools: What becomes of its tools, see `ToolsOfProvider`.

        Raises:
            NotFound: There is no such provider.
            Conflict: Something depends on it, and `tools` is `refuse`; the message names what would break.
            PermissionDenied: The principal may not write a tool that is to be removed.

        Example:
            from toolcrib.contracts import ProviderDefinition

            await crib.save_provider(ProviderDefinition(name="old_crm", base_url="https://crm.example"))
            print((await crib.connections.remove("old_crm")).message)
        """
        who = await self._actor.authorize(newest=True)
        self._provider(name, who)
        dependents = users_of(name, "provider", self._parts.catalogue.around(who.realm))
        if dependents and tools == "refuse":
            raise Conflict(_would_break(name, dependents))
        registry = self._parts.registry
        own = [tool for tool in registry.current(who.realm) if tool.definition.provider == name]
        removed = own if tools == "remove" else []
        if self._actor.caller is not None:
            for tool in removed:
                require_grant(who, tool.definition.security("write"))
        for tool in removed:
            await registry.remove(who.realm, tool.name)
        await self._providers.remove(who.realm, name)
        gone = {tool.ref for tool in removed}
        broken = tuple(each.name for each in dependents if each.name not in gone)
        message = f"provider {name} is removed" + (f", with {len(removed)} tools" if removed else "")
        return ProviderRemoval(
            provider=name, removed_tools=tuple(tool.name for tool in removed), broken=broken, message=message
        )

    async def usage(
        self, *names: str, since: datetime | None = None, until: datetime | None = None, most_runs: int = 1_000
    ) -> Sequence[ProviderUsage]:
        """The calls, errors, latencies and costs of providers in the runs that began in a time.

        The journals of the realm's runs are read, the newest first, so it is the work of a report and not of a call.

        Args:
            *names: Of the providers; all of the realm if none is given.
            since: Beginning of the time; 30 days before its end if null.
            until: Its end; now if null.
            most_runs: Maximum number of runs that are read; `complete` is false if there are more.

        Raises:
            NotFound: There is no such provider.
            InvalidInput: The time ends before it begins.

        Example:
            for usage in await crib.connections.usage():
                print(usage.provider, usage.calls, usage.errors, usage.latency_ms, usage.cost_usd)
        """
        who = await self._actor.authorize(newest=True)
        end = until or self._clock.now()
        begin = since or end - _USUAL_TIME
        if begin > end:
            msg = f"`until` is {end:%Y-%m-%d %H:%M} UTC, before `since`, {begin:%Y-%m-%d %H:%M} UTC; exchange them"
            raise InvalidInput(msg)
        for name in names:
            self._provider(name, who)
        wanted = names or [each.name for each in self._providers.current(who.realm)]
        reader = UsageReader(self._parts.outside.store.journal, self._parts.registry, who.realm, most_runs)
        return await reader.read(wanted, begin, end)

    def _sees(self, dependent: Dependent, names: AbstractSet[str]) -> bool:
        """Whether a dependent, and what it is bound by, are among names; a provider on the way is no tool."""
        return dependent.name.partition("@")[0] in names and all(step in names for step in dependent.path[:-1])

    # Connecting -------------------------------------------------------------------------------------------------------

    async def begin(self, name: str, *, redirect_uri: str) -> ConsentRequest:
        """Where to send a person to connect to a provider.

        Args:
            name: Of the provider; its authentication is an `AuthorizationCodeAuth` or a `ProtectedResourceAuth`.
            redirect_uri: Where the person comes back to: https, or http on this machine.

        Raises:
            NotFound: There is no such provider.
            InvalidInput: Its authentication does not use a browser, or an address is not protected.
            InvalidSettings: There are no master keys.
            ReconnectRequired: The client's own id or secret is missing.
            Unavailable: The authorization server cannot be reached.

        Example:
            from toolcrib.contracts import AuthorizationCodeAuth, ProviderDefinition

            login = "https://login.mail.example"
            auth = AuthorizationCodeAuth(
                authorization_url=f"{login}/authorize", token_url=f"{login}/token", client_id="toolcrib"
            )
            await crib.save_provider(ProviderDefinition(name="mail", base_url="https://mail.example", auth=auth))
            request = await crib.connections.begin("mail", redirect_uri="http://127.0.0.1:8765/callback")
            print("Open", request.url)
        """
        who = await self._actor.authorize(newest=True)
        provider = self._provider(name, who)
        auth = self._way(provider)
        try:
            return await self._consents.begin(
                provider, auth, await self._client(provider, auth, who), who, redirect_uri
            )
        except CallFailed as failure:
            raise in_the_tree(failure.error) from failure

    async def finish(self, redirected: str | Mapping[str, str]) -> Consent:
        """Complete a connection with the address to which the browser was redirected.

        Args:
            redirected: The whole URL that the browser was sent to, or its parameters: `state` and `code`.

        Raises:
            NotFound: The state is unknown, used, expired or another principal's, or the provider is gone.
            InvalidInput: The server refused, or the answer is not its.
            ReconnectRequired: The token endpoint refused.
            Unavailable: The authorization server cannot be reached.

        Example:
            consent = await crib.connections.finish("http://127.0.0.1:8765/callback?code=4711&state=s1")
            print(consent.provider, consent.status, consent.scopes)
        """
        who = await self._actor.authorize(newest=True)
        answer = answer_of(redirected) if isinstance(redirected, str) else redirected
        provider = self._provider((await self._consents.login(who, answer.get("state", ""))).provider, who)
        auth = self._way(provider)
        try:
            return await self._consents.finish(provider, auth, await self._client(provider, auth, who), who, answer)
        except CallFailed as failure:
            raise in_the_tree(failure.error) from failure

    def ticket(self, state: str) -> str:
        """A ticket for the caller's browser, which identifies the caller once, for one state.

        Without it, a person who follows a forged redirect could grant access to another principal's connection.
        """
        return self._consents.ticket(self._actor.principal, state)

    def holder_of(self, ticket: str, state: str) -> Principal | None:
        """Whose ticket it is; null if it is not one for this state."""
        return self._consents.holder_of(ticket, state)

    async def list(self) -> Sequence[Consent]:
        """The connections that the caller's calls use.

        Example:
            for connection in await crib.connections.list():
                print(connection.provider, connection.status)
        """
        return await self._consents.list(await self._actor.authorize())

    async def revoke(self, name: str, *, shared: bool = False) -> Revocation:
        """Give up a connection; the answer says whether the server has taken its tokens back.

        Raises:
            NotFound: There is no such connection.

        Example:
            for connection in await crib.connections.list():
                await crib.connections.revoke(connection.provider)
        """
        who = await self._actor.authorize(newest=True)
        provider = self._providers.find(who.realm, name)
        way: tuple[ProviderDefinition, Client | None, BrowserAuth] | None = None
        if provider is not None and _ways(provider):
            auth = self._way(provider)
            way = provider, await self._client(provider, auth, who), auth
        return await self._consents.revoke(name, who, shared=shared, way=way)

    # Inside -----------------------------------------------------------------------------------------------------------

    def _provider(self, name: str, who: Principal) -> ProviderDefinition:
        found = self._providers.find(who.realm, name)
        if found is None:
            raise NotFound(f"there is no provider {name!r}; `toolcrib provider list` shows all")
        return found

    def _probe(self, provider: ProviderDefinition, who: Principal) -> Probe:
        return connection_kind(provider).open_probe(self._parts.import_context(who, provider.name))

    def _way(self, provider: ProviderDefinition) -> BrowserAuth:
        ways = _ways(provider)
        if not ways:
            kind = provider.auth.kind
            raise InvalidInput(f"provider {provider.name!r} authenticates by {kind!r}, without a browser")
        return ways[0]

    async def _client(self, provider: ProviderDefinition, auth: BrowserAuth, who: Principal) -> Client | None:
        """The client of a definition; null if it names none."""
        values = await self._access.holder(who).values(auth, provider)
        missing = [reference for reference, value in values.items() if not value]
        if missing:
            msg = (
                f"the client's {missing[0]} is not set or not released; "
                "set it, release variables by TOOLCRIB_RELEASED_ENV, connect again"
            )
            raise InvalidInput(msg)
        if isinstance(auth, AuthorizationCodeAuth):
            return Client.of(auth, values)
        return None if auth.client_id is None else Client.named(auth.client_id, auth.client_secret, values)


_USUAL_TIME: Final = timedelta(days=30)
_MOST_NAMED: Final = 10


def _would_break(name: str, dependents: Sequence[Dependent]) -> str:
    """The refusal of a removal, with what would break."""
    named = ", ".join(f"{each.kind} {each.name}" for each in dependents[:_MOST_NAMED])
    more = f" and {len(dependents) - _MOST_NAMED} more" if len(dependents) > _MOST_NAMED else ""
    return (
        f"provider {name!r} is in use: without it these break: {named}{more}; "
        "remove its tools with it (tools=remove), or keep them without it (tools=keep), which refuses their calls"
    )


_NOT_SENT: Final = frozenset(
    {Reason.MISSING_SECRET, Reason.RECONNECT_REQUIRED, Reason.SSRF_BLOCKED, Reason.PROVIDER_DISABLED}
)
"""Why nothing was sent to a provider."""


def _check_from_error(
    provider: ProviderDefinition, problem: ToolError, status: int | None, seconds: float
) -> ProviderCheck:
    is_sent = status is not None or problem.reason not in _NOT_SENT
    return ProviderCheck(
        provider=provider.name,
        reachable=status is not None if is_sent else None,
        authenticated=False if problem.code is ErrorCode.AUTH_REQUIRED else None,
        has_credentials=has_credentials(provider),
        message=problem.message,
        seconds=seconds,
        http_status=status,
        error=problem,
    )


def _ways(provider: ProviderDefinition) -> Sequence[BrowserAuth]:
    """The ways of a provider that a person can connect by; all of them share one connection."""
    return [auth for auth in (provider.auth, *provider.schemes.values()) if isinstance(auth, BrowserAuth)]
