"""The definition of a tool, and the immutable revision that stores it.

A definition is what an author writes; its content hash identifies it. A revision adds what the crib knows: number,
life-cycle state, realm and author. Runs, pins, approvals and caches refer to the hash.

Example:
    from toolcrib.kinds.http.shape import HttpImplementation

    list_stages = ToolDefinition(
        name="list_stages",
        side_effects="reads",
        implementation=HttpImplementation(method="GET", url="https://api.crm.example/stages"),
    )
    crib.add(list_stages)
"""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Final, Literal, TypeAlias
from urllib.parse import unquote

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Json, JsonObject, JsonSchema, RetryPolicy, Timestamp, Usd
from toolcrib.contracts.base.envelope import SideEffects
from toolcrib.contracts.base.errors import InvalidInput
from toolcrib.contracts.base.identity import content_hash
from toolcrib.contracts.base.implementations import DELEGATES, Implementation
from toolcrib.contracts.base.principals import Verb, tool_uri
from toolcrib.contracts.providers.providers import NAME_PATTERN
from toolcrib.contracts.runs.runs import RunKind
from toolcrib.contracts.specs.agents import AgenticImplementation, AgentImplementation
from toolcrib.contracts.specs.models_and_limits import CLOSING_S
from toolcrib.contracts.specs.workflow_steps import WorkflowImplementation

CachePolicy: TypeAlias = Literal["none", "ttl", "forever"]
FailureAction: TypeAlias = Literal["retry", "clarify", "fail", "fallback"]
LifeCycle: TypeAlias = Literal["active", "deprecated", "blocked"]
ToolSource: TypeAlias = Literal["manual", "auto_generated", "imported", "authored_by_agent"]
UnknownOutcome: TypeAlias = Literal["fail", "ask"]
"""`fail`: its error says that the outcome is unknown. `ask`: a person is asked, and the run waits."""
Surface: TypeAlias = Literal["tool", "workflow_step", "mcp_tool"]


class Example(Contract):
    """One use of a tool, which models are shown with its description if it is short and fits the input schema."""

    scenario: str
    input: JsonObject
    output: Json = None


class ErrorRule(Contract):
    """What one HTTP status or error code means for this tool."""

    when: str
    """A status (`429`), a class (`5xx`) or an error code (`TIMEOUT`)."""
    action: FailureAction
    message: str | None = None
    """Replaces the message that the model sees."""
    tool: str | None = None
    """For `fallback`: the tool that is called with the same arguments instead, and whose output counts."""


class RateLimit(Contract):
    """At most `count` executions in any `per_s` seconds, per realm."""

    count: int = Field(ge=1)
    per_s: float = Field(gt=0)


class SecretReference(Contract):
    """A credential that the tool needs, by reference. The value is resolved for the call and forgotten after it."""

    name: str
    """Key in the tool's `auth`."""
    reference: str
    """`${env:NAME}`."""
    required: bool = True


_VARIABLE: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SCHEMAS: Final = frozenset({"input_schema", "output_schema"})
"""The fields that are most of a definition: what they hold is JSON already, and is seldom written only to be hashed."""
_ANY_ARGUMENTS: Final = {"type": "object"}


class McpOffer(Contract):
    """How MCP clients see a tool that is a resource or a prompt for them.

    A resource is read by its address, whose variables are the arguments (RFC 6570, level 1). A prompt has the tool's
    arguments; its output is a text, or a list of messages `{"role": "user", "content": "…"}`.

    Example:
        from toolcrib.contracts import McpOffer

        offer = McpOffer(show_as="resource", uri="deals://{deal_id}/notes", mime_type="text/plain")
        print(offer.variables, offer.arguments_of("deals://d1/notes"))
    """

    show_as: Literal["resource", "prompt"]
    uri: str | None = None
    """Of a resource: an absolute URI with variables in braces."""
    mime_type: str | None = None
    """Of a resource; `text/plain` of an output that is text, else `application/json`, if null."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The names in the address, in order."""
        return tuple(_VARIABLE.findall(self.uri or ""))

    def arguments_of(self, uri: str) -> Mapping[str, str] | None:
        """The arguments that an address stands for; null if it is not one of this resource."""
        found = self._pattern.fullmatch(uri)
        return None if found is None else {name: unquote(value) for name, value in found.groupdict().items()}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = _VARIABLE.split(self.uri or "")
        texts = [re.escape(part) if place % 2 == 0 else f"(?P<{part}>[^/?#]+)" for place, part in enumerate(parts)]
        return re.compile("".join(texts))


