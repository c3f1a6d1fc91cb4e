"""The lock of a workflow: which revision its runs use of each bound tool, and why not a newer one.

Publishing records the content hash of each reference (`bound`), also of indirect ones. A newer revision is used only
if no difference is harmful and its version does not announce a breaking change. Otherwise runs use the bound one, with
a warning. Rules of use (confirmation, permission, rates, price) are always current. Tools that a model chooses are not
locked, because the model reads their current schemas; their changes are reported.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
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
from toolcrib.core.registry.catalog.catalog import Registry
from toolcrib.core.registry.checks.versions import Version, newest, satisfies
from toolcrib.core.registry.links.bindings import beside, bindings, means_many

_RULES: Final = frozenset({"category", "deletes", "rate_limit", "requires_confirmation", "security_uri", "untrusted"})
"""Fields that say who may call a tool, and under which conditions."""
_TERMS: Final = _RULES | {"confirmation_expires_s", "cost_from", "cost_usd_per_call", "implementation.function"}
"""Fields besides that which change nothing of what a call does, as far as anybody can tell: of a function that stands
somewhere else now no more is known than of one that was rewritten in its place."""
_MOST_TOLD: Final = 3
"""Differences in one sentence."""


class LockedReference(NamedTuple):
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
    """The lock of one workflow against the catalogue as it is.

    Args:
        workflow: What is locked.
        registry: The catalogue.
        realm: Where it is looked up.
        proposed: A revision that is looked at as if it were saved.
    """

    def __init__(
        self,
        workflow: WorkflowImplementation,
        registry: Registry,
        realm: str,
        *,
        proposed: ToolRevision | None = None,
    ) -> None:
        self.workflow = workflow
        self._registry = registry
        self._realm = realm
        self._proposed = proposed
        self._known: dict[str, LockedReference] = {}

    def of(self, ref: str) -> LockedReference:
        """What a reference means, whatever that calls in its turn."""
        if ref not in self._known:
            self._known[ref] = self._judge(ref)
        return self._known[ref]

    def node(self, ref: str) -> LockedReference:
        """What a reference means, with what it is made of: a composite whose operation is gone is broken too."""
        found = self.of(ref)
        for way, inner in self.within(ref):
            if inner.state == "broken" or (found.state == "ok" and inner.reason is not None):
                reason = f"{' calls '.join(way)} calls {inner.ref}: {inner.reason}"
                found = found._replace(state=inner.state, reason=reason, cause=inner.cause)
            if found.state == "broken":
                break
        return found

    def within(self, ref: str) -> Iterator[tuple[tuple[str, ...], LockedReference]]:
        """What a reference calls in its turn, as far as it is locked, each with the way to it."""
        waiting: list[tuple[str, ...]] = [(ref,)]
        seen = {ref}
        while waiting:
            way = waiting.pop()
            tool = self.of(way[-1]).tool
            for inner in () if tool is None else callees_without_model(tool.definition):
                if inner not in seen:
                    seen.add(inner)
                    yield way, self.of(inner)
                    waiting.append((*way, inner))

    def describe_choice(self, ref: str) -> str | None:
        """What has become of a tool that a model may choose, in words: it is not held back, and need not be a step."""
        found = self.of(ref)
        change = found.change
        if found.cause is Reason.TOOL_NOT_ALLOWED and found.tool is not None:
            if found.tool.content_hash == self.workflow.bound.get(ref):
                return None
            change = f"tool {found.tool.name!r} has changed"
        return found.reason if change is None else f"{change}, and models are offered it as it is now"

    def choices(self, ref: str) -> Iterator[str]:
        """What has become of the tools that the model of an agent or agentic tool may choose, in words."""
        tool = self.of(ref).tool
        named = bindings(tool.definition) if tool is not None and tool.definition.has_model else ()
        notices = (self.describe_choice(inner) for inner in named if inner in self.workflow.bound)
        return (notice for notice in notices if notice is not None)

    def inside(self, ref: str) -> "Lock | None":
        """The lock of the workflow that a reference means; null if it means none that was published."""
        tool = self.of(ref).tool
        workflow = None if tool is None else tool.definition.implementation
        if not isinstance(workflow, WorkflowImplementation) or not workflow.bound:
            return None
        return Lock(workflow, self._registry, self._realm, proposed=self._proposed)

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
            waiting += refs_to_lock(tool.definition)
        return pins

    def _judge(self, ref: str) -> LockedReference:
        latest = meant(ref, self._registry, self._realm, self._proposed)
        if latest is None:
            reason = f"there is no tool {ref!r} any more; add it again, or publish the workflow without it"
            return LockedReference(ref, "broken", None, reason, Reason.TOOL_NOT_FOUND)
        out = _out_of_service(latest)
        if out is not None:
            return LockedReference(ref, "broken", latest, out.reason, out.cause)
        bound = self.workflow.bound.get(ref, latest.content_hash)
        if latest.content_hash == bound:
            return LockedReference(ref, "ok", latest)
        before = self._registry.find(self._realm, latest.name, bound)
        if before is None:
            reason = f"what tool {latest.name!r} was is not known any more; look at it, and publish the workflow again"
            return LockedReference(ref, "broken", latest, reason, Reason.TOOL_DRIFTED)
        change = Transition(self._registry, before, latest)
        if not change.obstacles:
            return LockedReference(ref, "ok", latest, change.notice)
        has = f"tool {latest.name!r} has changed ({change.words})"
        out = self._unfit(before, latest)
        if out is not None:
            return LockedReference(ref, "broken", latest, f"{has}, and {out.reason}", out.cause, has)
        revision = f"revision {before.revision} of version {before.version}"
        return LockedReference(
            ref, "held", before, f"{has}: {revision} is used until the workflow is published again", None, has
        )

    def _unfit(self, before: ToolRevision, latest: ToolRevision) -> "_Out | None":
        """Why runs cannot go on with a bound revision that has been followed by another one."""
        if self._registry.find_revision(self._realm, before.name, before.content_hash) is None:
            reason = "it was removed and made anew in between; look at it, and publish the workflow again"
            return _Out(Reason.TOOL_DRIFTED, reason)
        current = meant(before.ref, self._registry, self._realm, self._proposed) or before
        out = _out_of_service(current)
        if out is not None:
            return out
        changed = Transition(self._registry, before, current).rules
        if changed:
            rules = ", ".join(sorted(found.place for found in changed))
            reason = f"other rules hold for its use ({rules}); publish the workflow again"
            return _Out(Reason.TOOL_DRIFTED, reason)
        if not self._registry.runs_here(before) and self._registry.runs_here(latest):
            reason = f"the function of {before.ref!r} is not in this program; publish the workflow again"
            return _Out(Reason.TOOL_DRIFTED, reason)
        return None


class Transition:
    """The way from a bound revision to another one: what stands in its way, and what is told of it.

    Args:
        registry: Compares.
        before: The bound revision.
        after: The other one.
    """

    def __init__(self, registry: Registry, before: ToolRevision, after: ToolRevision) -> None:
        self.differences = registry.change(before, after).differences
        self.rules = tuple(found for found in self.differences if _is_among(found, _RULES))
        self._before, self._after = before, after

    @property
    def obstacles(self) -> tuple[str, ...]:
        """Why it is not taken without a person, in words; empty if it is."""
        harmful = [
            found for found in self.differences if found.change_class in HARMFUL and not _is_among(found, _TERMS)
        ]
        reasons = tuple(_words(found) for found in harmful)
        return reasons or (() if self._is_compatible else (self._leap,))

    @property
    def words(self) -> str:
        """The obstacles in one line."""
        more = len(self.obstacles) - _MOST_TOLD
        return "; ".join(self.obstacles[:_MOST_TOLD]) + (f"; and {more} more" if more > 0 else "")

    @property
    def notice(self) -> str | None:
        """What a run says that takes it: other rules of use, and more in the output; null if nothing."""
        notable = [found for found in self.differences if _is_among(found, _TERMS) or found.part == "output"]
        if not notable:
            return None
        more = f"; and {len(notable) - _MOST_TOLD} more" if len(notable) > _MOST_TOLD else ""
        listed = "; ".join(_words(found) for found in notable[:_MOST_TOLD])
        return f"tool {self._after.name!r} has changed since the workflow was published ({listed}{more})"

    @property
    def _is_compatible(self) -> bool:
        """Whether the version does not say that callers may break (semver: the leftmost number that is not zero)."""
        old, new = Version.parse(self._before.version), Version.parse(self._after.version)
        return old == new or satisfies(new, f"^{old}")

    @property
    def _leap(self) -> str:
        return f"its version {self._before.version} became {self._after.version}, which need not be compatible"


def meant(ref: str, registry: Registry, realm: str, proposed: ToolRevision | None = None) -> ToolRevision | None:
    """What a reference means, or would mean if a proposed revision were saved; null for nothing."""
    known = registry.find_by_ref(realm, ref)
    name, _, version = ref.partition("@")
    if proposed is None or name != proposed.name or version.startswith("sha256:"):
        return known
    versions = [proposed.version, *([known.version] if known is not None and known.status != "blocked" else [])]
    return proposed if newest(versions, version or None) == proposed.version else known


def lock_of(refs: Iterable[str], registry: Registry, realm: str) -> dict[str, str]:
    """Content hashes for `bound`: what each reference of a workflow means now, and what that calls in its turn.

    What is not there is left out. A workflow that is called has a lock of its own, and is not looked into.
    """
    bound: dict[str, str] = {}
    waiting = list(refs)
    while waiting:
        ref = waiting.pop(0)
        found = None if means_many(ref) or ref in bound else registry.find_by_ref(realm, ref)
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
    if not caller or not callees_without_model(tool.definition):
        return {
            ref: found.content_hash for ref in named if (found := registry.find_by_ref(tool.realm, ref)) is not None
        }
    return _inherit_pins(tool, registry, caller)


def _inherit_pins(tool: ToolRevision, registry: Registry, caller: Mapping[str, str]) -> dict[str, str]:
    """The pins of a nested run, in which what its caller has pinned counts, at any depth."""
    pins: dict[str, str] = {}
    waiting = list(refs_to_lock(tool.definition))
    while waiting:
        ref = waiting.pop(0)
        if ref in pins:
            continue
        if ref in caller:
            pins[ref] = caller[ref]
            found = registry.find(tool.realm, ref.partition("@")[0], caller[ref])
        else:
            found = registry.find_by_ref(tool.realm, ref)
            pins |= {} if found is None else {ref: found.content_hash}
        waiting += () if found is None else refs_to_lock(found.definition)
    return pins


def callees_without_model(definition: ToolDefinition) -> tuple[str, ...]:
    """References to what a call of a tool calls without a choice of a model's, its fallbacks not counted."""
    if definition.has_model or isinstance(definition.implementation, WorkflowImplementation):
        return ()
    return tuple(ref for ref in definition.implementation.callees if not means_many(ref))


