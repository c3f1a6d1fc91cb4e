"""The ports of the executor. It knows no runtime, store or model."""

from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from toolcrib.contracts import (
    ApprovalDecision,
    ApprovalRequested,
    Attachment,
    CallStarted,
    ClientResult,
    FailedCall,
    Json,
    JsonObject,
    JsonSchema,
    Principal,
    RetryPolicy,
    RunResult,
    ToolEnvelope,
    ToolError,
    ToolRevision,
)
from toolcrib.contracts.base.errors import Effect
from toolcrib.contracts.runs.executions import AskedOf
from toolcrib.contracts.runs.stream import LogLevel
from toolcrib.core.executor.concurrency import Lanes
from toolcrib.core.policy import Budget, CallPolicy


class CallRequest(Struct, frozen=True):
    """A call as data: any process can execute it."""

    position: str
    """The journal's key: fixed before anything runs."""
    name: str
    input: Json
    """Arguments; a string that is not a JSON object stays what the model wrote, and is refused by validation."""
    version: str | None = None
    """Semantic version range or content hash; null for what the policy or the registry offers."""
    idempotency_key: str | None = None
    """The key that it had when it was made first, in an earlier life or another run; null if it is made first now."""
    timeout_s: float | None = None
    """Seconds that its caller gives it, waiting for people excluded, if the tool itself does not take fewer."""
    scope: str = ""
    """Stands before the position in the call's id: the id of the run, if the id is to be unique among runs."""


class Progress(Struct, frozen=True):
    """How far a call has come."""

    done: float
    total: float | None = None
    """Null if it is unknown."""
    message: str = ""
    """What is being done; without secrets."""


class LogLine(NamedTuple):
    """What a call tells about itself."""

    level: LogLevel
    message: str
    """Without secrets."""


class LiveCall(Protocol):
    """What the followers of a run see of one attempt of a call while it runs; nothing of it is journaled.

    Each method returns at once, also if nobody follows, and may be called by any one thread at a time.
    """

    def add_text(self, text: str) -> None:
        """Show the next piece of an output that is text."""
        ...

    def add_item(self, item: Json) -> None:
        """Show the next element of an output that is a list."""
        ...

    def report(self, progress: Progress) -> None:
        """Show how far the call has come; the newest counts."""
        ...

    def log(self, line: LogLine) -> None:
        """Show a message."""
        ...


class CallerQuestion(Struct, frozen=True):
    """What a call asks before it can go on."""

    number: int
    """Which question of the call it is, from 1."""
    text: str
    """For a person."""
    schema: JsonSchema | None = None
    """What the answer has to fit as JSON; null for words."""
    name: str | None = None
    """As the tool calls the question."""
    asked_of: AskedOf = "person"
    """Who answers at an MCP client."""
    max_tokens: int | None = None
    """Of the answer of a client's model."""
    together_with: tuple["CallerQuestion", ...] = ()
    """Those that follow and are asked at the same time."""


class CallJournal(Protocol):
    """How a call is made durable, asked about, handed over and delegated: the side of the run that a call sees."""

    async def intend(self, intent: CallStarted) -> None:
        """Record the intent. For a call with side effects it is durable on return."""
        ...

    def fence(self) -> Awaitable[None]:
        """Raise `Fenced` if another process may have the run; asked before each further attempt that writes."""
        ...

    async def confirm(self, request: ApprovalRequested) -> ApprovalDecision | None:
        """Ask a person; null if nobody decided in time. May suspend the run instead of returning."""
        ...

    async def hand_off(self, prepared: ToolEnvelope) -> ClientResult:
        """Let a client perform a prepared call. May suspend the run instead of returning."""
        ...

    async def ask_caller(self, position: str, question: CallerQuestion) -> str | None:
        """Ask who has started the run, or is at the other end of its conversation; null if there is nobody.

        May suspend the run instead of returning; the call is then made again from its start, and asks again.
        """
        ...

    def find_client_call(self, position: str) -> ToolEnvelope | None:
        """What was handed to a client at a position before, in this process or in another one."""
        ...

    async def spawn(
        self,
        position: str,
        tool: ToolRevision,
        arguments: JsonObject,
        *,
        attempt: int = 1,
        instead_of: FailedCall | None = None,
        timeout_s: float | None = None,
    ) -> RunResult:
        """Run a nested run of a tool under this one. May suspend the run instead of returning.

        Args:
            position: Of the call that it belongs to.
            tool: Is a run of its own; or any, if it is a fallback, which makes one call of it.
            arguments: Its input.
            attempt: Number of the call's attempt; each is a run of its own.
            instead_of: For a fallback, the call that failed; recorded before the fallback begins.
            timeout_s: Seconds that it has if its own limits are not less, waiting for people excluded.
        """
        ...

    def live_call(self, position: str, attempt: int) -> AbstractContextManager[LiveCall]:
        """Let followers see an attempt of the call at a position, whose intent is recorded, until it is left."""
        ...

    def keep_traceback(self, position: str, text: str) -> None:
        """Record with the outcome of the call at a position the traceback of an exception that its tool raised."""
        ...

    def find_failed_call(self, position: str) -> FailedCall | None:
        """How the call at a position failed, if its fallback has begun before, in this process or in another one."""
        ...


