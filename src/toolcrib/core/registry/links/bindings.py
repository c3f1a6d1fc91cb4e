"""Checks the tools that a definition names when it is saved: they exist, fit, and form no cycle.

Patterns and groups are not followed, because their meaning changes with every new tool; a cycle through them is found
at run time (`cycle_detected`).
"""

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from typing import TypeAlias

from toolcrib.contracts import (
    EFFECTS,
    AgenticImplementation,
    AgentImplementation,
    InvalidDefinition,
    Limits,
    LLMConfig,
    MaxCost,
    ToolDefinition,
    ToolRevision,
)
from toolcrib.contracts.specs.agents import GROUP, TAG
from toolcrib.contracts.workflows import WorkflowImplementation
from toolcrib.core.registry.catalog.catalog import Registry
from toolcrib.core.registry.checks.arguments import misfits
from toolcrib.core.registry.checks.versions import newest
from toolcrib.llm.models.pool import UnpricedModel

Complete: TypeAlias = Callable[[ToolDefinition, Callable[[str], ToolRevision]], ToolDefinition]
"""From a definition, and what finds the tools that it names, to the definition as it is stored."""


def bindings(definition: ToolDefinition) -> tuple[str, ...]:
    """The references to other tools in a definition, each once, in its order.

    `name`, `name@range`, and of tools with a model also patterns of names, groups and tags.
    """
    return tuple(dict.fromkeys((*definition.implementation.callees, *beside(definition))))


def means_many(ref: str) -> bool:
    """Whether a reference may mean several tools: it is not pinned, a run uses those that are there."""
    return ref.startswith((GROUP, TAG)) or "*" in ref.partition("@")[0]


def refers_to(ref: str, definition: ToolDefinition) -> bool:
    """Whether a reference means a tool of this name, whatever its version; by name, by pattern, by group or by tag.

    A group may also be all of a category, or any tag in it. An agent is meant by its name only.
    """
    if means_many(ref) and isinstance(definition.implementation, AgentImplementation):
        return False
    if ref.startswith(TAG):
        return ref.removeprefix(TAG) in definition.tags
    if ref.startswith(GROUP):
        category, _, tag = ref.removeprefix(GROUP).partition("/")
        return definition.category == category and (not tag or tag in definition.tags)
    name = ref.partition("@")[0]
    return fnmatchcase(definition.name, name) if means_many(ref) else definition.name == name


def beside(definition: ToolDefinition) -> Iterator[str]:
    """The references to what the executor calls for a tool of any kind."""
    yield from (rule.tool for rule in definition.error_handling if rule.tool is not None)
    if definition.reconcile is not None:
        yield definition.reconcile


Unpriced: TypeAlias = Callable[[LLMConfig], UnpricedModel | None]
"""Why nobody knows what a model costs; null if its price is known."""


def check_prices(definition: ToolDefinition, registry: Registry, realm: str, unpriced: Unpriced) -> tuple[str, ...]:
    """Hold a cost limit against the models that it is for, those of the tools that are called included.

    Returns:
        What the author is to be told of the default limit.

    Raises:
        InvalidDefinition: The author has set a limit and the price of a model is not known, or the provider has no such
            model; and `Limits.allow_unpriced` does not allow it.
    """
    implementation = definition.implementation
    if not isinstance(implementation, AgentImplementation | AgenticImplementation | WorkflowImplementation):
        return ()
    limits, rules = implementation.limits, getattr(implementation, "guardrails", ())
    costs = [rule.usd for rule in rules if isinstance(rule, MaxCost)]
    set_by_author = bool(costs) or limits.max_cost_usd != Limits().max_cost_usd
    most = min([*costs, *([] if limits.max_cost_usd is None else [limits.max_cost_usd])], default=None)
    if most is None or limits.allow_unpriced:
        return ()
    told: list[str] = []
    for owner, llm in _models_of(definition, registry, realm, {definition.name}, follow=set_by_author):
        found = unpriced(llm)
        if found is None:
            continue
        whose = "its model" if owner == definition.name else f"the model of {owner!r}, which it calls,"
        problem = (
            f"{implementation.kind} {definition.name!r} has a cost limit of {most} US dollars, and {whose} "
            f"{found.model!r} has no known price ({found.why}), so that the limit would not hold; configure its price, "
            "set limits.allow_unpriced to limit its tokens only, or set limits.max_cost_usd to null"
        )
        if set_by_author or found.is_unknown:
            raise InvalidDefinition(problem)
        told += [] if found.is_own else [problem]
    return tuple(told)


