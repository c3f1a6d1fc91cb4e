"""Requests to agents and agentic tools, the state of their executions, their questions, and conversations.

A question asks for information about the task; it is no request for permission, which is an approval. The run waits,
and the answer is a signal, which any process may send. Each turn of a conversation is a run, whose journal has the
messages and calls; the conversation stores only its owner and its progress.
"""

from typing import Final, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Json, JsonObject, JsonSchema, Timestamp, Usd
from toolcrib.contracts.base.envelope import AgentOutputs, ToolEnvelope
from toolcrib.contracts.base.errors import ToolError
from toolcrib.contracts.runs.runs import ClientResult, RunStatus, StopReason
from toolcrib.contracts.specs.models_and_limits import Usage

AskedOf: TypeAlias = Literal["person", "client_model", "client_roots"]
QuestionReason: TypeAlias = Literal["unclear", "unsure", "wide", "irreversible", "tool"]
"""unclear: the task is ambiguous. unsure: the interpretation of the task is not confirmed. wide: more items
would change than the tool's author allows without a question. irreversible: the change could not be undone.
tool: a tool needs it."""

_SIGNAL: Final = "answer:"
LONGEST_ANSWER: Final = 20_000
"""Characters."""


class Choice(Contract):
    """One of the answers that a question offers; other answers are free text."""

    value: str = Field(max_length=500)
    """What to answer."""
    label: str
    """The label for people."""
    outcome: str = ""
    """What would happen then."""


class PreviewedItem(Contract):
    """An item before a change, and its new values."""

    before: Json = None
    after: Json = None


class ChangePreview(Contract):
    """What a step would do, before it does it."""

    step: str
    tool: str
    """`name@version`."""
    calls: int
    items: int
    """How many would be changed."""
    sample: tuple[PreviewedItem, ...] = ()
    """The first of them."""


class OpenQuestion(Contract):
    """A question of a run, which waits for the answer."""

    run_id: str
    position: str
    """Where the run waits; the next question of a run has another one."""
    question: str
    """In the language of the task, if the model could word it."""
    reason: QuestionReason
    choices: tuple[Choice, ...] = ()
    assumptions: tuple[str, ...] = ()
    """The assumptions that were made, one sentence each."""
    preview: ChangePreview | None = None
    answer_schema: JsonSchema | None = None
    """What an answer has to fit, as JSON; null for words."""
    name: str | None = None
    """As the tool that asks calls it; MCP clients answer under it."""
    asked_of: AskedOf = "person"
    """Who answers at an MCP client: the person, its model, or the client with its roots. Elsewhere a person does."""
    max_tokens: int | None = None
    """Of the answer of a client's model."""
    together_with: tuple["OpenQuestion", ...] = ()
    """Questions that were asked at the same time, which may be answered already."""


class Answer(Contract):
    """An answer to a question: the value of one of the choices, or free text."""

    answer: str = Field(min_length=1, max_length=LONGEST_ANSWER)

    def payload(self) -> JsonObject:
        """As it is kept with the run."""
        return self.model_dump(mode="json")


def answer_signal(position: str) -> str:
    """Name of the signal that answers the question at a position."""
    return f"{_SIGNAL}{position}"


ConversationStatus: TypeAlias = Literal["active", "completed", "archived"]


class Conversation(Contract):
    """A conversation of one principal with one agent."""

    conversation_id: str
    realm: str
    agent: str
    """Name of the agent."""
    principal: str
    """Id of whose it is."""
    title: str = ""
    status: ConversationStatus = "active"
    turn_count: int = 0
    ended_turns: int = 0
    """Turns that have ended and are counted below: all, or all but the last one."""
    tokens: int = 0
    """Input and output tokens of the turns that have ended, with those of nested runs."""
    summary: str | None = None
    """A summary of the turns that the model is no longer shown."""
    summarized_turns: int = 0
    """How many turns, from the first on, the summary is of."""
    shared_context: JsonObject = Field(default_factory=dict)
    """Variables that are carried across turns."""
    created_at: Timestamp
    updated_at: Timestamp
    revision: int = Field(default=1, ge=1)
    """Grows by one with each change, so that of two changes at the same time one is refused."""


class ConversationTurn(Contract):
    """A message of the user and what the agent made of it."""

    conversation_id: str
    index: int = Field(ge=1)
    """1, 2, 3… without a gap."""
    run_id: str
    message: str
    response: str | None = None
    """Null while the run is active."""
    status: RunStatus
    call_ids: tuple[str, ...] = ()
    """Of the calls that were made, in order."""
    tokens: int = 0
    duration_s: float = 0.0
    created_at: Timestamp


class ReturnedCall(ClientResult):
    """The result of one client call."""

    call_id: str = Field(min_length=1, max_length=500)
    """Or its position."""
    run_id: str | None = None
    """Run of the call; needed only where two calls that wait in nested runs have the same id."""

    @property
    def result(self) -> ClientResult:
        """What was done, without saying with which call."""
        return ClientResult(**{name: getattr(self, name) for name in ClientResult.model_fields})


class FileInput(Contract):
    """A file that comes with a message: its bytes, or an attachment of a run that the caller may read."""

    name: str | None = Field(default=None, max_length=500)
    media_type: str | None = Field(default=None, max_length=200)
    """Told from the bytes and the name if null."""
    base64: str | None = None
    """The bytes (RFC 4648, section 4)."""
    run_id: str | None = None
    """Run whose attachment is meant, in place of bytes."""
    digest: str | None = Field(default=None, max_length=200)
    """Of the attachment."""


class AgentRequest(Contract):
    """A message or task for an agent, or the results of its client calls."""

    message: str | None = None
    """The user's message; the `task` of an agentic tool. Null if results of client calls are sent."""
    params: JsonObject | None = None
    """Arguments as the `input_schema` says, instead of a message."""
    context: JsonObject = Field(default_factory=dict)
    """Variables for the agent; they are stored in the conversation's shared context."""
    files: tuple[FileInput, ...] = ()
    """Images and other files that the model is shown with the message."""
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
    """The state of an execution, derived from its journal, at any time and however it ends."""

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
    """Of its own model calls."""
    tokens: int = 0
    """Input and output tokens of the run and those nested in it."""
    cost_usd: Usd | None = None
    """Of the run and those nested in it; null means unknown."""
    cost_unknown: bool = False
    """`cost_usd` is a lower bound."""
    output: Json = None
    """The structured answer, for `json` and `structured`; the whole output of an agentic tool."""
    partial: Json = None
    """What was done until then by a run that did not complete, if anything."""
    handles: dict[str, Json] = Field(default_factory=dict)
    """Outputs of all pinned handles, by name."""
    error: ToolError | None = None
    warnings: tuple[str, ...] = ()
    tool_calls: tuple[ToolEnvelope, ...] = ()
    """Prepared calls that wait for the client, including those of nested runs."""
    question: OpenQuestion | None = None
    """The open question of the run or of a nested run; the next message of the conversation answers it."""
    approvals: tuple[WaitingApproval, ...] = ()
    """Calls that wait for a person, including those of nested runs."""
