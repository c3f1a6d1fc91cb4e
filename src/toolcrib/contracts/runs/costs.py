"""What a run cost, call by call (000, section 4.7). A reading of its trace, which stores nothing of its own."""

from toolcrib.contracts.base.base import Contract, Usd
from toolcrib.contracts.runs.runs import Purpose


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


class ActionCost(Contract):
    """One tool call that has a price: of its own, or what the nested run behind it cost."""

    position: str
    action: str
    """The tool's name."""
    cost_usd: Usd


class CostBreakdown(Contract):
    """The parts add up to the total, where all of them are known."""

    total_cost_usd: Usd | None = None
    """Null means unknown."""
    total_tokens: int = 0
    """Input and output tokens of the run's own model calls."""
    llm_calls: tuple[LLMCost, ...] = ()
    action_calls: tuple[ActionCost, ...] = ()
