"""Builders of what calls are made of: each has the defaults of an ordinary case, and takes what a test is about."""

from datetime import UTC, datetime
from typing import Any, TypedDict, Unpack

from tests.twins.ports import RecordingJournal
from toolcrib.contracts import (
    OWNER,
    CachePolicy,
    ErrorRule,
    Implementation,
    Json,
    JsonSchema,
    LifeCycle,
    Limits,
    McpOffer,
    Principal,
    RateLimit,
    RetryPolicy,
    SecretReference,
    SideEffects,
    ToolDefinition,
    ToolRevision,
    ToolSource,
    Usd,
)
from toolcrib.core.executor import CallContext, CallRequest, Lanes
from toolcrib.core.policy import Budget, CallPolicy
from toolcrib.kinds.python.shape import PythonImplementation

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
"""When everything in these tests was made."""


class ToolChanges(TypedDict, total=False):
    """Fields of `ToolDefinition` that a test is about."""

    version: str
    title: str
    category: str
    source: ToolSource
    input_schema: JsonSchema
    output_schema: JsonSchema
    mcp: McpOffer
    select: str
    side_effects: SideEffects
    deletes: bool
    untrusted: bool
    idempotent: bool
    idempotency_key: str
    cache: CachePolicy
    cache_ttl_s: float
    timeout_s: float
    retry: RetryPolicy
    error_handling: tuple[ErrorRule, ...]
    rate_limit: RateLimit
    cost_usd_per_call: Usd
    cost_from: str
    requires_confirmation: bool
    confirmation_expires_s: float | None
    sequential: bool
    max_output_bytes: int
    runs_on: Any
    secrets: tuple[SecretReference, ...]
    enabled: bool
    implementation: Implementation


def make_definition(name: str = "look_up", **changes: Unpack[ToolChanges]) -> ToolDefinition:
    """A Python tool that reads, unless said otherwise."""
    fields: dict[str, Any] = {
        "side_effects": "reads",
        "implementation": PythonImplementation(function="tests:look_up"),
        **changes,
    }
    return ToolDefinition(name=name, **fields)


def make_tool(
    name: str = "look_up",
    *,
    realm: str = OWNER.realm,
    status: LifeCycle = "active",
    status_message: str | None = None,
    replacement: str | None = None,
    **changes: Unpack[ToolChanges],
) -> ToolRevision:
    """The first revision of a definition."""
    definition = make_definition(name, **changes)
    return ToolRevision(
        definition=definition,
        revision=1,
        content_hash=definition.content_hash(),
        status=status,
        status_message=status_message,
        replacement=replacement,
        realm=realm,
        made_by=OWNER.id,
        created_at=AT,
    )


def make_context(
    *,
    principal: Principal = OWNER,
    policy: CallPolicy | None = None,
    limits: Limits | None = None,
    budget: Budget | None = None,
    journal: RecordingJournal | None = None,
    lanes: Lanes | None = None,
    run_id: str = "run_1",
    dry_run: bool = False,
    attempt: int = 1,
) -> CallContext:
    """A run of the owner's that allows everything. `limits` are for the new budget."""
    limits = limits or Limits()
    return CallContext(
        principal=principal,
        policy=policy or CallPolicy(),
        budget=budget or Budget(limits),
        journal=journal or RecordingJournal(),
        lanes=lanes or Lanes(limits.max_parallel_calls),
        run_id=run_id,
        dry_run=dry_run,
        attempt=attempt,
    )


def call(
    name: str = "look_up", arguments: Json = None, *, position: str = "t1.c1", version: str | None = None
) -> CallRequest:
    """A call; without arguments it has an empty object."""
    return CallRequest(position=position, name=name, input={} if arguments is None else arguments, version=version)
