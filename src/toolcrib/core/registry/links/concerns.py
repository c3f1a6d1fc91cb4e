"""Which published workflows a tool concerns as it stands now, in words for whoever has just changed it."""

from collections.abc import Iterable, Sequence
from typing import Final

from toolcrib.contracts import ToolRevision
from toolcrib.contracts.workflows import GraphState, WorkflowImplementation
from toolcrib.core.registry.catalog.catalog import Registry
from toolcrib.core.registry.links.locks import Lock

_MOST_NAMED: Final = 10


def concerns(tool: ToolRevision, registry: Registry) -> tuple[str, ...]:
    """What a tool does to the workflows that are bound to its name: which are held, and which break.

    Args:
        tool: As it was saved, or its status changed.
        registry: Has it, and the workflows.
    """
    found: dict[GraphState, set[str]] = {"ok": set(), "held": set(), "broken": set()}
    workflows = [
        (known, implementation)
        for name in sorted(registry.shelf(tool.realm).having("kind", "workflow"))
        if (known := registry.named(tool.realm, name)) is not None
        and isinstance(implementation := known.definition.implementation, WorkflowImplementation)
    ]
    for known, implementation in workflows:
        refs = [ref for ref in implementation.bound if ref.partition("@")[0] == tool.name]
        if not refs:
            continue
        lock = Lock(implementation, registry, tool.realm)
        pinned = lock.pins(implementation.callees)
        for locked in map(lock.of, refs):
            if locked.reason is not None:
                found[locked.state if locked.ref in pinned or locked.tool is None else "ok"].add(known.name)
    broken = _with_callers(found["broken"], workflows)
    told = (
        (broken, "does not work any more in", "look at the graph"),
        (found["held"] - broken, "is used as it was in", "until it is published again"),
        (found["ok"] - found["held"] - broken, "is used as it is now in", "whose runs tell what is new"),
    )
    return tuple(_sentence(tool, *what) for what in told if what[0])


def _with_callers(names: Iterable[str], workflows: Sequence[tuple[ToolRevision, WorkflowImplementation]]) -> set[str]:
    """Workflows, and those that call them, at any depth."""
    found, waiting = set(names), list(names)
    while waiting:
        name = waiting.pop()
        for known, implementation in workflows:
            if known.name not in found and any(ref.partition("@")[0] == name for ref in implementation.bound):
                found.add(known.name)
                waiting.append(known.name)
    return found


def _sentence(tool: ToolRevision, names: Iterable[str], what: str, then: str) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - _MOST_NAMED} more" if len(listed) > _MOST_NAMED else ""
    noun = "workflow" if len(listed) == 1 else "workflows"
    return f"tool {tool.name!r} {what} {len(listed)} {noun}, {then}: {', '.join(listed[:_MOST_NAMED])}{more}"
