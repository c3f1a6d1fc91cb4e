"""The fallback of a failed tool, as its error handling says; and the rules of nested runs, of which a fallback is one.

A nested run must not be too deep nor call a tool that is running above it, and tells its caller what it used. A
fallback is one call with the same arguments in a nested run. There is no fallback after a write with an unknown
outcome, because both might take effect.
"""

from decimal import Decimal

from toolcrib.contracts import (
    EFFECTS,
    ErrorCode,
    FailedCall,
    InvalidInput,
    JsonObject,
    Reason,
    RunResult,
    ToolDefinition,
    ToolError,
    ToolRevision,
)
from toolcrib.contracts.base.errors import Effect
from toolcrib.core.executor.envelope import error
from toolcrib.core.executor.ports import CallContext, CallFailed, Tools
from toolcrib.core.executor.retries import did_nothing, rule_for

MAX_DEPTH = 5
"""Levels of tools that call tools that call tools."""


def check_nesting(tool: ToolRevision, context: CallContext) -> None:
    """Refuse a nested run that would be too deep, or inside a run of the same tool.

    Raises:
        CallFailed: It would.
    """
    if context.depth >= MAX_DEPTH:
        message = f"{tool.name!r} would be nested {context.depth + 1} deep, and {MAX_DEPTH} is the most"
        raise CallFailed(error(ErrorCode.POLICY_DENIED, Reason.DEPTH_EXCEEDED, message))
    if tool.content_hash in context.callers:
        way = " -> ".join((*context.callers.values(), tool.ref))
        message = f"{tool.ref!r} is running above this call already ({way}); a tool must not call itself"
        raise CallFailed(error(ErrorCode.POLICY_DENIED, Reason.CYCLE_DETECTED, message))


def facts_of(result: RunResult) -> JsonObject:
    """What the metadata of a call says about its nested run."""
    return {
        **result.metadata,
        "run_id": result.run_id,
        "status": result.status,
        "stop_reason": result.stop_reason,
        "warnings": list(result.warnings),
        "tool_calls": result.tool_calls,
        "tokens": result.all_tokens,
        "wrote": result.wrote,
        **({"cost_unknown": True} if result.cost_unknown else {}),
        **({} if result.cut_off is None else {"cut_off_usd": str(result.cut_off.upper_usd or 0)}),
    }


def cost_of(result: RunResult) -> Decimal | None:
    """What a nested run cost; null if it asked no model and none of its calls had a price, or nothing is known."""
    return result.cost_usd if result.cost_usd or result.iterations else None


def fallback_of(tool: ToolDefinition, failure: CallFailed) -> str | None:
    """The reference of the tool that is called after this failure, or null."""
    rule = rule_for(tool, failure.error, failure.http_status)
    return rule.tool if rule is not None and did_nothing(tool, failure) else None


def find_fallback(ref: str, tool: ToolRevision, tools: Tools, context: CallContext) -> ToolRevision:
    """The tool that stands in.

    Raises:
        CallFailed: It would be nested too deep, or in itself.
        InvalidInput: It is not there any more, or does more by now than the tool that it stands in for.
    """
    name, _, version = ref.partition("@")
    found = tools.find(context.principal.realm, name, context.pins.get(ref) or version or None)
    if found is None:
        msg = f"there is no tool {ref!r}"
        raise InvalidInput(msg)
    if EFFECTS.index(found.definition.side_effects) > EFFECTS.index(tool.definition.side_effects):
        msg = f"{found.ref!r} {found.definition.side_effects}, which {tool.name!r} does not"
        raise InvalidInput(msg)
    check_nesting(found, context)
    return found


def record_of(tool: ToolRevision, failure: CallFailed, redacted: ToolError) -> FailedCall:
    """The failure as the journal keeps it, with its error as it may be told."""
    return FailedCall(
        tool=tool.ref,
        content_hash=tool.content_hash,
        error=redacted,
        http_status=failure.http_status,
        tool_calls=failure.metadata.get("tool_calls", 0),
        tokens=failure.metadata.get("tokens", 0),
        cost_usd=failure.cost_usd,
        tainted=failure.tainted,
    )


def failure_of(record: FailedCall) -> CallFailed:
    """The failure that a record tells of: of a call that did nothing, else there would be no fallback."""
    used: JsonObject = {"tool_calls": record.tool_calls, "tokens": record.tokens, "wrote": False}
    return CallFailed(
        record.error,
        http_status=record.http_status,
        metadata=used,
        cost_usd=record.cost_usd,
        tainted=record.tainted,
        effect="none",
    )


def with_fallback_problem(
    failure: CallFailed, ref: str, problem: str, metadata: JsonObject | None = None, *, effect: Effect = "none"
) -> CallFailed:
    """The failure of a call that did nothing and whose fallback did not help either, with what that has changed."""
    message = f"{failure.error.message}; its fallback {ref!r} failed too: {problem}"
    return CallFailed(
        failure.error.model_copy(update={"message": message}),
        http_status=failure.http_status,
        metadata=failure.metadata if metadata is None else metadata,
        cost_usd=failure.cost_usd,
        effect=effect,
    )


def fallback_metadata(record: FailedCall, fallback: ToolRevision, result: RunResult) -> JsonObject:
    """The metadata of a call whose fallback has ended: what failed, and what both have used."""
    facts = facts_of(result)
    return {
        **facts,
        "tool_calls": facts["tool_calls"] + record.tool_calls,
        "tokens": facts["tokens"] + record.tokens,
        "fallback": {"tool": fallback.ref, "error": record.error.model_dump(mode="json")},
    }


def total_cost(record: FailedCall, result: RunResult) -> Decimal | None:
    """What the failed call and its fallback cost together, as far as it is known."""
    known = [cost for cost in (record.cost_usd, cost_of(result)) if cost is not None]
    return sum(known, Decimal(0)) if known else None
