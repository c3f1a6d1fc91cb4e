"""Warnings about tools' life-cycle states, for those who save or run definitions bound to them.

A deprecated tool still runs after its sunset; the warning says how long it is overdue. The guard denies blocked tools;
here they are only reported. After a change of a tool, the affected workflows are listed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from toolcrib.contracts import ToolDefinition, ToolRevision
from toolcrib.contracts.workflows import GraphState, WorkflowImplementation
from toolcrib.core.registry.catalog.catalog import Registry
from toolcrib.core.registry.links.bindings import bindings, means_many
from toolcrib.core.registry.links.locks import Lock


def notice_of(tool: ToolRevision, now: datetime) -> str | None:
    """The warning for those who use a tool; null if it is active and its provider proposes no change of it."""
    if tool.status == "active":
        return None if tool.status_message is None else f"tool {tool.ref!r} runs as before: {tool.status_message}"
    parts = [f"tool {tool.ref!r} is {tool.status}"]
    if tool.status_message:
        parts[0] += f": {tool.status_message.rstrip('.')}"
    if tool.status == "blocked":
        parts.append("calls of it are denied")
    elif tool.sunset is not None:
        overdue = (now - tool.sunset).days
        late = f" and is {overdue} days overdue" if overdue > 0 else ""
        parts.append(f"its sunset {'was' if now >= tool.sunset else 'is'} on {tool.sunset:%Y-%m-%d}{late}")
    if tool.replacement is not None:
        parts.append(f"use {tool.replacement!r} instead")
    return "; ".join(parts)


def warnings_for(definition: ToolDefinition, registry: Registry, realm: str, now: datetime) -> tuple[str, ...]:
    """The warnings for the author of a definition: of the tools that it names one by one."""
    named = (registry.find_by_ref(realm, ref) for ref in bindings(definition) if not means_many(ref))
    return _notices((tool for tool in named if tool is not None), now)


def warnings_at_start(
    tool: ToolRevision, pins: Mapping[str, str], registry: Registry, now: datetime
) -> tuple[str, ...]:
    """The warnings for a run: of the tool itself and of those that it has pinned, deprecated or to be changed by now.

    Of blocked ones the run hears anyway.
    """
    pinned = (registry.find(tool.realm, ref.partition("@")[0], content_hash) for ref, content_hash in pins.items())
    itself = registry.find(tool.realm, tool.name, tool.content_hash) or tool
    known = (itself, *(found for found in pinned if found is not None))
    told = _notices((found for found in known if found.status != "blocked"), now)
    return (*told, *_changes(tool, pins, registry))


def _changes(tool: ToolRevision, pins: Mapping[str, str], registry: Registry) -> Iterator[str]:
    """What a run of a workflow has to know of what has changed since that was published."""
    workflow = tool.definition.implementation
    if not isinstance(workflow, WorkflowImplementation):
        return
    yield from _of_lock(Lock(workflow, registry, tool.realm), pins)


def _of_lock(lock: Lock, pins: Mapping[str, str]) -> Iterator[str]:
    for ref in lock.workflow.bound:
        now = lock.of(ref)
        if ref in pins:
            is_taken = now.tool is not None and now.tool.content_hash == pins[ref]
            notice = now.reason if is_taken else None
        else:  # gone, or called by a model of what the steps call
            notice = lock.describe_choice(ref)
        if notice is not None:
            yield notice
        inner = lock.inside(ref)
        if inner is not None:
            yield from (
                f"workflow {ref!r}: {inner_notice}"
                for inner_notice in _of_lock(inner, inner.pins(inner.workflow.callees))
            )


def _notices(tools: Iterable[ToolRevision], now: datetime) -> tuple[str, ...]:
    found = (notice_of(tool, now) for tool in tools)
    return tuple(dict.fromkeys(notice for notice in found if notice is not None))


_MOST_NAMED: Final = 10


def concerns(tool: ToolRevision, registry: Registry) -> tuple[str, ...]:
    """What a tool does to the workflows that are bound to its name: which are held, and which break.

    Args:
        tool: As it was saved, or its status changed.
        registry: Has it, and the workflows.
    """
    of_kind = registry.index(tool.realm).having("kind", "workflow")
    if not of_kind:
        return ()
    found: dict[GraphState, set[str]] = {"ok": set(), "held": set(), "broken": set()}
    workflows = [
        (known, implementation)
        for name in sorted(of_kind)
        if (known := registry.find_by_ref(tool.realm, name)) is not None
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
    effects = (
        (broken, "does not work any more in", "look at the graph"),
        (found["held"] - broken, "is used as it was in", "until it is published again"),
        (found["ok"] - found["held"] - broken, "is used as it is now in", "whose runs tell what is new"),
    )
    return tuple(_sentence(tool, *what) for what in effects if what[0])


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
