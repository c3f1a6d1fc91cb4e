"""The messages that a subscriber receives while a run is active. Each has the number of the event that it refers to.

Deltas are not events of the journal: they have the number of their `model_started` event and an offset into the text.
A new number at a position restarts the text: the attempt before has failed, and its text is discarded. What a tool
yields has the number of its `call_started`.
"""

import re
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Json, Timestamp
from toolcrib.contracts.base.envelope import ToolEnvelope
from toolcrib.contracts.base.errors import ToolError
from toolcrib.contracts.runs.runs import Purpose, RunResult
from toolcrib.contracts.runs.workflow_instances import StepStatus

_TURN: Final = re.compile(r"t([1-9][0-9]*)\.(?:llm|c[0-9]+)(?![^.])")


def iteration_of(position: str) -> int | None:
    """The model's turn that a position is of; null for a position outside of turns."""
    found = _TURN.match(position)
    return None if found is None else int(found[1])


class _OfTurn(Contract):
    """What a model says or does in one of its turns."""

    iteration: int | None = None
    """The turn of the model that it is of, from 1; null for what is of none, such as a plan or a step."""


class ThinkingDelta(_OfTurn):
    """A piece of the model's reasoning."""

    type: Literal["thinking"] = "thinking"
    number: int
    position: str
    """Of the model call in the run."""
    purpose: Purpose
    """Why the model was called; what it says to plan or to format is JSON."""
    offset: int
    """Characters (code points) of this call that came before."""
    text: str


class TextDelta(_OfTurn):
    """A piece of the model's text."""

    type: Literal["text_delta"] = "text_delta"
    number: int
    position: str
    """Of the model call in the run."""
    purpose: Purpose
    """Why the model was called; what it says to plan or to format is JSON."""
    offset: int
    """Characters (code points) of this call that came before."""
    text: str


class ToolCallStart(_OfTurn):
    """A call is dispatched."""

    type: Literal["tool_call_start"] = "tool_call_start"
    number: int
    position: str
    call_id: str
    name: str
    input: Json


class ToolOutput(_OfTurn):
    """A piece of the output of a call whose tool yields it: what a generator yields, while it runs.

    The pieces of the greatest `number`, and of its greatest `attempt`, are those that count. They add up to the output
    in the call's envelope, unless that has failed or is truncated.
    """

    type: Literal["tool_output"] = "tool_output"
    number: int
    position: str
    call_id: str
    attempt: int
    """Of the call; the pieces of the next one begin at 0 again."""
    offset: int
    """Characters (code points) of the text, or elements of the list, that came before."""
    text: str | None = None
    """What follows of a text; null if the output is a list."""
    items: list[Json] | None = None
    """What follows of a list; null if the output is a text."""


class ToolProgress(_OfTurn):
    """How far a call has come, as its function has told by `ToolContext.progress`. Only the newest is sent."""

    type: Literal["progress"] = "progress"
    number: int
    position: str
    call_id: str
    name: str
    done: float
    total: float | None = None
    """Null if it is unknown."""
    message: str = ""


LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
"""How grave a message of a tool is."""


class ToolLog(_OfTurn):
    """A message of a function about its call, by `ToolContext.log`. It is not journaled."""

    type: Literal["log"] = "log"
    number: int
    position: str
    call_id: str
    name: str
    level: LogLevel
    message: str


class ToolCallEnd(_OfTurn):
    """A call has its envelope."""

    type: Literal["tool_call_end"] = "tool_call_end"
    number: int
    envelope: ToolEnvelope


class ToolCallInDoubt(_OfTurn):
    """A call failed with an unknown outcome, and a person is asked whether it took effect; its envelope follows."""

    type: Literal["tool_call_in_doubt"] = "tool_call_in_doubt"
    number: int
    position: str
    call_id: str
    name: str
    error: ToolError


class ApprovalPending(_OfTurn):
    """The run waits for a person."""

    type: Literal["approval_requested"] = "approval_requested"
    number: int
    position: str
    approval_id: str
    """What the person decides on."""
    name: str
    input: Json
    expires_at: Timestamp | None = None


class HandoffPending(_OfTurn):
    """The run waits for a client."""

    type: Literal["client_handoff"] = "client_handoff"
    number: int
    envelope: ToolEnvelope


class StepEnded(Contract):
    """A step of a workflow has ended. The outputs of its calls were sent with the calls."""

    type: Literal["step"] = "step"
    number: int
    step: str
    status: StepStatus
    reason: str | None = None
    """Why it was skipped or cut off."""
    items: int | None = None
    """Elements of its `for_each`."""
    failed: int = 0
    """Elements that have failed."""
    error: ToolError | None = None
    reused: str | None = None
    """Id of the run whose result is reused."""


class StreamDone(Contract):
    """The run has completed or waits."""

    type: Literal["done"] = "done"
    number: int
    result: RunResult


class StreamFailed(Contract):
    """The run has ended without completing."""

    type: Literal["error"] = "error"
    number: int
    error: ToolError
    result: RunResult


StreamEvent: TypeAlias = Annotated[
    ThinkingDelta
    | TextDelta
    | ToolCallStart
    | ToolOutput
    | ToolProgress
    | ToolLog
    | ToolCallEnd
    | ToolCallInDoubt
    | ApprovalPending
    | HandoffPending
    | StepEnded
    | StreamDone
    | StreamFailed,
    Field(discriminator="type"),
]
