"""Applies a run's guardrails and caps to one call.

Guardrails are checked when the arguments are valid, and again on the output: they replace arguments, deny the call, or
withhold the output of a tool that has run. Caps are reserved before a call and settled afterwards. Skipped and cached
calls cost nothing, and a resumed run of an agent or workflow is not counted again.
"""

from decimal import Decimal
from typing import cast

from toolcrib.contracts import (
    DELEGATES,
    ErrorCode,
    GuardDecision,
    Json,
    JsonObject,
    Reason,
    ToolDefinition,
    ToolError,
    ToolRevision,
)
from toolcrib.core.executor.envelope import Denied, EnvelopeBuilder, denial, error
from toolcrib.core.executor.ports import CallContext, CallFailed
from toolcrib.core.policy import (
    BUDGET,
    Caps,
    GuardedCall,
    Guardrails,
    Screening,
    Shortage,
    Spend,
    Spender,
    names_of,
    screen,
    strictest,
)


def screen_arguments(context: CallContext, arguments: JsonObject) -> Screening:
    """The arguments as content filters let them pass.

    Raises:
        Denied: They do not.
    """
    screening = screen(context.policy.guardrails, "tool_input", arguments)
    if screening.decision is not None and not screening.passes:
        raise denial(screening.decision)
    return screening


def apply_guardrails(
    guardrails: Guardrails,
    context: CallContext,
    tool: ToolRevision,
    arguments: JsonObject,
    *decisions: GuardDecision | None,
) -> GuardDecision:
    """The guard's decision together with that of the guardrails, with the facts of both.

    Args:
        guardrails: Asked.
        context: The run that calls.
        tool: The revision that would run.
        arguments: Valid.
        *decisions: What was decided before, of which the first is the guard's.

    Raises:
        Denied: A guardrail forbids the call.
    """
    guarded = GuardedCall(tool, arguments, context.principal.realm, context.principal.id, context.tainted_by)
    found = [
        decision
        for decision in (*decisions, guardrails.judge(context.policy.guardrails, guarded))
        if decision is not None
    ]
    leading = cast("GuardDecision", strictest(found))
    facts = {name: value for decision in found for name, value in decision.inputs.items()}
    decision = leading.model_copy(update={"inputs": facts})
    if decision.outcome == "deny":
        raise denial(decision)
    return decision


def screen_output(builder: EnvelopeBuilder, output: Json, metadata: JsonObject) -> tuple[Json, JsonObject]:
    """What a tool brings, as content filters let it pass.

    Raises:
        CallFailed: They do not; the tool has run all the same.
    """
    screening = screen(builder.context.policy.guardrails, "tool_output", [output, metadata])
    decision = screening.decision
    if decision is None:
        return output, metadata
    builder.as_it_was = False
    if not screening.passes:
        raise CallFailed(_withheld(builder, decision))
    passed, facts = cast("list[Json]", screening.value)
    return passed, {**facts, "content_filter": decision.inputs}


def screen_failure(builder: EnvelopeBuilder, failure: CallFailed) -> None:
    """Let what a failed call says pass the content filters too."""
    content: JsonObject = {
        "message": failure.error.message,
        "details": failure.error.details,
        "metadata": failure.metadata,
        "partial": failure.partial,
    }
    screening = screen(builder.context.policy.guardrails, "tool_output", content)
    decision = screening.decision
    if decision is None:
        return
    if screening.passes:
        passed = cast("JsonObject", screening.value)
        failure.metadata, failure.partial = passed.pop("metadata"), passed.pop("partial")
        failure.error = failure.error.model_copy(update=passed)
    else:
        failure.metadata, failure.partial = {}, None
        failure.error = _withheld(builder, decision).model_copy(update={"code": failure.error.code})


def _withheld(builder: EnvelopeBuilder, decision: GuardDecision) -> ToolError:
    message = f"tool {builder.name!r} has run, and what it said is withheld: {decision.message}"
    facts = {"rule": decision.rule, "inputs": decision.inputs}
    return error(ErrorCode.POLICY_DENIED, decision.reason or Reason.CONTENT_BLOCKED, message, **facts)


async def reserve(
    caps: Caps | None, builder: EnvelopeBuilder, tool: ToolRevision, decision: GuardDecision
) -> GuardDecision:
    """Reserve what a call may spend at most; the decision has what was spent before.

    Raises:
        Denied: A cap does not allow it.
    """
    context, definition = builder.context, tool.definition
    again = context.attempt > 1 and definition.implementation.kind in DELEGATES
    if caps is None or context.starter is None or again:
        return decision
    spender = Spender(context.principal.realm, context.starter, names_of(context.callers.values()))
    most = Spend(calls=1, usd=_price(definition))
    reservation = await caps.reserve(spender, f"{context.run_id}/{builder.call.position}", most, tool=definition.name)
    if isinstance(reservation, Shortage):
        raise _shortage_denial(reservation, decision)
    builder.capped = reservation
    return (
        decision.model_copy(update={"inputs": {**decision.inputs, **reservation.facts}})
        if reservation.facts
        else decision
    )


async def settle(
    caps: Caps | None, builder: EnvelopeBuilder, definition: ToolDefinition, *, made: bool, paid: bool
) -> None:
    """Count what a call has spent, whose own word of it may come later.

    Args:
        caps: What is asked, if anything is.
        builder: Knows what was reserved.
        definition: Has the price.
        made: Whether it was dispatched at all.
        paid: Whether its price is due.
    """
    if caps is not None and builder.capped is not None:
        price = _price(definition) if made and paid else None
        await caps.settle(builder.capped, Spend(calls=int(made), usd=price))


async def add(caps: Caps | None, builder: EnvelopeBuilder, definition: ToolDefinition, cost: Decimal | None) -> None:
    """Count what a call says that it cost, in the place of its price."""
    if caps is not None and builder.capped is not None and cost is not None:
        await caps.settle(builder.capped, Spend(usd=cost - (definition.cost_usd_per_call or Decimal(0))))


def _price(definition: ToolDefinition) -> Decimal | None:
    """What a call costs; 0 if it will say so itself."""
    if definition.cost_usd_per_call is None and definition.cost_from is not None:
        return Decimal(0)
    return definition.cost_usd_per_call


def _shortage_denial(shortage: Shortage, decision: GuardDecision) -> Denied:
    inputs = {**decision.inputs, "value": shortage.value, "maximum": shortage.maximum}
    denied = denial(
        GuardDecision(outcome="deny", rule=BUDGET, reason=shortage.reason, message=shortage.message, inputs=inputs)
    )
    denied.error = denied.error.model_copy(update={"retry_after_s": shortage.free_in_s})
    return denied
