"""What model calls used, in the words of the contracts and in those of the model layer."""

from decimal import Decimal

from toolcrib.contracts import GuardDecision, Usage
from toolcrib.llm import Usage as ModelUsage


def as_contract(usage: ModelUsage) -> Usage:
    """The model layer's token counts as the contract shows them."""
    return Usage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        reasoning_tokens=usage.reasoning,
        estimated=usage.estimated,
    )


def model_usage(usage: Usage) -> ModelUsage:
    """The contract's token counts as the model layer has them."""
    return ModelUsage(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cache_read=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
        reasoning=usage.reasoning_tokens,
        estimated=usage.estimated,
    )


def at_most(decision: GuardDecision | None) -> tuple[ModelUsage, Decimal | None]:
    """What a call was allowed to use at most, by the record of the decision: nothing, where older releases had none."""
    facts = decision.inputs if decision is not None else {}
    cost = facts.get("cost_usd")
    usage = ModelUsage(input=facts.get("input_tokens", 0), output=facts.get("output_tokens", 0), estimated=True)
    return usage, None if cost is None else Decimal(str(cost))