class CallContext(Struct, frozen=True):
    """For whom, under which policy and in which run a call is made."""

    principal: Principal
    policy: CallPolicy
    budget: Budget
    journal: CallJournal
    lanes: Lanes
    run_id: str
    starter: str | None = None
    """Id of the principal whose spending it is; null for what counts as nobody's."""
    conversation_id: str | None = None
    session_id: str | None = None
    depth: int = 0
    callers: Mapping[str, str] = {}
    """The tools that are open above the call, outermost first: `name@version` by content hash."""
    dry_run: bool = False
    tainted_by: str | None = None
    """What the run has read that outsiders can write: the first of it; null if nothing."""
    attempt: int = 1
    """2 and more: the call is repeated after a crash."""
    epoch: int = 0
    """How often a process has taken the run."""
    pins: Mapping[str, str] = {}
    """Content hashes of what the run has pinned, by reference: a fallback among them is the one that is called."""


class Dispatch(Struct, frozen=True):
    """One execution that a runtime is asked for: everything is validated, allowed, journaled."""

    tool: ToolRevision
    input: JsonObject
    """A copy of its own for each attempt: nobody else sees what a tool does to it."""
    auth: Mapping[str, str]
    """Resolved secrets by name; forgotten after the call."""
    idempotency_key: str
    position: str
    attempt: int
    context: CallContext
    timeout_s: float | None = None
    """As of the call."""
    call_id: str = ""
    """Of its envelope."""


class Outcome(Struct, frozen=True):
    """What a runtime brings back from a success."""

    output: Json
    http_status: int | None = None
    metadata: JsonObject = {}
    attachments: tuple[Attachment, ...] = ()
    cost_usd: Decimal | None = None
    secrets: tuple[str, ...] = ()
    """Further values that must not appear in the envelope: tokens that a runtime fetched."""
    tainted: bool = False
    """It was made of what outsiders can write, besides what the tool's definition says."""


class CallFailed(Exception):
    """Raised by a runtime: the call failed, and this is its error. Never leaves the executor."""

    def __init__(
        self,
        error: ToolError,
        *,
        http_status: int | None = None,
        metadata: JsonObject | None = None,
        secrets: tuple[str, ...] = (),
        cost_usd: Decimal | None = None,
        tainted: bool = False,
        effect: Effect | None = None,
        sent: bool | None = None,
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.http_status = http_status
        self.metadata: JsonObject = metadata or {}
        self.secrets = secrets
        """As in `Outcome`: values that must not appear in the envelope."""
        self.cost_usd = cost_usd
        """As in `Outcome`: what the failed call cost all the same."""
        self.tainted = tainted
        """As in `Outcome`: what it says was made of what outsiders can write."""
        self.effect: Effect | None = effect
        """What the failed call has changed all the same, where the runtime knows; null for what its code says."""
        self.partial: Json = None
        """What a nested run had done that did not complete."""
        self.sent: bool | None = sent
        """Whether anything of the call has left this process; null for what its reason says."""
        self.retry: RetryPolicy | None = None
        """How often a tool is tried again whose own policy has no retries: what its provider says."""


class BrokenOff(Exception):
    """Raised by a runtime from an exception of a tool that had already yielded a part of its output.

    Args:
        partial: That part.
    """

    def __init__(self, partial: Json) -> None:
        super().__init__("the tool broke off")
        self.partial = partial


class Dispatcher(Protocol):
    """Runs a tool by its kind of implementation."""

    def dispatch(self, dispatch: Dispatch) -> Coroutine[Any, Any, Outcome]:
        """Execute once.

        Raises:
            CallFailed: The tool failed in a way it can describe. Any other exception becomes an `UNKNOWN` error.
        """
        ...


class Tools(Protocol):
    """Finds the tool that a name and a range mean for a realm."""

    def find(self, realm: str, name: str, version: str | None) -> ToolRevision | None:
        """The newest fitting revision that is not blocked, else a blocked one, else null; a content hash fits one."""
        ...


class SecretResolver(Protocol):
    """Resolves references to secrets inside a call."""

    async def resolve(self, reference: str, principal: Principal, hosts: Sequence[str] = ()) -> str | None:
        """The value behind `${env:NAME}` or `${secret:NAME}`, or null if there is none.

        Args:
            reference: The reference.
            principal: Who calls.
            hosts: All hosts to which the value is sent; none if it is used otherwise.

        Raises:
            ToolcribError: The text is no reference, or what keeps the secret cannot be read.
        """
        ...


class Results(Protocol):
    """Results of earlier calls."""

    async def get(self, key: str, *, now: datetime) -> JsonObject | None:
        """The stored envelope as JSON, unless it has expired."""
        ...

    async def put(self, key: str, value: JsonObject, *, realm: str, made_by: str, expires_at: datetime | None) -> None:
        """Store an envelope as JSON; null expiry for ever."""
        ...


class BlobSink(Protocol):
    """Keeps payloads that are too large for an envelope."""

    async def put(self, data: bytes, *, realm: str, made_by: str, content_type: str = "application/json") -> str:
        """Store bytes; returns their digest."""
        ...


class Clock(Protocol):
    """Time, so that tests and replay control it."""

    def now(self) -> datetime:
        """The current moment in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds of a clock that never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let so much time pass."""
        ...
