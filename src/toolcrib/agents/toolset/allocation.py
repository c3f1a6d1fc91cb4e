"""Allocations: the tools that an agentic tool may use, by name, pattern or group, as revisions of one run.

Named tools are pinned when the run is created. Patterns and groups are resolved when it begins, and recorded: a run
never sees tools that were saved later.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import orjson

from toolcrib.contracts import AgenticImplementation, Json, JsonSchema, NotFound, ToolRevision
from toolcrib.contracts.specs.agents import GROUP, TAG
from toolcrib.core.registry import Registry, means_many
from toolcrib.core.runs import RunContext

_NOT_IN_MODEL_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_MODEL_NAME = 64


class AllocationEntry(NamedTuple):
    """One entry of an allocation: a tool, or many, and what the model is told of it."""

    ref: str
    purpose: str = ""
    priority: int = 0

    @property
    def many(self) -> bool:
        """Whether it is a pattern or a group."""
        return means_many(self.ref)


class GrantedRevision(NamedTuple):
    """A revision that a run may use."""

    tool: ToolRevision
    purpose: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class ToolAllocation:
    """One tool that the embedded model may use, as this run sees it."""

    tool: ToolRevision
    alias: str
    """The name that models accept: letters, digits, `_` and `-`, 64 characters."""
    schema: JsonSchema
    """Input schema with live enums."""
    purpose: str = ""
    priority: int = 0


def allocation(implementation: AgenticImplementation) -> list[AllocationEntry]:
    """What is allotted, in order of use or priority."""
    if implementation.mode == "deterministic":
        return [AllocationEntry(step.tool, step.purpose) for step in implementation.steps]
    shares = [AllocationEntry(item.tool, "", item.priority) for item in implementation.tools]
    return sorted(shares, key=lambda share: -share.priority)


def meant(share: AllocationEntry, registry: Registry, realm: str, owner: str) -> Sequence[ToolRevision]:
    """The tools that an entry of an allocation means now: one, or by name all that fit but its owner.

    Args:
        share: The entry.
        registry: Has the tools.
        realm: Where they are.
        owner: Name of the agentic tool.

    Raises:
        NotFound: There is none.
    """
    if not share.many:
        return [registry.require(realm, share.ref)]
    found = matching(share.ref, registry, realm, owner)
    if not found:
        kinds = {GROUP: "group", TAG: "tag"}
        kind = next((kind for start, kind in kinds.items() if share.ref.startswith(start)), "pattern")
        msg = f"{kind} {share.ref!r} means no tool of realm {realm!r}; import or add the tools first"
        raise NotFound(msg)
    return found


async def resolve_allocation(
    context: RunContext, tool: ToolRevision, shares: Iterable[AllocationEntry], registry: Registry
) -> list[GrantedRevision]:
    """The revisions that this run may use; who is named one by one comes before the many.

    Raises:
        NotFound: A tool that is named does not exist.
    """
    named: list[AllocationEntry] = []
    many: list[AllocationEntry] = []
    for share in shares:
        (many if share.many else named).append(share)
    realm, pins = context.run.realm, context.request.pins
    found = [
        GrantedRevision(await registry.resolve(realm, share.ref, pins), share.purpose, share.priority)
        for share in named
    ]
    known = {item.tool.name for item in found}
    for share in many:
        for revision in await _look_up(context, tool, share, registry):
            if revision.name not in known:
                known.add(revision.name)
                found.append(GrantedRevision(revision, share.purpose, share.priority))
    return found


def aliases_of(names: Iterable[str], *, reserved: Iterable[str] = ()) -> Mapping[str, str]:
    """Names that models accept, each its own: where two come out the same, the later one gets a number."""
    aliases: dict[str, str] = {}
    names_in_use = set(reserved)
    for name in dict.fromkeys(names):
        plain = _NOT_IN_MODEL_NAME.sub("_", name)
        endings = (f"_{number}" if number > 1 else "" for number in count(1))
        candidates = (plain[: _LONGEST_MODEL_NAME - len(ending)] + ending for ending in endings)
        aliases[name] = next(free for free in candidates if free not in names_in_use)
        names_in_use.add(aliases[name])
    return aliases


async def _look_up(
    context: RunContext, tool: ToolRevision, share: AllocationEntry, registry: Registry
) -> Sequence[ToolRevision]:
    async def look() -> Json:
        fitting = matching(share.ref, registry, tool.realm, tool.name)
        found = {revision.name: revision.content_hash for revision in fitting}
        return {"allotted": share.ref, "tools": len(found), "kept": await context.keep(orjson.dumps(found))}

    known = await context.once(f"allotted.{share.ref}", "tools_allotted", look)
    hashes: dict[str, str] = orjson.loads(await context.read_blob(known["kept"]))
    replaced = context.request.replaced
    current_hashes = [replaced.get(content_hash, content_hash) for content_hash in hashes.values()]
    return [await registry.get_revision(context.run.realm, content_hash) for content_hash in current_hashes]


def matching(ref: str, registry: Registry, realm: str, owner: str) -> Sequence[ToolRevision]:
    """The tools that a pattern, a group or a tag means now. Its owner is never among them, and no agent is."""
    return [tool for tool in registry.index(realm).meant_by(ref) if tool.name != owner]
