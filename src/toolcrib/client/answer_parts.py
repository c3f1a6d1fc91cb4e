"""What answers of the REST API consist of, beside contracts.

Written by `python -m tools.rest_client`.
"""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from toolcrib.contracts import (
    AgenticContext,
    AgenticStep,
    AgentMemory,
    AllocatedTool,
    ApiKeyAuth,
    Attachment,
    AuthorizationCodeAuth,
    AutoDiscover,
    BasicAuth,
    BearerAuth,
    ContentFilter,
    CustomGuardrail,
    DatabaseConnection,
    ErrorRule,
    Example,
    GrpcConnection,
    HttpConnection,
    Json,
    JsonObject,
    Limits,
    LLMConfig,
    MaxCost,
    McpConnection,
    MutualTlsAuth,
    NoAuth,
    NoDelete,
    OAuth2Auth,
    OpenQuestion,
    PinnedHandle,
    ProtectedResourceAuth,
    ProviderSync,
    RateLimit,
    RealmBoundary,
    ReferenceSource,
    RequireConfirmation,
    RetryPolicy,
    SecretReference,
    ServerVariable,
    Timings,
    ToolDefinition,
    ToolError,
    Trace,
    TwoStepAuth,
    UntrustedContent,
)
from toolcrib.contracts.providers.tool_access import ToolAccess
from toolcrib.contracts.specs.workflow_steps import WorkflowStep


class Answer(BaseModel):
    """A part of an answer; fields of newer servers are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class InvokeMeta(Answer):
    """How a run went."""

    run_id: str
    execution_id: str
    """The same as `run_id`."""
    tool: str
    """`name@version`."""
    agentic_tool: str | None
    """The tool's name; null for a tool without a model."""
    mode: Literal["deterministic", "agentic"] | None
    """Null for a tool without a model."""
    status: Literal[
        "queued",
        "running",
        "awaiting_approval",
        "awaiting_client",
        "awaiting_answer",
        "completed",
        "incomplete",
        "failed",
        "timed_out",
        "cancelled",
    ]
    stop_reason: (
        Literal[
            "final_answer",
            "question",
            "declined",
            "nothing_done",
            "max_iterations",
            "max_tool_calls",
            "max_cost",
            "max_tokens",
            "timeout",
            "no_tools",
            "policy",
            "error",
            "cancelled",
        ]
        | None
    )
    total_cost: float | None
    """US dollars, nested runs included; null means unknown."""
    cost_unknown: bool
    """`total_cost` is a lower bound."""
    total_tokens: int
    duration_ms: int
    warnings: tuple[str, ...]
    trace: Trace
    question: OpenQuestion | None = None
    """The question of the run; `POST /executions/{run_id}/answer` answers it."""


class EnvelopeView(Answer):
    """An envelope, and where its call ran."""

    call_id: str
    """hash(name@version, canonical(input), position): unique within its run. If the run is this one call, the run's
    id is hashed too, and it is unique among all calls."""
    name: str
    version: str
    """The version that really ran; empty for an unknown tool."""
    status: Literal["success", "error", "skipped", "denied"]
    t_start: datetime
    t_end: datetime
    was_executed: bool
    """Whether the server's part was carried out: with `requires_client_execution`, the preparation."""
    position: str | None = None
    """The journal's key of the call inside its run: `t3.c1`, `fetch[17]`."""
    input: Json | None = None
    """Arguments as validated; secrets never included."""
    output: Json | None = None
    """Null when `error` is set."""
    partial: Json | None = None
    """What a nested run had done that did not complete."""
    error: ToolError | None = None
    cached: bool | None = None
    reused: str | None = None
    """Id of the run that made the call, if this run reuses its result."""
    truncated: bool | None = None
    attachments: tuple[Attachment, ...] | None = None
    http_status: int | None = None
    metadata: JsonObject | None = None
    """Allow-listed response headers and paging."""
    requires_client_execution: bool | None = None
    """A client acts on the call: the output is the prepared payload, and in the end what the client returned."""
    approved_input: Json | None = None
    """The arguments as a person edited them while approving; the `call_id` stays that of the request."""
    run_id: str | None = None
    conversation_id: str | None = None
    session_id: str | None = None
    attempts: int | None = None
    """Executions at the tool boundary, retries included; 0 if the tool never ran."""
    timings: Timings | None = None
    cost_usd: float | None = None
    """Null means unknown, never 0 for a paid call."""
    side_effects: Literal["none", "reads", "writes"] | None = None
    content_hash: str | None = None
    tainted: bool | None = None
    """The output contains untrusted content, or was made from it."""
    is_server_tool: Literal[True] | None = None
    """Always: a client's tool, too, is validated and prepared by the server."""


