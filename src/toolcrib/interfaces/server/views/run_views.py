"""Requests and responses of tools, calls, runs and imports that are not plain contracts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeAlias

from fastapi import Depends, Request, Response
from msgspec.structs import asdict
from pydantic import Base64Bytes, Field
from pydantic.json_schema import SkipJsonSchema

from toolcrib.contracts import (
    ENDED,
    AgenticMode,
    AgentResponse,
    ApprovalRequested,
    Attachment,
    ClientResult,
    Contract,
    ImportOutcome,
    Json,
    JsonObject,
    LifeCycle,
    LossReport,
    OpenQuestion,
    ProviderAuth,
    ProviderDefinition,
    Run,
    RunEvent,
    RunStatus,
    StopReason,
    Timestamp,
    ToolDefinition,
    ToolEnvelope,
    ToolError,
    ToolRevision,
    Trace,
    Usd,
)
from toolcrib.contracts.providers.tool_access import ToolAccess
from toolcrib.contracts.runs.executions import Answer
from toolcrib.contracts.runs.trace import OutcomeTold
from toolcrib.core.providers import ImportedApi
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server.views.base import ListView, PageView, View
from toolcrib.kinds.http.shape import Bounds, ToolOverride
from toolcrib.kinds.table import KINDS

ListedStatus: TypeAlias = LifeCycle | Literal["all"]
"""The life-cycle state of the tools in a list."""


def listed_state(status: ListedStatus | None, filter_text: str | None) -> LifeCycle | None:
    """The state that a list is of; null for any. If nothing is said, a filter decides, and without one `active`."""
    if status is None:
        return None if filter_text else "active"
    return None if status == "all" else status


if TYPE_CHECKING:
    ToolKind: TypeAlias = str
else:
    ToolKind = Literal[tuple(kind.name for kind in KINDS)]


class DefinitionBody(ToolDefinition):
    """A tool's definition, as an author sends it."""


class ClientResultBody(ClientResult):
    """What a client did with a prepared call."""


class CallBody(Contract):
    """What a tool is called with."""

    params: JsonObject = Field(default_factory=dict)
    """Arguments, as the tool's `input_schema` says."""
    conversation_id: str | None = None
    session_id: str | None = None
    dry_run: bool = False
    """Skip every call that would write."""


class InvokeBody(CallBody):
    """What a run is started with."""

    wait: bool = True
    """False: respond at once with the run's id; the run continues in the background."""


class NamedInvokeBody(InvokeBody):
    """The same, with the tool in the body."""

    tool: str
    """`name` or `name@range`."""


class InvokeMeta(View):
    """How a run went."""

    run_id: str
    execution_id: str = Field(validation_alias="run_id")
    """The same as `run_id`."""
    tool: str
    """`name@version`."""
    agentic_tool: str | None
    """The tool's name; null for a tool without a model."""
    mode: AgenticMode | None
    """Null for a tool without a model."""
    status: RunStatus
    stop_reason: StopReason | None
    total_cost: Usd | None = Field(validation_alias="cost")
    """US dollars, nested runs included; null means unknown."""
    cost_unknown: bool
    """`total_cost` is a lower bound."""
    total_tokens: int = Field(validation_alias="tokens")
    duration_ms: int
    warnings: tuple[str, ...]
    question: OpenQuestion | None = None
    """The question of the run; `POST /executions/{run_id}/answer` answers it."""
    trace: Trace


class InvokeView(View):
    """A run that ended or waits."""

    success: bool
    """Whether the run completed."""
    data: Json = Field(validation_alias="output")
    """Null unless it completed."""
    partial: Json = None
    """What was done until then by a run that did not complete, if anything."""
    error: ToolError | None
    meta: InvokeMeta

    @classmethod
    def of(cls, trace: Trace, mode: AgenticMode | None, question: OpenQuestion | None = None) -> Self:
        """The response, from a run's trace."""
        agentic_tool = trace.tool.partition("@")[0] if mode is not None else None
        meta = InvokeMeta.project(trace, mode=mode, agentic_tool=agentic_tool, question=question, trace=trace)
        return cls.project(trace, success=trace.status == "completed", meta=meta)

    def with_warnings(self, warnings: tuple[str, ...]) -> Self:
        """The same with more warnings."""
        meta = self.meta.model_copy(update={"warnings": (*self.meta.warnings, *warnings)})
        return self.model_copy(update={"meta": meta})


class RunAccepted(Contract):
    """A run that continues in the background, or waits; `GET /executions/{run_id}` returns its state."""

    run_id: str
    status: RunStatus
    warnings: tuple[str, ...] = ()
    """Why it has not begun: no worker has the tool's Python function."""


