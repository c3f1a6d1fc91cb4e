"""The envelope: the result of one tool call, the same for every kind of tool; and the pinned outputs of an agent.

An envelope exists only once the call has ended; a call that waits (for an approval, for a client) is an event of its
run.

Example:
    envelope: ToolEnvelope = await crib.call("search_deals", company="Acme")
    print(envelope.output if envelope.ok else envelope.error, envelope.cost_usd)
"""

from typing import Any, Final, Literal, TypeAlias

from msgspec import field
from pydantic import Field

from toolcrib.contracts.base.base import Contract, Json, JsonObject, Record, Timestamp, Usd
from toolcrib.contracts.base.display import fields_in_short, html_table, rich_tree
from toolcrib.contracts.base.errors import ToolError

CallStatus: TypeAlias = Literal["success", "error", "skipped", "denied"]
SideEffects: TypeAlias = Literal["none", "reads", "writes"]
EFFECTS: Final[tuple[SideEffects, ...]] = ("none", "reads", "writes")
"""Least first."""
AttachmentKind: TypeAlias = Literal["blob", "image", "table", "file"]


YIELDED: Final = "yielded"
"""In the metadata of an envelope: its tool has yielded the output piece by piece, as `text` or `items`."""


class Attachment(Record):
    """A payload beside the output: the full text of a truncated output, an image, a table, another file."""

    kind: AttachmentKind
    url: str
    """`blob:sha256:…` inside the crib; a server shows the path at which it can be fetched."""
    content_type: str | None = None
    bytes: int | None = None
    name: str | None = None
    """A file name, or the address that a file has elsewhere."""
    width: int | None = None
    """Of an image, in pixels; null where it is not known."""
    height: int | None = None

    @property
    def digest(self) -> str | None:
        """SHA-256 of the payload as 64 hex characters; null if it is not kept in the crib."""
        return self.url.removeprefix(_BLOB) if self.url.startswith(_BLOB) else None


_BLOB: Final = "blob:sha256:"


class Timings(Record):
    """Seconds of each phase of a call: contiguous spans of one monotonic clock, which add up to the total."""

    queue: float = 0.0
    """From the request to the start: barriers and the cap on parallel calls."""
    validate_: float = field(default=0.0, name="validate")
    policy: float = 0.0
    """Guard, permission, rate limit, cache look-up, secrets."""
    wait: float = 0.0
    """Waiting for a client, since the hand-off; for a person, as far as this process saw it."""
    execute: float = 0.0
    """All attempts with the waits between them."""
    serialize: float = 0.0
    """Response mapping, output check, redaction, truncation."""


class ToolEnvelope(Record):
    """The result of one call, whether it succeeded, failed, was denied, timed out or was interrupted."""

    call_id: str
    """hash(name@version, canonical(input), position): unique within its run. If the run is this one call, the run's id
    is hashed too, and it is unique among all calls."""
    name: str
    version: str
    """The version that really ran; empty for an unknown tool."""
    position: str = ""
    """The journal's key of the call inside its run: `t3.c1`, `fetch[17]`."""
    status: CallStatus
    input: Json = None
    """Arguments as validated; secrets never included."""
    output: Json = None
    """Null when `error` is set."""
    partial: Json = None
    """What a nested run had done that did not complete."""
    error: ToolError | None = None
    t_start: Timestamp
    t_end: Timestamp
    cached: bool = False
    reused: str | None = None
    """Id of the run that made the call, if this run reuses its result."""
    truncated: bool = False
    attachments: tuple[Attachment, ...] = ()
    http_status: int | None = None
    metadata: JsonObject = field(default_factory=dict[str, Any])
    """Allow-listed response headers and paging."""
    requires_client_execution: bool = False
    """A client acts on the call: the output is the prepared payload, and in the end what the client returned."""
    approved_input: Json = None
    """The arguments as a person edited them while approving; the `call_id` stays that of the request."""
    run_id: str | None = None
    conversation_id: str | None = None
    session_id: str | None = None
    attempts: int = 0
    """Executions at the tool boundary, retries included; 0 if the tool never ran."""
    timings: Timings = Timings()
    cost_usd: Usd | None = None
    """Null means unknown, never 0 for a paid call."""
    side_effects: SideEffects = "none"
    content_hash: str | None = None
    tainted: bool = False
    """The output contains untrusted content, or was made from it."""

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.status == "success"

    def __repr__(self) -> str:
        """One line of bounded length."""
        return fields_in_short(
            "ToolEnvelope",
            name=self.name,
            status=self.status,
            input=self.input,
            output=self.output,
            error=self.error.message if self.error else None,
            call_id=self.call_id,
        )

    def _repr_html_(self) -> str:
        """A table for notebooks, without scripts."""
        return html_table(f"call {self.name}", self._facts())

    def __rich__(self) -> object:
        """A table for terminals."""
        return rich_tree(f"call {self.name}", self._facts())

    def _facts(self) -> list[tuple[str, object]]:
        return [
            ("status", self.status),
            ("input", self.input),
            ("output", self.output),
            ("error", self.error.message if self.error else None),
            ("cost in US dollars", None if self.cost_usd is None else str(self.cost_usd)),
            ("run", self.run_id),
        ]


PinStrategy: TypeAlias = Literal["latest", "first_success", "by_call_id"]
OnMissing: TypeAlias = Literal["null", "error", "stale_last_success"]


class AgentOutputs(Contract):
    """Always all present, whatever the configuration."""

    response: str = ""
    """The final answer; empty until there is one."""
    tools_by_id: dict[str, ToolEnvelope] = Field(default_factory=dict)
    """Envelopes by `call_id`, of all calls that have ended, denied ones included."""
    tool_order: tuple[str, ...] = ()
    """`call_id`s in the order in which the calls were asked for: those of one answer of a model as it names them."""
    last_tool: ToolEnvelope | None = None
    """The last of them that succeeded."""
    traces_url: str | None = None
    """Null without a server."""


class PinSelector(Contract):
    """Which call fills the handle."""

    tool: str = Field(min_length=1)
    """Name of the tool. It need not be enabled, nor exist."""
    strategy: PinStrategy = "latest"
    """`latest`: the last call that was executed, whether it succeeded or failed; one that failed has null as output."""
    call_id: str | None = None
    """For `by_call_id`."""


class PinnedHandle(Contract):
    """A named output that stays when its tool is disabled or removed."""

    name: str = Field(min_length=1, max_length=100)
    selector: PinSelector
    on_missing: OnMissing = "null"
    """Without such a call: null; the execution fails; or the value of the last earlier call that succeeded."""
