"""Requests and answers about agentic tools: flat objects for nested contracts.

Taking definitions out of the catalogue, and what is still going on with them.

Requests and answers about agents. What an agent is asked and answers are contracts.
"""

from typing import Any, Final, Literal, Self, TypeAlias

from pydantic import ConfigDict, Field

from toolcrib.agents import TASK_INPUT
from toolcrib.contracts import (
    NAME_PATTERN,
    AgentDefinition,
    AgenticContext,
    AgenticImplementation,
    AgenticMode,
    AgenticStatus,
    AgenticStep,
    AgentImplementation,
    AgentRequest,
    AllocatedTool,
    Contract,
    CostBreakdown,
    Example,
    Grounding,
    Json,
    JsonObject,
    JsonSchema,
    LifeCycle,
    Limits,
    LLMConfig,
    LLMStatus,
    Principal,
    PromptRevision,
    ProposalSource,
    Purpose,
    ResolvedTool,
    Run,
    RunStatus,
    SideEffects,
    StopReason,
    TextProposal,
    Timestamp,
    ToolDefinition,
    ToolError,
    ToolRevision,
    Trace,
    Usd,
)
from toolcrib.contracts.workflows import WorkflowImplementation
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server.http.requests import Stored, stored_fields

_BUILT: Final = ConfigDict(defer_build=False)
_INSIDE: Final = (
    "status",
    "mode",
    "llm",
    "steps",
    "tools",
    "context",
    "limits",
    "result_schema",
    "grounding",
    "preview_above",
)
_OUTSIDE: Final = (
    "name",
    "version",
    "title",
    "description",
    "long_description",
    "category",
    "tags",
    "usage",
    "examples",
    "requires_confirmation",
    "security_uri",
    "input_schema",
)

ToolType: TypeAlias = Literal["simple", "composite", "agentic"]


class AgenticBody(Contract):
    """An agentic tool, as an author sends it."""

    model_config = _BUILT

    name: str = Field(pattern=NAME_PATTERN)
    """Its id in paths."""
    version: str = "1.0.0"
    title: str | None = None
    description: str = ""
    long_description: str | None = None
    """What parent agents read; made from the rest if null."""
    category: str = "agentic"
    tags: tuple[str, ...] = ()
    usage: str | None = None
    examples: tuple[Example, ...] = ()
    requires_confirmation: bool = False
    security_uri: str | None = None
    input_schema: JsonSchema = Field(default_factory=lambda: TASK_INPUT)
    status: AgenticStatus = "active"
    mode: AgenticMode
    llm: LLMConfig
    system_prompt: str | None = None
    """A template; the default one if null."""
    steps: tuple[AgenticStep, ...] = ()
    tools: tuple[AllocatedTool, ...] = ()
    context: AgenticContext = AgenticContext()
    limits: Limits = Limits()
    result_schema: JsonSchema | None = None
    grounding: Grounding = "evidence"
    """How sure one must be of what the model takes from a task."""
    preview_above: int = Field(default=500, ge=0)
    """A change of more items than this waits for a person."""

    @classmethod
    def fields_of(cls, definition: ToolDefinition, implementation: AgenticImplementation) -> dict[str, Any]:
        """The values of a stored tool's fields."""
        outside = {field: getattr(definition, field) for field in _OUTSIDE}
        inside = {field: getattr(implementation, field) for field in (*_INSIDE, "system_prompt")}
        return {**outside, **inside}

    def definition(self, current: ToolDefinition | None = None) -> ToolDefinition:
        """The definition that this says, over the one that there is. A prompt that is null is empty in it."""
        inside = {field: getattr(self, field) for field in _INSIDE}
        implementation = AgenticImplementation(**inside, system_prompt=self.system_prompt or "")
        outside = {field: getattr(self, field) for field in _OUTSIDE}
        if current is None:
            return ToolDefinition(**outside, implementation=implementation)
        before = current.implementation
        if isinstance(before, AgenticImplementation):
            implementation = implementation.model_copy(update={"made_from": before.made_from})
        return current.model_copy(update={**outside, "implementation": implementation})


