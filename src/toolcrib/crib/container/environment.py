"""The parts of a crib that reach outside the process: store, shared state, credentials and the runtimes of all kinds.

Shared state (results, rates, caps) is in Redis if it is configured, else in the store or in each process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from toolcrib.contracts import InvalidSettings, Limits, LLMConfig, ModelService
from toolcrib.core.engines.restate import RestateOptions
from toolcrib.core.executor import Clock, Rates, Results, SlidingWindow
from toolcrib.core.kinds import RuntimeParts
from toolcrib.core.policy import Caps, CountedCaps, read_caps
from toolcrib.core.providers import Consents, FindProvider, ProviderAccess, Tokens
from toolcrib.crib.container.model_services import read_services
from toolcrib.crib.container.plugins import NO_PLUGINS, Plugins, load_plugins
from toolcrib.infrastructure.net import EgressPolicy, HttpSession
from toolcrib.infrastructure.redis import RedisCounters, RedisRates, RedisResults, RedisServer
from toolcrib.infrastructure.sandbox import Sandbox
from toolcrib.infrastructure.secrets import EnvironmentSecrets, MasterKeys, Safe, ScopedSecrets, Vault
from toolcrib.infrastructure.store import Counters, Store, open_store, transactions_of
from toolcrib.kinds.dispatch import Runtimes
from toolcrib.llm import LanguageModel
from toolcrib.llm.base.prices import Prices

if TYPE_CHECKING:
    from toolcrib.crib.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionOptions:
    """What the definitions of a crib may use, and what they get where they say nothing.

    Example:
        options = DefinitionOptions(released=("CRM_*",), default_limits=Limits(max_tool_calls=10))
        crib = Crib("memory://", definitions=options)
    """

    released: tuple[str, ...] = ("*",)
    """The variables that definitions may use as secrets, as the setting `released_env` has them."""
    sandbox: Sandbox | None = None
    """Where code tools run; what this machine has if null."""
    mcp_commands: tuple[str, ...] = ()
    """Programs that may be started as MCP servers, word for word."""
    imports: tuple[str, ...] = ()
    """What serving processes import when they start, as the setting `imports` has it."""
    plugins: Plugins = NO_PLUGINS
    """Runtimes, model providers and guardrails of other packages, as `load_plugins` finds them."""
    model_services: Mapping[str, ModelService] = field(default_factory=dict[str, ModelService])
    """Model providers by name, in addition to the built-in ones."""
    prices: Prices = field(default_factory=Prices)
    """What models cost."""
    default_model: LLMConfig | None = None
    """The model of agentic tools and agents that are defined in code without one."""
    default_limits: Limits | None = None
    """What their runs may spend, if they are defined in code without limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingOptions:
    """What the processes of a crib share besides its store, and how they divide the work.

    Example:
        crib = Crib("memory://", sharing=SharingOptions(budgets=["realm 50 usd/day"], lease_s=5.0))
    """

    blobs: str | None = None
    """URL of the folder or bucket of the store's blobs, if they are not stored with the store."""
    redis: str | None = None
    """URL of the Redis server by which they share results, rate limits and budgets; each has its own if null."""
    budgets: Sequence[str] = ()
    """Caps on what many runs spend together, such as `realm 50 usd/day`; `toolcrib.core.policy.caps` says how."""
    lease_s: float = 10.0
    """Seconds after which the runs of a process that died are free."""
    keep_ended: timedelta | None = None
    """How long serving processes keep what has ended; for ever if null."""
    worker_wait_s: float = 5.0
    """Seconds that a call waits for a worker that has the tool's Python function, if this process lacks it."""
    restate: RestateOptions | None = None
    """The Restate cluster whose workers drive the runs; the process that begins them does, if null."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What a crib is given of the world."""

    store: Store
    clock: Clock
    egress: EgressPolicy
    environment: Mapping[str, str]
    """Where secrets and API keys are looked up."""
    models: Mapping[str, LanguageModel]
    """Models that are used instead of opening one."""
    sandbox: Sandbox
    """Where code is run."""
    definitions: DefinitionOptions
    sharing: SharingOptions


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
        store, now, alone = outside.store, outside.clock.now, SlidingWindow()
        redis = None if outside.sharing.redis is None else RedisServer(outside.sharing.redis)
        if redis is None:
            return cls(None, store.cache, alone, _caps(outside, store.counters))
        caps = _caps(outside, RedisCounters(redis, now))
        return cls(redis, RedisResults(redis, now), RedisRates(redis, alone), caps)

    async def close(self) -> None:
        """Let go of the connections."""
        if self.redis is not None:
            await self.redis.close()


def _caps(outside: Environment, counters: Counters) -> Caps | None:
    budgets = read_caps(outside.sharing.budgets)
    return CountedCaps(budgets, counters, outside.clock.now) if budgets else None


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
            released: The variables that definitions may use; see `VariableRelease.read`.
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


def open_runtimes(outside: Environment, session: HttpSession, keeping: CredentialServices) -> Runtimes:
    """The runtimes of a crib; nothing is connected."""
    parts = RuntimeParts(
        session=session,
        access=keeping.access,
        blobs=outside.store.blobs,
        clock=outside.clock,
        transactions=transactions_of(outside.store),
        environment=outside.environment,
        mcp_commands=outside.definitions.mcp_commands,
        plugins=outside.definitions.plugins.runtimes,
        resolve_secret=keeping.secrets.resolve,
    )
    return Runtimes.open(parts)


def definitions_of(settings: "Settings", prices: Prices) -> DefinitionOptions:
    """What the operator's settings say of definitions."""
    services = settings.model_services
    return DefinitionOptions(
        released=settings.released_env,
        sandbox=settings.sandbox.open(),
        mcp_commands=settings.mcp_commands,
        imports=settings.imports,
        plugins=load_plugins(settings.plugins),
        model_services={} if services is None else read_services(services),
        prices=prices,
        default_model=settings.llm(),
        default_limits=settings.limits,
    )


def sharing_of(settings: "Settings", *, blobs: str | None) -> SharingOptions:
    """What the operator's settings say of the processes of a store, which keep blobs at an address; null: beside it."""
    return SharingOptions(
        blobs=blobs,
        redis=settings.redis,
        budgets=settings.budgets,
        lease_s=settings.lease_s,
        worker_wait_s=settings.worker_wait_s,
        keep_ended=settings.retention.keep,
        restate=settings.restate if settings.engine == "restate" else None,
    )
