"""Guardrails: rules beyond permissions, asked before every tool call and every model call. The strictest answer wins.

They judge facts and change nothing; what a run may spend is the budget's matter, and what a text may hold is that of
the content filters. A tool that calls others does nothing by itself: the calls inside it are held to the same rules.

A rule of another package is a function from its parameters to a `Check`. It runs in this process, at once and to its
end, so it must be quick, wait for nothing and always say the same of the same facts. If it fails, or answers with what
is no objection, the call is denied.

What a tool does beyond its side effects: whether it deletes, and whether outsiders can write what it brings.

What the author has declared comes first; else the operation says it, as far as it does. A name says nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import orjson
from msgspec import Struct, json, structs

from toolcrib.contracts import (
    DELEGATES,
    EFFECTS,
    CustomGuardrail,
    EntityImplementation,
    GuardDecision,
    Guardrail,
    HttpImplementation,
    JsonObject,
    MaxCost,
    NoDelete,
    RealmBoundary,
    Reason,
    RequireConfirmation,
    SideEffects,
    ToolDefinition,
    ToolRevision,
    UntrustedContent,
)

_FOREIGN: Final = frozenset({"http", "mcp", "grpc", "graphql", "plugin"})
"""Kinds whose output is another system's words."""


def deletes(tool: ToolDefinition, arguments: JsonObject) -> bool | None:
    """Whether a call takes away what no other call brings back; null if nothing says it.

    Args:
        tool: Its definition.
        arguments: The call's, which can name the method of an HTTP request.
    """
    if tool.deletes is not None or tool.side_effects != "writes":
        return tool.deletes or False
    match tool.implementation:
        case HttpImplementation(method=method, method_argument=argument):
            return (arguments.get(argument or "") or method) == "DELETE"
        case EntityImplementation(operation=operation):
            return operation == "delete"
        case _:
            return False if acts_through_others(tool) else None


def acts_through_others(tool: ToolDefinition) -> bool:
    """Whether all that a tool does are the calls inside it. What a client does with a prepared call is none of them."""
    return tool.implementation.kind in DELEGATES and tool.runs_on == "server"


def is_untrusted(tool: ToolDefinition) -> bool:
    """Whether outsiders can write what the tool itself brings."""
    return tool.implementation.kind in _FOREIGN if tool.untrusted is None else tool.untrusted


class GuardedCall(Struct, frozen=True):
    """A tool call that is about to be made, as guardrails see it."""

    tool: ToolRevision
    arguments: JsonObject
    """Valid, with defaults."""
    realm: str
    """Of the run."""
    principal: str
    """Id of who calls."""
    tainted_by: str | None = None
    """What the run has read that outsiders can write: the first of it; null if nothing."""


class GuardedModel(Struct, frozen=True):
    """A model call that is about to be made, as guardrails see it."""

    model: str
    """`provider:model`."""
    realm: str
    principal: str
    tokens: int
    """That it may use at most."""
    priced: bool
    tainted_by: str | None = None


Guarded: TypeAlias = GuardedCall | GuardedModel


class Objection(Struct, frozen=True):
    """What a guardrail of another package has against a call."""

    message: str
    outcome: Literal["ask", "deny"] = "deny"
    """Nobody can be asked about a model call, so there both deny."""
    facts: JsonObject = {}
    """What it was decided on, for the journal."""


Check: TypeAlias = Callable[[Guarded], Objection | None]
"""Says what is against a call; null for nothing."""
GuardrailMaker: TypeAlias = Callable[[JsonObject], Check]
"""What an entry point in the group `toolcrib.guardrails` is: makes a check from a rule's parameters."""

NO_MAKERS: Final[Mapping[str, GuardrailMaker]] = MappingProxyType({})


class Guardrails:
    """Asks guardrails.

    Args:
        makers: Those of other packages that the operator has released, by name.
    """

    def __init__(self, makers: Mapping[str, GuardrailMaker] = NO_MAKERS) -> None:
        self._makers = makers
        self._checks: dict[tuple[str, bytes], Check] = {}

    def judge(self, rules: Sequence[Guardrail], guarded: Guarded) -> GuardDecision | None:
        """The strictest decision of the rules; null if none has anything against the call."""
        found = [decision for rule in rules if (decision := self._judge(rule, guarded)) is not None]
        return strictest(found)

    def _judge(self, rule: Guardrail, guarded: Guarded) -> GuardDecision | None:
        if isinstance(rule, CustomGuardrail):
            return self._custom(rule, guarded)
        if isinstance(rule, RealmBoundary):
            return _realm_boundary(rule, guarded)
        if isinstance(guarded, GuardedModel):
            return (
                _deny_unpriced(guarded)
                if isinstance(rule, MaxCost) and rule.deny_unpriced and not guarded.priced
                else None
            )
        match rule:
            case NoDelete():
                return _no_delete(rule, guarded)
            case RequireConfirmation():
                return _confirmation(rule, guarded)
            case UntrustedContent():
                return _check_untrusted(rule, guarded)
            case _:
                return None  # the budget's and the content filters' matter

    def _custom(self, rule: CustomGuardrail, guarded: Guarded) -> GuardDecision | None:
        try:
            objection = _as_told(self._check(rule)(_copy_arguments(guarded)))
        except (Exception, SystemExit) as crash:  # noqa: BLE001 - code of another package: whatever it raises, the call is denied
            return _deny_custom(rule, f"guardrail {rule.name!r} failed with {type(crash).__name__}: {crash}")
        if objection is None:
            return None
        if objection.outcome == "ask" and isinstance(guarded, GuardedCall):
            return _ask(f"custom:{rule.name}", objection.message, objection.facts)
        return _deny_custom(rule, objection.message, objection.facts)

    def _check(self, rule: CustomGuardrail) -> Check:
        if rule.name not in self._makers:
            here = ", ".join(sorted(self._makers)) or "none"
            msg = f"this process has none of that name, it has: {here}; install it and name it in TOOLCRIB_PLUGINS"
            raise LookupError(msg)
        key = rule.name, orjson.dumps(rule.parameters, option=orjson.OPT_SORT_KEYS)
        if key not in self._checks:
            self._checks[key] = self._makers[rule.name](rule.parameters)
        return self._checks[key]


