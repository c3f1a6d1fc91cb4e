"""Authoring of agentic tools: proposals of texts, the history of a prompt, the test of a prompt.

A proposal is a value: nothing is stored until it is accepted; then it becomes a new revision.
"""

from typing import Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Json, JsonObject, Timestamp, Usd
from toolcrib.contracts.specs.agents import AgenticMode
from toolcrib.contracts.specs.models_and_limits import Usage

ProposedText: TypeAlias = Literal["system_prompt", "long_description"]
ProposalSource: TypeAlias = Literal["generator", "model"]


class TextProposal(Contract):
    """A new text for a tool, to be accepted or thrown away."""

    tool: str
    """The tool's name."""
    revision: int
    """The revision that the text was made for; it can be accepted while that is the current one."""
    text: ProposedText
    """The field that it replaces."""
    source: ProposalSource
    """Made by rule, or by the tool's own model."""
    current: str
    proposed: str
    diff: str
    """Unified diff from `current` to `proposed`; empty if they are equal."""
    reason: str
    """Why the text should change: what has changed since, or what the model says."""
    usage: Usage = Usage()
    """What the model used; nothing for a text made by rule."""
    cost_usd: Usd | None = None
    """Null means unknown."""


class PromptRevision(Contract):
    """The system prompt as one revision of the tool had it."""

    revision: int
    version: str
    content_hash: str
    made_by: str
    created_at: Timestamp
    current: bool
    """Whether a call without a version gets it."""
    changed: bool
    """Whether the prompt differs from that of the revision before."""
    system_prompt: str


class PromptDifference(Contract):
    """How the prompt of one revision became that of another."""

    tool: str
    older: int
    newer: int
    diff: str
    """Unified diff; empty if they are equal."""


class TrialCall(Contract):
    """A tool call that the model requested in a prompt's test. It was not made."""

    step: str | None = None
    """The step of a fixed sequence; null where the model chose."""
    tool: str
    input: Json = None
    skipped: bool = False
    """The model found the step unnecessary."""
    for_each: str | None = None
    """The list of an earlier step that the call would have been repeated for."""


class PromptTest(Contract):
    """The test of a system prompt with a sample input: the request to the model, and its first calls."""

    tool: str
    mode: AgenticMode
    model: str
    input: JsonObject
    system_prompt: str | None
    """As the model sees it, with schemas and reference data; null if it could not be made."""
    answer: Json = None
    """The plan of a fixed sequence, else the model's words; null if there is none."""
    reasoning: str | None = None
    calls: tuple[TrialCall, ...] = ()
    problems: tuple[str, ...] = ()
    """What would go wrong: unknown placeholders, arguments that do not fit, drift, the model's failure."""
    usage: Usage = Usage()
    cost_usd: Usd | None = None
    """Null means unknown."""
    duration_ms: int = Field(default=0, ge=0)

    @property
    def ok(self) -> bool:
        """Whether nothing would go wrong."""
        return not self.problems
