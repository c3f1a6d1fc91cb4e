"""Guardrails: rules of an agent beyond permissions, as data (004, guardrails). They bind nested runs too.

The policy guard asks them before every model call and every tool call; a decision is an event with its inputs.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts._base import Contract, JsonObject, Usd
from toolcrib.contracts.envelope import SideEffects

FilterAction: TypeAlias = Literal["block", "redact"]
Filtered: TypeAlias = Literal["model_input", "model_output", "tool_input", "tool_output"]
PersonalData: TypeAlias = Literal["email", "phone", "card", "iban", "ssn", "ip"]


class MaxCost(Contract):
    """What a run and its nested runs may cost in all; beside `Limits.max_cost_usd`, which is the run's own."""

    type: Literal["max_cost"] = "max_cost"
    usd: Usd = Field(ge=0)


class NoDelete(Contract):
    """Refuses every tool that deletes."""

    type: Literal["no_delete"] = "no_delete"


class RequireConfirmation(Contract):
    """Calls wait for a person."""

    type: Literal["require_confirmation"] = "require_confirmation"
    tools: tuple[str, ...] = ("*",)
    """Names, or patterns of names."""
    side_effects: SideEffects = "writes"
    """Calls of tools that do at least this."""
    expires_s: float | None = Field(default=None, gt=0, le=31_536_000)
    """Seconds after which a call that nobody decided is denied; null for never."""


class ContentFilter(Contract):
    """Texts and kinds of data that may not pass."""

    type: Literal["content_filter"] = "content_filter"
    applies_to: tuple[Filtered, ...] = ("model_input", "model_output", "tool_input", "tool_output")
    words: tuple[str, ...] = ()
    """Whole words or phrases, in any case."""
    personal_data: tuple[PersonalData, ...] = ()
    """Kinds of personal data, as their own detectors find them."""
    action: FilterAction = "block"


class RealmBoundary(Contract):
    """The run reaches data of these realms only."""

    type: Literal["realm_boundary"] = "realm_boundary"
    realms: tuple[str, ...] = ()
    """Empty for the realm of the run."""


class UntrustedContent(Contract):
    """Once a run has read what outsiders can write, calls that do at least this wait for a person, or are denied."""

    type: Literal["untrusted_content"] = "untrusted_content"
    side_effects: SideEffects = "writes"
    action: Literal["confirm", "deny"] = "confirm"


class CustomGuardrail(Contract):
    """A rule of another package, by the entry point that the operator has released (`toolcrib.guardrails`)."""

    type: Literal["custom"] = "custom"
    name: str = Field(min_length=1)
    parameters: JsonObject = Field(default_factory=dict)


Guardrail: TypeAlias = Annotated[
    MaxCost | NoDelete | RequireConfirmation | ContentFilter | RealmBoundary | UntrustedContent | CustomGuardrail,
    Field(discriminator="type"),
]
