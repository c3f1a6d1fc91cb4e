"""The events of the journal: everything that can happen in a run, one model each.

The events of a run are numbered 1..n without gaps and only appended. No event repeats earlier content: a model call
stores the new messages, a call its own input and output. Trace, costs, stream and recovery are derived from the
journal.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, get_args

import msgspec
import orjson
from msgspec import field
from pydantic import BaseModel, Field, TypeAdapter

from toolcrib.contracts.base.base import (
    Json,
    JsonObject,
    JsonSchema,
    Record,
    Timestamp,
    Usd,
    read_json,
    to_json,
)
from toolcrib.contracts.base.envelope import Attachment, SideEffects, ToolEnvelope
from toolcrib.contracts.base.errors import ModelErrorKind, Reason, ToolError
from toolcrib.contracts.runs.runs import (
    ApprovalDecision,
    ApprovalQuestion,
    ClientResult,
    CostBounds,
    Purpose,
    RunRequest,
    RunStatus,
    StopReason,
)
from toolcrib.contracts.specs.models_and_limits import Allowance, Usage

SCHEMA_VERSION = 1
"""Version of the persisted JSON of events; old ones stay readable."""

Outcome: TypeAlias = Literal["allow", "deny", "ask"]
ResumeCause: TypeAlias = Literal["crash", "approval", "client", "signal", "timer", "request", "shutdown"]


class GuardDecision(Record):
    """What the policy guard said about one call, with the facts it said it on. No tool runs without one."""

    outcome: Outcome
    rule: str
    """The rule that decided: `allow_list`, `side_effects`, `max_tool_calls`…"""
    reason: Reason | None = None
    message: str | None = None
    inputs: JsonObject = field(default_factory=dict[str, Any])
    expires_s: float | None = None
    """For `ask`: seconds after which a call without a decision is denied; null for never."""


class JournalEvent(Record, dict=True, gc=True):
    """Base of the events. One that was read keeps its text, because an older release wrote fewer fields."""

    @classmethod
    def of_checked(cls, value: object, checked: BaseModel) -> Self:
        """An event of a JSON object, which it keeps as text; of anything else, an event that is made here."""
        made = super().of_checked(value, checked)
        return made.read_from(orjson.dumps(value)) if isinstance(value, dict) else made

    def read_from(self, text: bytes) -> Self:
        """The event, which was read from this text."""
        vars(self)[_TEXT] = text
        return self

    @property
    def text(self) -> bytes:
        """Its JSON; as it was read, if it was.

        Raises:
            PydanticSerializationError: It holds something that is not JSON.
        """
        return vars(self).get(_TEXT) or to_json(self)

    def as_written(self) -> JsonObject:
        """Its JSON, without the fields that the release did not know which has written it."""
        return orjson.loads(self.text)

    def as_read(self) -> JsonObject | None:
        """The fields that were there when it was read; null if it was made here, with all that this release knows."""
        text = vars(self).get(_TEXT)
        return None if text is None else orjson.loads(text)


_TEXT: Final = "text"


class RunStarted(JournalEvent):
    """A run exists; its definition is pinned by hash."""

    type: Literal["run_started"] = "run_started"
    request: RunRequest


class RunResumed(JournalEvent):
    """A process has taken the run on, after a wait or after another one's death."""

    type: Literal["run_resumed"] = "run_resumed"
    epoch: int
    cause: ResumeCause


class RunSuspended(JournalEvent):
    """The run waits; nothing of it is held in memory."""

    type: Literal["run_suspended"] = "run_suspended"
    status: RunStatus
    waiting_for: tuple[str, ...]
    """Names of the signals."""
    wake_at: Timestamp | None = None
    spent: Allowance | None = None
    """What it has spent so far; null in what older releases wrote, as the next."""
    left: Allowance | None = None
    """Its remaining budget, divided equally among the things that it waits for."""
    tainted: bool = False
    """Whether it has read untrusted content."""


class RunFinished(JournalEvent):
    """The run's end: always the last event."""

    type: Literal["run_finished"] = "run_finished"
    status: RunStatus
    stop_reason: StopReason
    output: Json = None
    """Null unless it completed; an older release put there what was done until then."""
    partial: Json = None
    """What was done until then by a run that did not complete, if anything."""
    attachments: tuple[Attachment, ...] = ()
    """What accompanies the output."""
    metadata: JsonObject = field(default_factory=dict[str, Any])
    """What else its program says of it: what code has printed and used."""
    tainted: bool = False
    """It has read what outsiders can write."""
    error: ToolError | None = None
    warnings: tuple[str, ...] = ()
    usage: Usage = Usage()
    tokens: int | None = None
    """Input and output tokens, with those of nested runs; null where an older release has not written them."""
    cost_usd: Usd | None = None
    """US dollars, with those of nested runs; with what older releases had reserved for calls that were cut off."""
    cost_unknown: bool = False
    cut_off: CostBounds | None = None
    """What calls may have cost that were cut off, which `cost_usd` does not include."""
    iterations: int = 0
    tool_calls: int = 0
    wrote: bool | None = None
    """Whether a call of it, or of a nested run, has changed something or may have; null if an older release ran it."""

    @property
    def output_or_partial(self) -> Json:
        """The output, or what was done until then."""
        return self.output if self.partial is None else self.partial