class ToolDefinition(Contract):
    """Everything that an author says about a tool."""

    name: str = Field(pattern=NAME_PATTERN)
    """Unique per realm."""
    version: str = "1.0.0"
    """Semantic version."""
    title: str | None = None
    description: str = ""
    long_description: str | None = None
    category: str = "utility"
    tags: tuple[str, ...] = ()
    usage: str | None = None
    """Guidance for the model: when to use the tool and when not."""
    examples: tuple[Example, ...] = ()
    source: ToolSource = "manual"
    metadata: JsonObject = Field(default_factory=dict)
    """What programs of the author note about it, at most 16 KB of JSON: an owner, a ticket. Models are not told it, no
    search finds it, and no call depends on it."""

    input_schema: JsonSchema = Field(default_factory=lambda: {"type": "object"})
    """JSON Schema 2020-12 of the arguments, an object."""
    output_schema: JsonSchema | None = None
    """JSON Schema 2020-12 of the output; null for anything."""

    select: str | None = None
    """RFC 9535 path that selects the output from what the implementation returns; null for the whole."""

    side_effects: SideEffects = "writes"
    """Unless said otherwise a tool is taken to write."""
    deletes: bool | None = None
    """Whether a call may delete what no other call can restore; if null, its operation decides: the method of HTTP,
    the operation on an entity. Nothing says it of other kinds."""
    untrusted: bool | None = None
    """Whether its output is untrusted content; if null, yes for `http`, `mcp`, `grpc` and `plugin`, no for other kinds.
    The output of a tool that calls others is untrusted too if an output of theirs is."""
    idempotent: bool = False
    """Repeating a call with the same arguments changes nothing more."""
    idempotency_key: str | None = None
    """Header (`header:Idempotency-Key`) or argument that takes the call's key."""
    reconcile: str | None = None
    """Tool that answers whether a key took effect."""
    on_unknown: UnknownOutcome = "fail"
    """What happens to a write whose outcome is unknown and cannot be looked up."""
    transactional: bool = False
    cache: CachePolicy = "none"
    cache_ttl_s: float | None = Field(default=None, gt=0)
    timeout_s: float = Field(default=60.0, gt=0, le=86_400)
    """Seconds for all attempts of one call; a day at most."""
    retry: RetryPolicy = RetryPolicy.model_construct()
    error_handling: tuple[ErrorRule, ...] = ()
    rate_limit: RateLimit | None = None
    estimated_latency_s: float | None = None
    """Seconds of a typical call, which models are told."""
    cost_usd_per_call: Usd | None = None
    """The cost that is reserved before each call, and charged unless its output has another one."""
    cost_from: str | None = None
    """RFC 9535 path of what a call cost, in US dollars, in what the implementation returns."""
    cost_hint: str | None = None
    """What a call costs, in words for models, such as `expensive` or `3 credits`; it is not counted."""
    requires_confirmation: bool = False
    """Every call waits for a person."""
    confirmation_expires_s: float | None = Field(default=None, gt=0, le=31_536_000)
    """Seconds after which a call without a decision is denied; null for never."""
    sequential: bool = False
    """Runs alone: a barrier among the calls of one answer."""
    max_output_bytes: int = Field(default=2 * 1024 * 1024, ge=1)
    runs_on: Literal["server", "client"] = "server"
    """`client`: the server side validates and prepares, the client performs the act."""

    security_uri: str | None = None
    """Permission needed; `ai://tools/{category}/{name}/execute` if null, of an agent or a workflow
    `ai://agents/{name}/execute`, `ai://workflows/{name}/execute`."""
    secrets: tuple[SecretReference, ...] = ()
    available_as: tuple[Surface, ...] = ("tool", "workflow_step", "mcp_tool")
    mcp: McpOffer | None = None
    """What MCP clients see, which needs `mcp_tool` above; a tool if null."""
    enabled: bool = True

    implementation: Implementation

    def content_hash(self) -> str:
        """The hash of everything above, which names this content for ever.

        Defaults are left out, so that a field which a later release adds does not change the hash of what is stored.
        """
        content = self.model_dump(mode="json", exclude_defaults=True, exclude={*_SCHEMAS, "implementation"})
        content["implementation"] = self.implementation.content()
        if self.input_schema != _ANY_ARGUMENTS:
            content["input_schema"] = self.input_schema
        if self.output_schema is not None:
            content["output_schema"] = self.output_schema
        try:
            return content_hash(content)
        except InvalidInput:  # a schema has something that becomes JSON only when it is written
            written = self.model_dump(mode="json", include={"input_schema", "output_schema"})
            return content_hash(content | {name: written[name] for name in _SCHEMAS & content.keys()})

    @property
    def call_timeout_s(self) -> float:
        """Seconds after which a call is cut off: a run of its own gets some more than it has, to end itself before."""
        kind = self.implementation.kind
        return self.timeout_s if kind not in DELEGATES or self.has_model else self.timeout_s + CLOSING_S

    @property
    def provider(self) -> str | None:
        """Name of the provider that the tool reaches its system through, if there is one."""
        return self.implementation.provider_name

    @property
    def has_model(self) -> bool:
        """Whether a model is inside: an agentic tool, or an agent. Its time-out has room for its end already."""
        return isinstance(self.implementation, AgenticImplementation | AgentImplementation)

    def security(self, verb: Verb = "execute") -> str:
        """The URI of the permission that a use of the tool needs."""
        if self.security_uri is not None and verb == "execute":
            return self.security_uri
        if isinstance(self.implementation, AgentImplementation):
            return f"ai://agents/{self.name}/{verb}"
        if isinstance(self.implementation, WorkflowImplementation):
            return f"ai://workflows/{self.name}/{verb}"
        return tool_uri(self.category, self.name, verb)

    @property
    def run_kind(self) -> RunKind:
        """The kind of a run of this tool: one of its own if it calls others, else a single call."""
        kind = self.implementation.kind
        return kind if kind in DELEGATES else "tool"

    def parameter_names(self) -> tuple[str, ...]:
        """Names of the declared arguments."""
        return tuple(self.input_schema.get("properties", {}))


class ToolRevision(Contract):
    """A stored definition. Saving makes a new revision; only the life-cycle state of an old one can change."""

    definition: ToolDefinition
    revision: int = Field(ge=1)
    """1, 2, 3… per name and realm."""
    content_hash: str
    status: LifeCycle = "active"
    status_message: str | None = None
    sunset: Timestamp | None = None
    replacement: str | None = None
    realm: str
    made_by: str
    created_at: Timestamp
    first_created_at: Timestamp | None = None
    """When the name was first saved; null in what older releases wrote."""
    warnings: tuple[str, ...] = ()
    """Of the moment in which it was saved, and not stored: deprecated tools that it is bound to."""

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.definition.name

    @property
    def version(self) -> str:
        """The tool's semantic version."""
        return self.definition.version

    @property
    def ref(self) -> str:
        """`name@version`."""
        return f"{self.definition.name}@{self.definition.version}"
