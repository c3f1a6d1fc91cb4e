"""Answers of the REST API that are no contracts.

Written by `python -m tools.rest_client`.
"""

from datetime import datetime
from typing import Literal

from toolcrib.client.answer_parts import (
    AgenticView,
    AgentView,
    AiToolView,
    Answer,
    EnvelopeView,
    ExecutionView,
    InvokeMeta,
    LLMCallView,
    Problem,
    ProviderView,
    RunUnderWay,
    ToolCallView,
    ToolView,
    WorkflowView,
)
from toolcrib.contracts import (
    ApprovalRequested,
    Attachment,
    Baseline,
    Consent,
    Conversation,
    ConversationTurn,
    CostBreakdown,
    ImpactReport,
    ImportOutcome,
    Json,
    JsonObject,
    LossReport,
    McpServerDefinition,
    OpenQuestion,
    PromptFragment,
    PromptRevision,
    ProviderDefinition,
    ReferenceReading,
    ReferenceSnapshot,
    ResolvedTool,
    Run,
    RunEvent,
    SecretEntry,
    ServiceAccount,
    ToolError,
    ToolRevision,
    Trace,
    TriggerDefinition,
    Usage,
    WaitingApproval,
)
from toolcrib.contracts.specs.model_listing import ModelInfo, ModelProviderInfo
from toolcrib.contracts.specs.workflow_steps import ConditionBinding, StepRegistration
from toolcrib.contracts.workflows.graphs import WorkflowDraft, WorkflowGraph, WorkflowProblem
from toolcrib.contracts.workflows.provider_use import ProviderUsage


class InvokeView(Answer):
    """A run that ended or waits."""

    success: bool
    """Whether the run completed."""
    data: Json
    """Null unless it completed."""
    error: ToolError | None
    meta: InvokeMeta
    partial: Json | None = None
    """What was done until then by a run that did not complete, if anything."""


class RunAccepted(Answer):
    """A run that continues in the background, or waits; `GET /executions/{run_id}` returns its state."""

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
    warnings: tuple[str, ...] | None = None
    """Why it has not begun: no worker has the tool's Python function."""


class Validity(Answer):
    """Whether a call would run, or a definition would be stored."""

    valid: bool
    problems: tuple[Problem, ...] | None = None
    warnings: tuple[str, ...] | None = None
    """What its author should know: deprecated tools that it is bound to."""
    error: ToolError | None = None
    """What the call would be refused with."""


class AgentAnswer(Answer):
    """The state of an execution."""

    agent: str
    """`name@version` of the agent or agentic tool."""
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
    response: str | None = None
    """The final answer; empty until there is one."""
    tools_by_id: dict[str, EnvelopeView] | None = None
    """Envelopes by `call_id`, of all calls that have ended, denied ones included."""
    tool_order: tuple[str, ...] | None = None
    """`call_id`s in the order in which the calls were asked for: those of one answer of a model as it names them."""
    last_tool: EnvelopeView | None = None
    """The last of them that succeeded."""
    traces_url: str | None = None
    """Null without a server."""
    conversation_id: str | None = None
    session_id: str | None = None
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
    ) = None
    iterations: int | None = None
    """Answers of models."""
    usage: Usage | None = None
    """Of its own model calls."""
    tokens: int | None = None
    """Input and output tokens of the run and those nested in it."""
    cost_usd: float | None = None
    """Of the run and those nested in it; null means unknown."""
    cost_unknown: bool | None = None
    """`cost_usd` is a lower bound."""
    output: Json | None = None
    """The structured answer, for `json` and `structured`; the whole output of an agentic tool."""
    partial: Json | None = None
    """What was done until then by a run that did not complete, if anything."""
    handles: JsonObject | None = None
    """Outputs of all pinned handles, by name."""
    error: ToolError | None = None
    warnings: tuple[str, ...] | None = None
    tool_calls: tuple[EnvelopeView, ...] | None = None
    """Prepared calls that wait for the client, those of nested runs among them."""
    question: OpenQuestion | None = None
    """The open question of the run or of a nested run; the next message of the conversation answers it."""
    approvals: tuple[WaitingApproval, ...] | None = None
    """Calls that wait for a person, including those of nested runs."""


