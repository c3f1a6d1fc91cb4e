"""What a crib is given of the world: a value, made by `Crib` and read where the parts are wired."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolcrib.contracts import InvalidSettings, ModelService
from toolcrib.core.engines.restate import RestateOptions
from toolcrib.core.executor import Clock
from toolcrib.core.policy import SpendingCap
from toolcrib.crib.container.plugins import Plugins
from toolcrib.infrastructure.net import EgressPolicy
from toolcrib.infrastructure.sandbox import Sandbox
from toolcrib.infrastructure.shared import RedisServer
from toolcrib.infrastructure.store import Store, open_store
from toolcrib.llm import LanguageModel
from toolcrib.llm.base.prices import Prices


@dataclass(frozen=True, slots=True)
class Outside:
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


def opened(store: str | Store, blobs: str | None) -> Store:
    """The store that a crib is given, or the one that a URL names, with its blobs at a place of their own if one is.

    Raises:
        InvalidSettings: No store has such a URL, or the store that was given has its blobs already.
    """
    if isinstance(store, str):
        return open_store(store, blobs=blobs)
    if blobs is not None:
        raise InvalidSettings("a store that was opened before has its blobs: open it with another place, or name a URL")
    return store
