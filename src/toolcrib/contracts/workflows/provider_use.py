"""How a provider is used: its calls, errors, latency and costs over a time, what depends on it, and its removal."""

from typing import Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Timestamp, Usd
from toolcrib.contracts.workflows.graphs import Dependent

ToolsOfProvider: TypeAlias = Literal["refuse", "keep", "remove"]
"""What becomes of the tools of a provider that is removed: `refuse` removes nothing while there are any; `keep` leaves
them in the catalogue, and their calls are refused; `remove` takes them out too."""


class Latencies(Contract):
    """Milliseconds of the execution of calls, all attempts included, without waits for people and clients."""

    p50: float
    p95: float
    p99: float
    most: float


class ProviderUsage(Contract):
    """The calls of a provider's tools in the runs that began in a time."""

    provider: str
    since: Timestamp
    until: Timestamp
    calls: int = 0
    """Those that reached the provider, or were to: without those that were answered from a cache or by a journal."""
    succeeded: int = 0
    failed: int = 0
    denied: int = 0
    """By policy, before anything was sent."""
    skipped: int = 0
    """In dry runs."""
    reused: int = 0
    """Answered from a cache, or by the journal of another run; no part of `calls`."""
    errors: dict[str, int] = Field(default_factory=dict)
    """Failed calls by code: `TIMEOUT`, `RATE_LIMIT`…"""
    latency_ms: Latencies | None = None
    """Of the calls that were executed; null if there were none."""
    cost_usd: Usd | None = None
    """What calls cost that have a price; null if none of them had one."""
    unpriced_calls: int = 0
    """Succeeded calls without a known price, which `cost_usd` does not include."""
    last_used_at: Timestamp | None = None
    runs: int = 0
    """Runs of the realm that were read."""
    complete: bool = True
    """Whether all runs of the time were read; the newest ones are, if there are more than can be."""


class ProviderImpact(Contract):
    """What depends on a provider."""

    provider: str
    dependents: tuple[Dependent, ...]
    """Its tools, agentic tools with its reference data, and what is bound to these, direct ones first."""
    hidden: int = 0
    """Others, which the caller may not see."""


class ProviderRemoval(Contract):
    """The result of removing a provider."""

    provider: str
    removed_tools: tuple[str, ...] = ()
    """Names of its tools that were taken out of the catalogue. Active runs keep their revisions."""
    broken: tuple[str, ...] = ()
    """`name@version` of what does not work any more, or not as before."""
    message: str
