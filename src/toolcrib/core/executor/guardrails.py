"""What a run's guardrails make of a call: asked once its arguments are valid, and again of what it brings.

The decision is the guardrails'; here it meets the call: arguments are replaced, the call is denied, or its output is
withheld, which does not undo what the tool has done.
"""

from typing import cast

from toolcrib.contracts import ErrorCode, GuardDecision, Json, JsonObject, Reason, ToolError, ToolRevision
from toolcrib.core.executor.denial import denial
from toolcrib.core.executor.envelope import Receipt, error
from toolcrib.core.executor.ports import CallContext, CallFailed
from toolcrib.core.policy import GuardedCall, Guardrails, Screening, screen, strictest


def screen_arguments(context: CallContext, arguments: JsonObject) -> Screening:
    """The arguments as content filters let them pass.

    Raises:
        Denied: They do not.
    """
    screening = screen(context.policy.guardrails, "tool_input", arguments)
    if screening.decision is not None and not screening.passes:
        raise denial(screening.decision)
    return screening


def heed(
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


def screen_output(receipt: Receipt, output: Json, metadata: JsonObject) -> tuple[Json, JsonObject]:
    """What a tool brings, as content filters let it pass.

    Raises:
        CallFailed: They do not; the tool has run all the same.
    """
    screening = screen(receipt.context.policy.guardrails, "tool_output", [output, metadata])
    decision = screening.decision
    if decision is None:
        return output, metadata
    receipt.as_it_was = False
    if not screening.passes:
        raise CallFailed(_withheld(receipt, decision))
    passed, told = cast("list[Json]", screening.value)
    return passed, {**told, "content_filter": decision.inputs}


def screen_failure(receipt: Receipt, failure: CallFailed) -> None:
    """Let what a failed call says pass the content filters too."""
    said: JsonObject = {
        "message": failure.error.message,
        "details": failure.error.details,
        "metadata": failure.metadata,
    }
    screening = screen(receipt.context.policy.guardrails, "tool_output", said)
    decision = screening.decision
    if decision is None:
        return
    if screening.passes:
        passed = cast("JsonObject", screening.value)
        failure.metadata = passed.pop("metadata")
        failure.error = failure.error.model_copy(update=passed)
    else:
        failure.metadata = {}
        failure.error = _withheld(receipt, decision).model_copy(update={"code": failure.error.code})


def _withheld(receipt: Receipt, decision: GuardDecision) -> ToolError:
    message = f"tool {receipt.name!r} has run, and what it said is withheld: {decision.message}"
    facts = {"rule": decision.rule, "inputs": decision.inputs}
    return error(ErrorCode.POLICY_DENIED, decision.reason or Reason.CONTENT_BLOCKED, message, **facts)
