"""Traces: what happened in a run, step by step, with its costs; and settlements of unknown outcomes.

A trace is derived from the journal and not stored; the trace of an active run shows the steps so far. A settlement is
a person's answer whether a call took effect, sent as a signal to the ended run; the first answer counts. The journal
does not change: traces and runs that continue the run read the settlement beside it.
"""

from collections.abc import Iterator
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Json, JsonObject, Timestamp, Usd
from toolcrib.contracts.base.display import DisplayRow, clipped, fields_in_short, html_table, rich_tree, short
from toolcrib.contracts.base.envelope import CallStatus, SideEffects
from toolcrib.contracts.base.errors import ModelErrorKind, ToolError
from toolcrib.contracts.runs.approvals import ApprovalStatus
from toolcrib.contracts.runs.events import ResumeCause
from toolcrib.contracts.runs.runs import CostBounds, Purpose, RunKind, RunStatus, StopReason
from toolcrib.contracts.specs.agents import AgenticMode
from toolcrib.contracts.specs.models_and_limits import Usage


class LLMCost(Contract):
    """One model call that was answered."""

    position: str
    """The journal's key of the call."""
    purpose: Purpose
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Usd | None = None
    """Null means unknown."""
    cost_source: str | None = None
    """Who billed it, or the table that the rates are from."""
    not_priced: tuple[str, ...] = ()
    """What `cost_usd` does not include, because there is no price for it."""


class CutOffCost(CostBounds):
    """An attempt of a call that was cut off, and what it may have cost."""

    position: str
    """The journal's key of the call."""
    name: str
    """The model, or the tool."""


class ActionCost(Contract):
    """One tool call with a price: its own, or the cost of its nested run."""

    position: str
    action: str
    """The tool's name."""
    cost_usd: Usd


class CostBreakdown(Contract):
    """What each call cost: the total is the sum of `llm_calls` and `action_calls`, as far as they are known."""

    total_cost_usd: Usd | None = None
    """Null if nothing is known."""
    cost_unknown: bool = False
    """At least one line, or a part of one, is unknown: the total is a lower bound."""
    total_tokens: int = 0
    """Input and output tokens, with those of nested runs."""
    llm_calls: tuple[LLMCost, ...] = ()
    action_calls: tuple[ActionCost, ...] = ()
    cut_off: tuple[CutOffCost, ...] = ()
    """Attempts that were cut off, apart from the bill: what they cost between the bounds is unknown."""


_SIGNAL: Final = "settled:"


def settlement_signal(position: str) -> str:
    """Name of the signal that settles the call at a position."""
    return f"{_SIGNAL}{position}"


class OutcomeTold(Contract):
    """Whether a call took effect."""

    happened: bool
    """False: it did not, and may be made once more."""
    output: Json = None
    """The output of the call that took effect."""
    reason: str | None = None
    """How that is known, for the record."""


class Settlement(OutcomeTold):
    """The settlement as it is stored."""

    made_by: str
    at: Timestamp


LLMStatus: TypeAlias = Literal["running", "success", "error"]
ToolStepStatus: TypeAlias = CallStatus | Literal["running"]
HandoffStatus: TypeAlias = Literal["waiting", "success", "error"]
SignalStatus: TypeAlias = Literal["waiting", "received", "timed_out"]


class FailedAttempt(Contract):
    """An attempt of a model call that failed."""

    attempt: int
    kind: ModelErrorKind
    message: str
    status: int = 0
    """HTTP status, 0 if there was no answer."""
    retry_in_s: float | None = None
    """Seconds until the next attempt; null if no further attempt was planned."""
    fallback: str | None = None
    """The model that was asked next, in place of the one that failed."""


