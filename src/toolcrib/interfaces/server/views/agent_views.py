"""Requests and responses of agents and agentic tools: flat objects for nested contracts."""

from typing import Annotated, Final, Literal, Self, TypeAlias, cast

from pydantic import AliasPath, Discriminator, Field, Tag

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
    FileInput,
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
from toolcrib.interfaces.server.views.base import ListView, PageView, Stored, View
from toolcrib.interfaces.server.views.run_views import DefinitionBody

ToolType: TypeAlias = Literal["simple", "composite", "agentic"]


class AgenticBody(View):
    """An agentic tool, as an author sends it."""

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
    metadata: JsonObject = Field(default_factory=dict)
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
    context: AgenticContext = AgenticContext.model_construct()
    limits: Limits = Limits.model_construct()
    result_schema: JsonSchema | None = None
    grounding: Grounding = "evidence"
    """How sure one must be of what the model takes from a task."""
    preview_above: int = Field(default=500, ge=0)
    """A change of more items than this waits for a person."""

    def definition(self, current: ToolDefinition | None = None) -> ToolDefinition:
        """The definition that this says, over the one that there is. A prompt that is null is empty in it."""
        fields = dict(self)
        inside = {field: fields.pop(field) for field in AgenticImplementation.model_fields if field in fields}
        implementation = AgenticImplementation.model_validate({**inside, "system_prompt": self.system_prompt or ""})
        if current is None:
            return ToolDefinition(**fields, implementation=implementation)
        before = current.implementation
        if isinstance(before, AgenticImplementation):
            implementation = implementation.model_copy(update={"made_from": before.made_from})
        return current.model_copy(update={**fields, "implementation": implementation})


def _form_of(body: object) -> str:
    """The form in which a definition is written: nested, with an `implementation`, or flat."""
    is_flat = isinstance(body, AgenticBody) or (
        isinstance(body, dict) and "mode" in body and "implementation" not in body
    )
    return "flat" if is_flat else "nested"


AnyDefinition: TypeAlias = Annotated[
    Annotated[DefinitionBody, Tag("nested")] | Annotated[AgenticBody, Tag("flat")], Discriminator(_form_of)
]
"""A definition, or the flat form of an agentic tool."""


class AgenticView(AgenticBody, Stored):
    """An agentic tool, as it is stored."""

    id: str = Field(validation_alias="name")
    """The same as `name`."""
    side_effects: SideEffects
    """The most that its tools have."""

    @classmethod
    def of_revision(cls, tool: ToolRevision) -> Self:
        """The view of a revision of an agentic tool."""
        return cls.of(tool, cast("AgenticImplementation", tool.definition.implementation))

    @classmethod
    def of(cls, tool: ToolRevision, implementation: AgenticImplementation) -> Self:
        """The view of a revision."""
        return cls.project(implementation, tool, tool.definition, life_cycle=tool.status)


class AgenticPage(PageView[AgenticView]):
    """Agentic tools by name."""


class AiToolView(View):
    """Any tool, in short."""

    id: str = Field(validation_alias="name")
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
    realm: str
    made_by: str
    """Of this revision."""
    created_at: Timestamp = Field(validation_alias="first_created_at")
    """When the name was first saved."""
    updated_at: Timestamp = Field(validation_alias="created_at")
    """When this revision was saved."""

    @classmethod
    def of(cls, tool: ToolRevision) -> Self:
        """The view of a revision."""
        definition = tool.definition
        implementation = definition.implementation
        state: AgenticStatus = "active"
        if isinstance(implementation, AgenticImplementation | AgentImplementation | WorkflowImplementation):
            state = implementation.status
        return cls.project(
            tool,
            definition,
            type=type_of(definition),
            kind=implementation.kind,
            status=state if definition.enabled else "disabled",
            life_cycle=tool.status,
        )


class AiToolPage(PageView[AiToolView]):
    """Tools of every type by name."""


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
    """The result of removing a tool, with its active runs."""

    name: str
    removed: bool = True
    message: str
    under_way: tuple[RunUnderWay, ...]
    """Active runs, which keep the revision that they started with; at most 100 of each status."""


class TestPromptBody(Contract):
    """A sample input, and changes that are not saved; what is null is as it is stored."""

    params: JsonObject
    """The sample, as the tool's `input_schema` says."""
    system_prompt: str | None = None
    llm: LLMConfig | None = None
    mode: AgenticMode | None = None
    steps: tuple[AgenticStep, ...] | None = None
    tools: tuple[AllocatedTool, ...] | None = None
    context: AgenticContext | None = None
    limits: Limits | None = None
    result_schema: JsonSchema | None = None
    grounding: Grounding | None = None
    input_schema: JsonSchema | None = None

    def change(self, stored: ToolDefinition, inside: AgenticImplementation) -> ToolDefinition:
        """The stored tool with the changes."""
        given = {field: value for field, value in self if field != "params" and value is not None}
        schema = given.pop("input_schema", stored.input_schema)
        changed = {"input_schema": schema, "implementation": inside.model_copy(update=given)}
        return stored.model_copy(update=changed)