class Problem(Contract):
    """One thing that is wrong with arguments or a definition."""

    path: str
    """JSON pointer of the place; empty for the whole."""
    problem: str


class Validity(Contract):
    """Whether a call would run, or a definition would be stored."""

    valid: bool
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    """What its author should know: deprecated tools that it is bound to."""
    error: ToolError | None = None
    """What the call would be refused with."""

    @classmethod
    def of(cls, refusal: ToolError | None) -> Self:
        """The report on a call."""
        if refusal is None:
            return cls(valid=True)
        found = (refusal.details or {}).get("problems") or [{"path": "", "problem": refusal.message}]
        return cls(valid=False, problems=tuple(Problem.model_validate(item) for item in found), error=refusal)


class ToolView(ToolRevision, View):
    """A tool as it is now: the answer to reading it, to every change of it, and its entry in lists."""

    first_created_at: SkipJsonSchema[Timestamp | None] = Field(default=None, exclude=True)
    created_at: Timestamp = Field(validation_alias="first_created_at")
    """When the name was first saved."""
    updated_at: Timestamp = Field(validation_alias="created_at")
    """When this revision was saved."""
    access: ToolAccess | None = None
    """What stands between the caller and the system behind the tool, where it was asked for."""

    @classmethod
    def of(cls, tool: ToolRevision, access: ToolAccess | None = None) -> Self:
        """The view of a revision."""
        return cls.project(tool, access=access)


class ToolPage(PageView[ToolView]):
    """Tools by name."""

    @classmethod
    async def of(
        cls,
        crib: ActingCrib,
        tools: Sequence[ToolRevision],
        *,
        next: str | None = None,  # noqa: A002 - the field
        access: bool = False,
    ) -> Self:
        """A page.

        Args:
            crib: The crib as the caller uses it.
            tools: What is on the page.
            next: Where the following page begins; null on the last one.
            access: Whether the caller asks for its access to each.
        """
        found = await crib.connections.access(*tools) if access else [None] * len(tools)
        items = tuple(map(ToolView.of, tools, found))
        return cls(items=items, next=next)


class ToolRevisions(ListView[ToolRevision]):
    """All revisions of a tool, oldest first."""


class StatusBody(Contract):
    """A new life-cycle state of one version."""

    status: LifeCycle
    version: str | None = None
    """Null for the version that a call without one gets."""
    message: str | None = None
    sunset: Timestamp | None = None
    replacement: str | None = None


class ImportBody(Contract):
    """An OpenAPI document, given or to be fetched, or a gRPC server."""

    name: str
    """Name of the provider that it becomes."""
    document: JsonObject | str | None = None
    """The document as JSON, or as JSON or YAML text."""
    url: str | None = None
    """Where it is, instead, or where the gRPC server is (`grpc://host:port`); must be reachable under the egress
    policy."""
    descriptors: Base64Bytes | None = None
    """Serialized `FileDescriptorSet` of the gRPC server, in base64, instead of asking it."""
    base_url: str | None = None
    auth: ProviderAuth | None = None
    overrides: dict[str, ToolOverride] = Field(default_factory=dict)
    """Corrections by operationId."""
    bounds: Bounds = Bounds.model_construct()
    """How large the document may be; one of more than 5 MB is given by `url`."""
    accept: bool = False
    """Take over also changes that could harm callers, which otherwise wait for a person."""


class ImportView(View):
    """What a document became."""

    provider: ProviderDefinition
    tools: tuple[str, ...]
    """`name@version` of each that is stored as offered, in the document's order; `outcome` names the others."""
    report: LossReport
    """What was kept, changed and dropped, operation by operation."""
    outcome: ImportOutcome | None
    """The result for each tool: new, changed, held for a person…"""

    @classmethod
    def of(cls, imported: ImportedApi) -> Self:
        """The report on an import."""
        stored = {tool.name for tool in imported.tools} if imported.outcome is None else set(imported.outcome.stored)
        tools = tuple(f"{tool.name}@{tool.version}" for tool in imported.tools if tool.name in stored)
        return cls.project(imported, tools=tools)


class RunPage(PageView[Run]):
    """Runs, newest first."""


class EnvelopeView(ToolEnvelope):
    """An envelope, and where its call ran."""

    is_server_tool: Literal[True] = True
    """Always: a client's tool, too, is validated and prepared by the server."""
    was_executed: bool
    """Whether the server's part was carried out: with `requires_client_execution`, the preparation."""

    @classmethod
    def of(cls, envelope: ToolEnvelope, run_id: str | None = None) -> Self:
        """The view of an envelope, with the addresses of its attachments.

        Args:
            envelope: The envelope.
            run_id: The run that has the call, if the envelope may be one that it reuses.
        """
        shown = with_addresses(envelope, run_id or envelope.run_id or "")
        return cls(**asdict(shown), was_executed=shown.status == "success")


