"""A run's cost, call by call: a reading of the steps of its trace. Pure; it prices nothing itself."""

from collections.abc import Sequence
from decimal import Decimal

from toolcrib.contracts import ActionCost, CostBreakdown, LLMCost, LLMStep, Step, ToolStep


def costs_of(steps: Sequence[Step], *, total_usd: Decimal | None, tokens: int) -> CostBreakdown:
    """What each call cost.

    Args:
        steps: Of the run itself; a nested run is one action here, and has its own trace.
        total_usd: What the run cost in all; null means unknown.
        tokens: Input and output tokens in all.
    """
    return CostBreakdown(
        total_cost_usd=total_usd,
        total_tokens=tokens,
        llm_calls=tuple(
            LLMCost(
                position=step.position,
                purpose=step.purpose,
                model=step.model,
                input_tokens=step.input_tokens,
                output_tokens=step.output_tokens,
                cost_usd=step.cost,
            )
            for step in steps
            if isinstance(step, LLMStep) and step.status == "success"
        ),
        action_calls=tuple(
            ActionCost(position=step.position, action=step.action, cost_usd=step.cost)
            for step in steps
            if isinstance(step, ToolStep) and step.cost is not None
        ),
    )