class ModelStarted(JournalEvent):
    """One attempt of a model call is about to be sent."""

    type: Literal["model_started"] = "model_started"
    position: str
    purpose: Purpose
    model: str
    attempt: int = 1
    system: str | None = None
    """System prompt, where it is new."""
    tools: str | None = None
    """Digest of the blob with the tools that the model was offered."""
    messages: Json = None
    """New messages that are not yet in the journal; tool results are in their envelopes."""
    history: int = 0
    """Number of messages sent in all."""
    decision: GuardDecision | None = None
    """Why it may be sent, and its limits; null in events of older releases."""
    request_hash: str | None = None
    """Content hash of the request, independent of the model; null in events of older releases."""


class ModelFailed(JournalEvent):
    """An attempt failed. `retry_in_s` is null if there will be no other."""

    type: Literal["model_failed"] = "model_failed"
    position: str
    attempt: int
    kind: ModelErrorKind
    message: str
    status: int = 0
    retry_after_s: float | None = None
    """Seconds to wait, where the provider said so."""
    retry_in_s: float | None = None
    fallback: str | None = None
    """The model that is asked from the next attempt on, in place of the one that failed."""
    usage: Usage = Usage()
    """What it may have used at most, if it may have been billed: its answer was cut off, or came too late."""
    cost_usd: Usd | None = None


class ModelDenied(JournalEvent):
    """A model was not asked, because a guardrail forbids it. For limits, see `LimitReached`."""

    type: Literal["model_denied"] = "model_denied"
    position: str
    purpose: Purpose
    model: str
    decision: GuardDecision


class ModelFinished(JournalEvent):
    """A model answered."""

    type: Literal["model_finished"] = "model_finished"
    position: str
    purpose: Purpose
    model: str
    response: Json
    """The neutral response: parts, stop, usage, the provider's model name and id."""
    usage: Usage = Usage()
    cost_usd: Usd | None = None
    cost_source: str | None = None
    """Who billed it, or the table that the rates are from."""
    not_priced: tuple[str, ...] = ()
    """What `cost_usd` does not include, because there is no price for it: `web_search`, `code_container`…"""
    attempts: int = 1
    duration_s: float = 0.0
    decision: GuardDecision | None = None
    """What a guardrail has found in the answer: `deny` if it is withheld, `allow` if parts of it are replaced."""
    taken_from: int | None = None
    """In a fork: the event of the other run that has this answer; no model was asked."""


class CallStarted(JournalEvent):
    """The intent: committed before a tool with side effects is dispatched."""

    type: Literal["call_started"] = "call_started"
    position: str
    call_id: str
    name: str
    version: str
    content_hash: str
    side_effects: SideEffects
    input: Json
    idempotency_key: str
    decision: GuardDecision
    attempt: int = 1
    """2 or more: repeated after a crash."""


class CallFinished(JournalEvent):
    """The outcome: an envelope, which is from now on what this call returns."""

    type: Literal["call_finished"] = "call_finished"
    position: str
    envelope: ToolEnvelope
    decision: GuardDecision | None = None
    """Given for a call that was denied, and so has no `call_started`."""
    taken_from: int | None = None
    """In a fork: the event of the other run that has this outcome."""
    traceback: str | None = None
    """Of the last exception that the tool raised, for its author: redacted, at most 20,000 characters, and neither in
    the envelope nor shown to a model or over REST."""


class CallDoubted(JournalEvent):
    """A call failed with an unknown outcome: its lookup or a person is asked whether it took effect."""

    type: Literal["call_doubted"] = "call_doubted"
    position: str
    envelope: ToolEnvelope
    """Of the failure."""


class ApprovalRequested(JournalEvent):
    """A call waits for a person's decision, which must name these hashes."""

    type: Literal["approval_requested"] = "approval_requested"
    position: str
    number: int = 1
    """2 and more: asked again, because what the person was shown is not what would happen any more."""
    call_id: str
    name: str
    version: str
    input: Json
    arguments_hash: str
    content_hash: str
    policy_hash: str | None = None
    """Of what the guard applies to the call; null in what older releases wrote."""
    narrowed: JsonSchema | None = None
    """What arguments must meet besides the tool's own schema."""
    side_effects: SideEffects = "writes"
    message: str = ""
    expires_at: Timestamp | None = None
    root_run_id: str | None = None
    """The outermost run, which the requesting person started."""
    callers: tuple[str, ...] = ()
    """The tools that are open above the call, outermost first: `name@version`."""
    requested_by: str | None = None
    """Id of the principal who started the outermost run."""
    acting: str | None = None
    """Id of the principal who makes the call, such as the service account of an agent."""
    step: str | None = None
    """Name of the step that asks, where it is a step of a workflow and no call; `name` is the workflow then, `input`
    what the person is shown, and `narrowed` alone what it may become."""
    question: ApprovalQuestion = "permission"
    """What the person is asked: whether the call may run, or whether one that was cut off took effect."""