class Problem(Answer):
    """One thing that is wrong with arguments or a definition."""

    path: str
    """JSON pointer of the place; empty for the whole."""
    problem: str


class AgentView(Answer):
    """An agent, as it is stored."""

    revision: int
    """Send it as `If-Match` to change exactly this one."""
    content_hash: str
    life_cycle: Literal["active", "deprecated", "blocked"]
    """Of the version, as operators set it: active, deprecated, blocked."""
    realm: str
    made_by: str
    """Of this revision."""
    created_at: datetime
    """When the name was first saved."""
    updated_at: datetime
    """When this revision was saved."""
    name: str
    """Unique per realm, among tools of all kinds."""
    llm: LLMConfig
    warnings: tuple[str, ...] | None = None
    """In responses to saving: notes for the author, such as deprecated tools that it is bound to."""
    version: str | None = None
    """Semantic version."""
    title: str | None = None
    description: str | None = None
    """What it does, for people and for agents that may call it."""
    long_description: str | None = None
    tags: tuple[str, ...] | None = None
    usage: str | None = None
    """When to call it and when not."""
    examples: tuple[Example, ...] | None = None
    source: Literal["manual", "auto_generated", "imported", "authored_by_agent"] | None = None
    metadata: JsonObject | None = None
    """As `ToolDefinition` describes it."""
    select: str | None = None
    deletes: bool | None = None
    untrusted: bool | None = None
    idempotent: bool | None = None
    idempotency_key: str | None = None
    reconcile: str | None = None
    on_unknown: Literal["fail", "ask"] | None = None
    transactional: bool | None = None
    cache: Literal["none", "ttl", "forever"] | None = None
    cache_ttl_s: float | None = None
    retry: RetryPolicy | None = None
    error_handling: tuple[ErrorRule, ...] | None = None
    rate_limit: RateLimit | None = None
    estimated_latency_s: float | None = None
    cost_usd_per_call: float | None = None
    cost_from: str | None = None
    cost_hint: str | None = None
    requires_confirmation: bool | None = None
    """Every call waits for a person, before anything inside begins."""
    confirmation_expires_s: float | None = None
    sequential: bool | None = None
    max_output_bytes: int | None = None
    runs_on: Literal["server", "client"] | None = None
    secrets: tuple[SecretReference, ...] | None = None
    security_uri: str | None = None
    """Permission needed to run it; `ai://agents/{name}/execute` or `ai://workflows/{name}/execute` if null."""
    available_as: tuple[Literal["tool", "workflow_step", "mcp_tool"], ...] | None = None
    enabled: bool | None = None
    status: Literal["draft", "active", "disabled"] | None = None
    system_prompt: str | None = None
    """Persona and focus."""
    prompt_fragments: tuple[str, ...] | None = None
    """Names of reusable fragments, which follow the system prompt in this order."""
    response_format: Literal["text", "json", "structured"] | None = None
    response_schema: JsonObject | None = None
    """For `structured`: JSON Schema 2020-12 of `output`."""
    tools: tuple[AllocatedTool, ...] | None = None
    """By reference, pattern of names or group, with priorities."""
    tool_categories: tuple[str, ...] | None = None
    tool_tags: tuple[str, ...] | None = None
    excluded_tools: tuple[str, ...] | None = None
    """Names, or patterns of names, that are taken out again."""
    max_tools_in_context: int | None = None
    """Tools that the model is shown; the rest it can find with a built-in tool."""
    delegates: tuple[str, ...] | None = None
    """Agents that it may call as tools, also those of other systems."""
    can_create_workflows: bool | None = None
    limits: Limits | None = None
    side_effects: Literal["none", "reads", "writes"] | None = None
    """The most that its calls may do: `reads` makes a read-only agent."""
    parallel_tool_calls: bool | None = None
    """Whether it may call several tools in one answer."""
    durable: bool | None = None
    """Run in the background by default: a request answers with the run's id."""
    memory: AgentMemory | None = None
    guardrails: (
        tuple[
            MaxCost
            | NoDelete
            | RequireConfirmation
            | ContentFilter
            | RealmBoundary
            | UntrustedContent
            | CustomGuardrail,
            ...,
        ]
        | None
    ) = None
    requires_approval: bool | None = None
    """A person approves every call with side effects."""
    principal_ref: str | None = None
    """Service account that it acts as; the caller's own identity if null."""
    realms: tuple[str, ...] | None = None
    """Realms in which it may be saved; empty for any. An agent runs in the realm in which it is saved, and data
    never leaves a realm: this keeps a definition that was written for one tenant from being applied to another."""
    pins: tuple[PinnedHandle, ...] | None = None
    """Handles of its outputs that stay when a tool is gone."""
    category: str | None = None
    input_schema: JsonObject | None = None
    """Parameters: `message` and whatever else the model is to be told before it."""
    output_schema: JsonObject | None = None
    """The output schema; null to derive it from the format of the answer."""