class UnsavedPromptBody(Contract):
    """A sample input, and a tool that need not be saved."""

    params: JsonObject
    """The sample, as the tool's `input_schema` says."""
    definition: AgenticBody


class RegenerateBody(Contract):
    """Who is to write the text."""

    source: ProposalSource = "generator"
    """`model`: the tool's own model, which costs."""


class ProposalBody(TextProposal):
    """A proposal, as it was made or edited."""


class PromptHistory(ListView[PromptRevision]):
    """The prompt in every revision."""


class RollBackBody(Contract):
    """The revision to go back to."""

    revision: int


class ExecutionView(View):
    """One execution of an agentic tool, in short."""

    execution_id: str = Field(validation_alias="run_id")
    realm: str
    made_by: str
    agentic_tool: str
    version: str
    status: RunStatus
    stop_reason: StopReason | None
    parent_request: Json = Field(validation_alias=AliasPath("request", "input"))
    """The input."""
    result: Json = Field(validation_alias="output")
    error: ToolError | None
    total_cost: Usd | None = Field(validation_alias="cost_usd")
    """US dollars, nested runs included; null means unknown."""
    cost_unknown: bool
    """`total_cost` is a lower bound."""
    total_tokens: int = Field(validation_alias="all_tokens")
    """Input and output tokens, nested runs included."""
    duration_ms: int | None
    """Null until it has ended."""
    created_at: Timestamp
    updated_at: Timestamp
    completed_at: Timestamp | None

    @classmethod
    def of(cls, run: Run, **values: object) -> Self:
        """The view of a run.

        Args:
            run: The run.
            values: Fields that it does not contain.
        """
        name, _, version = run.request.tool.partition("@")
        lasted = run.updated_at - run.created_at
        return cls.project(
            run,
            agentic_tool=name,
            version=version,
            duration_ms=round(lasted.total_seconds() * 1000) if run.ended else None,
            completed_at=run.updated_at if run.ended else None,
            **values,
        )


class ExecutionPage(PageView[ExecutionView]):
    """Executions, newest first."""


class LLMCallView(View):
    """One call of the embedded model."""

    call_sequence: int
    position: str
    purpose: Purpose
    model: str
    status: LLMStatus
    prompt: str
    """The system prompt and the new messages; results of tools are in `tool_calls`."""
    response: str | None
    """The model's words; null if it only called tools, or has not answered."""
    reasoning: str | None
    decision: str | None
    """What it decided, in short."""
    input_tokens: int
    output_tokens: int
    cost: Usd | None
    latency_ms: int | None
    created_at: Timestamp = Field(validation_alias="started_at")


class ToolCallView(View):
    """One call of an allotted tool."""

    call_sequence: int
    position: str
    action: str
    """The tool's name."""
    parameters: Json
    response: Json = Field(validation_alias="result")
    error: ToolError | None
    status: str
    cost: Usd | None
    latency_ms: int | None
    created_at: Timestamp = Field(validation_alias="started_at")


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
    """Remove a tool of any kind from the catalogue, and list its active runs."""
    await crib.registry.remove(caller.realm, tool.name)
    under_way = [
        RunUnderWay(run_id=run.run_id, status=run.status)
        for status in _UNDER_WAY
        for run in await crib.store.journal.runs(caller.realm, tool=tool.name, status=status, limit=100)
    ]
    message = f"{tool.name} is gone from the catalogue and cannot be started any more"
    if under_way:
        message += f"; {len(under_way)} active runs continue with the revision that they began with"
    return RemovalView(name=tool.name, message=message, under_way=tuple(under_way))


class AgentBody(AgentDefinition):
    """An agent, as an author sends it."""


AgentDocument: TypeAlias = Annotated[AgentBody | JsonObject, Field(union_mode="left_to_right")]
"""An agent, or what is to be one: it is refused with all that is wrong with it."""


class AskBody(AgentRequest):
    """A message for an agent, or the results of its client calls."""


class AgentView(AgentDefinition, Stored):
    """An agent, as it is stored."""

    @classmethod
    def of_revision(cls, tool: ToolRevision) -> Self:
        """The view of a revision."""
        return cls.project(AgentDefinition.of(tool.definition), tool, life_cycle=tool.status)


class AgentFilter(Contract):
    """Which agents are meant; what is null counts for all."""

    text: str | None = None
    """Text to find in name, title, description or tags."""
    category: str | None = None
    tag: str | None = None
    status: AgenticStatus | None = None
    enabled: bool | None = None
    model: str | None = None
    """`provider:model`, or its beginning."""
    filter: str | None = Field(default=None, max_length=4000)
    """A condition by the grammar of all queries; null for everything."""

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
    sort: str | None = Field(default=None, max_length=4000)
    """Fields, such as `created_at desc`; null for the order of names."""


class AgentPage(PageView[AgentView]):
    """Agents by name."""


class AgentTools(ListView[ResolvedTool]):
    """The state of each tool that an agent's definition refers to."""


class ContinueBody(Contract):
    """The next message of a conversation."""

    message: str = Field(min_length=1)
    context: JsonObject = Field(default_factory=dict)
    """Variables that the agent is told with it; they stay for all later turns."""
    files: tuple[FileInput, ...] = ()
    """Images and other files that the model is shown with it."""
