"""Comparisons: how two runs differ (ends, costs, calls, results, decisions), and where a replay diverged."""

from typing import Literal, TypeAlias

from toolcrib.contracts.base.base import Contract, Json, Usd
from toolcrib.contracts.base.envelope import ToolEnvelope
from toolcrib.contracts.runs.forks import Fork
from toolcrib.contracts.runs.runs import RunStatus, StopReason

CallChange: TypeAlias = Literal["only_before", "only_after", "tool", "arguments", "outcome"]
"""only_before, only_after: one of the runs has no call there. tool: another tool, or another revision of it.
arguments: the same tool was called with others. outcome: the same call came to another end."""
DecisionKind: TypeAlias = Literal["guard", "approval", "model_guard"]


class RunFacts(Contract):
    """One of the runs in numbers."""

    run_id: str
    tool: str
    """`name@version`."""
    content_hash: str
    status: RunStatus
    stop_reason: StopReason | None = None
    models: tuple[str, ...] = ()
    """Those that were asked, in order, each once."""
    model_calls: int = 0
    tool_calls: int = 0
    taken: int = 0
    """Calls and answers that it has taken from the run that it is a fork of."""
    tokens: int = 0
    """What it has used itself, as the next; what it has taken was used by another run."""
    cost_usd: Usd | None = None
    cost_unknown: bool = False
    seconds: float = 0.0
    """In which it was worked on."""
    fork: Fork | None = None


class ValueDiff(Contract):
    """A place in two JSON values at which they differ."""

    path: str
    """JSON pointer (RFC 6901); empty for the whole."""
    before: Json = None
    after: Json = None


class CallDiff(Contract):
    """A call that is not the same in both runs."""

    position: str
    change: CallChange
    before: str | None = None
    """`name@version`; null if there was no such call, as the next."""
    after: str | None = None
    arguments: tuple[ValueDiff, ...] = ()
    output: tuple[ValueDiff, ...] = ()
    statuses: tuple[str | None, str | None] = (None, None)
    """Before and after."""


class AnswerDiff(Contract):
    """An answer of a model that is not the same in both runs."""

    position: str
    before: str | None = None
    """Its answer, with the calls that it requested; null if it was not asked; also the next field."""
    after: str | None = None


class DecisionDiff(Contract):
    """A decision that is not the same in both runs."""

    position: str
    kind: DecisionKind
    before: str | None = None
    """In words, such as `allow`, or `deny (allow_list)`; null if there was no decision; also the next field."""
    after: str | None = None


class Parting(Contract):
    """The first thing that is not the same in both runs."""

    position: str | None = None
    """Of the call or the answer; null for the end."""
    before: int | None = None
    """Number of the event; null if that run has none, as the next."""
    after: int | None = None


class RunDiff(Contract):
    """Two runs side by side."""

    before: RunFacts
    after: RunFacts
    parting: Parting | None = None
    """Null if they went the same way to the same end."""
    input: tuple[ValueDiff, ...] = ()
    """Of what they were asked."""
    output: tuple[ValueDiff, ...] = ()
    calls: tuple[CallDiff, ...] = ()
    answers: tuple[AnswerDiff, ...] = ()
    decisions: tuple[DecisionDiff, ...] = ()


class Divergence(Contract):
    """The first difference between an event that the code made and the recorded one."""

    run_id: str
    event: int
    """Number of the recorded event that it was compared with, or the next one if there is no counterpart."""
    field: str
    """What differs, as `t1.c2.input.company` or `output`; an event that only one side has is named as a whole, with
    the other side null: `call_started t1.c2`."""
    expected: Json = None
    """As recorded."""
    got: Json = None


class Replay(Contract):
    """A run that was executed again on its recording alone."""

    run_id: str
    tool: str
    """`name@version` of the tool that the run executes."""
    same: bool
    """The code made the same events, in all nested runs too."""
    divergence: Divergence | None = None
    """The first one: of this run, else of a nested one."""
    status: RunStatus
    """Of the recorded run, like the next two; its current state if it has not ended."""
    stop_reason: StopReason | None = None
    output: Json = None
    partial: Json = None
    """What was done until then by a run that did not complete, if anything."""
    envelopes: tuple[ToolEnvelope, ...] = ()
    """Of the calls of the program, in the order in which they started."""
    model_calls: int = 0
    """Model calls that were answered, or have failed."""
    events: int = 0
    """Events of this run that were made again."""
    digest: str = ""
    """Hash of what was made again, nested runs included; the next one of what was recorded."""
    recorded_digest: str = ""
    nested: tuple["Replay", ...] = ()
