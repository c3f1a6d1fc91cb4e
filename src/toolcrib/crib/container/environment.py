"""The runtimes of a crib by the kind of tool that they execute, with the connections that they hold.

What a crib is given of the world: a value, made by `Crib` and read where the parts are wired.

What the processes of one crib share, wired: in Redis where there is one, else in the store, or each for itself.

What keeps and finds credentials, wired: variables, the vault, connections, and the way to providers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from toolcrib.contracts import InvalidSettings, ModelService
from toolcrib.core.engines.restate import RestateOptions
from toolcrib.core.executor import Clock, Rates, Results, SlidingWindow
from toolcrib.core.policy import Caps, CountedCaps, SpendingCap
from toolcrib.core.providers import Consents, FindProvider, ProviderAccess, Tokens
from toolcrib.crib.container.plugins import Plugins
from toolcrib.infrastructure.net import EgressPolicy, HttpSession
from toolcrib.infrastructure.redis import RedisCounters, RedisRates, RedisResults, RedisServer
from toolcrib.infrastructure.sandbox import Sandbox
from toolcrib.infrastructure.secrets import EnvironmentSecrets, MasterKeys, Safe, ScopedSecrets, Vault
from toolcrib.infrastructure.store import Counters, Store, open_store, transactions_of
from toolcrib.kinds.entity.importer import Databases
from toolcrib.kinds.graphql.runtime import GraphqlRuntime
from toolcrib.kinds.mcp.importer import AllowedPrograms
from toolcrib.kinds.runtimes import (
    EntityRuntime,
    GrpcRuntime,
    HttpRuntime,
    McpRuntime,
    McpServers,
    PluginHost,
    PluginRuntimes,
    PythonRuntime,
    Runtime,
)
from toolcrib.llm import LanguageModel
from toolcrib.llm.base.prices import Prices


@dataclass(frozen=True, slots=True)
class Environment:
    """What a crib is given of the world."""

    store: Store
    clock: Clock
    egress: EgressPolicy
    environment: Mapping[str, str]
    """Where secrets and API keys are looked up."""
    released: tuple[str, ...]
    """Patterns of the variables that tools may use as secrets."""
    models: Mapping[str, LanguageModel]
    """Models that are used instead of opening one."""
    prices: Prices
    sandbox: Sandbox
    """Where code is run."""
    mcp_commands: tuple[str, ...]
    """Programs that may be started as MCP servers."""
    plugins: Plugins
    """Runtimes and model providers of other packages."""
    model_services: Mapping[str, ModelService]
    """Model providers that the operator has described."""
    restate: RestateOptions | None = None
    """The Restate cluster whose workers drive the runs; this process drives them, if null."""
    redis: RedisServer | None = None
    """What its processes share, beside the store; each has its own if null."""
    budgets: tuple[SpendingCap, ...] = ()
    """Caps on what many runs spend together."""


def resolve_store(store: str | Store, blobs: str | None) -> Store:
    """The store that a crib is given, or the one that a URL names, with its blobs at a place of their own if one is.

    Raises:
        InvalidSettings: No store has such a URL, or the store that was given has its blobs already.
    """
    if isinstance(store, str):
        return open_store(store, blobs=blobs)
    if blobs is not None:
        raise InvalidSettings("a store that was opened before has its blobs: open it with another place, or name a URL")
    return store


@dataclass(frozen=True, slots=True)
class Sharing:
    """All of it, for one crib."""

    redis: RedisServer | None
    results: Results
    rates: Rates
    caps: Caps | None
    """Null if the operator has set none."""

    @classmethod
    def wire(cls, outside: Environment) -> Self:
        """Make all of it; nothing is connected yet."""
        store, redis, now, alone = outside.store, outside.redis, outside.clock.now, SlidingWindow()
        if redis is None:
            return cls(None, store.cache, alone, _caps(outside, store.counters))
        caps = _caps(outside, RedisCounters(redis, now))
        return cls(redis, RedisResults(redis, now), RedisRates(redis, alone), caps)

    async def close(self) -> None:
        """Let go of the connections."""
        if self.redis is not None:
            await self.redis.close()


def _caps(outside: Environment, counters: Counters) -> Caps | None:
    return CountedCaps(outside.budgets, counters, outside.clock.now) if outside.budgets else None


@dataclass(frozen=True, slots=True)
class CredentialServices:
    """All of it, for one crib."""

    variables: EnvironmentSecrets
    vault: Vault
    secrets: ScopedSecrets
    consents: Consents
    access: ProviderAccess

    @classmethod
    def wire(
        cls,
        store: Store,
        session: HttpSession,
        find: FindProvider,
        *,
        environment: Mapping[str, str],
        released: tuple[str, ...],
        clock: Clock,
    ) -> Self:
        """Make all of it.

        Args:
            store: Keeps what is sealed.
            session: The way out.
            find: Finds providers.
            environment: Has variables and master keys.
            released: Patterns of the variables that definitions may use.
            clock: Time.

        Raises:
            InvalidSettings: The master keys cannot be used.
        """
        variables = EnvironmentSecrets(environment, released)
        safe = Safe(store.sealed, MasterKeys.read(environment))
        vault = Vault(safe)
        secrets = ScopedSecrets(variables, vault)
        tokens = Tokens(session, clock)
        consents = Consents(tokens.endpoints, safe, clock)
        return cls(variables, vault, secrets, consents, ProviderAccess(find, secrets, tokens, consents))


@dataclass(frozen=True, slots=True)
class RuntimeSet:
    """All ways out of the executor but those that are runs of their own."""

    by_kind: Mapping[str, Runtime]
    functions: PythonRuntime
    grpc: GrpcRuntime
    """Has the connections to gRPC servers."""
    entities: EntityRuntime
    """Has the connections to databases."""
    mcp: McpServers
    """Has the connections to MCP servers."""
    plugins: PluginRuntimes
    commands: AllowedPrograms
    """Tells which programs may be started."""

    @classmethod
    def wire(cls, outside: Environment, session: HttpSession, keeping: CredentialServices) -> Self:
        """Make them; nothing is connected."""
        access, blob_sink, clock = keeping.access, outside.store.blobs, outside.clock
        functions = PythonRuntime(session, transactions_of(outside.store))
        grpc = GrpcRuntime(session, access, blob_sink)
        entities = EntityRuntime(Databases(session.route), access, clock=clock)
        commands = AllowedPrograms(outside.mcp_commands)
        mcp = McpServers(session, access, commands=commands, environment=outside.environment, clock=clock)
        plugins = PluginRuntimes(outside.plugins.runtimes(PluginHost(session, keeping.secrets.resolve, clock)))
        by_kind: dict[str, Runtime] = {
            "python": functions,
            "http": HttpRuntime(session, access, blob_sink=blob_sink, clock=clock),
            "graphql": GraphqlRuntime(session, access, clock=clock),
            "grpc": grpc,
            "entity": entities,
            "mcp": McpRuntime(mcp, access, blob_sink=blob_sink),
            "plugin": plugins,
        }
        return cls(by_kind, functions, grpc, entities, mcp, plugins, commands)

    async def close(self) -> None:
        """Let go of the connections."""
        await self.grpc.close()
        await self.entities.close()
        await self.mcp.close()
