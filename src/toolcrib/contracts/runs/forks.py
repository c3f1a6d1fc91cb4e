"""Forks: runs that continue from an event of another run, with or without changes.

A fork is part of a run's request, so any process can drive it. Comparisons of runs are in `comparisons`; what a fork
copies from the other run is in `recordings`.
"""

from typing import Final

from pydantic import Field

from toolcrib.contracts.base.base import Contract, JsonObject
from toolcrib.contracts.base.envelope import SideEffects
from toolcrib.contracts.specs.guardrails import Guardrail

FORKED: Final = "forked"
"""Key and kind of the `progress_made` event with what a fork knows from the start, and where the rest is stored."""


class PolicyChange(Contract):
    """Changed rules, with the field names of definitions. Null keeps a rule."""

    limits: JsonObject = Field(default_factory=dict)
    """Fields of `Limits`."""
    tools: tuple[str, ...] | None = None
    """Tools of an agent or an agentic tool: names, `name@range`, patterns or groups."""
    guardrails: tuple[Guardrail, ...] | None = None
    side_effects: SideEffects | None = None
    """The most that its calls may do."""
    requires_approval: bool | None = None


class ForkChanges(Contract):
    """Changes of the definition; another model, input or revision is part of the run's request itself."""

    prompt: str | None = None
    """In place of the system prompt of an agent or an agentic tool."""
    llm: JsonObject = Field(default_factory=dict)
    """Fields of `LLMConfig` that are different: `temperature`, `max_tokens`…"""
    policy: PolicyChange | None = None

    @property
    def are_none(self) -> bool:
        """Whether nothing is changed."""
        return self == ForkChanges()


class Fork(Contract):
    """The run that a run is a fork of."""

    run_id: str
    at: int = Field(ge=1)
    """Number of the last known event: what had ended by then is kept, what was open is not."""
    changes: ForkChanges = ForkChanges.model_construct()
    allow_writes: bool = False
    """Calls with side effects are made; otherwise they are skipped, as in a dry run."""
    anew: bool = False
    """Nothing after the event is reused from the recording, even if it is the same."""
