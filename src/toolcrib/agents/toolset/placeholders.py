"""Placeholders of system prompts: their names, their values, and the checks of a prompt.

A placeholder is a plain name; a prompt cannot call or compute anything.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from toolcrib.agents.toolset.allocation import ToolAllocation
from toolcrib.agents.toolset.default_prompt import reference_names
from toolcrib.agents.toolset.signatures import signature
from toolcrib.contracts import (
    AgenticContext,
    AgenticImplementation,
    InvalidDefinition,
    InvalidExpression,
    Json,
    ToolRevision,
)
from toolcrib.core.expressions import Template
from toolcrib.core.providers import ReferenceList

PLACEHOLDERS = (
    "integration_schema",
    "reference_data",
    "user_task",
    "available_tools",
    "execution_history",
    "documentation",
    "example_queries",
    "input",
)
"""Names that a system prompt may use; `input` holds all parameters of the tool."""

_PLAIN_NAME = re.compile(r"\s*[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\s*")
_MOST_LISTED = 200
"""Values of one list in a prompt; the schemas may know more."""
_SHORT_ID = 12
"""Characters of a snapshot's id in a prompt."""


def check_prompt(name: str, implementation: AgenticImplementation) -> None:
    """Refuse a prompt that could not be filled in, or that is more than text with names in it.

    Args:
        name: The tool's name.
        implementation: What the prompt is for.

    Raises:
        InvalidDefinition: A placeholder is unknown or is not a plain name.
    """
    known = {*PLACEHOLDERS, *(f"reference_data.{one}" for one in reference_names(implementation))}
    try:
        prompt = Template.parse(implementation.system_prompt, "{{}}")
        prompt.check(known)
    except InvalidExpression as problem:
        msg = f"agentic tool {name!r}: system_prompt: {problem}"
        raise InvalidDefinition(msg) from problem
    for placeholder in prompt.placeholders:
        if not _PLAIN_NAME.fullmatch(placeholder.source[2:-2]):
            msg = (
                f"agentic tool {name!r}: system_prompt: {placeholder.source!r} at {placeholder.place} is not a plain "
                "name; a prompt computes nothing, so write one of the placeholders alone"
            )
            raise InvalidDefinition(msg)


def scope_of(
    implementation: AgenticImplementation,
    shown: Sequence[ToolAllocation],
    references: Sequence[ReferenceList],
    *,
    began: datetime,
    more: str = "",
) -> Mapping[str, Json]:
    """What a prompt may use besides the task and its history.

    Args:
        implementation: The tool.
        shown: The tools that the model is offered from the start.
        references: Its lists.
        began: When the run began.
        more: What follows the tools: how to find those that are not shown.
    """
    context = implementation.context
    schemas = [f"{item.alias}: {signature(item.schema)}" for item in shown if context.include_schemas]
    tools = [f"- {item.alias}: {describe_with_priority(item)}" for item in shown]
    if any(item.priority for item in shown):
        tools.append("Where several tools fit, prefer the one with the higher priority.")
    return {
        "integration_schema": "\n".join(schemas),
        "reference_data": {values.name: render_list(values, began) for values in references},
        "available_tools": "\n".join(filter(None, (*tools, more))),
        "documentation": context.documentation,
        "example_queries": _examples(context),
    }


def appendix_of(prompt: Template, context: AgenticContext) -> str:
    """The documentation and the examples, as far as the prompt has no place for them."""
    examples = _examples(context)
    parts = {
        "documentation": context.documentation,
        "example_queries": examples and f"Examples of tasks:\n{examples}",
    }
    return "\n\n".join(text for name, text in parts.items() if text and name not in prompt.references)


def describe(tool: ToolRevision) -> str:
    """A tool's description for a model: what it does and when to use it."""
    definition = tool.definition
    return "\n".join(filter(None, (definition.description, definition.usage)))


def describe_with_priority(item: ToolAllocation) -> str:
    """A tool's description with its priority, where it has one."""
    return f"{describe(item.tool)} (priority {item.priority})" if item.priority else describe(item.tool)


def render_list(values: ReferenceList, began: datetime) -> str:
    """A list as a prompt has it: values with what people call them, and how old it is if the run did not read it.

    Args:
        values: The list.
        began: When the run began.
    """
    shown = [
        str(item.value) if item.label == str(item.value) else f"{item.value} = {item.label}"
        for item in values.items[:_MOST_LISTED]
    ]
    if len(values.items) > len(shown):
        shown.append(f"… {len(values.items) - len(shown)} more of {len(values.items)}")
    text = "; ".join(shown)
    if values.id is None or values.fetched_at >= began:
        return text
    return f"{text} (as of {values.fetched_at:%Y-%m-%d %H:%M} UTC, snapshot {values.id[:_SHORT_ID]})"


def _examples(context: AgenticContext) -> str:
    return "\n".join(f"- {example}" for example in context.example_queries)
