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
"""Key and kind of the `progress_made` event that tells what a fork knows from the start, and where the rest is kept."""


class PolicyChange(Contract):
    """Rules that are different, with the names that definitions have for them. What is null stays as it is."""

    limits: JsonObject = Field(default_factory=dict)
    """Fields of `Limits`."""
    tools: tuple[str, ...] | None = None
    """Tools of an agent or an agentic tool: names, `name@range`, patterns or groups."""
    guardrails: tuple[Guardrail, ...] | None = None
    side_effects: SideEffects | None = None
    """The most that its calls may do."""
    requires_approval: bool | None = None


class ForkChanges(Contract):
    """What is different about the definition; another model, input or revision stands in the run's request itself."""

    prompt: str | None = None
    """In place of the system prompt of an agent or an agentic tool."""
    llm: JsonObject = Field(default_factory=dict)
    """Fields of `LLMConfig` that are different: `temperature`, `max_tokens`…"""
    policy: PolicyChange | None = None

    @property
    def are_none(self) -> bool:
        """Whether there are none."""
        return self == ForkChanges()


class Fork(Contract):
    """The run that a run is a fork of."""

    run_id: str
    at: int = Field(ge=1)
    """Number of the last event that is known: what had come to its end by then is so, what was open is not done."""
    changes: ForkChanges = ForkChanges()
    allow_writes: bool = False
    """Calls with side effects are made; else they are skipped, as in a dry run."""
    anew: bool = False
    """Nothing after the event comes from the recording, also what is the same."""