def _models_of(
    definition: ToolDefinition, registry: Registry, realm: str, seen: set[str], *, follow: bool
) -> Iterator[tuple[str, LLMConfig]]:
    """The models of a definition, and if wanted of the tools that it names one by one, by the names of these."""
    if isinstance(definition.implementation, AgentImplementation | AgenticImplementation):
        yield definition.name, definition.implementation.llm
    for ref in bindings(definition) if follow else ():
        found = None if means_many(ref) else registry.find_by_ref(realm, ref)
        if found is not None and found.name not in seen:
            seen.add(found.name)
            yield from _models_of(found.definition, registry, realm, seen, follow=True)


_HASH = "sha256:"


def check_callees(
    definition: ToolDefinition, registry: Registry, realm: str, complete: Complete = lambda given, _require: given
) -> ToolDefinition:
    """Check the tools that a definition names against the catalogue.

    Args:
        definition: Checked by itself.
        registry: Has the tools.
        realm: Where it is to be saved.
        complete: What the kind of the tool has to check and to fill in.

    Returns:
        The definition, completed.

    Raises:
        InvalidDefinition: A fallback does not fit, or a tool would call itself; the message shows the way.
        NotFound: A named tool does not exist.
    """
    _check_cycle(definition, registry, realm)
    completed = complete(definition, partial(registry.require, realm))
    _check_fallbacks(completed, registry, realm)
    return completed


def _check_fallbacks(definition: ToolDefinition, registry: Registry, realm: str) -> None:
    """A fallback takes the same arguments and does no more: the call was judged by what its tool says."""
    for rule in definition.error_handling:
        if rule.tool is None:
            continue
        fallback = registry.require(realm, rule.tool)
        where = f"tool {definition.name!r}: fallback {rule.tool!r} after {rule.when!r}"
        problem = next(misfits(definition.parameter_names(), fallback.definition.input_schema, fallback.name), None)
        if problem is not None:
            raise InvalidDefinition(f"{where} gets the same arguments, and {problem}")
        effects = fallback.definition.side_effects
        if EFFECTS.index(effects) > EFFECTS.index(definition.side_effects):
            msg = f"{where} {effects}, and the tool says side_effects {definition.side_effects!r}"
            raise InvalidDefinition(f"{msg}; name one that does no more, or say {effects!r}")


def _check_cycle(definition: ToolDefinition, registry: Registry, realm: str) -> None:
    waiting: list[tuple[ToolDefinition, tuple[str, ...]]] = [(definition, (definition.name,))]
    visited: set[str] = set()
    while waiting:
        current, way = waiting.pop()
        for ref in bindings(current):
            if _means(ref, definition, registry, realm):
                cycle = " -> ".join((*way, definition.name))
                msg = f"tool {definition.name!r} would call itself: {cycle}; take one of these calls out"
                raise InvalidDefinition(msg)
            found = registry.find_by_ref(realm, ref)
            if found is not None and found.content_hash not in visited:
                visited.add(found.content_hash)
                waiting.append((found.definition, (*way, found.name)))


def _means(ref: str, definition: ToolDefinition, registry: Registry, realm: str) -> bool:
    """Whether a reference would mean this definition, once it is saved."""
    name, _, version = ref.partition("@")
    if name != definition.name or version.startswith(_HASH):
        return False
    current = registry.find_by_ref(realm, ref)
    known = [definition.version, *([current.version] if current is not None else [])]
    return newest(known, version or None) == definition.version
