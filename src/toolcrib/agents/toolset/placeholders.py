"""Placeholders of system prompts: their names, their values, and the checks of a prompt.

A placeholder is a plain name; a prompt cannot call or compute anything.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final

from toolcrib.agents.toolset.allocation import ToolAllocation
from toolcrib.agents.toolset.default_prompt import reference_names
from toolcrib.agents.toolset.signatures import signature
from toolcrib.contracts import (
    AgenticContext,
    AgenticImplementation,
    InvalidExpression,
    Json,
    JsonSchema,
    ToolRevision,
)
from toolcrib.contracts.tools.rendered_prompts import PlaceholderValue
from toolcrib.core.expressions import Template
from toolcrib.core.expressions.suggestions import listing, suggestion
from toolcrib.core.providers import ReferenceList
from toolcrib.core.registry import DefinitionFaults
from toolcrib.llm.base.prices import tokens_of

PLACEHOLDERS: Mapping[str, str] = MappingProxyType(
    {
        "integration_schema": "The inputs of the allotted tools, as signatures.",
        "reference_data": "All lists of valid values.",
        "user_task": "The task: the input's `task`, or the whole input.",
        "available_tools": "Names and descriptions of the allotted tools, with their priorities.",
        "execution_history": "What the run has done so far, filled in again for each turn.",
        "documentation": "The documentation of the tool's context.",
        "example_queries": "The examples of tasks of the tool's context.",
        "input": "All parameters of the tool; `input.NAME` is one of them.",
    }
)
"""Names that a system prompt may use, and what they stand for."""
OF_ONE_RUN: Final = frozenset({"user_task", "execution_history", "input"})
"""Those whose values differ with each input or turn."""

_PLAIN_NAME = re.compile(r"\s*[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\s*")
_MOST_LISTED = 200
"""Values of one list in a prompt; the schemas may know more."""
_MOST_PREVIEWED = 2_000
"""Characters of a value in a list of placeholders."""
_SHORT_ID = 12
"""Characters of a snapshot's id in a prompt."""


def check_prompt(name: str, implementation: AgenticImplementation, input_schema: JsonSchema | None = None) -> None:
    """Refuse a prompt that could not be filled in, or that is more than text with names in it.

    Args:
        name: The tool's name.
        implementation: What the prompt is for.
        input_schema: Of the tool, if the parameters that the prompt reads are to be checked.

    Raises:
        InvalidDefinition: Placeholders are unknown, are not plain names, or read what need not exist; all are named.
    """
    found = DefinitionFaults(f"agentic tool {name!r}")
    for problem in prompt_problems(implementation, input_schema):
        found.add("/system_prompt", f"system_prompt: {problem}")
    found.tell()


def prompt_problems(implementation: AgenticImplementation, input_schema: JsonSchema | None) -> Iterator[str]:
    """What is wrong with the placeholders of a prompt: each that could not be filled in.

    Args:
        implementation: What the prompt is for.
        input_schema: Of the tool; what parameters there are is not checked if null.
    """
    known = {*PLACEHOLDERS, *(f"reference_data.{one}" for one in reference_names(implementation))}
    try:
        prompt = Template.parse(implementation.system_prompt, "{{}}")
    except InvalidExpression as problem:
        yield str(problem)
        return
    for placeholder in prompt.placeholders:
        unknown = next(iter(placeholder.unknown(known, "{{}}")), None)
        if unknown is not None:
            yield unknown
        elif not _PLAIN_NAME.fullmatch(placeholder.source[2:-2]):
            yield (
                f"{placeholder.source!r} at {placeholder.place} is not a plain name; a prompt computes nothing, so "
                "write one of the placeholders alone"
            )
        else:
            for reference in placeholder.expression.references:
                reason = _missing_field(reference, input_schema)
                if reason is not None:
                    yield f"{placeholder.source!r} at {placeholder.place} {reason}"


def _missing_field(reference: str, input_schema: JsonSchema | None) -> str | None:
    """Why what a placeholder reads need not exist; null if it always does."""
    root, *way = reference.split(".")
    depth = {"reference_data": 1, "input": len(way)}.get(root, 0)
    if len(way) > depth:
        whole = ".".join((root, *way[:depth]))
        return f"reads a field of {whole!r}, which is text; write '{{{{{whole}}}}}'"
    if root != "input" or not way or input_schema is None:
        return None
    properties: JsonSchema = input_schema.get("properties", {})
    if way[0] not in properties:
        has = f"the tool has: {listing(way[0], properties)}" if properties else "the tool declares none"
        return f"reads a parameter that there is not; {suggestion(way[0], properties)}{has}"
    if way[0] in input_schema.get("required", ()) or "default" in properties[way[0]]:
        return None
    return f"reads {way[0]!r}, which may be left out; make it required, or give it a default"


def describe_placeholders(implementation: AgenticImplementation, values: Mapping[str, str]) -> list[PlaceholderValue]:
    """The placeholders that a prompt may use, each with the length of its value, if that is known.

    Args:
        implementation: What the prompt is for.
        values: What placeholders stand for now, by name.
    """
    try:
        used = Template.parse(implementation.system_prompt, "{{}}").references
    except InvalidExpression:
        used = frozenset[str]()
    lists = {f"reference_data.{name}": f"The valid values of {name!r}." for name in reference_names(implementation)}
    return [
        PlaceholderValue(
            name=name,
            description=description,
            used=name in used or (name == "input" and any(reference.startswith("input.") for reference in used)),
            characters=None if (value := values.get(name)) is None else len(value),
            tokens=None if value is None else tokens_of(len(value)),
            preview=None if value is None else value[:_MOST_PREVIEWED],
        )
        for name, description in {**PLACEHOLDERS, **lists}.items()
    ]


def placeholder_texts(implementation: AgenticImplementation, scope: Mapping[str, Json]) -> dict[str, str]:
    """What placeholders stand for in every run, by name.

    Args:
        implementation: What the prompt is for.
        scope: What a prompt may use, as `scope_of` says.
    """
    lists = (f"reference_data.{name}" for name in reference_names(implementation))
    names = (name for name in (*PLACEHOLDERS, *lists) if name not in OF_ONE_RUN)
    return {name: Template.parse(f"{{{{{name}}}}}", "{{}}").render_text(scope) for name in names}


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
