"""What a run of a tool may spend: a reading of the tool's definition and of the guardrails of the run."""

from collections.abc import Sequence

from toolcrib.contracts import (
    CLOSING_S,
    AgenticImplementation,
    AgentImplementation,
    Guardrail,
    JsonObject,
    Limits,
    MaxCost,
    RunKind,
    ToolRevision,
)
from toolcrib.contracts.workflows import WorkflowImplementation


def limits_of(tool: ToolRevision, kind: RunKind, given_s: float | None = None) -> Limits:
    """The limits of a run of this tool; a larger configured `max_tokens` raises the tokens per call.

    Args:
        tool: The revision that runs.
        kind: Of the run.
        given_s: Seconds that its caller gives it, if that is less.
    """
    limits = _own_limits(tool, kind)
    if given_s is None or given_s >= limits.timeout_s:
        return limits
    return limits.model_copy(update={"timeout_s": given_s})


def _own_limits(tool: ToolRevision, kind: RunKind) -> Limits:
    """What the definition allows.

    A single call of a tool that calls others leaves room for the nested run, which has these limits itself, and for the
    call. Code has its quota of calls; a composite tool has the defaults, inside those of whoever calls it.
    """
    definition, implementation = tool.definition, tool.definition.implementation
    if isinstance(implementation, WorkflowImplementation):
        return _with_room(implementation.limits, definition.call_timeout_s) if kind == "tool" else implementation.limits
    if not isinstance(implementation, AgentImplementation | AgenticImplementation):
        seconds = definition.call_timeout_s + CLOSING_S if kind == "tool" else definition.timeout_s
        if implementation.kind != "code":
            return Limits(timeout_s=seconds)
        return Limits(timeout_s=seconds, max_tool_calls=implementation.limits.tool_calls + (kind == "tool"))
    limits, wanted = implementation.limits, implementation.llm.max_tokens or 0
    changes: JsonObject = {"max_tokens_per_call": wanted} if wanted > limits.max_tokens_per_call else {}
    if kind == "tool":
        changes |= {"timeout_s": definition.timeout_s + CLOSING_S, "max_tool_calls": limits.max_tool_calls + 1}
    return limits.model_copy(update=changes) if changes else limits


def _with_room(limits: Limits, call_timeout_s: float) -> Limits:
    """The limits of a run that makes one call, which is a run with these limits."""
    return limits.model_copy(
        update={"timeout_s": call_timeout_s + CLOSING_S, "max_tool_calls": limits.max_tool_calls + 1}
    )


def bounded(limits: Limits, guardrails: Sequence[Guardrail]) -> Limits:
    """The limits with what guardrails say about costs; those of a caller hold for all of its nested runs together."""
    costs = [rule.usd for rule in guardrails if isinstance(rule, MaxCost)]
    if not costs:
        return limits
    if limits.max_cost_usd is not None:
        costs.append(limits.max_cost_usd)
    return limits.model_copy(update={"max_cost_usd": min(costs)})
