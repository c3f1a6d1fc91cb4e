"""`find_tools` for large allocations: a model is offered a few tools, and can search for the others.

Beyond a number or size of tools, the model sees those with a priority, and `find_tools`. It can call the tools it
finds from its next turn on. Only tools of the allocation are found.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from toolcrib.agents.toolset.allocation import ToolAllocation
from toolcrib.agents.toolset.placeholders import describe, describe_with_priority
from toolcrib.agents.toolset.schema_narrowing import schema_for_models
from toolcrib.contracts import JsonObject
from toolcrib.core.registry import ToolSearch, group_of
from toolcrib.llm import Tool, ToolExample

FIND_TOOLS = "find_tools"
MOST_OFFERED = 40
"""Tools that are offered without folding."""
MOST_BYTES = 32_000
"""Of the offered tools as JSON: about 8,000 tokens."""
MOST_FOUND = 8
_MOST_GROUPS = 60
_LONGEST_DESCRIPTION = 300


@dataclass(frozen=True)
class Folded:
    """The tools of a run in two parts."""

    shown: tuple[ToolAllocation, ...]
    hidden: tuple[ToolAllocation, ...]
    """Empty if nothing is folded."""

    @cached_property
    def index(self) -> ToolSearch:
        """The hidden tools, to be searched; made when the first model looks."""
        return ToolSearch(item.tool.definition for item in self.hidden)

    def find(self, query: str, group: str | None) -> list[ToolAllocation]:
        """The hidden tools that fit a query best, best first."""
        by_name = {item.tool.name: item for item in self.hidden}
        return [by_name[hit.name] for hit in self.index.find(query, limit=MOST_FOUND, group=group)]


def fold(allotted: Sequence[ToolAllocation]) -> Folded:
    """Fold an allotment that is too large to be shown whole."""
    sizes = [len(msgspec.json.encode(tool_for_model(item))) for item in allotted]
    if len(allotted) <= MOST_OFFERED and sum(sizes) <= MOST_BYTES:
        return Folded(tuple(allotted), ())
    shown: list[ToolAllocation] = []
    room = MOST_BYTES
    for item, size in zip(allotted, sizes, strict=True):
        if item.priority > 0 and size <= room and len(shown) < MOST_OFFERED - 1:
            shown.append(item)
            room -= size
    kept = {item.alias for item in shown}
    return Folded(tuple(shown), tuple(item for item in allotted if item.alias not in kept))


def tool_for_model(item: ToolAllocation, *, in_words: bool = False) -> Tool:
    """A tool as a model is offered it.

    Args:
        item: The tool.
        in_words: Whether the model writes its calls as text, and is therefore shown examples and the type of results.
    """
    schema: JsonObject = schema_for_models(item.schema)
    if not in_words:
        return Tool(item.alias, describe_with_priority(item), schema)
    definition = item.tool.definition
    examples = tuple(ToolExample(example.input, example.scenario) for example in definition.examples)
    return Tool(item.alias, describe_with_priority(item), schema, examples=examples, returns=definition.output_schema)


def finder(hidden: Sequence[ToolAllocation]) -> Tool:
    """The tool that finds the others."""
    groups = _groups(hidden)
    properties: JsonObject = {
        "query": {"type": "string", "description": "What the tool should do, in a few words.", "minLength": 1}
    }
    if len(groups) > 1:
        properties["group"] = {"type": "string", "description": "Only tools of this group.", "enum": list(groups)}
    schema: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": ["query"],
        "additionalProperties": False,
    }
    return Tool(FIND_TOOLS, f"Finds tools by what they do. {summary(hidden)}", schema)


def summary(hidden: Sequence[ToolAllocation]) -> str:
    """What can be found; empty if nothing is hidden."""
    if not hidden:
        return ""
    groups = "; ".join(f"{name} ({number})" for name, number in _groups(hidden).items())
    return f"{len(hidden)} more tools can be found with {FIND_TOOLS} and called in the next turn. Groups: {groups}"


def reading(found: Sequence[ToolAllocation]) -> JsonObject:
    """What the model is told of the tools that were found."""
    if not found:
        return {"tools": [], "hint": "Nothing fits. Use other words, or leave the group out."}
    tools = [{"name": item.alias, "description": describe(item.tool)[:_LONGEST_DESCRIPTION]} for item in found]
    return {"tools": tools, "hint": "These can be called now."}


def _groups(hidden: Sequence[ToolAllocation]) -> dict[str, int]:
    return dict(Counter(group_of(item.tool.definition) for item in hidden).most_common(_MOST_GROUPS))