class AgenticView(AgenticBody):
    """An agentic tool, as it is stored."""

    id: str
    """The same as `name`."""
    revision: int
    """Send it as `If-Match` to change exactly this one."""
    content_hash: str
    life_cycle: LifeCycle
    """Of the version, as operators set it: active, deprecated, blocked."""
    side_effects: SideEffects
    """The most that its tools have."""
    made_by: str
    created_at: Timestamp
    warnings: tuple[str, ...] = ()
    """Of an answer to saving: deprecated tools that it is bound to."""

    @classmethod
    def of(cls, tool: ToolRevision, implementation: AgenticImplementation) -> Self:
        """The view of a revision."""
        return cls(
            **cls.fields_of(tool.definition, implementation),
            id=tool.name,
            revision=tool.revision,
            content_hash=tool.content_hash,
            life_cycle=tool.status,
            side_effects=tool.definition.side_effects,
            made_by=tool.made_by,
            created_at=tool.created_at,
            warnings=tool.warnings,
        )


class AgenticPage(Contract):
    """Agentic tools by name."""

    items: tuple[AgenticView, ...]
    next: str | None
    """`after` of the next page; null on the last."""


class AiToolView(Contract):
    """Any tool, in short."""

    id: str
    name: str
    title: str | None
    description: str
    type: ToolType
    kind: str
    """What it is made of: `python`, `http`, `agentic`."""
    version: str
    revision: int
    status: AgenticStatus
    life_cycle: LifeCycle
    side_effects: SideEffects
    category: str
    tags: tuple[str, ...]

    @classmethod
    def of(cls, tool: ToolRevision) -> Self:
        """The view of a revision."""
        definition = tool.definition
        implementation = definition.implementation
        state: AgenticStatus = "active"
        if isinstance(implementation, AgenticImplementation | AgentImplementation | WorkflowImplementation):
            state = implementation.status
        return cls(
            id=tool.name,
            name=tool.name,
            title=definition.title,
            description=definition.description,
            type=type_of(definition),
            kind=implementation.kind,
            version=tool.version,
            revision=tool.revision,
            status=state if definition.enabled else "disabled",
            life_cycle=tool.status,
            side_effects=definition.side_effects,
            category=definition.category,
            tags=definition.tags,
        )


class AiToolPage(Contract):
    """Tools of every type by name."""

    items: tuple[AiToolView, ...]
    next: str | None
    """`after` of the next page; null on the last."""


def type_of(definition: ToolDefinition) -> ToolType:
    """The level of a tool; a workflow counts as composite."""
    kind = definition.implementation.kind
    if kind == "workflow":
        return "composite"
    return kind if kind in ("agentic", "composite") else "simple"


class RunUnderWay(Contract):
    """A run that has not ended."""

    run_id: str
    status: RunStatus


class RemovalView(Contract):
    """What became of a tool and of its runs."""

    name: str
    removed: bool = True
    message: str
    under_way: tuple[RunUnderWay, ...]
    """Runs that go on with the revision that they began with; at most 100 of each status."""


class TestPromptBody(Contract):
    """A sample input, and changes that are not saved."""

    model_config = _BUILT

    params: JsonObject
    """The sample, as the tool's `input_schema` says."""
    system_prompt: str | None = None
    llm: LLMConfig | None = None

    def changes(self) -> dict[str, Any]:
        """What differs from the stored tool."""
        given = {"system_prompt": self.system_prompt, "llm": self.llm}
        return {field: value for field, value in given.items() if value is not None}


class RegenerateBody(Contract):
    """Who is to write the text."""

    model_config = _BUILT

    source: ProposalSource = "generator"
    """`model`: the tool's own model, which costs."""


class ProposalBody(TextProposal):
    """A proposal, as it was made or edited."""

    model_config = _BUILT


class PromptHistory(Contract):
    """The prompt in every revision."""

    items: tuple[PromptRevision, ...]
    """Oldest first."""


class RollBackBody(Contract):
    """The revision to go back to."""

    model_config = _BUILT

    revision: int


class ExecutionView(Contract):
    """One execution of an agentic tool, in short."""

    execution_id: str
    agentic_tool: str
    version: str
    status: RunStatus
    stop_reason: StopReason | None
    parent_request: Json
    """The input."""
    result: Json
    error: ToolError | None
    total_cost: Usd | None
    """US dollars; null means unknown."""
    total_tokens: int
    duration_ms: int | None
    """Null as long as it has not ended."""
    created_at: Timestamp
    completed_at: Timestamp | None

    @classmethod
    def fields_of(cls, run: Run) -> dict[str, Any]:
        """The values of a run's fields."""
        name, _, version = run.request.tool.partition("@")
        lasted = run.updated_at - run.created_at
        return {
            "execution_id": run.run_id,
            "agentic_tool": name,
            "version": version,
            "status": run.status,
            "stop_reason": run.stop_reason,
            "parent_request": run.request.input,
            "result": run.output,
            "error": run.error,
            "total_cost": run.cost_usd,
            "total_tokens": run.usage.total_tokens,
            "duration_ms": round(lasted.total_seconds() * 1000) if run.ended else None,
            "created_at": run.created_at,
            "completed_at": run.updated_at if run.ended else None,
        }


