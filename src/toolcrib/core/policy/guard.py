"""The guard before every call: allocation, life cycle, side effects, limits, confirmation. It denies by default.

Its decision is a pure function of facts, except that an allowed call is counted against the budget at once. Guardrails
are checked later, when the arguments are known.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from typing import TypeAlias

from toolcrib.contracts import (
    EFFECTS,
    AgenticImplementation,
    AgentImplementation,
    GuardDecision,
    Guardrail,
    JsonObject,
    JsonSchema,
    Principal,
    Reason,
    RequireConfirmation,
    RunRequest,
    SideEffects,
    ToolRevision,
)
from toolcrib.contracts.workflows import WorkflowImplementation
from toolcrib.core.policy.budget import Budget, Shortage
from toolcrib.core.policy.permissions import permits


def least(*effects: SideEffects) -> SideEffects:
    """The least of several side effects."""
    return min(effects, key=EFFECTS.index)


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """What the calls of one run may be."""

    allowed: frozenset[str] | None = None
    """Names of the tools that may be called; null for every tool that the principal may execute."""
    side_effects: SideEffects = "writes"
    """The most that a tool may do."""
    guardrails: tuple[Guardrail, ...] = ()
    """Rules of the run's agent and of the callers above it."""
    confirm: frozenset[str] = frozenset()
    """Tools whose calls wait for a person, besides those that say so themselves."""
    narrowed: Mapping[str, JsonSchema] = field(default_factory=dict[str, JsonSchema])
    """Schemas by tool name that arguments must meet besides the tool's own: live enums of reference data."""
    tester: str | None = None
    """Id of the principal whose own drafts may be called, because the call is its test."""
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Version ranges or content hashes by tool name, pinned by whoever made the run."""


def take_call(budget: Budget, position: str, cost_usd: Decimal | None) -> Shortage | None:
    """Count a call, or say which limit forbids it.

    Args:
        budget: What the run may still spend.
        position: Of the call, for which the budget may hold a dispatch back that a crash has cut off.
        cost_usd: What it costs at least; null if it costs nothing.
    """
    is_new = not budget.holds(position)
    shortage = budget.take_tool_call(position)
    if shortage is None and cost_usd is not None:
        shortage = budget.cost_shortage(cost_usd)
        if shortage is not None and is_new:
            budget.return_tool_call()
    return shortage


TakeCall: TypeAlias = Callable[[Budget, str, Decimal | None], Shortage | None]
"""As `take_call`; in a replay, by what the limits of the recorded run said."""


def decide(
    tool: ToolRevision, policy: CallPolicy, budget: Budget, position: str = "", take: TakeCall = take_call
) -> GuardDecision:
    """Decide on one call, and count it if it is allowed.

    Args:
        tool: The revision that would run.
        policy: The run's policy.
        budget: What the run may still spend; an allowed call is taken from it.
        position: Of the call, for which the budget may hold a dispatch back that a crash has cut off.
        take: Counts the call.

    Returns:
        `allow`, `ask` (a person must confirm) or `deny`, with the rule, the facts and a message to act on.
    """
    definition = tool.definition
    inputs: JsonObject = {"side_effects": definition.side_effects, **budget.facts(definition.cost_usd_per_call)}
    denied = (
        _allow_list(definition.name, policy)
        or _life_cycle(tool, policy)
        or _side_effects(definition.name, definition.side_effects, policy)
    )
    if denied is not None:
        rule, reason, message = denied
        return GuardDecision(outcome="deny", rule=rule, reason=reason, message=message, inputs=inputs)
    price = definition.cost_usd_per_call
    shortage = take(budget, position, Decimal(0) if price is None and definition.cost_from is not None else price)
    if shortage is not None:
        inputs["maximum"] = shortage.maximum
        return GuardDecision(
            outcome="deny", rule=shortage.limit, reason=shortage.reason, message=shortage.message, inputs=inputs
        )
    if confirms(policy, tool):
        return GuardDecision(outcome="ask", rule="confirmation", message="a person must confirm", inputs=inputs)
    return GuardDecision(outcome="allow", rule="allowed", inputs=inputs)


def confirms(policy: CallPolicy, tool: ToolRevision) -> bool:
    """Whether each call of a tool waits for a person; guardrails may ask for one besides."""
    return tool.definition.requires_confirmation or tool.definition.name in policy.confirm


def guardrails_of(tool: ToolRevision) -> tuple[Guardrail, ...]:
    """The rules that a run of this tool brings with it: those of an agent or a workflow."""
    implementation = tool.definition.implementation
    if isinstance(implementation, WorkflowImplementation):
        return implementation.guardrails
    if not isinstance(implementation, AgentImplementation):
        return ()
    approval = (RequireConfirmation(),) if implementation.requires_approval else ()
    return (*implementation.guardrails, *approval)


def policy_of(tool: ToolRevision, request: RunRequest) -> CallPolicy:
    """What the calls of a run may be: the rules of its callers and, if an agent or a workflow is what runs, its own."""
    own = guardrails_of(tool) if request.kind in {"agent", "workflow"} else ()
    rules = (*request.guardrails, *(rule for rule in own if rule not in request.guardrails))
    return CallPolicy(side_effects=request.side_effects, guardrails=rules)


def permit(tool: ToolRevision, principal: Principal) -> GuardDecision | None:
    """Whether the principal may execute the tool at all: null if so, else the denial, which names the missing grant."""
    definition = tool.definition
    uri = definition.security()
    if permits(principal.grants, uri) and principal.realm == tool.realm:
        return None
    message = f"principal {principal.id!r} has no grant for {uri!r}; ask the realm's owner for it"
    return GuardDecision(outcome="deny", rule="permission", reason=Reason.PERMISSION_MISSING, message=message)


_Denied = tuple[str, Reason, str]


def _allow_list(name: str, policy: CallPolicy) -> _Denied | None:
    if policy.allowed is None or name in policy.allowed:
        return None
    names = sorted(policy.allowed)
    near = get_close_matches(name, names, n=3) or names[:10]
    hint = f"use one of: {', '.join(near)}" if near else "no tool may be called here"
    return "allow_list", Reason.TOOL_NOT_ALLOWED, f"tool {name!r} is not among the {len(names)} allowed tools; {hint}"


def is_in_service(tool: ToolRevision) -> bool:
    """Whether the life cycle of a tool lets anybody call it."""
    return _life_cycle(tool, CallPolicy()) is None


def _life_cycle(tool: ToolRevision, policy: CallPolicy) -> _Denied | None:
    if tool.status == "blocked":
        why = f": {tool.status_message}" if tool.status_message else ""
        instead = f"; use {tool.replacement!r} instead" if tool.replacement else ""
        return "life_cycle", Reason.TOOL_BLOCKED, f"tool {tool.ref!r} is blocked{why}{instead}"
    if not tool.definition.enabled:
        return "life_cycle", Reason.TOOL_DISABLED, f"tool {tool.ref!r} is disabled; enable it to call it"
    implementation = tool.definition.implementation
    has_status = isinstance(implementation, AgentImplementation | AgenticImplementation | WorkflowImplementation)
    status = implementation.status if has_status else "active"
    if status == "disabled":
        return (
            "life_cycle",
            Reason.TOOL_DISABLED,
            f"tool {tool.ref!r} is disabled; set its status to 'active' to call it",
        )
    if status == "draft" and policy.tester != tool.made_by:
        message = (
            f"tool {tool.ref!r} is a draft, which {tool.made_by!r} may test; set its status to 'active' to call it"
        )
        return "life_cycle", Reason.TOOL_DISABLED, message
    return None


def _side_effects(name: str, effects: SideEffects, policy: CallPolicy) -> _Denied | None:
    if least(effects, policy.side_effects) == effects:
        return None
    message = (
        f"tool {name!r} {effects} and this run allows at most {policy.side_effects!r}; "
        f"use a tool that does no more, or start the run with side_effects {effects!r}"
    )
    return "side_effects", Reason.SIDE_EFFECTS_FORBIDDEN, message
