"""A run's trace: a reading of its journal as a tree of steps with reasoning, tokens, cost and time.

Source of the shape: 000, sections 3.4 and 10. A trace stores nothing; it can be read while the run goes on.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts import (
    CallStatus,
    Json,
    Purpose,
    RunEvent,
    ToolError,
    Usd,
)
from toolcrib.contracts._base import Contract


class LLMStep(Contract):
    """One model call."""

    type: Literal["llm_call"] = "llm_call"
    position: str
    number: int
    purpose: Purpose
    model: str
    reasoning: str | None = None
    text: str = ""
    tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Usd | None = None
    attempts: int = 1
    latency_ms: int = 0


class ToolStep(Contract):
    """One tool call."""

    type: Literal["tool_call"] = "tool_call"
    position: str
    number: int
    action: str
    status: CallStatus
    parameters: Json = None
    result: Json = None
    error: ToolError | None = None
    attempts: int = 0
    cached: bool = False
    cost: Usd | None = None
    latency_ms: int = 0


Step: TypeAlias = Annotated[LLMStep | ToolStep, Field(discriminator="type")]


class Trace(Contract):
    """A run as a tree of steps."""

    run_id: str
    steps: tuple[Step, ...] = ()


def trace_of(events: Sequence[RunEvent], children: Mapping[str, "Trace"] | None = None) -> Trace:
    """Read the trace out of a run's events."""
    raise NotImplementedError
