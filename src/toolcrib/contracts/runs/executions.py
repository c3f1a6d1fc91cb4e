"""What an agent is asked, and how its execution stands (004, request and response models; contracts, section 5).

An agentic tool is asked and answers in the same shapes.
"""

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Json, JsonObject, Timestamp, Usd
from toolcrib.contracts.base.envelope import ToolEnvelope
from toolcrib.contracts.base.errors import ToolError
from toolcrib.contracts.base.outputs import AgentOutputs
from toolcrib.contracts.runs.questions import OpenQuestion
from toolcrib.contracts.runs.runs import ClientResult, RunStatus, StopReason
from toolcrib.contracts.specs.models import Usage


class ReturnedCall(ClientResult):
    """What a client did with one of the calls that it was handed."""

    call_id: str = Field(min_length=1, max_length=500)
    """Or its position."""
    run_id: str | None = None
    """Run of the call; needed only where two calls that wait in nested runs have the same id."""

    @property
    def result(self) -> ClientResult:
        """What was done, without saying with which call."""
        return ClientResult(**{name: getattr(self, name) for name in ClientResult.model_fields})


class AgentRequest(Contract):
    """What an agent is asked (`AgentExecutionRequest` of 004), or what its client brings back."""

    message: str | None = None
    """The user's words; an agentic tool takes them as its `task`. Null if results are brought."""
    params: JsonObject | None = None
    """Arguments as the `input_schema` says, instead of a message."""
    context: JsonObject = Field(default_factory=dict)
    """Variables that the agent is told; they are kept in the conversation's shared context."""
    conversation_id: str | None = None
    """Null begins a new one."""
    session_id: str | None = None
    run_id: str | None = None
    """The waiting run that the results are for, or that the message answers; the conversation's last one if null."""
    tool_results: tuple[ReturnedCall, ...] = ()
    """All of them count, or none does; calls that are not among them keep waiting."""
    dry_run: bool = False
    """Skip every call that would write."""


class WaitingApproval(Contract):
    """A call that waits for a person, in short."""

    approval_id: str
    """In the inbox."""
    run_id: str
    """Run of the call: the execution's own, or one that is nested in it."""
    position: str
    call_id: str
    name: str
    version: str
    input: Json = None
    message: str = ""
    expires_at: Timestamp | None = None


class AgentResponse(AgentOutputs):
    """How an execution stands (contracts, section 5): a reading of its journal, at any time and for every end."""

    agent: str
    """`name@version` of the agent or agentic tool."""
    run_id: str
    conversation_id: str | None = None
    session_id: str | None = None
    status: RunStatus
    stop_reason: StopReason | None = None
    iterations: int = 0
    """Answers of models."""
    usage: Usage = Usage()
    tokens: int = 0
    """Input and output tokens."""
    cost_usd: Usd | None = None
    """Of the run and those nested in it; null means unknown."""
    output: Json = None
    """The structured answer, for `json` and `structured`; the whole output of an agentic tool."""
    handles: dict[str, Json] = Field(default_factory=dict)
    """Outputs of the pinned handles, by name: always all of them."""
    error: ToolError | None = None
    warnings: tuple[str, ...] = ()
    tool_calls: tuple[ToolEnvelope, ...] = ()
    """Prepared calls that wait for the client, those of nested runs among them."""
    question: OpenQuestion | None = None
    """What it asks, or a run that is nested in it; the next message of the conversation answers it."""
    approvals: tuple[WaitingApproval, ...] = ()
    """Calls that wait for a person, those of nested runs among them."""