class RunUnderWay(Answer):
    """A run that has not ended."""

    run_id: str
    status: Literal[
        "queued",
        "running",
        "awaiting_approval",
        "awaiting_client",
        "awaiting_answer",
        "completed",
        "incomplete",
        "failed",
        "timed_out",
        "cancelled",
    ]


class AgenticView(Answer):
    """An agentic tool, as it is stored."""

    revision: int
    """Send it as `If-Match` to change exactly this one."""
    content_hash: str
    life_cycle: Literal["active", "deprecated", "blocked"]
    """Of the version, as operators set it: active, deprecated, blocked."""
    realm: str
    made_by: str
    """Of this revision."""
    created_at: datetime
    """When the name was first saved."""
    updated_at: datetime
    """When this revision was saved."""
    name: str
    """Its id in paths."""
    mode: Literal["deterministic", "agentic"]
    llm: LLMConfig
    id: str
    """The same as `name`."""
    side_effects: Literal["none", "reads", "writes"]
    """The most that its tools have."""
    warnings: tuple[str, ...] | None = None
    """In responses to saving: notes for the author, such as deprecated tools that it is bound to."""
    version: str | None = None
    title: str | None = None
    description: str | None = None
    long_description: str | None = None
    """What parent agents read; made from the rest if null."""
    category: str | None = None
    tags: tuple[str, ...] | None = None
    usage: str | None = None
    examples: tuple[Example, ...] | None = None
    metadata: JsonObject | None = None
    requires_confirmation: bool | None = None
    security_uri: str | None = None
    input_schema: JsonObject | None = None
    status: Literal["draft", "active", "disabled"] | None = None
    system_prompt: str | None = None
    """A template; the default one if null."""
    steps: tuple[AgenticStep, ...] | None = None
    tools: tuple[AllocatedTool, ...] | None = None
    context: AgenticContext | None = None
    limits: Limits | None = None
    result_schema: JsonObject | None = None
    grounding: Literal["evidence", "strict", "off"] | None = None
    """How sure one must be of what the model takes from a task."""
    preview_above: int | None = None
    """A change of more items than this waits for a person."""


class ExecutionView(Answer):
    """One execution of an agentic tool, in short."""

    execution_id: str
    realm: str
    made_by: str
    agentic_tool: str
    version: str
    status: Literal[
        "queued",
        "running",
        "awaiting_approval",
        "awaiting_client",
        "awaiting_answer",
        "completed",
        "incomplete",
        "failed",
        "timed_out",
        "cancelled",
    ]
    stop_reason: (
        Literal[
            "final_answer",
            "question",
            "declined",
            "nothing_done",
            "max_iterations",
            "max_tool_calls",
            "max_cost",
            "max_tokens",
            "timeout",
            "no_tools",
            "policy",
            "error",
            "cancelled",
        ]
        | None
    )
    parent_request: Json
    """The input."""
    result: Json
    error: ToolError | None
    total_cost: float | None
    """US dollars, nested runs included; null means unknown."""
    cost_unknown: bool
    """`total_cost` is a lower bound."""
    total_tokens: int
    """Input and output tokens, nested runs included."""
    duration_ms: int | None
    """Null until it has ended."""
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None


