"""The lock of a workflow: which revision its runs take of each tool that it is bound to, and why not a newer one.

Publishing writes down the content hash that each reference meant (`bound`), of what the steps call and of what that
calls in its turn. A newer revision is taken only if nothing that can be compared tells against it: no difference that
`changes` calls harmful, and no version that says that it may break its callers. Else runs go on with the bound one,
which is told. Rules of use (confirmation, permission, rates, price) hold as they are now: a lock is no way around them.

What a model chooses to call is not locked, because it reads what a tool takes before it calls it; changes are told.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from toolcrib.contracts import (
    HARMFUL,
    AgenticImplementation,
    AgentImplementation,
    Difference,
    Reason,
    ToolDefinition,
    ToolRevision,
)
from toolcrib.contracts.workflows import GraphState, WorkflowImplementation
from toolcrib.registry.bindings import beside, bindings, called, means_many
from toolcrib.registry.catalog import Registry
from toolcrib.registry.versions import Version, satisfies

RULES: Final = frozenset(
    {
        "category",
        "confirmation_expires_s",
        "cost_from",
        "cost_usd_per_call",
        "deletes",
        "rate_limit",
        "requires_confirmation",
        "security_uri",
        "untrusted",
    }
)
"""Fields that say under which conditions a tool is called, and nothing of what a call does."""
_MOST_TOLD: Final = 3
"""Differences in one sentence."""


class Locked(NamedTuple):
    """What a reference means to the runs of a workflow."""

    ref: str
    state: GraphState
    tool: ToolRevision | None
    """What a run pins; null if there is nothing."""
    reason: str | None = None
    """Why it is not as it was published; of an `ok` one, what has changed all the same."""
    cause: Reason | None = None
    """Of a broken one, what its call fails with."""
    change: str | None = None
    """What stands in the way of the newest revision, in words; null if nothing that can be compared does."""


class Lock:
    """The lock of one workflow against the catalogue as it is, or against what one of its runs has pinned.

    Args:
        workflow: What is locked.
        registry: The catalogue.
        realm: Where it is looked up.
        pins: What a run has pinned, by reference; then only that counts of what has become of these tools.
    """

    def __init__(
        self,
        workflow: WorkflowImplementation,
        registry: Registry,
        realm: str,
        pins: Mapping[str, str] | None = None,
    ) -> None:
        self._workflow = workflow
        self._registry = registry
        self._realm = realm
        self._pins = pins or {}
        self._known: dict[str, Locked] = {}

    def of(self, ref: str) -> Locked:
        """What a reference means, whatever that calls in its turn."""
        if ref not in self._known:
            self._known[ref] = self._judged(ref)
        return self._known[ref]

    def node(self, ref: str) -> Locked:
        """What a reference means, with what it is made of: a composite whose operation is gone is broken too."""
        found = self.of(ref)
        for way, inner in self.within(ref):
            if inner.state == "broken" or (found.state == "ok" and inner.reason is not None):
                reason = f"{' calls '.join(way)} calls {inner.ref}: {inner.reason}"
                found = found._replace(state=inner.state, reason=reason, cause=inner.cause)
            if found.state == "broken":
                break
        return found

    def within(self, ref: str) -> Iterator[tuple[tuple[str, ...], Locked]]:
        """What a reference calls in its turn, as far as it is locked, each with the way to it."""
        waiting: list[tuple[str, ...]] = [(ref,)]
        seen = {ref}
        while waiting:
            way = waiting.pop()
            tool = self.of(way[-1]).tool
            for inner in () if tool is None else called_by(tool.definition):
                if inner not in seen:
                    seen.add(inner)
                    yield way, self.of(inner)
                    waiting.append((*way, inner))

    def pins(self, refs: Iterable[str]) -> dict[str, str]:
        """Content hashes for a run: of these references, and of what they call as far as it is locked."""
        pins: dict[str, str] = {}
        waiting = [ref for ref in refs if not means_many(ref)]
        while waiting:
            ref = waiting.pop(0)
            tool = self.of(ref).tool
            if tool is None or ref in pins:
                continue
            pins[ref] = tool.content_hash
            waiting += locked_by(tool.definition)
        return pins

    def _judged(self, ref: str) -> Locked:
        newest = self._meant(ref)
        if newest is None:
            reason = f"there is no tool {ref!r} any more; add it again, or publish the workflow without it"
            return Locked(ref, "broken", None, reason, Reason.TOOL_NOT_FOUND)
        out = _out_of_service(newest)
        if out is not None:
            cause, why = out
            return Locked(ref, "broken", newest, why, cause)
        bound = self._workflow.bound.get(ref, newest.content_hash)
        if newest.content_hash == bound:
            return Locked(ref, "ok", newest)
        before = self._registry.kept(self._realm, newest.name, bound)
        if before is None:
            reason = f"tool {newest.name!r} was removed and made anew since; look at it, and publish the workflow again"
            return Locked(ref, "broken", newest, reason, Reason.TOOL_DRIFTED)
        change = Transition(self._registry, before, newest)
        if not change.obstacles:
            return Locked(ref, "ok", newest, change.told)
        return self._held(ref, before, newest, change)

    def _held(self, ref: str, before: ToolRevision, newest: ToolRevision, change: "Transition") -> Locked:
        """The bound revision, unless nobody may call it as it was."""
        has = f"tool {newest.name!r} has changed ({change.words})"
        current = self._registry.named(self._realm, before.ref) or before
        out = _out_of_service(current)
        if out is not None:
            cause, why = out
            return Locked(ref, "broken", newest, f"{has}, and {why}", cause, has)
        stricter = Transition(self._registry, before, current).rules
        if stricter:
            rules = ", ".join(sorted(found.place for found in stricter))
            reason = f"{has}, together with rules for its use ({rules}); publish the workflow again"
            return Locked(ref, "broken", newest, reason, Reason.TOOL_DRIFTED, has)
        if not self._registry.runs_here(before) and self._registry.runs_here(newest):
            reason = f"{has}, and the function of {before.ref!r} is not in this program; publish the workflow again"
            return Locked(ref, "broken", newest, reason, Reason.TOOL_DRIFTED, has)
        reason = (
            f"{has}: the workflow goes on with {before.ref}, revision {before.revision}, until it is published again"
        )
        return Locked(ref, "held", before, reason, None, has)

    def _meant(self, ref: str) -> ToolRevision | None:
        pinned = self._pins.get(ref)
        if pinned is None:
            return self._registry.named(self._realm, ref)
        return self._registry.find(self._realm, ref.partition("@")[0], pinned)


class Transition:
    """The way from a bound revision to another one: what stands in its way, and what is told of it.

    Args:
        registry: Compares.
        before: The bound revision.
        after: The other one.
    """

    def __init__(self, registry: Registry, before: ToolRevision, after: ToolRevision) -> None:
        self.differences = registry.change(before, after).differences
        self.rules = tuple(found for found in self.differences if _is_rule(found))
        self._before, self._after = before, after

    @property
    def obstacles(self) -> tuple[str, ...]:
        """Why it is not taken without a person, in words; empty if it is."""
        harmful = [found for found in self.differences if found.change_class in HARMFUL and not _is_rule(found)]
        said = tuple(_words(found) for found in harmful)
        return said or (() if self._is_compatible else (self._leap,))

    @property
    def words(self) -> str:
        """The obstacles in one line."""
        more = len(self.obstacles) - _MOST_TOLD
        return "; ".join(self.obstacles[:_MOST_TOLD]) + (f"; and {more} more" if more > 0 else "")

    @property
    def told(self) -> str | None:
        """What a run says that takes it: other rules of use, and more in the output; null if nothing."""
        seen = [found for found in self.differences if _is_rule(found) or found.part == "output"]
        if not seen:
            return None
        more = f"; and {len(seen) - _MOST_TOLD} more" if len(seen) > _MOST_TOLD else ""
        listed = "; ".join(_words(found) for found in seen[:_MOST_TOLD])
        return f"tool {self._after.name!r} has changed since the workflow was published ({listed}{more})"

    @property
    def _is_compatible(self) -> bool:
        """Whether the version does not say that callers may break (semver: the leftmost number that is not zero)."""
        old, new = Version.parse(self._before.version), Version.parse(self._after.version)
        return old == new or satisfies(new, f"^{old}")

    @property
    def _leap(self) -> str:
        return f"its version {self._before.version} became {self._after.version}, which need not be compatible"


def lock_of(definition: ToolDefinition, registry: Registry, realm: str) -> dict[str, str]:
    """Content hashes for `bound`: what each reference in a workflow means now, and what that calls in its turn.

    What is not there is left out. A workflow that is called has a lock of its own, and is not looked into.
    """
    bound: dict[str, str] = {}
    waiting = list(bindings(definition))
    while waiting:
        ref = waiting.pop(0)
        found = None if means_many(ref) or ref in bound else registry.named(realm, ref)
        if found is not None:
            bound[ref] = found.content_hash
            is_workflow = isinstance(found.definition.implementation, WorkflowImplementation)
            waiting += beside(found.definition) if is_workflow else bindings(found.definition)
    return dict(sorted(bound.items()))


def pins_of(tool: ToolRevision, registry: Registry, caller: Mapping[str, str] | None = None) -> dict[str, str]:
    """Content hashes of the tools that a run of this one may call, by reference.

    Of a workflow, what its lock allows; of a call in a run, what that run has pinned; else what is there now.

    Args:
        tool: What is run.
        registry: The catalogue.
        caller: What the run that calls it has pinned, for a nested run.
    """
    implementation, refs = tool.definition.implementation, bindings(tool.definition)
    if isinstance(implementation, WorkflowImplementation) and implementation.bound:
        return Lock(implementation, registry, tool.realm).pins(refs)
    named = (ref for ref in refs if not means_many(ref))
    if not caller or not called_by(tool.definition):
        return {ref: found.content_hash for ref in named if (found := registry.named(tool.realm, ref)) is not None}
    return _handed_down(tool, registry, caller)


def _handed_down(tool: ToolRevision, registry: Registry, caller: Mapping[str, str]) -> dict[str, str]:
    """The pins of a nested run, in which what its caller has pinned counts, at any depth."""
    pins: dict[str, str] = {}
    waiting = list(locked_by(tool.definition))
    while waiting:
        ref = waiting.pop(0)
        if ref in pins:
            continue
        if ref in caller:
            pins[ref] = caller[ref]
            found = registry.find(tool.realm, ref.partition("@")[0], caller[ref])
        else:
            found = registry.named(tool.realm, ref)
            pins |= {} if found is None else {ref: found.content_hash}
        waiting += () if found is None else locked_by(found.definition)
    return pins


def called_by(definition: ToolDefinition) -> tuple[str, ...]:
    """References to what a call of a tool calls without a choice of a model's, its fallbacks not counted."""
    if definition.has_model or isinstance(definition.implementation, WorkflowImplementation):
        return ()
    return tuple(ref for ref in called(definition) if not means_many(ref))