class LLMStep(Contract):
    """One model call, all attempts together."""

    type: Literal["llm_call"] = "llm_call"
    purpose: Purpose
    number: int
    """Place in the trace, from 1."""
    position: str
    """The journal's key of the call."""
    model: str
    status: LLMStatus
    started_at: Timestamp
    input: str = ""
    """What was new to the model: the question, shortened, or whose results it got."""
    reasoning: str | None = None
    """The reasons of the model: its thinking and what it said beside its calls, or `reasoning` in an answer of JSON."""
    decision: str | None = None
    """The model's decision: the tools that it called, or its answer, shortened. Null until there is one."""
    tokens: int = 0
    """Input and output tokens."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Usd | None = None
    """US dollars; null means unknown."""
    cost_source: str | None = None
    """Where the price comes from."""
    not_priced: tuple[str, ...] = ()
    """What `cost` does not include, because there is no price for it."""
    attempts: int = 1
    failures: tuple[FailedAttempt, ...] = ()
    latency_ms: int | None = None
    """Of the attempt that succeeded; null until there is one."""


class ToolStep(Contract):
    """One tool call, all attempts together."""

    type: Literal["tool_call"] = "tool_call"
    action: str
    """The tool's name."""
    number: int
    position: str
    version: str
    """The version that ran; empty for an unknown tool."""
    status: ToolStepStatus
    started_at: Timestamp
    parameters: Json = None
    approved_parameters: Json = None
    """The parameters as a person edited them, if one did."""
    result: Json = None
    """The output, shortened: long lists and texts end with what was left out."""
    error: ToolError | None = None
    side_effects: SideEffects = "none"
    rule: str | None = None
    """The rule of the guard that allowed or denied the call."""
    idempotency_key: str | None = None
    settled: Settlement | None = None
    """What a person has said after the run, if the run did not know whether the call took effect."""
    attempts: int = 0
    repeats: int = 0
    """How often the call was started again after a crash."""
    cached: bool = False
    reused: str | None = None
    """Id of the run that made the call, if this run reuses its result."""
    truncated: bool = False
    http_status: int | None = None
    metadata: JsonObject = Field(default_factory=dict)
    """Allow-listed response headers and paging."""
    cost: Usd | None = None
    latency_ms: int | None = None
    """From start to end; null while the call is active."""
    child_run_id: str | None = None
    child: "Trace | None" = None
    """The nested run, if there is one and its trace was read too."""
    fallback_run_id: str | None = None
    fallback: "Trace | None" = None
    """The run of the tool that was called instead when this one had failed."""


class ApprovalStep(Contract):
    """A call that needed a person's consent."""

    type: Literal["approval"] = "approval"
    action: str
    number: int
    position: str
    status: ApprovalStatus
    started_at: Timestamp
    parameters: Json = None
    edited_parameters: Json = None
    message: str = ""
    made_by: str | None = None
    reason: str | None = None


class HandoffStep(Contract):
    """A prepared call that a client performs."""

    type: Literal["client_handoff"] = "client_handoff"
    action: str
    number: int
    position: str
    status: HandoffStatus
    started_at: Timestamp
    payload: Json = None
    """What the client got, shortened."""
    result: Json = None
    error: ToolError | None = None
    made_by: str | None = None


class SuspensionStep(Contract):
    """The run began to wait; nothing of it was held in memory."""

    type: Literal["suspension"] = "suspension"
    number: int
    status: RunStatus
    waiting_for: tuple[str, ...]
    """Names of the signals."""
    wake_at: Timestamp | None = None
    started_at: Timestamp


class ResumptionStep(Contract):
    """A process took the run on."""

    type: Literal["resumption"] = "resumption"
    number: int
    cause: ResumeCause
    epoch: int
    """How often a process has taken the run."""
    started_at: Timestamp


class SignalStep(Contract):
    """The run waited for a signal, or slept."""

    type: Literal["signal"] = "signal"
    name: str
    number: int
    status: SignalStatus
    payload: JsonObject | None = None
    made_by: str | None = None
    wake_at: Timestamp | None = None
    started_at: Timestamp


class LimitStep(Contract):
    """A limit ended or narrowed the run."""

    type: Literal["limit"] = "limit"
    limit: str
    """Field of `Limits`."""
    number: int
    value: float
    maximum: float
    message: str
    started_at: Timestamp


class ProgressStep(Contract):
    """Progress that the run's program reported."""

    type: Literal["progress"] = "progress"
    kind: str
    number: int
    data: Json = None
    started_at: Timestamp


