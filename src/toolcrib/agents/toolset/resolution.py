"""Resolves an agent's tools: which its model is shown, which it can find, and which are left out and why.

Tools are selected by name, then by pattern, category and tag. Removed are excluded tools, those that the run's
principal may not execute, those out of service, and those that do more than the run may. Delegates follow. If there
are too many, those with a priority are shown, then those that fit the message best, and a built-in tool finds the
others. The tools for writing workflows come first. The order is deterministic, so that providers can cache the prompt.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, NamedTuple, TypeAlias

from toolcrib.agents.toolset.allocation import AllocationEntry, matching
from toolcrib.contracts import (
    EFFECTS,
    AgentImplementation,
    NotFound,
    Principal,
    ResolvedTool,
    SideEffects,
    ToolRevision,
)
from toolcrib.contracts.specs.agents import AUTHORING_TOOLS, GROUP, TAG
from toolcrib.core.policy import is_in_service, permit
from toolcrib.core.registry import Registry

_AUTHORING: Final = 1000
"""Priority of the tools for writing workflows, which an agent that may do so is always shown."""
_MOST_RANKED: Final = 1000
"""Tools that are ordered by how well they fit the message."""

Bound: TypeAlias = Callable[[str], Awaitable[ToolRevision]]
"""The tool that a name or `name@range` means to whoever asks."""


class Candidate(NamedTuple):
    """A tool that the model may use."""

    tool: ToolRevision
    share: AllocationEntry
    shown: bool = True


@dataclass(frozen=True, slots=True)
class Resolution:
    """The tools of an agent for one message."""

    candidates: Sequence[Candidate]
    left_out: Sequence[ResolvedTool]

    def report(self) -> list[ResolvedTool]:
        """The same for people."""
        usable = [
            ResolvedTool(
                tool=item.tool.ref,
                content_hash=item.tool.content_hash,
                reference=item.share.ref,
                availability="shown" if item.shown else "findable",
                priority=item.share.priority,
            )
            for item in self.candidates
        ]
        return [*usable, *self.left_out]


@dataclass(frozen=True, slots=True)
class ToolRequester:
    """For whom tools are resolved."""

    realm: str
    name: str
    """Of the agent, which is never a tool of its own."""
    principal: Principal
    """Who makes the calls."""
    side_effects: SideEffects
    """The most that they may do."""
    message: str | None
    """What the agent is asked; null if nobody has asked yet."""


async def resolve(agent: AgentImplementation, asker: ToolRequester, registry: Registry, bound: Bound) -> Resolution:
    """The tools of an agent, for one run or for somebody who wants to know.

    Args:
        agent: What its definition says.
        asker: For whom.
        registry: Has the tools.
        bound: Finds those that are named one by one.
    """
    candidates: list[Candidate] = []
    left_out: list[ResolvedTool] = []
    known: set[str] = set()
    writing = AUTHORING_TOOLS if agent.can_create_workflows else ()
    for share in (*(AllocationEntry(name, priority=_AUTHORING) for name in writing), *shares_of(agent)):
        try:
            found = matching(share.ref, registry, asker.realm, asker.name) if share.many else [await bound(share.ref)]
        except NotFound as missing:
            left_out.append(_omission(share, None, str(missing)))
            continue
        for tool in (tool for tool in found if tool.name not in known):
            known.add(tool.name)
            reason = _exclusion(agent, tool, share) or _refusal(tool, asker)
            if reason is None:
                candidates.append(Candidate(tool, share))
            elif not share.many or permit(tool, asker.principal) is None:
                left_out.append(_omission(share, tool, reason))  # else hidden: its pattern matched many
    shown = await _visible_names(candidates, agent.max_tools_in_context, asker, registry)
    return Resolution([item._replace(shown=item.tool.name in shown) for item in candidates], left_out)


def shares_of(agent: AgentImplementation) -> Iterator[AllocationEntry]:
    """What a definition means by its tools and delegates, those that it names one by one before the many."""
    named = [AllocationEntry(item.tool, priority=item.priority) for item in agent.tools]
    yield from (share for share in named if not share.many)
    yield from (share for share in named if share.many)
    yield from (AllocationEntry(f"{GROUP}{category}") for category in agent.tool_categories)
    yield from (AllocationEntry(f"{TAG}{tag}") for tag in agent.tool_tags)
    yield from (AllocationEntry(delegate) for delegate in agent.delegates)


def _exclusion(agent: AgentImplementation, tool: ToolRevision, share: AllocationEntry) -> str | None:
    if share.ref in agent.delegates:
        return None
    pattern = next((pattern for pattern in agent.excluded_tools if fnmatchcase(tool.name, pattern)), None)
    return None if pattern is None else f"the agent excludes {pattern!r}"


def _refusal(tool: ToolRevision, asker: ToolRequester) -> str | None:
    """Why the guard would deny every call of a tool."""
    denied = permit(tool, asker.principal)
    if denied is not None:
        return denied.message
    if not is_in_service(tool):
        return "it is out of service"
    definition = tool.definition
    if "tool" not in definition.available_as:
        return f"it is available as {' and '.join(definition.available_as) or 'nothing'}, not as a tool"
    if EFFECTS.index(definition.side_effects) > EFFECTS.index(asker.side_effects):
        return f"it {definition.side_effects}, and the agent's calls may do {asker.side_effects!r} at most"
    return None


async def _visible_names(
    candidates: Sequence[Candidate], most: int, asker: ToolRequester, registry: Registry
) -> frozenset[str]:
    """Names of those that the model sees; one place is kept for the tool that finds the others."""
    if len(candidates) <= most:
        return frozenset(item.tool.name for item in candidates)
    names = frozenset(item.tool.name for item in candidates)
    index = await registry.index(asker.realm).ensure_search()
    hits = index.find(asker.message, limit=_MOST_RANKED, among=names) if asker.message else ()
    ranks = {hit.name: rank for rank, hit in enumerate(hits)}
    best = sorted(candidates, key=lambda item: (-item.share.priority, ranks.get(item.tool.name, len(ranks))))
    return frozenset(item.tool.name for item in best[: most - 1])


def _omission(share: AllocationEntry, tool: ToolRevision | None, reason: str) -> ResolvedTool:
    return ResolvedTool(
        tool=share.ref if tool is None else tool.ref,
        content_hash=None if tool is None else tool.content_hash,
        reference=share.ref,
        availability="left_out",
        reason=reason,
        priority=share.priority,
    )
