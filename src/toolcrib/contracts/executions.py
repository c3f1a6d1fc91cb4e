"""What an agent is asked, and how its execution stands (004, request and response models; contracts, section 5)."""

from pydantic import Field

from toolcrib.contracts._base import Contract, Json, JsonObject, Usd
from toolcrib.contracts.envelope import ToolEnvelope
from toolcrib.contracts.errors import ToolError
from toolcrib.contracts.models import Usage
from toolcrib.contracts.outputs import AgentOutputs
from toolcrib.contracts.runs import RunStatus, StopReason


class ReturnedCall(Contract):
    """What a client did with one of the calls that it was handed."""

    call_id: str
    """Or its position."""
    output: Json = None
    error: ToolError | None = None
    metadata: JsonObject = Field(default_factory=dict)


class AgentRequest(Contract):
    """What an agent is asked (`AgentExecutionRequest` of 004)."""

    message: str | None = None
    """The user's words; null if only results are brought."""
    context: JsonObject = Field(default_factory=dict)
    """Variables that the agent is told; they are kept in the conversation's shared context."""
    conversation_id: str | None = None
    """Null begins a new one."""
    session_id: str | None = None
    run_id: str | None = None
    """The waiting run that the results are for; the conversation's if null."""
    tool_results: tuple[ReturnedCall, ...] = ()
    dry_run: bool = False


class AgentResponse(AgentOutputs):
    """How an execution stands (contracts, section 5)."""

    run_id: str
    conversation_id: str | None = None
    status: RunStatus
    stop_reason: StopReason | None = None
    iterations: int = 0
    usage: Usage = Usage()
    tokens: int = 0
    """Input and output tokens."""
    cost_usd: Usd | None = None
    output: Json = None
    """The structured answer, for `json` and `structured`."""
    handles: dict[str, Json] = Field(default_factory=dict)
    """Outputs of the pinned handles, by name: always all of them."""
    error: ToolError | None = None
    warnings: tuple[str, ...] = ()
    tool_calls: tuple[ToolEnvelope, ...] = ()
    """Prepared calls that wait for the client."""
