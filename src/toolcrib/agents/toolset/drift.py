"""Schema drift: what changed in the tools of an agentic tool since its prompt was made.

A saved definition names the revisions, by content hash, that its prompt was made from. Revisions never change, so the
difference can be computed at any time. Saving an unchanged prompt keeps the recorded revisions.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from toolcrib.agents.toolset.allocation import allocation
from toolcrib.contracts import (
    AgenticImplementation,
    Difference,
    DriftChange,
    DriftReport,
    NotFound,
    ToolDefinition,
    ToolRevision,
    content_hash,
)
from toolcrib.core.registry import Providers, Registry, compare_input, compare_output

Current: TypeAlias = Callable[[str], ToolRevision | None]
"""The revision that a reference means now, for whoever asks."""

_LISTS = "reference_data."


def with_basis(
    definition: ToolDefinition, realm: str, registry: Registry, providers: Providers, *, is_default: bool
) -> ToolDefinition:
    """The definition with what its prompt was made from, as it is saved.

    What a caller gives is kept, unless it is what the revision before had for another prompt. A prompt of the author's
    own that has not changed since that revision was made from what that one was made from.

    Args:
        definition: An agentic tool, or any other, which stays as it is.
        realm: Where its tools are.
        registry: Has them.
        providers: Have the lists that are no tools.
        is_default: The prompt names nothing of any tool, so it fits whatever the tools are.
    """
    implementation = definition.implementation
    if not isinstance(implementation, AgenticImplementation):
        return definition
    before = registry.find(realm, definition.name, None)
    earlier = before.definition.implementation if before is not None else None
    given = implementation.made_from
    if earlier is not None and isinstance(earlier, AgenticImplementation):
        same = earlier.system_prompt == implementation.system_prompt
        if given == earlier.made_from and not same:
            given = {}
        elif not given and same and not is_default:
            given = earlier.made_from
    found = given or basis_of(implementation, realm, registry, providers)
    return definition.model_copy(update={"implementation": implementation.model_copy(update={"made_from": found})})


def basis_of(
    implementation: AgenticImplementation, realm: str, registry: Registry, providers: Providers
) -> dict[str, str]:
    """What a prompt that is made now is made from: content hashes of tools and of the lists of providers."""
    refs = [*(share.ref for share in allocation(implementation) if not share.many), *_reading(implementation)]
    tools = {ref: found.content_hash for ref in refs if (found := registry.find_by_ref(realm, ref)) is not None}
    return {**tools, **_lists(implementation, realm, providers)}


async def drift_of(
    tool: ToolRevision, registry: Registry, providers: Providers, current: Current | None = None
) -> DriftReport:
    """Hold an agentic tool against its tools as they are now, or as a run has pinned them.

    Args:
        tool: The agentic tool; for any other the report is empty.
        registry: Has the revisions that the prompt was made from.
        providers: Have the lists.
        current: What a reference means; the newest revision if null.
    """
    implementation = tool.definition.implementation
    changes: list[DriftChange] = []
    if isinstance(implementation, AgenticImplementation):
        find = current or partial(registry.find_by_ref, tool.realm)
        reading = frozenset(_reading(implementation))
        for ref, made in implementation.made_from.items():
            if not ref.startswith(_LISTS):
                changes += await _tool_drift(tool.realm, ref, made, find(ref), registry, is_list=ref in reading)
        changes += _list_drift(implementation, _lists(implementation, tool.realm, providers))
    return DriftReport(tool=tool.ref, content_hash=tool.content_hash, drifted=bool(changes), changes=tuple(changes))


async def _tool_drift(
    realm: str, ref: str, made: str, now: ToolRevision | None, registry: Registry, *, is_list: bool
) -> list[DriftChange]:
    if now is None:
        return [DriftChange(subject=ref, kind="missing", message=f"tool {ref!r} is not there any more")]
    if now.content_hash == made:
        return []
    try:
        old = await registry.get_revision(realm, made)
    except NotFound:
        return []  # the definition comes from another crib, whose tools are not known here
    found = compare_input(old.definition.input_schema, now.definition.input_schema)
    if is_list:
        found += compare_output(old.definition.output_schema, now.definition.output_schema)
    return [_change(now.name, difference) for difference in found]


def _list_drift(implementation: AgenticImplementation, now: Mapping[str, str]) -> Iterator[DriftChange]:
    for name, made in implementation.made_from.items():
        if name.startswith(_LISTS) and name not in now:
            yield DriftChange(subject=name, kind="missing", message=f"{name} is no longer declared by its provider")
        elif name.startswith(_LISTS) and now[name] != made:
            message = f"{name} is declared differently by its provider"
            yield DriftChange(subject=name, kind="changed", message=message, change_class="additive")


def _reading(implementation: AgenticImplementation) -> list[str]:
    """The tools that the tool's own lists are read with."""
    return [source.tool for source in implementation.context.reference_data if source.tool]


def _lists(implementation: AgenticImplementation, realm: str, providers: Providers) -> dict[str, str]:
    wanted = {(data.provider, name) for data in implementation.context.provider_data for name in data.data_types}
    return {
        f"{_LISTS}{source.name}": content_hash(source.model_dump(mode="json"))
        for provider in sorted({provider for provider, _ in wanted})
        if (found := providers.find(realm, provider)) is not None
        for source in found.reference_data
        if (provider, source.name) in wanted
    }


def _change(tool: str, found: Difference) -> DriftChange:
    return DriftChange(
        subject=tool,
        kind="changed" if found.kind == "required" else found.kind,
        place=found.place or None,
        message=f"{tool}: {found.place or found.part} {found.message}",
        change_class=found.change_class,
    )
