"""Caps on what many runs spend, asked for one call: reserved before it is dispatched, settled after.

A call that is skipped, or served from the cache, costs nothing. A run of an agent or a workflow that is taken up again
is no new call: it was counted when it began.
"""

from decimal import Decimal

from toolcrib.contracts import DELEGATES, GuardDecision, ToolDefinition, ToolRevision
from toolcrib.core.executor.denial import Denied, denial
from toolcrib.core.executor.envelope import Receipt
from toolcrib.core.policy import BUDGET, Caps, Shortage, Spend, Spender, names_of


async def reserve(caps: Caps | None, receipt: Receipt, tool: ToolRevision, decision: GuardDecision) -> GuardDecision:
    """Reserve what a call may spend at most; the decision has what was spent before.

    Raises:
        Denied: A cap does not allow it.
    """
    context, definition = receipt.context, tool.definition
    again = context.attempt > 1 and definition.implementation.kind in DELEGATES
    if caps is None or context.starter is None or again:
        return decision
    spender = Spender(context.principal.realm, context.starter, names_of(context.callers.values()))
    most = Spend(calls=1, usd=_price(definition))
    taken = await caps.reserve(spender, f"{context.run_id}/{receipt.call.position}", most, tool=definition.name)
    if isinstance(taken, Shortage):
        raise _refused(taken, decision)
    receipt.capped = taken
    return decision.model_copy(update={"inputs": {**decision.inputs, **taken.facts}}) if taken.facts else decision


async def settle(caps: Caps | None, receipt: Receipt, definition: ToolDefinition, *, made: bool, paid: bool) -> None:
    """Count what a call has spent, whose own word of it may come later.

    Args:
        caps: What is asked, if anything is.
        receipt: Knows what was reserved.
        definition: Has the price.
        made: Whether it was dispatched at all.
        paid: Whether its price is due.
    """
    if caps is not None and receipt.capped is not None:
        price = _price(definition) if made and paid else None
        await caps.settle(receipt.capped, Spend(calls=int(made), usd=price))


async def add(caps: Caps | None, receipt: Receipt, definition: ToolDefinition, told: Decimal | None) -> None:
    """Count what a call says that it cost, in the place of its price."""
    if caps is not None and receipt.capped is not None and told is not None:
        await caps.settle(receipt.capped, Spend(usd=told - (definition.cost_usd_per_call or Decimal(0))))


def _price(definition: ToolDefinition) -> Decimal | None:
    """What a call costs; 0 if it will say so itself."""
    if definition.cost_usd_per_call is None and definition.cost_from is not None:
        return Decimal(0)
    return definition.cost_usd_per_call


def _refused(shortage: Shortage, decision: GuardDecision) -> Denied:
    inputs = {**decision.inputs, "value": shortage.value, "maximum": shortage.maximum}
    denied = denial(
        GuardDecision(outcome="deny", rule=BUDGET, reason=shortage.reason, message=shortage.message, inputs=inputs)
    )
    denied.error = denied.error.model_copy(update={"retry_after_s": shortage.free_in_s})
    return denied
