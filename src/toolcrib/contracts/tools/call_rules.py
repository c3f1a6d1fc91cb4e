"""What flat documents of agents and workflows share: what they are called, and what holds for their calls."""

from typing import Literal

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Usd
from toolcrib.contracts.base.retries import RetryPolicy
from toolcrib.contracts.providers.providers_part import NAME_PATTERN
from toolcrib.contracts.tools.tools import (
    CachePolicy,
    ErrorRule,
    Example,
    RateLimit,
    SecretReference,
    Surface,
    ToolSource,
    UnknownOutcome,
)


class Identity(Contract):
    """How it is called and described, as a tool among others."""

    name: str = Field(pattern=NAME_PATTERN)
    """Unique per realm, among tools of all kinds."""
    version: str = "1.0.0"
    """Semantic version."""
    title: str | None = None
    description: str = ""
    """What it does, for people and for agents that may call it."""
    long_description: str | None = None
    tags: tuple[str, ...] = ()
    usage: str | None = None
    """When to call it and when not."""
    examples: tuple[Example, ...] = ()
    source: ToolSource = "manual"


class CallRules(Contract):
    """Each field as `ToolDefinition` describes it."""

    select: str | None = None
    deletes: bool | None = None
    untrusted: bool | None = None
    idempotent: bool = False
    idempotency_key: str | None = None
    reconcile: str | None = None
    on_unknown: UnknownOutcome = "fail"
    transactional: bool = False
    cache: CachePolicy = "none"
    cache_ttl_s: float | None = Field(default=None, gt=0)
    retry: RetryPolicy = RetryPolicy()
    error_handling: tuple[ErrorRule, ...] = ()
    rate_limit: RateLimit | None = None
    estimated_latency_s: float | None = None
    cost_usd_per_call: Usd | None = None
    cost_from: str | None = None
    cost_hint: str | None = None
    requires_confirmation: bool = False
    """Every call waits for a person, before anything inside begins."""
    confirmation_expires_s: float | None = Field(default=None, gt=0, le=31_536_000)
    sequential: bool = False
    max_output_bytes: int = Field(default=2 * 1024 * 1024, ge=1)
    runs_on: Literal["server", "client"] = "server"
    secrets: tuple[SecretReference, ...] = ()

    security_uri: str | None = None
    """Permission needed to run it; `ai://agents/{name}/execute` or `ai://workflows/{name}/execute` if null."""
    available_as: tuple[Surface, ...] = ("tool", "workflow_step", "mcp_tool")
    enabled: bool = True
