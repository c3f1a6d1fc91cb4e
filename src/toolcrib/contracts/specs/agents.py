"""Agents (a model with a persona, tools, memory and rules) and agentic tools (a tool with a model inside).

An agent is a tool of kind `agent`: it is stored, versioned, permitted, called and journaled like every other tool.


Example:
    deals = crib.agentic_tool(
        "find_deals",
        mode="agentic",
        model="anthropic:claude-sonnet-4",
        tools=[AllocatedTool(tool="search_deals", priority=1)],
        context=AgenticContext(documentation="A deal is won, lost or open.", example_queries=("Acme's deals",)),
    )
    move = crib.agentic_tool(
        "move_deals",
        mode="deterministic",
        model="anthropic:claude-sonnet-4",
        steps=[AgenticStep(id="found", tool="search_deals"), AgenticStep(id="moved", tool="update_deals")],
    )
"""

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, JsonSchema
from toolcrib.contracts.base.envelope import PinnedHandle, SideEffects
from toolcrib.contracts.base.implementations import Implementation
from toolcrib.contracts.providers.providers import ProviderData, ReferenceSource
from toolcrib.contracts.specs.guardrails import Guardrail
from toolcrib.contracts.specs.models_and_limits import Limits, LLMConfig

GROUP: Final = "group:"
"""Begins a reference to all tools of a group."""
TAG: Final = "tag:"
"""Begins a reference to all tools with a tag."""

FIND_WORKFLOW_TOOLS: Final = "find_workflow_tools"
SAVE_WORKFLOW_DRAFT: Final = "save_workflow_draft"
AUTHORING_TOOLS: Final = (FIND_WORKFLOW_TOOLS, SAVE_WORKFLOW_DRAFT)
"""What an agent with `can_create_workflows` is offered besides its own tools."""

AgenticMode: TypeAlias = Literal["deterministic", "agentic"]
AgenticStatus: TypeAlias = Literal["draft", "active", "disabled"]
Grounding: TypeAlias = Literal["evidence", "strict", "off"]
"""How sure one must be of what a model takes from a task. evidence: each value that decides says where it comes from;
doubts are put to a second reading, then to a person. strict: nothing is taken on a model's word, and tasks that only
read are held to it too. off: any plan that meets its schema runs."""


class AgenticStep(Contract):
    """One step of the fixed sequence of the deterministic mode."""

    id: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Unique in the sequence; references and the journal name it."""
    tool: str
    """`name` or `name@range`."""
    purpose: str = ""


class AllocatedTool(Contract):
    """A tool that the agentic mode may choose, or many."""

    tool: str
    """`name`, `name@range`, a pattern of names (`stripe.*`), or a group (`group:stripe/customers`)."""
    priority: int = 0
    """A hint: higher is preferred."""


class AgenticContext(Contract):
    """What the embedded model is told besides the task."""

    include_schemas: bool = True
    reference_data: tuple[ReferenceSource, ...] = ()
    """Lists of the tool's own."""
    provider_data: tuple[ProviderData, ...] = ()
    """Lists that providers declare."""
    documentation: str = ""
    """Stands where the prompt says `{{documentation}}`, else after it."""
    example_queries: tuple[str, ...] = ()
    """Stand where the prompt says `{{example_queries}}`, else after it."""


class AgenticImplementation(Implementation):
    """A tool with a model inside: a fixed sequence that it fills in, or a choice of tools that it makes."""

    kind: Literal["agentic"] = "agentic"
    status: AgenticStatus = "active"
    """A draft is run by its author's tests only, a disabled tool not at all."""
    mode: AgenticMode
    llm: LLMConfig
    system_prompt: str
    """A template over the placeholders that docs/agentic-tools.md lists, such as `{{user_task}}`."""
    steps: tuple[AgenticStep, ...] = ()
    tools: tuple[AllocatedTool, ...] = ()
    context: AgenticContext = AgenticContext.model_construct()
    limits: Limits = Limits.model_construct()
    grounding: Grounding = "evidence"
    preview_above: int = Field(default=500, ge=0)
    """A change of more items than this waits for a person, who is shown how many there are and some of them."""
    result_schema: JsonSchema | None = None
    """Schema of the formatted answer; null for `{"summary": text}`."""
    made_from: dict[str, str] = Field(default_factory=dict)
    """What the prompt was made from: content hashes of the tools by reference, and of providers' lists as
    `reference_data.NAME`. Filled in when the definition is saved; drift is told against it."""

    @property
    def callees(self) -> tuple[str, ...]:
        """The tools of its steps, those that its model may choose, and those of its reference data."""
        lists = (source.tool for source in self.context.reference_data if source.tool is not None)
        return (*(step.tool for step in self.steps), *(item.tool for item in self.tools), *lists)


