"""Do the tools that a definition names exist, fit, and not lead back to it? Checked when it is saved.

Patterns of names and groups are not followed: what they mean changes with every tool that is added, so a circle through
them is found when it is run (`cycle_detected`).
"""

from toolcrib.contracts import (
    EFFECTS,
    CodeImplementation,
    CompositeImplementation,
    InvalidDefinition,
    ToolDefinition,
    ToolRevision,
)
from toolcrib.core.registry.catalog.catalog import Registry
from toolcrib.core.registry.checks.composites import check_operations, misfits
from toolcrib.core.registry.checks.versions import newest
from toolcrib.core.registry.links.bindings_part import bindings

_HASH = "sha256:"


def check_callees(definition: ToolDefinition, registry: Registry, realm: str) -> ToolDefinition:
    """Hold what a definition names against the catalogue, and derive what follows from it.

    Raises:
        InvalidDefinition: A route or a fallback does not fit, or a tool would call itself; the message shows the way.
        NotFound: A named tool does not exist.
    """
    _check_circle(definition, registry, realm)
    operations: dict[str, ToolRevision] = {}
    match definition.implementation:
        case CompositeImplementation(routes=routes):
            operations = {route.tool: registry.require(realm, route.tool) for route in routes}
        case CodeImplementation(tools=tools):
            for ref in tools:
                registry.require(realm, ref)
        case _:
            pass
    checked = check_operations(definition, operations)
    _check_fallbacks(checked, registry, realm)
    return checked


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


def _check_circle(definition: ToolDefinition, registry: Registry, realm: str) -> None:
    waiting: list[tuple[ToolDefinition, tuple[str, ...]]] = [(definition, (definition.name,))]
    visited: set[str] = set()
    while waiting:
        current, way = waiting.pop()
        for ref in bindings(current):
            if _means(ref, definition, registry, realm):
                circle = " -> ".join((*way, definition.name))
                msg = f"tool {definition.name!r} would call itself: {circle}; take one of these calls out"
                raise InvalidDefinition(msg)
            found = registry.named(realm, ref)
            if found is not None and found.content_hash not in visited:
                visited.add(found.content_hash)
                waiting.append((found.definition, (*way, found.name)))


def _means(ref: str, definition: ToolDefinition, registry: Registry, realm: str) -> bool:
    """Whether a reference would mean this definition, once it is saved."""
    name, _, version = ref.partition("@")
    if name != definition.name or version.startswith(_HASH):
        return False
    current = registry.named(realm, ref)
    known = [definition.version, *([current.version] if current is not None else [])]
    return newest(known, version or None) == definition.version