class LLMCallView(Answer):
    """One call of the embedded model."""

    call_sequence: int
    position: str
    purpose: Literal[
        "planning",
        "tool_selection",
        "result_review",
        "error_recovery",
        "formatting",
        "answer",
        "summary",
        "verification",
        "question",
    ]
    model: str
    status: Literal["running", "success", "error"]
    prompt: str
    """The system prompt and the new messages; results of tools are in `tool_calls`."""
    response: str | None
    """The model's words; null if it only called tools, or has not answered."""
    reasoning: str | None
    decision: str | None
    """What it decided, in short."""
    input_tokens: int
    output_tokens: int
    cost: float | None
    latency_ms: int | None
    created_at: datetime


class ToolCallView(Answer):
    """One call of an allotted tool."""

    call_sequence: int
    position: str
    action: str
    """The tool's name."""
    parameters: Json
    response: Json
    error: ToolError | None
    status: str
    cost: float | None
    latency_ms: int | None
    created_at: datetime


class AiToolView(Answer):
    """Any tool, in short."""

    id: str
    name: str
    title: str | None
    description: str
    type: Literal["simple", "composite", "agentic"]
    kind: str
    """What it is made of: `python`, `http`, `agentic`."""
    version: str
    revision: int
    status: Literal["draft", "active", "disabled"]
    life_cycle: Literal["active", "deprecated", "blocked"]
    side_effects: Literal["none", "reads", "writes"]
    category: str
    tags: tuple[str, ...]
    realm: str
    made_by: str
    """Of this revision."""
    created_at: datetime
    """When the name was first saved."""
    updated_at: datetime
    """When this revision was saved."""


class ToolView(Answer):
    """A tool as it is now: the answer to reading it, to every change of it, and its entry in lists."""

    definition: ToolDefinition
    revision: int
    """1, 2, 3… per name and realm."""
    content_hash: str
    realm: str
    made_by: str
    created_at: datetime
    """When the name was first saved."""
    updated_at: datetime
    """When this revision was saved."""
    status: Literal["active", "deprecated", "blocked"] | None = None
    status_message: str | None = None
    sunset: datetime | None = None
    replacement: str | None = None
    warnings: tuple[str, ...] | None = None
    """Of the moment in which it was saved, and not stored: deprecated tools that it is bound to."""
    access: ToolAccess | None = None
    """What stands between the caller and the system behind the tool, where it was asked for."""


class ProviderView(Answer):
    """A provider's definition, and how its syncs stand."""

    name: str
    title: str | None = None
    enabled: bool | None = None
    """Its tools are not called while it is not."""
    connection: HttpConnection | McpConnection | GrpcConnection | DatabaseConnection | None = None
    base_url: str | None = None
    """Absolute, with `{name}` for variables; empty for a program, and for a database."""
    variables: dict[str, ServerVariable] | None = None
    auth: (
        NoAuth
        | BearerAuth
        | ApiKeyAuth
        | BasicAuth
        | OAuth2Auth
        | AuthorizationCodeAuth
        | ProtectedResourceAuth
        | TwoStepAuth
        | MutualTlsAuth
        | None
    ) = None
    """The one way to authenticate, where `security` is null and the operation names no other."""
    schemes: (
        dict[
            str,
            NoAuth
            | BearerAuth
            | ApiKeyAuth
            | BasicAuth
            | OAuth2Auth
            | AuthorizationCodeAuth
            | ProtectedResourceAuth
            | TwoStepAuth
            | MutualTlsAuth,
        ]
        | None
    ) = None
    """Ways to authenticate by name, for `security` here and in operations."""
    security: tuple[dict[str, tuple[str, ...]], ...] | None = None
    """For operations that say nothing: alternatives of which one is met, in order of preference."""
    headers: dict[str, str] | None = None
    timeout_s: float | None = None
    """Seconds of one request; a tool's own `timeout_s` bounds all of its call."""
    retry: RetryPolicy | None = None
    """For tools whose own `retry` has a count of 0."""
    reference_data: tuple[ReferenceSource, ...] | None = None
    """Lists of valid values that agentic tools may name, read by tools of this provider."""
    metadata: JsonObject | None = None
    """Where it came from: document title, version, digest."""
    imported_from: JsonObject | None = None
    """What an import has read and a sync reads again: the kind of its tools, and the fields of its import source.
    Null for what a sync asks without it, such as an MCP server, and for what cannot be asked again, such as a
    file."""
    auto_discover: AutoDiscover | None = None
    """When a serving process syncs it; null for never."""
    last_sync: ProviderSync | None = None
    """Its last sync or import, and the next one; null if there was none and no schedule wants one."""