class ApprovalDecided(JournalEvent):
    """A person has decided, or the time has expired (`decision` null)."""

    type: Literal["approval_decided"] = "approval_decided"
    position: str
    number: int = 1
    """Of the request."""
    decision: ApprovalDecision | None
    made_by: str


class ApprovalWithdrawn(JournalEvent):
    """A request is no longer valid, decided or not: its call has ended otherwise, or something has changed."""

    type: Literal["approval_withdrawn"] = "approval_withdrawn"
    position: str
    number: int
    """Of the request."""
    reason: str
    for_good: bool = False
    """The question is not repeated: the step that asked has ended without an answer."""


class ClientHandoff(JournalEvent):
    """A prepared call waits for a client to perform it."""

    type: Literal["client_handoff"] = "client_handoff"
    position: str
    envelope: ToolEnvelope
    """Its output is the prepared payload; `requires_client_execution` is true."""


class ClientReturned(JournalEvent):
    """A client has returned a result."""

    type: Literal["client_returned"] = "client_returned"
    position: str
    result: ClientResult
    made_by: str


class SignalAwaited(JournalEvent):
    """The run waits for a signal that has not arrived."""

    type: Literal["signal_awaited"] = "signal_awaited"
    name: str
    wake_at: Timestamp | None = None
    """When the wait times out; a sleep is a wait for a signal that is never sent."""
    position: str | None = None
    """Of the part of the program that waits, where several may wait for one signal; null for all of it."""


class SignalReceived(JournalEvent):
    """The signal, or its time-out (`payload` null)."""

    type: Literal["signal_received"] = "signal_received"
    name: str
    payload: JsonObject | None
    made_by: str
    position: str | None = None
    """Of the part of the program that has waited, as in `SignalAwaited`."""


class FailedCall(Record):
    """The failure of the call that a fallback replaces."""

    tool: str
    """`name@version`."""
    content_hash: str
    error: ToolError
    http_status: int | None = None
    tool_calls: int = 0
    """What a run of its own that failed had used, as in the next two."""
    tokens: int = 0
    cost_usd: Usd | None = None
    tainted: bool = False
    """It had read untrusted content, which its error may contain."""


class ChildStarted(JournalEvent):
    """A nested run."""

    type: Literal["child_started"] = "child_started"
    position: str
    """Of the call that it belongs to."""
    child_run_id: str
    tool: str
    instead_of: FailedCall | None = None
    """For a fallback: what failed before."""


class ProgressMade(JournalEvent):
    """Progress that the run's program reports; at most once per key."""

    type: Literal["progress_made"] = "progress_made"
    key: str
    kind: str
    data: Json = None


class LimitReached(JournalEvent):
    """A limit ended or narrowed the run."""

    type: Literal["limit_reached"] = "limit_reached"
    limit: str
    """Field of `Limits`, or `budget` for a cap on what many runs spend."""
    value: float
    maximum: float
    message: str


Event: TypeAlias = Annotated[
    RunStarted
    | RunResumed
    | RunSuspended
    | RunFinished
    | ModelStarted
    | ModelFailed
    | ModelDenied
    | ModelFinished
    | CallStarted
    | CallFinished
    | CallDoubted
    | ApprovalRequested
    | ApprovalDecided
    | ApprovalWithdrawn
    | ClientHandoff
    | ClientReturned
    | SignalAwaited
    | SignalReceived
    | ChildStarted
    | ProgressMade
    | LimitReached,
    Field(discriminator="type"),
]


class RunEvent(Record, kw_only=False):
    """A numbered event of a run, as stored in the journal and shown by all interfaces."""

    run_id: str
    number: Annotated[int, Field(ge=1)]
    at: Timestamp
    realm: str
    made_by: str
    event: Event
    schema_version: int = SCHEMA_VERSION


def read_event(text: bytes) -> Event:
    """The event of a JSON text, which it keeps: one that was written by this release, or an older one.

    Raises:
        ValidationError: Of pydantic: it is no event.
    """
    try:
        kind = _kinds()[_TYPE.decode(text).type]
    except (msgspec.DecodeError, KeyError):
        return _event_adapter().validate_json(text)  # which says what is wrong
    return read_json(kind, text).read_from(text)


class _Typed(msgspec.Struct):
    """What all events have."""

    type: str


_TYPE: Final = msgspec.json.Decoder(_Typed)


@cache
def _kinds() -> Mapping[str, type[Event]]:
    return {get_args(kind.__annotations__["type"])[0]: kind for kind in get_args(get_args(Event)[0])}


@cache
def _event_adapter() -> TypeAdapter[Event]:
    return TypeAdapter(Event)
