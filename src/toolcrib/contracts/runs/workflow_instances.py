"""The state of a workflow instance, step by step, derived from its journal; and what it reuses of an earlier instance.

What a rerun reuses is read once and stored as a blob of the new run, so that the run can be replayed and resumed even
if the earlier one is deleted.
"""

from typing import Final, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Json, JsonObject, JsonSchema, Timestamp, Usd
from toolcrib.contracts.base.envelope import ToolEnvelope
from toolcrib.contracts.base.errors import ErrorCode, ToolError
from toolcrib.contracts.runs.events import CallStarted
from toolcrib.contracts.runs.runs import Rerun, RunStatus, StopReason

StepStatus: TypeAlias = Literal["pending", "running", "waiting", "succeeded", "partial", "failed", "skipped", "cut_off"]
"""partial: some elements of a `for_each` failed. skipped: its condition is false, or no step went to it.
cut_off: a step that it depends on did not succeed, or the run ended before it."""

STEP_SETTLED: Final = "step_settled"
"""Kind of the `progress_made` event that records the end of a step; its data is a `SettledStep`."""

STEP_KEY: Final = "step:"
"""Begins the key of that event; the name of the step follows."""


MAX_ITEM_ERRORS: Final = 100
"""Maximum number of errors of elements that are stored; further ones are counted."""


class ItemError(Contract):
    """Why an element of a `for_each` has failed, in short."""

    index: int
    code: ErrorCode
    message: str


class SettledStep(Contract):
    """How a step has ended, from the journal. The output of a call is in the call's event, not here."""

    step: str
    status: StepStatus
    reason: str | None = None
    """Why it was skipped or cut off."""
    positions: tuple[str, ...] = ()
    """Of the calls whose outputs are its own: one, or of a `for_each` those of elements that were tried again. All
    others stand at `NAME[i]`, and are as many as `items`."""
    items: int | None = None
    """Elements of its `for_each`."""
    failed: int = 0
    """Elements that have failed."""
    errors: tuple[ItemError, ...] = ()
    """Of these, the first hundred."""
    tries: int = 1
    """Of its call, or the most of those of its elements."""
    agent_runs: tuple[str | None, ...] = ()
    """Of an agent's node: ids of the runs of the agent, which have its calls. One, or of a `for_each` one for each
    element, null where there is none."""
    output: Json = None
    """Given if no call has put it out."""
    error: ToolError | None = None
    reused: str | None = None
    """Id of the run whose result is reused."""

    @property
    def ok(self) -> bool:
        """Whether it has an output, complete or partial."""
        return self.status in {"succeeded", "partial"}


class StepWait(Contract):
    """What a step waits for."""

    whom: Literal["approval", "client", "signal", "time"]
    name: str
    """Id of the approval in the inbox, position of the call that a client has, name of the signal, or of the wait."""
    run_id: str
    """The run that waits: the workflow's, or one that is nested in it."""
    until: Timestamp | None = None
    """When the wait is over whatever happens; null for never."""


class StepInstance(SettledStep):
    """The current state of a step."""

    title: str | None = None
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None
    waits_for: tuple[StepWait, ...] = ()
    child_run_ids: tuple[str, ...] = ()
    """Runs that are nested in it, in the order in which they began."""


class InstanceSummary(Contract):
    """A run of a workflow in a list."""

    run_id: str
    workflow: str
    """`name@version`."""
    content_hash: str
    status: RunStatus
    stop_reason: StopReason | None = None
    error: ToolError | None = None
    warnings: tuple[str, ...] = ()
    rerun: Rerun | None = None
    """The run that it continues, if any."""
    parent_run_id: str | None = None
    """The run that called it; null if it is not nested."""
    dry_run: bool = False
    cost_usd: Usd | None = None
    """US dollars, with those of nested runs; null means unknown."""
    cost_unknown: bool = False
    """`cost_usd` is a lower bound."""
    made_by: str
    created_at: Timestamp
    updated_at: Timestamp


class WorkflowInstance(InstanceSummary):
    """The current state of a run of a workflow."""

    input: JsonObject = Field(default_factory=dict)
    output: Json = None
    partial: Json = None
    """What was done until then by a run that did not complete, if anything."""
    steps: tuple[StepInstance, ...] = ()
    """All of them, in the order of the definition."""
    taken_up_by: tuple[str, ...] = ()
    """Ids of the runs that continue it, in the order in which they started."""
    tokens: int = 0
    """Input and output tokens, with those of nested runs."""


class InstancePage(Contract):
    """Runs of workflows, newest first."""

    items: tuple[InstanceSummary, ...] = ()
    next: str | None = None
    """`before` of the next page; null if there is none."""


TAKEN_UP: Final = "taken_up"
"""Key and kind of the `progress_made` event that names the text."""


class EarlierCall(Contract):
    """A call of the run that is continued."""

    envelope: ToolEnvelope
    asked: Json = None
    """Its arguments with the tool's defaults, before a person may have edited them."""
    intent: CallStarted | None = None
    """Null if it never came to that."""
    child_run_id: str | None = None
    """Its nested run, if it was a workflow's and the call has failed."""


class Takeover(Contract):
    """What is reused of the run that is continued."""

    run_id: str
    tainted: bool = False
    """It had read what outsiders can write."""
    steps: dict[str, SettledStep] = Field(default_factory=dict)
    """The steps that are not run again, by name, with their outputs."""
    calls: dict[str, EarlierCall] = Field(default_factory=dict)
    """Calls of the others, by position."""
    schemas: dict[str, JsonSchema] = Field(default_factory=dict)
    """Input schemas of the tools that were called, by content hash."""
    changed: tuple[str, ...] = ()
    """Those of `steps` whose definition is another one now."""