def _copy_arguments(guarded: Guarded) -> Guarded:
    """What a check may change as it likes: the call stays what was validated."""
    if isinstance(guarded, GuardedModel):
        return guarded
    return structs.replace(guarded, arguments=deepcopy(guarded.arguments))


def _as_told(answer: object) -> Objection | None:
    """A copy of what a check has answered, which is nothing but JSON; raises what it is not."""
    return None if answer is None else json.decode(json.encode(answer), type=Objection)


_STRICTNESS: Final = {"allow": 0, "ask": 1, "deny": 2}


def strictest(decisions: Iterable[GuardDecision]) -> GuardDecision | None:
    """The strictest of several decisions, the first of equals; a question is open no longer than any of them says."""
    found = list(decisions)
    if not found:
        return None
    first = max(found, key=lambda decision: _STRICTNESS[decision.outcome])
    ends = [each.expires_s for each in found if each.outcome == "ask" and each.expires_s is not None]
    return first.model_copy(update={"expires_s": min(ends)}) if first.outcome == "ask" and ends else first


def _realm_boundary(rule: RealmBoundary, guarded: Guarded) -> GuardDecision | None:
    allowed = rule.realms or (guarded.realm,)
    reached = (guarded.realm, *((guarded.tool.realm,) if isinstance(guarded, GuardedCall) else ()))
    outside = next((realm for realm in reached if realm not in allowed), None)
    if outside is None:
        return None
    message = f"this would reach data of realm {outside!r}; allowed are: {', '.join(allowed)}"
    return _deny("realm_boundary", Reason.REALM_FORBIDDEN, message, {"realm": outside, "realms": list(allowed)})


def _deny_unpriced(guarded: GuardedModel) -> GuardDecision:
    message = f"the price of model {guarded.model!r} is unknown, so max_cost cannot be held; configure its price"
    return _deny("max_cost", Reason.PRICE_UNKNOWN, message, {"model": guarded.model})


def _no_delete(rule: NoDelete, call: GuardedCall) -> GuardDecision | None:
    definition = call.tool.definition
    found = deletes(definition, call.arguments)
    facts: JsonObject = {"deletes": found, "undeclared": rule.undeclared}
    if found:
        message = f"tool {call.tool.ref!r} deletes, and no_delete forbids that; leave what is there as it is"
        return _deny("no_delete", Reason.DELETION_FORBIDDEN, message, facts)
    if found is False or rule.undeclared == "allow":
        return None
    why = f"tool {call.tool.ref!r} writes, and nothing says whether it deletes"
    if rule.undeclared == "confirm":
        return _ask("no_delete", why, facts)
    message = f"{why}; declare `deletes` in its definition"
    return _deny("no_delete", Reason.DELETION_FORBIDDEN, message, facts)


def _confirmation(rule: RequireConfirmation, call: GuardedCall) -> GuardDecision | None:
    definition = call.tool.definition
    if not (_does_at_least(definition.side_effects, rule.side_effects) and _is_named(definition, rule.tools)):
        return None
    facts: JsonObject = {"side_effects": definition.side_effects, "tools": list(rule.tools)}
    decision = _ask("require_confirmation", f"tool {call.tool.ref!r} needs a person's consent", facts)
    return decision.model_copy(update={"expires_s": rule.expires_s})


def _is_named(definition: ToolDefinition, patterns: Sequence[str]) -> bool:
    if acts_through_others(definition):
        return definition.name in patterns
    return any(fnmatchcase(definition.name, pattern) for pattern in patterns)


def _check_untrusted(rule: UntrustedContent, call: GuardedCall) -> GuardDecision | None:
    definition = call.tool.definition
    if call.tainted_by is None or acts_through_others(definition):
        return None
    if not _does_at_least(definition.side_effects, rule.side_effects):
        return None
    why = f"the run has read what outsiders can write ({call.tainted_by}) and now calls {call.tool.ref!r}"
    facts: JsonObject = {"tainted_by": call.tainted_by, "side_effects": definition.side_effects}
    if rule.action == "confirm":
        return _ask("untrusted_content", why, facts)
    message = f"{why}, which untrusted_content forbids; do it in a run that has not read such content"
    return _deny("untrusted_content", Reason.CONTENT_UNTRUSTED, message, facts)


def _does_at_least(effects: SideEffects, least: SideEffects) -> bool:
    return EFFECTS.index(effects) >= EFFECTS.index(least)


def _ask(rule: str, message: str, facts: JsonObject) -> GuardDecision:
    return GuardDecision(outcome="ask", rule=rule, message=message, inputs=facts)


def _deny(rule: str, reason: Reason, message: str, facts: JsonObject) -> GuardDecision:
    return GuardDecision(outcome="deny", rule=rule, reason=reason, message=message, inputs=facts)


def _deny_custom(rule: CustomGuardrail, message: str, facts: JsonObject | None = None) -> GuardDecision:
    return _deny(f"custom:{rule.name}", Reason.GUARDRAIL_REFUSED, message, facts or {})
