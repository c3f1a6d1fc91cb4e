"""Guardrails: rules of an agent beyond permissions, as data. They apply to nested runs too.

The guard evaluates them before each model request and each tool call; the decision is an event with its inputs.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, JsonObject, Usd
from toolcrib.contracts.base.envelope import SideEffects

FilterAction: TypeAlias = Literal["block", "redact"]
Filtered: TypeAlias = Literal["model_input", "model_output", "tool_input", "tool_output"]
PersonalData: TypeAlias = Literal["email", "phone", "card", "iban", "ssn", "ip"]


class MaxCost(Contract):
    """What a run and its nested runs may cost in all. With `Limits.max_cost_usd` the smaller of the two holds."""

    type: Literal["max_cost"] = "max_cost"
    usd: Usd = Field(ge=0)
    deny_unpriced: bool = False
    """No model is asked whose price is unknown when a run asks it; else only its tokens are limited. When a definition
    with this rule is saved, such a model is refused unless `Limits.allow_unpriced` allows it."""


class NoDelete(Contract):
    """Refuses every tool that deletes: what its definition or its operation says, never its name."""

    type: Literal["no_delete"] = "no_delete"
    undeclared: Literal["allow", "confirm", "deny"] = "confirm"
    """What becomes of a call that writes, if nothing says whether its tool deletes."""


class RequireConfirmation(Contract):
    """Calls wait for a person."""

    type: Literal["require_confirmation"] = "require_confirmation"
    tools: tuple[str, ...] = ("*",)
    """Names, or patterns of names. A tool that calls others is asked for under its whole name only: by a pattern, the
    calls that it makes are."""
    side_effects: SideEffects = "writes"
    """Calls of tools that do at least this."""
    expires_s: float | None = Field(default=None, gt=0, le=31_536_000)
    """Seconds after which a call without a decision is denied; null for never."""


class ContentFilter(Contract):
    """Texts and kinds of data that may not pass."""

    type: Literal["content_filter"] = "content_filter"
    applies_to: tuple[Filtered, ...] = ("model_input", "model_output", "tool_input", "tool_output")
    words: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = Field(default=(), max_length=1000)
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