class ExecutionPage(Contract):
    """Executions, newest first."""

    items: tuple[ExecutionView, ...]
    next: str | None
    """`before` of the next page; null on the last."""


class LLMCallView(Contract):
    """One call of the embedded model."""

    call_sequence: int
    position: str
    purpose: Purpose
    model: str
    status: LLMStatus
    prompt: str
    """The system prompt and what was new to the model; results of tools stand in `tool_calls`."""
    response: str | None
    """The model's words; null if it only called tools, or has not answered."""
    reasoning: str | None
    decision: str | None
    """What it decided, in short."""
    input_tokens: int
    output_tokens: int
    cost: Usd | None
    latency_ms: int | None
    created_at: Timestamp


class ToolCallView(Contract):
    """One call of an allotted tool."""

    call_sequence: int
    position: str
    action: str
    """The tool's name."""
    parameters: Json
    response: Json
    error: ToolError | None
    status: str
    cost: Usd | None
    latency_ms: int | None
    created_at: Timestamp


class ExecutionDetail(ExecutionView):
    """One execution with everything that happened."""

    mode: AgenticMode | None
    execution_plan: Json
    """What the model planned, of a fixed sequence; null where it chooses as it goes."""
    warnings: tuple[str, ...]
    llm_calls: tuple[LLMCallView, ...]
    tool_calls: tuple[ToolCallView, ...]
    cost_breakdown: CostBreakdown
    trace: Trace


_UNDER_WAY: Final[tuple[RunStatus, ...]] = (
    "queued",
    "running",
    "awaiting_approval",
    "awaiting_client",
    "awaiting_answer",
)


async def remove_tool(crib: ActingCrib, caller: Principal, tool: ToolRevision) -> RemovalView:
    """Take a tool of any kind out of the catalogue, and tell which of its runs go on."""
    await crib.registry.remove(caller.realm, tool.name)
    under_way = [
        RunUnderWay(run_id=run.run_id, status=run.status)
        for status in _UNDER_WAY
        for run in await crib.store.journal.runs(caller.realm, tool=tool.name, status=status, limit=100)
    ]
    message = f"{tool.name} is gone from the catalogue and cannot be started any more"
    if under_way:
        message += f"; {len(under_way)} runs that are under way go on with the revision that they began with"
    return RemovalView(name=tool.name, message=message, under_way=tuple(under_way))


class AgentBody(AgentDefinition):
    """An agent, as an author sends it."""

    model_config = _BUILT


class AskBody(AgentRequest):
    """What an agent is asked, or what its client brings back."""

    model_config = _BUILT


class AgentView(AgentDefinition, Stored):
    """An agent, as it is stored."""

    @classmethod
    def of_revision(cls, tool: ToolRevision) -> Self:
        """The view of a revision."""
        agent = AgentDefinition.of(tool.definition)
        fields: dict[str, Any] = {name: getattr(agent, name) for name in AgentDefinition.model_fields}
        return cls(**fields, **stored_fields(tool))


class AgentFilter(Contract):
    """Which agents are meant; what is null counts for all."""

    model_config = _BUILT

    text: str | None = None
    """What must stand in name, title, description or tags."""
    category: str | None = None
    tag: str | None = None
    status: AgenticStatus | None = None
    enabled: bool | None = None
    model: str | None = None
    """`provider:model`, or its beginning."""

    def fits(self, tool: ToolRevision) -> bool:
        """Whether an agent is meant, as far as the catalogue has no index for it."""
        implementation = tool.definition.implementation
        return (
            isinstance(implementation, AgentImplementation)
            and self.status in {None, implementation.status}
            and self.enabled in {None, tool.definition.enabled}
            and (self.model is None or implementation.llm.model.startswith(self.model))
        )


class AgentQuery(AgentFilter):
    """A page of the agents that are meant, by name."""

    after: str = ""
    """Last name of the page before."""
    limit: int = Field(default=50, ge=1, le=200)


class AgentPage(Contract):
    """Agents by name."""

    items: tuple[AgentView, ...]
    next: str | None
    """`after` of the next page."""


class AgentCount(Contract):
    """How many agents are meant."""

    count: int


class AgentTools(Contract):
    """What has become of every tool that an agent's definition means."""

    items: tuple[ResolvedTool, ...]


class ContinueBody(Contract):
    """The next message of a conversation."""

    model_config = _BUILT

    message: str = Field(min_length=1)