class WorkflowView(Answer):
    """A workflow, as it is published."""

    revision: int
    """Send it as `If-Match` to change exactly this one."""
    content_hash: str
    life_cycle: Literal["active", "deprecated", "blocked"]
    """Of the version, as operators set it: active, deprecated, blocked."""
    realm: str
    made_by: str
    """Of this revision."""
    created_at: datetime
    """When the name was first saved."""
    updated_at: datetime
    """When this revision was saved."""
    name: str
    """Unique per realm, among tools of all kinds."""
    steps: tuple[WorkflowStep, ...]
    warnings: tuple[str, ...] | None = None
    """In responses to saving: notes for the author, such as deprecated tools that it is bound to."""
    version: str | None = None
    """Semantic version."""
    title: str | None = None
    description: str | None = None
    """What it does, for people and for agents that may call it."""
    long_description: str | None = None
    tags: tuple[str, ...] | None = None
    usage: str | None = None
    """When to call it and when not."""
    examples: tuple[Example, ...] | None = None
    source: Literal["manual", "auto_generated", "imported", "authored_by_agent"] | None = None
    metadata: JsonObject | None = None
    """As `ToolDefinition` describes it."""
    select: str | None = None
    deletes: bool | None = None
    untrusted: bool | None = None
    idempotent: bool | None = None
    idempotency_key: str | None = None
    reconcile: str | None = None
    on_unknown: Literal["fail", "ask"] | None = None
    transactional: bool | None = None
    cache: Literal["none", "ttl", "forever"] | None = None
    cache_ttl_s: float | None = None
    retry: RetryPolicy | None = None
    error_handling: tuple[ErrorRule, ...] | None = None
    rate_limit: RateLimit | None = None
    estimated_latency_s: float | None = None
    cost_usd_per_call: float | None = None
    cost_from: str | None = None
    cost_hint: str | None = None
    requires_confirmation: bool | None = None
    """Every call waits for a person, before anything inside begins."""
    confirmation_expires_s: float | None = None
    sequential: bool | None = None
    max_output_bytes: int | None = None
    runs_on: Literal["server", "client"] | None = None
    secrets: tuple[SecretReference, ...] | None = None
    security_uri: str | None = None
    """Permission needed to run it; `ai://agents/{name}/execute` or `ai://workflows/{name}/execute` if null."""
    available_as: tuple[Literal["tool", "workflow_step", "mcp_tool"], ...] | None = None
    enabled: bool | None = None
    status: Literal["draft", "active", "disabled"] | None = None
    output: Json | None = None
    """What it puts out, with `${…}`; null for the outputs of the steps that nothing depends on, by name."""
    limits: Limits | None = None
    guardrails: (
        tuple[
            MaxCost
            | NoDelete
            | RequireConfirmation
            | ContentFilter
            | RealmBoundary
            | UntrustedContent
            | CustomGuardrail,
            ...,
        ]
        | None
    ) = None
    """Rules for all of its calls, those of nested runs included."""
    category: str | None = None
    input_schema: JsonObject | None = None
    output_schema: JsonObject | None = None
    side_effects: Literal["none", "reads", "writes"] | None = None
    """The most that its steps may do; what their tools do if null."""