def locked_by(definition: ToolDefinition) -> tuple[str, ...]:
    """References to what is locked with a tool: what it calls, and what is called in its place."""
    return (*called_by(definition), *beside(definition))


def _is_rule(found: Difference) -> bool:
    return found.part == "effect" and found.place in RULES


def _words(found: Difference) -> str:
    return f"{found.part} {found.place} {found.message}" if found.place else f"{found.part} {found.message}"


def _status_of(definition: ToolDefinition) -> str:
    implementation = definition.implementation
    has_status = isinstance(implementation, AgentImplementation | AgenticImplementation | WorkflowImplementation)
    return implementation.status if has_status else "active"


def _out_of_service(tool: ToolRevision) -> tuple[Reason, str] | None:
    """Why a tool is not to be called from workflows at all."""
    definition = tool.definition
    instead = f"use {tool.replacement!r} instead" if tool.replacement else "bring it back, or use another one"
    if tool.status == "blocked":
        why = f": {tool.status_message.rstrip('.')}" if tool.status_message else ""
        return Reason.TOOL_BLOCKED, f"tool {tool.ref!r} is blocked{why}; {instead}"
    if not definition.enabled or _status_of(definition) == "disabled":
        return Reason.TOOL_DISABLED, f"tool {tool.ref!r} is disabled; enable it, or publish the workflow without it"
    if "workflow_step" not in definition.available_as:
        where = ", ".join(definition.available_as) or "nothing"
        return (
            Reason.TOOL_NOT_ALLOWED,
            f"tool {tool.ref!r} is available as {where} and not as workflow_step; change that",
        )
    return None