ResponseFormat: TypeAlias = Literal["text", "json", "structured"]
MemoryStrategy: TypeAlias = Literal["full", "sliding_window", "summary", "none"]
Availability: TypeAlias = Literal["shown", "findable", "left_out"]
"""Of a tool, to an agent's model: it sees it; it can find it; it does not know of it."""


class AgentMemory(Contract):
    """What an agent remembers of a conversation."""

    strategy: MemoryStrategy = "full"
    max_conversation_turns: int = Field(default=20, ge=1)
    """Turns that `sliding_window` shows, and that `summary` shows in full."""
    max_context_tokens: int | None = Field(default=None, ge=1)
    """Tokens of the history; the oldest turns give way. Null for what the model's context allows."""
    persist_conversation: bool = True
    """False: nothing is kept of a conversation but its runs."""
    summary_agent: str | None = None
    """Agent that summarizes what is no longer shown; the agent's own model if null."""


class AgentParts(Contract):
    """What an agent is made of: model, prompt, tools, limits, memory and rules."""

    status: AgenticStatus = "active"
    llm: LLMConfig
    system_prompt: str = ""
    """Persona and focus."""
    prompt_fragments: tuple[str, ...] = ()
    """Names of reusable fragments, which follow the system prompt in this order."""
    response_format: ResponseFormat = "text"
    response_schema: JsonSchema | None = None
    """For `structured`: JSON Schema 2020-12 of `output`."""
    tools: tuple[AllocatedTool, ...] = ()
    """By reference, pattern of names or group, with priorities."""
    tool_categories: tuple[str, ...] = ()
    tool_tags: tuple[str, ...] = ()
    excluded_tools: tuple[str, ...] = ()
    """Names, or patterns of names, that are taken out again."""
    max_tools_in_context: int = Field(default=40, ge=1)
    """Tools that the model is shown; the rest it can find with a built-in tool."""
    delegates: tuple[str, ...] = ()
    """Agents that it may call as tools, also those of other systems."""
    can_create_workflows: bool = False
    limits: Limits = Limits.model_construct()
    side_effects: SideEffects = "writes"
    """The most that its calls may do: `reads` makes a read-only agent."""
    parallel_tool_calls: bool = True
    """Whether it may call several tools in one answer."""
    durable: bool = False
    """Run in the background by default: a request answers with the run's id."""
    memory: AgentMemory = AgentMemory.model_construct()
    guardrails: tuple[Guardrail, ...] = ()
    requires_approval: bool = False
    """A person approves every call with side effects."""
    principal_ref: str | None = None
    """Service account that it acts as; the caller's own identity if null."""
    realms: tuple[str, ...] = ()
    """Realms in which it may be saved; empty for any. An agent runs in the realm in which it is saved, and data never
    leaves a realm: this keeps a definition that was written for one tenant from being applied to another."""
    pins: tuple[PinnedHandle, ...] = ()
    """Handles of its outputs that stay when a tool is gone."""


class AgentImplementation(Implementation, AgentParts):
    """An agent as what its tool is made of; name, title, description, `security_uri` and `enabled` are the tool's."""

    kind: Literal["agent"] = "agent"
    is_agent = True

    @property
    def answer_schema(self) -> JsonSchema | None:
        """What the final answer must meet; null if it is plain text."""
        return {"type": "object"} if self.response_format == "json" else self.response_schema

    @property
    def callees(self) -> tuple[str, ...]:
        """The tools that its model may choose, and the agents that it calls; categories and tags as references."""
        return tuple(self._callees())

    def _callees(self) -> Iterator[str]:
        yield from (item.tool for item in self.tools)
        yield from (f"{GROUP}{category}" for category in self.tool_categories)
        yield from (f"{TAG}{tag}" for tag in self.tool_tags)
        yield from self.delegates
        yield from AUTHORING_TOOLS if self.can_create_workflows else ()
        yield from filter(None, (self.memory.summary_agent,))


class ResolvedTool(Contract):
    """What has become of a tool that an agent's definition means, for one message."""

    tool: str
    """`name@version`; the reference itself if there is no such tool."""
    content_hash: str | None = None
    reference: str
    """What in the definition means it: a name, a pattern, a group, a tag."""
    availability: Availability
    reason: str | None = None
    """Why it is left out."""
    priority: int = 0
