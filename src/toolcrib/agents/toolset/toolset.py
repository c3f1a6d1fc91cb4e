"""The toolset of a run's model: offered tools under valid names, findable tools, and the policy."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec

from toolcrib.agents.toolset.allocation import GrantedRevision, ToolAllocation, aliases_of
from toolcrib.agents.toolset.schema_narrowing import narrow, without_cursor
from toolcrib.agents.toolset.tool_search import FIND_TOOLS, Folded, finder, tool_for_model
from toolcrib.contracts import JsonSchema
from toolcrib.core.policy import CallPolicy
from toolcrib.core.providers import ReferenceList
from toolcrib.llm import Tool, ToolSet


@dataclass(frozen=True)
class Toolset:
    """The tools of a run, the same as long as its tools are."""

    allotted: tuple[ToolAllocation, ...]
    """Each as often as it is named."""
    folded: Folded
    """The same once, in two parts: what the model is offered, and what it may find."""
    in_words: bool = False
    """Whether the model writes its calls as text."""
    hints: bool = False
    """Whether descriptions have examples, and what a call costs and takes."""

    @cached_property
    def tools(self) -> ToolSet:
        """What the model is offered from the start."""
        finding = [finder(self.folded.hidden)] if self.folded.hidden else []
        return ToolSet([*self._tools_for_model(self.folded.shown), *finding])

    @cached_property
    def offered(self) -> bytes:
        """The same as JSON, for the journal's blob."""
        return msgspec.json.encode(self.tools.tools)

    def policy(self, given: CallPolicy) -> CallPolicy:
        """What the run may call: what is offered, as far as the run's policy allows it.

        Args:
            given: That policy.
        """
        allowed, narrowed, versions = self._bounds
        return replace(given, allowed=allowed, narrowed=narrowed, versions=versions)

    def with_found(self, aliases: Sequence[str]) -> ToolSet:
        """What the model is offered after it has found hidden tools: they follow, in the order in which it did."""
        if not aliases:
            return self.tools
        hidden = {item.alias: item for item in self.folded.hidden}
        return ToolSet([*self.tools.tools, *self._tools_for_model([hidden[alias] for alias in aliases])])

    def findable(self, aliases: Sequence[str]) -> tuple[str, ...]:
        """Those of the names that are hidden tools here."""
        hidden = {item.alias for item in self.folded.hidden}
        return tuple(alias for alias in aliases if alias in hidden)

    def real_name(self, alias: str) -> str:
        """The tool's real name behind a model's name for it; an unknown one stays as it is."""
        return self._names.get(alias, alias)

    def _tools_for_model(self, items: Sequence[ToolAllocation]) -> Iterator[Tool]:
        return (tool_for_model(item, in_words=self.in_words, hints=self.hints) for item in items)

    @cached_property
    def _bounds(self) -> tuple[frozenset[str], Mapping[str, JsonSchema], Mapping[str, str]]:
        """What may be called, by which schemas, in which revisions."""
        mine = [(item.tool.name, item) for item in (*self.folded.shown, *self.folded.hidden)]
        narrowed = {name: item.schema for name, item in mine if item.schema != item.tool.definition.input_schema}
        return frozenset(name for name, _ in mine), narrowed, {name: item.tool.content_hash for name, item in mine}

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return {item.alias: item.tool.name for item in self.allotted}


def allot(found: Sequence[GrantedRevision], enums: Mapping[str, ReferenceList]) -> tuple[ToolAllocation, ...]:
    """Tools as a run sees them: under names of their own, with schemas closed by live values.

    Args:
        found: The tools.
        enums: Reference lists by property name.
    """
    aliases = aliases_of((item.tool.name for item in found), reserved=(FIND_TOOLS,))
    return tuple(
        ToolAllocation(
            item.tool,
            aliases[item.tool.name],
            narrow(without_cursor(item.tool.definition), enums),
            item.purpose,
            item.priority,
        )
        for item in found
    )


def each_once(allotted: Sequence[ToolAllocation]) -> tuple[ToolAllocation, ...]:
    """The same tools, each once; of several the last counts."""
    return tuple({item.alias: item for item in allotted}.values())