class AgentPage(Answer):
    """Agents by name."""

    items: tuple[AgentView, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class Count(Answer):
    """How many there are, of those that the caller may see."""

    count: int


class RemovalView(Answer):
    """The result of removing a tool, with its active runs."""

    name: str
    message: str
    under_way: tuple[RunUnderWay, ...]
    """Active runs, which keep the revision that they started with; at most 100 of each status."""
    removed: bool | None = None


class AgentTools(Answer):
    """The state of each tool that an agent's definition refers to."""

    items: tuple[ResolvedTool, ...]


class AgenticPage(Answer):
    """Agentic tools by name."""

    items: tuple[AgenticView, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class PromptHistory(Answer):
    """The prompt in every revision."""

    items: tuple[PromptRevision, ...]


class ExecutionPage(Answer):
    """Executions, newest first."""

    items: tuple[ExecutionView, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class ExecutionDetail(Answer):
    """One execution with everything that happened."""

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
    mode: Literal["deterministic", "agentic"] | None
    execution_plan: Json
    """What the model planned, of a fixed sequence; null where it chooses as it goes."""
    warnings: tuple[str, ...]
    llm_calls: tuple[LLMCallView, ...]
    tool_calls: tuple[ToolCallView, ...]
    cost_breakdown: CostBreakdown
    trace: Trace


class AiToolPage(Answer):
    """Tools of every type by name."""

    items: tuple[AiToolView, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class ToolPage(Answer):
    """Tools by name."""

    items: tuple[ToolView, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class BaselineList(Answer):
    """BaselineList."""

    items: tuple[Baseline, ...]


class ImportView(Answer):
    """What a document became."""

    provider: ProviderDefinition
    tools: tuple[str, ...]
    """`name@version` of each that is stored as offered, in the document's order; `outcome` names the others."""
    report: LossReport
    """What was kept, changed and dropped, operation by operation."""
    outcome: ImportOutcome | None
    """The result for each tool: new, changed, held for a person…"""


class ToolRevisions(Answer):
    """All revisions of a tool, oldest first."""

    items: tuple[ToolRevision, ...]


class ModelPage(Answer):
    """Models by reference."""

    items: tuple[ModelInfo, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class ModelProviderList(Answer):
    """Providers of models by name."""

    items: tuple[ModelProviderInfo, ...]


class RunPage(Answer):
    """Runs, newest first."""

    items: tuple[Run, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class AttachmentList(Answer):
    """The attachments of a run's calls; the `url` of each is its path on this server."""

    items: tuple[Attachment, ...]


class RunView(Answer):
    """A run, what it has done so far, and the calls that wait for a person or a client."""

    run: Run
    trace: Trace
    pending_approvals: tuple[ApprovalRequested, ...]
    pending_handoffs: tuple[EnvelopeView, ...]
    """Their outputs are what the client has to act on."""
    question: OpenQuestion | None = None
    """The question of the run or of a nested run; `POST /executions/{run_id}/answer` answers it."""


class EventPage(Answer):
    """Events of a run, by number."""

    items: tuple[RunEvent, ...]


class SnapshotPage(Answer):
    """Lists of a provider."""

    items: tuple[ReferenceSnapshot, ...]


class ReadingPage(Answer):
    """Readings of a list."""

    items: tuple[ReferenceReading, ...]


class ProviderPage(Answer):
    """Providers by name."""

    items: tuple[ProviderView, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class ProviderUsageList(Answer):
    """The use of providers by name."""

    items: tuple[ProviderUsage, ...]


class ConsentPage(Answer):
    """Connections by provider."""

    items: tuple[Consent, ...]


class SecretPage(Answer):
    """Secrets by name, without values."""

    items: tuple[SecretEntry, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class ConversationPage(Answer):
    """Conversations, newest first."""

    items: tuple[Conversation, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class ConversationDetail(Answer):
    """A conversation with some of its turns, in order."""

    conversation: Conversation
    turns: tuple[ConversationTurn, ...]
    next: int | None
    """`after` of the next page."""


class FragmentPage(Answer):
    """Prompt fragments by name."""

    items: tuple[PromptFragment, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class AccountPage(Answer):
    """Service accounts by name."""

    items: tuple[ServiceAccount, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class StepPage(Answer):
    """Workflow steps by name."""

    items: tuple[StepRegistration, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class ConditionPage(Answer):
    """Conditions by name."""

    items: tuple[ConditionBinding, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class McpServerPage(Answer):
    """Virtual MCP servers by name."""

    items: tuple[McpServerDefinition, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class TriggerPage(Answer):
    """Triggers by name."""

    items: tuple[TriggerDefinition, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class DraftPage(Answer):
    """Drafts by name."""

    items: tuple[WorkflowDraft, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class Undone(Answer):
    """The draft as it was before its last change."""

    draft: WorkflowDraft | None
    """Null if there was none before."""


class WorkflowPage(Answer):
    """Workflows by name."""

    items: tuple[WorkflowView, ...]
    next: str | None
    """`after`, or `before`, of the next page; null on the last."""


class WorkflowValidity(Answer):
    """Whether a definition could be published, and its graph."""

    valid: bool
    problems: tuple[WorkflowProblem, ...]
    """Errors and warnings, all of them."""
    graph: WorkflowGraph


class WorkflowRevisions(Answer):
    """All revisions of a workflow."""

    items: tuple[WorkflowView, ...]


class PublicationView(Answer):
    """What publishing did."""

    workflow: WorkflowView
    impact: ImpactReport | None
    """Whom the new revision concerns."""
    problems: tuple[WorkflowProblem, ...]
    """Warnings."""


class ToldSignal(Answer):
    """A signal was sent to a run, which then resumes."""

    run_id: str
    name: str


class Health(Answer):
    """Shows that the server is running."""

    version: str
    status: Literal["ok"] | None = None
