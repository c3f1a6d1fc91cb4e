"""Which tools a definition names: what its runs pin, what a change of them affects, and where a circle would close."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from toolcrib.contracts import (
    AgenticImplementation,
    AgentImplementation,
    CodeImplementation,
    CompositeImplementation,
    ToolDefinition,
)
from toolcrib.contracts.workflows import AUTHORING_TOOLS, WorkflowImplementation

GROUP = "group:"
"""Begins a reference to all tools of a group."""
TAG = "tag:"
"""Begins a reference to all tools with a tag."""


def bindings(definition: ToolDefinition) -> tuple[str, ...]:
    """The references to other tools in a definition, each once, in its order.

    `name`, `name@range`, and of tools with a model also patterns of names, groups and tags.
    """
    return tuple(dict.fromkeys((*called(definition), *beside(definition))))


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


def called(definition: ToolDefinition) -> Iterator[str]:
    """The references to what the implementation calls, or lets a model call."""
    match definition.implementation:
        case AgentImplementation() as agent:
            yield from (item.tool for item in agent.tools)
            yield from (f"{GROUP}{category}" for category in agent.tool_categories)
            yield from (f"{TAG}{tag}" for tag in agent.tool_tags)
            yield from agent.delegates
            yield from AUTHORING_TOOLS if agent.can_create_workflows else ()
            yield from filter(None, (agent.memory.summary_agent,))
        case AgenticImplementation() as agentic:
            yield from (step.tool for step in agentic.steps)
            yield from (item.tool for item in agentic.tools)
            yield from (source.tool for source in agentic.context.reference_data if source.tool is not None)
        case CompositeImplementation() as composite:
            yield from (route.tool for route in composite.routes)
        case CodeImplementation() as code:
            yield from code.tools
        case WorkflowImplementation() as workflow:
            yield from workflow.callees
        case _:
            return


def beside(definition: ToolDefinition) -> Iterator[str]:
    """The references to what the executor calls for a tool of any kind."""
    yield from (rule.tool for rule in definition.error_handling if rule.tool is not None)
    if definition.reconcile is not None:
        yield definition.reconcile