def with_addresses(envelope: ToolEnvelope, run_id: str) -> ToolEnvelope:
    """The envelope with the path of each attachment on this server in the place of its name in the store."""
    if not envelope.attachments:
        return envelope
    shown = tuple(address_of(kept, run_id) for kept in envelope.attachments)
    return envelope.model_copy(update={"attachments": shown})


def address_of(kept: Attachment, run_id: str) -> Attachment:
    """An attachment of a run with its path on this server."""
    if kept.digest is None:
        return kept
    return kept.model_copy(update={"url": f"/api/v1/executions/{run_id}/attachments/{kept.digest}"})


class AttachmentList(ListView[Attachment]):
    """The attachments of a run's calls; the `url` of each is its path on this server."""


class RunView(Contract):
    """A run, what it has done so far, and the calls that wait for a person or a client."""

    run: Run
    trace: Trace
    pending_approvals: tuple[ApprovalRequested, ...]
    pending_handoffs: tuple[EnvelopeView, ...]
    """Their outputs are what the client has to act on."""
    question: OpenQuestion | None = None
    """The question of the run or of a nested run; `POST /executions/{run_id}/answer` answers it."""


class EventPage(ListView[RunEvent]):
    """Events of a run, by number."""


class DecisionBody(Contract):
    """A person's answer to a call that waits."""

    approved: bool
    edited_input: JsonObject | None = None
    """Arguments to use instead of those that were shown."""
    reason: str | None = None
    happened: bool | None = None
    """To `question: outcome`, with `approved: true`: the call took effect, or it is to be made once more."""
    output: Json = None
    """The output of the call that took effect."""


class SettleBody(OutcomeTold):
    """Whether a call with an unknown outcome took effect."""


class AnswerBody(Answer):
    """The answer to a question of a run."""

    position: str | None = None
    """Of the question that is meant; the one that waits if null."""


class CancelBody(Contract):
    """Why a run is cancelled, for the record."""

    reason: str | None = Field(default=None, max_length=2000)


class Health(Contract):
    """Shows that the server is running."""

    status: Literal["ok"] = "ok"
    version: str


class AgentAnswer(AgentResponse):
    """The state of an execution."""

    tools_by_id: dict[str, EnvelopeView] = Field(default_factory=dict)  # pyright: ignore[reportIncompatibleVariableOverride] - frozen
    """Envelopes by `call_id`, of all calls that have ended, denied ones included."""
    last_tool: EnvelopeView | None = None  # pyright: ignore[reportIncompatibleVariableOverride] - frozen
    """The last of them that succeeded."""
    tool_calls: tuple[EnvelopeView, ...] = ()  # pyright: ignore[reportIncompatibleVariableOverride] - frozen
    """Prepared calls that wait for the client, those of nested runs among them."""


class Answering:
    """Responds to a request with the state of an execution.

    Args:
        request: Tells where the client has reached this server.
        response: Gets the status code and the address of the execution.
    """

    def __init__(self, request: Request, response: Response) -> None:
        self._server = str(request.base_url).rstrip("/")
        self._response = response

    def standing(self, found: AgentResponse) -> AgentAnswer:
        """200 if it has ended, else 202."""
        return self.to_answer(found) if found.status in ENDED else self.to_accepted(found)

    def to_accepted(self, found: AgentResponse) -> AgentAnswer:
        """Respond with 202, whatever the state."""
        agent = found.agent.partition("@")[0]
        self._response.status_code = 202
        self._response.headers["Location"] = f"/api/v1/ai/agents/{agent}/executions/{found.run_id}"
        return self.to_answer(found)

    def to_answer(self, found: AgentResponse) -> AgentAnswer:
        """The response, with the address of the run's trace."""
        shown = {
            "tools_by_id": {
                call_id: EnvelopeView.of(call, found.run_id) for call_id, call in found.tools_by_id.items()
            },
            "last_tool": None if found.last_tool is None else EnvelopeView.of(found.last_tool, found.run_id),
            "tool_calls": tuple(map(EnvelopeView.of, found.tool_calls)),
            "traces_url": f"{self._server}/api/v1/executions/{found.run_id}",
        }
        return AgentAnswer.model_validate({**dict(found), **shown})


async def _answering(request: Request, response: Response) -> Answering:
    return Answering(request, response)


Answers = Annotated[Answering, Depends(_answering)]