Step: TypeAlias = Annotated[
    LLMStep
    | ToolStep
    | ApprovalStep
    | HandoffStep
    | SuspensionStep
    | ResumptionStep
    | SignalStep
    | LimitStep
    | ProgressStep,
    Field(discriminator="type"),
]


class Trace(Contract):
    """A run as a sequence of steps, with nested runs under the calls that started them."""

    run_id: str
    kind: RunKind
    tool: str
    """`name@version`."""
    mode: AgenticMode | None = None
    """Of an agentic tool, from its first model call; null before it."""
    task: str
    """What was asked: the task, or the input as JSON."""
    status: RunStatus
    stop_reason: StopReason | None = None
    started_at: Timestamp
    duration_ms: int
    """From the first to the last event."""
    active_ms: int
    """The same without waits for people, clients, timers and a new process."""
    cost: Usd | None = None
    """US dollars of all calls so far, nested runs included; null means unknown."""
    cost_unknown: bool = False
    """At least one model call, or a part of one, had no known price: `cost` is a lower bound."""
    cut_off: CostBounds | None = None
    """What calls may have cost that were cut off, which `cost` does not include."""
    tokens: int = 0
    """Input and output tokens so far, with those of nested runs."""
    usage: Usage = Usage()
    """Of the run's own model calls."""
    cost_breakdown: CostBreakdown = CostBreakdown.model_construct()
    """What each call cost, so far."""
    output: Json = None
    partial: Json = None
    """What was done until then by a run that did not complete, if anything."""
    error: ToolError | None = None
    warnings: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()

    def __repr__(self) -> str:
        """One line of bounded length."""
        return fields_in_short(
            "Trace", tool=self.tool, run_id=self.run_id, status=self.status, steps=len(self.steps), output=self.output
        )

    def _repr_html_(self) -> str:
        return html_table(f"{self.kind} {self.tool}", _facts(self), rows_of(self))

    def __rich__(self) -> object:
        """A tree for terminals."""
        return rich_tree(f"{self.kind} {self.tool}", _facts(self), rows_of(self))


_NAMES: Final = ("action", "name", "purpose", "limit", "cause")
_DETAILS: Final = ("result", "decision", "message")
_MOST_ROWS: Final = 200


def _facts(trace: Trace) -> list[tuple[str, object]]:
    """What there is to say of a whole run."""
    return [
        ("run", trace.run_id),
        ("status", trace.status if trace.stop_reason is None else f"{trace.status} ({trace.stop_reason})"),
        ("cost in US dollars", _cost(trace)),
        ("tokens", trace.tokens or None),
        ("milliseconds", trace.duration_ms),
        ("error", trace.error.message if trace.error else None),
        ("output", trace.output),
    ]


def rows_of(trace: Trace) -> list[DisplayRow]:
    """A line for each step, with the steps of nested runs below theirs; at most 200."""
    rows: list[DisplayRow] = []
    for row in _rows(trace, 0):
        if len(rows) == _MOST_ROWS:
            rows.append(DisplayRow(0, "…", "", "more steps: `toolcrib run trace`"))
            break
        rows.append(row)
    return rows


def _rows(trace: Trace, depth: int) -> Iterator[DisplayRow]:
    for step in trace.steps:
        if isinstance(step, ProgressStep):
            continue
        yield DisplayRow(depth, _title(step), str(getattr(step, "status", "") or ""), _detail(step))
        for nested in (getattr(step, "child", None), getattr(step, "fallback", None)):
            if nested is not None:
                yield from _rows(nested, depth + 1)


def _title(step: Step) -> str:
    name = next((str(getattr(step, field)) for field in _NAMES if getattr(step, field, None)), "")
    return clipped(f"{step.type.replace('_', ' ')} {name}")


def _detail(step: Step) -> str:
    failure: ToolError | None = getattr(step, "error", None)
    if failure is not None:
        return clipped(f"{failure.code}: {failure.message}")
    found = next((getattr(step, field) for field in _DETAILS if getattr(step, field, None) is not None), "")
    return short(found)


def _cost(trace: Trace) -> str | None:
    if trace.cost is None:
        return None
    return f"at least {trace.cost}" if trace.cost_unknown else str(trace.cost)
