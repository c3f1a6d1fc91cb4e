"""`find_tools` for large allocations: a model is offered a few tools, and can search for the others.

Beyond a number or size of tools, the model sees those with a priority, and `find_tools`. It can call the tools it
finds from its next turn on. Only tools of the allocation are found.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec
import orjson

from toolcrib.agents.toolset.allocation import ToolAllocation
from toolcrib.agents.toolset.placeholders import describe, describe_with_priority
from toolcrib.agents.toolset.schema_narrowing import schema_for_models
from toolcrib.contracts import JsonObject
from toolcrib.core.registry import ToolSearch, compile_schema, group_of
from toolcrib.core.runs import clip_text
from toolcrib.llm import Tool, ToolExample

FIND_TOOLS = "find_tools"
MOST_OFFERED = 40
"""Tools that are offered without folding."""
MOST_BYTES = 32_000
"""Of the offered tools as JSON: about 8,000 tokens."""
MOST_FOUND = 8
_MOST_GROUPS = 60
_LONGEST_DESCRIPTION = 300
_MOST_EXAMPLES = 3
"""Examples in a tool's description."""
_LONGEST_EXAMPLE = 400
"""Characters of one; a longer one is left out, or its output is."""
_LONGEST_HINT = 200
"""Characters of what a call costs."""


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


def tool_for_model(item: ToolAllocation, *, in_words: bool = False, hints: bool = False) -> Tool:
    """A tool as a model is offered it.

    Args:
        item: The tool.
        in_words: Whether the model writes its calls as text, and is therefore shown examples and the type of results.
        hints: Whether its description has its examples, and what a call costs and takes.
    """
    schema: JsonObject = schema_for_models(item.schema)
    lines = (describe_with_priority(item), *(_hints(item, in_words=in_words) if hints else ()))
    description = "\n".join(filter(None, lines))
    if not in_words:
        return Tool(item.alias, description, schema)
    definition = item.tool.definition
    examples = tuple(ToolExample(example.input, example.scenario) for example in definition.examples)
    return Tool(item.alias, description, schema, examples=examples, returns=definition.output_schema)


def _hints(item: ToolAllocation, *, in_words: bool) -> Iterator[str]:
    """Lines about the cost and time of a call, and the examples that fit the schema, unless they stand elsewhere."""
    definition = item.tool.definition
    if definition.cost_hint:
        yield f"Cost: {clip_text(definition.cost_hint, _LONGEST_HINT)}"
    if definition.estimated_latency_s is not None:
        yield f"Takes about {definition.estimated_latency_s:g} s."
    shown = () if in_words else _examples(item)
    if shown:
        yield "Examples:"
        yield from shown


def _examples(item: ToolAllocation) -> Sequence[str]:
    """The first examples of a tool that are short enough and fit its schema: what for, the input, and the output."""
    schema, shown = compile_schema(item.schema), list[str]()
    for example in item.tool.definition.examples:
        line = f"- {example.scenario}: {orjson.dumps(example.input).decode()}"
        output = "" if example.output is None else f" returns {orjson.dumps(example.output).decode()}"
        line = line + output if len(line + output) <= _LONGEST_EXAMPLE else line
        if len(shown) < _MOST_EXAMPLES and len(line) <= _LONGEST_EXAMPLE and not schema.problems(example.input):
            shown.append(line)
    return shown


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
