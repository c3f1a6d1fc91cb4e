"""Runs: one execution of a tool, an agentic tool, an agent or a workflow, with request, state, result and signals."""

from decimal import Decimal
from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import field
from msgspec.structs import force_setattr
from pydantic import Field

from toolcrib.contracts.base.base import Contract, Json, JsonObject, Record, Timestamp, Usd
from toolcrib.contracts.base.envelope import Attachment, SideEffects
from toolcrib.contracts.base.errors import ToolError
from toolcrib.contracts.base.principals import Principal
from toolcrib.contracts.runs.forks import Fork
from toolcrib.contracts.specs.guardrails import Guardrail
from toolcrib.contracts.specs.models_and_limits import Allowance, Usage

RunKind: TypeAlias = Literal["tool", "code", "composite", "agentic", "agent", "workflow"]
RunStatus: TypeAlias = Literal[
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
"""`awaiting_answer`: it has asked a question. `completed`: it has done what it was asked for. `incomplete`: it has
ended before that, by a limit, a denial, a question without an answer, or a part that failed beside others that did
not; its `error` says why, and its `partial` what was done. `failed`: it could not continue."""
StopReason: TypeAlias = Literal[
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
Purpose: TypeAlias = Literal[
    "planning",
    "tool_selection",
    "result_review",
    "error_recovery",
    "formatting",
    "answer",
    "summary",
    "verification",
    "question",
]
"""Why a model was called. `verification`: a second reading of a task."""

ENDED: frozenset[str] = frozenset({"completed", "incomplete", "failed", "timed_out", "cancelled"})
WAITING: frozenset[str] = frozenset({"awaiting_approval", "awaiting_client", "awaiting_answer"})
CANCEL = "cancel"
"""Name of the signal that ends a run, whatever it does or waits for."""
CLOCK = "clock"
"""Who answers where the time is over before anybody else did."""


RerunMode: TypeAlias = Literal["resume", "from_step"]
"""resume: results of successful calls are reused, and repeated calls have the same idempotency keys.
from_step: a step and all that follow it are run again, and the outputs of the others are reused."""


class Rerun(Contract):
    """A run of a workflow that continues an ended run."""

    run_id: str
    """The run that it continues."""
    mode: RerunMode = "resume"
    step: str | None = None
    """For `from_step`: the first step to run again."""
    repeat_unknown: bool = False
    """Calls with an unknown outcome are repeated."""


PLAN_FORMAT = 5
"""The rules of new runs; see `RunRequest.plan_format`."""
_ENDS_INCOMPLETE: Final = 3
_OWN_CALL_IDS: Final = 4
_SHOWS_FILES: Final = 5
PLANNED_ANEW = "planned_anew"
"""Kind of the progress event that marks today's way of planning, unlike older releases; its key is the place."""


class RunRequest(Record):
    """The request of a run. It is stored with the run, so that any process can drive it."""

    kind: RunKind
    tool: str
    """`name@version` of the tool that the run executes."""
    content_hash: str
    pins: dict[str, str] = field(default_factory=dict[str, str])
    """Content hashes of the tools that the run may call, by the references in its definition."""
    input: Json = None
    files: tuple[Attachment, ...] = ()
    """Files that came with the message; their bytes are kept as blobs."""
    principal: Principal
    """Who acts; an agent may act as a service account."""
    parent_run_id: str | None = None
    parent_position: str | None = None
    root_run_id: str | None = None
    """The outermost run above this one; null if this run is not nested."""
    started_by: str | None = None
    """Id of the principal who started the outermost run; null if this run is not nested."""
    depth: int = 0
    conversation_id: str | None = None
    turn: Annotated[int, Field(ge=1)] | None = None
    """Its place among the turns of its conversation; null for other runs, such as nested ones."""
    session_id: str | None = None
    model: str | None = None
    """`provider:model` that is asked in place of the definition's."""
    dry_run: bool = False
    """No tool with side effects is dispatched; its call is skipped."""
    rerun: Rerun | None = None
    """Of a workflow: the run that it continues; null for one that starts from the beginning."""
    fork: Fork | None = None
    """The run that it was forked from; null if it is not a fork."""
    replaced: dict[str, str] = field(default_factory=dict[str, str])
    """Content hashes of the revisions that are called, by those in whose place they are; in nested runs too."""
    callers: dict[str, str] = field(default_factory=dict[str, str])
    """The tools that are open above this run, outermost first: `name@version` by content hash."""
    plan_format: int = 1
    """The rules of the release that began it. 1: the plan of a fixed sequence is compared with words; 2: by evidence.
    3: likewise; an author's prompt, examples and hints reach every request; a model request that does not fit into what
    is left of a cost limit is made with fewer output tokens; limits and denied parts end a run as `incomplete`.
    4: likewise; the call of a run that is one call has an id that no other run's has.
    5: likewise; models are shown the images and files that tools return."""
    side_effects: SideEffects = "writes"
    """The most that its calls may do."""
    guardrails: tuple[Guardrail, ...] = ()
    """The rules of the callers, which apply to this run too."""
    tainted: bool = False
    """The caller had read untrusted content before the call."""
    allowance: Allowance | None = None
    """The remaining budget of the caller at the time of the call; null if the run is not nested."""
    timeout_s: Annotated[float, Field(gt=0)] | None = None
    """Seconds that the caller gives it, waiting for people excluded, if its own limits are not less."""

    @property
    def has_old_rules(self) -> bool:
        """Whether it was begun by a release in which limits and denied parts completed a run."""
        return self.plan_format < _ENDS_INCOMPLETE

    @property
    def has_own_call_id(self) -> bool:
        """Whether the call of a run that is one call has an id that no other run's has."""
        return self.plan_format >= _OWN_CALL_IDS

    @property
    def shows_files(self) -> bool:
        """Whether the model is shown the images and files that tools return."""
        return self.plan_format >= _SHOWS_FILES

    @property
    def open_tools(self) -> dict[str, str]:
        """The tools that are open above a call of this run, as in `callers`: with the run's own, if it calls others."""
        return self.callers if self.kind == "tool" else {**self.callers, self.content_hash: self.tool}

    @property
    def skips_writes(self) -> bool:
        """Whether calls that would write are skipped: in a dry run, and in a fork that may not make them."""
        return self.dry_run or (self.fork is not None and not self.fork.allow_writes)

    @property
    def starter(self) -> str:
        """Id of the principal who started the outermost run: whose the run is."""
        return self.started_by or self.principal.id

    @property
    def tool_name(self) -> str:
        """The tool's name without its version."""
        return self.tool.partition("@")[0]


class Run(Record):
    """A run as the store knows it."""

    run_id: str
    realm: str
    made_by: str
    status: RunStatus
    stop_reason: StopReason | None = None
    request: RunRequest
    output: Json = None
    """Null unless it completed; an older release put there what was done until then."""
    partial: Json = None
    """What was done until then by a run that did not complete, if anything."""
    error: ToolError | None = None
    warnings: tuple[str, ...] = ()
    usage: Usage = Usage()
    tokens: int | None = None
    """Input and output tokens, with those of nested runs; null until the run has ended, and where an older release has
    not written them."""
    cost_usd: Usd | None = None
    """US dollars, with those of nested runs; null while the run is active, and where nothing of it is known."""
    cost_unknown: bool = False
    """At least one paid call, or a part of one, had no known price: `cost_usd` is a lower bound."""
    epoch: int = 0
    """How often the run was claimed; fences the processes that claimed it before."""
    events: int = 0
    """Number of the last event."""
    created_at: Timestamp
    updated_at: Timestamp
    wake_at: Timestamp | None = None

    @property
    def ended(self) -> bool:
        """Whether the run has reached a final status."""
        return self.status in ENDED

    @property
    def output_or_partial(self) -> Json:
        """The output, or what was done until then."""
        return self.output if self.partial is None else self.partial

    @property
    def all_tokens(self) -> int:
        """Tokens with those of nested runs, as far as they were written."""
        return self.usage.total_tokens if self.tokens is None else self.tokens


class CostBounds(Record):
    """What calls may have cost, in US dollars, that were cut off: by a time-out, a cancellation or a crash.

    How far the provider came is unknown, so it is not part of a bill. Limits count the upper bound.
    """

    lower_usd: Usd = Decimal(0)
    upper_usd: Usd | None = None
    """What was reserved for the calls; null where a price is unknown."""


class RunResult(Record):
    """How a run ended, or its state if it waits."""

    run_id: str
    status: RunStatus
    stop_reason: StopReason | None = None
    output: Json = None
    """Null unless it completed; an older release put there what was done until then."""
    partial: Json = None
    """What was done until then by a run that did not complete, if anything."""
    attachments: tuple[Attachment, ...] = ()
    """What accompanies the output."""
    metadata: JsonObject = field(default_factory=dict[str, Any])
    """What else its program says of it: what code has printed and used."""
    tainted: bool = False
    """It has read untrusted content."""
    error: ToolError | None = None
    warnings: tuple[str, ...] = ()
    usage: Usage = Usage()
    tokens: int | None = None
    """Input and output tokens, with those of nested runs; null where an older release has not written them."""
    cost_usd: Usd | None = None
    """US dollars, with those of nested runs; null where nothing of it is known, never 0."""
    cost_unknown: bool = False
    """At least one paid call, or a part of one, had no known price: `cost_usd` is a lower bound."""
    cut_off: CostBounds | None = None
    """What calls may have cost that were cut off, which `cost_usd` does not include."""
    iterations: int = 0
    tool_calls: int = 0
    wrote: bool | None = None
    """Whether a call of it, or of a nested run, has changed something or may have; null if an older release ran it."""

    def __post_init__(self) -> None:
        """Say null for a cost of which nothing is known; releases have written 0."""
        if self.cost_unknown and not self.cost_usd:
            force_setattr(self, "cost_usd", None)

    @property
    def counted_usd(self) -> Decimal:
        """What counts against limits: what is known, and what calls may have cost at most that were cut off."""
        return (self.cost_usd or Decimal(0)) + (self.cut_off_usd or Decimal(0))

    @property
    def cut_off_usd(self) -> Decimal | None:
        """What calls may have cost at most that were cut off, as far as prices are known; null if none was."""
        return None if self.cut_off is None else self.cut_off.upper_usd or Decimal(0)

    @property
    def all_tokens(self) -> int:
        """What was used of a limit on tokens."""
        return self.usage.total_tokens if self.tokens is None else self.tokens

    @property
    def output_or_partial(self) -> Json:
        """The output, or what was done until then."""
        return self.output if self.partial is None else self.partial


class Signal(Contract):
    """A message from outside that a run waits for: a decision, a client's result."""

    name: str
    """`approval:POSITION`, `client:POSITION` or a name of the application's."""
    payload: JsonObject
    made_by: str
    at: Timestamp


ApprovalQuestion: TypeAlias = Literal["permission", "outcome"]


class ApprovalDecision(Contract):
    """A person's answer to a call that asked for confirmation; bound to the exact arguments and tool."""

    approved: bool
    arguments_hash: str
    """Content hash of the arguments that were shown."""
    content_hash: str
    """Content hash of the tool's definition that was shown."""
    policy_hash: str | None = None
    """Hash of the policy under which the call was to run; null if the request named none."""
    edited_input: JsonObject | None = None
    reason: str | None = None
    happened: bool | None = None
    """To the question of an outcome, if it is not given up: the call took effect, or it is to be made once more."""
    output: Json = None
    """The output of the call that took effect."""


class ClientResult(Contract):
    """What a client did with a prepared call."""

    output: Json = None
    error: ToolError | None = None
    metadata: JsonObject = Field(default_factory=dict)
    tainted: bool = False
    """It contains untrusted content."""