def refs_to_lock(definition: ToolDefinition) -> tuple[str, ...]:
    """References to what is locked with a tool: what it calls, and what is called in its place."""
    return (*callees_without_model(definition), *beside(definition))


def _is_among(found: Difference, places: AbstractSet[str]) -> bool:
    return found.part == "effect" and found.place in places


def _words(found: Difference) -> str:
    return f"{found.part} {found.place} {found.message}" if found.place else f"{found.part} {found.message}"


def _status_of(definition: ToolDefinition) -> str:
    implementation = definition.implementation
    has_status = isinstance(implementation, AgentImplementation | AgenticImplementation | WorkflowImplementation)
    return implementation.status if has_status else "active"


class _Out(NamedTuple):
    """Why nobody may call a revision from a workflow."""

    cause: Reason
    reason: str


def _out_of_service(tool: ToolRevision) -> _Out | None:
    definition = tool.definition
    if tool.status == "blocked":
        why = f": {tool.status_message.rstrip('.')}" if tool.status_message else ""
        instead = f"use {tool.replacement!r} instead" if tool.replacement else "bring it back, or use another one"
        return _Out(Reason.TOOL_BLOCKED, f"tool {tool.ref!r} is blocked{why}; {instead}")
    if not definition.enabled or _status_of(definition) == "disabled":
        reason = f"tool {tool.ref!r} is disabled; enable it, or publish the workflow without it"
        return _Out(Reason.TOOL_DISABLED, reason)
    if "workflow_step" not in definition.available_as:
        reason = f"tool {tool.ref!r} is not available as workflow_step; let it be, or publish the workflow without it"
        return _Out(Reason.TOOL_NOT_ALLOWED, reason)
    return None
