"""The description of a tool for a parent agent, made by rules, and the check of one that its author wrote.

It has three parts: `Use this tool …`, `# Required inputs`, `# What the tool outputs`. An author's `long_description`
replaces it, and is checked for the same parts.
"""

from collections.abc import Iterator
from typing import Final, cast

from toolcrib.contracts import AgenticImplementation, Json, JsonSchema, ToolDefinition

OPENING: Final = "Use this tool"
REQUIRED: Final = "# Required inputs (always include these):"
OPTIONAL: Final = "# Optional inputs:"
OUTPUTS: Final = "# What the tool outputs:"

_WORDS: Final = """
add analyse analyze apply approve archive ask assign book build calculate cancel change check close compare compute
convert copy count create delete describe download draft edit estimate execute export extract fetch fill find format
forward generate get import insert inspect join list load look make manage merge modify move open order parse pay
plan post predict process publish put query rank read receive record refund register remove rename replace reply
report reserve resolve restore return review run save schedule score search select send set show sort split start
stop store submit subscribe summarise summarize sync take test track transfer translate trigger update upload
validate verify watch write
"""
_VERBS: Final = frozenset(_WORDS.split())
"""Words with which a description says what to do, and so can follow `Use this tool to`."""


def describe(definition: ToolDefinition) -> str:
    """The text for a parent agent: the author's `long_description`, or one made from the definition."""
    return definition.long_description or generate_description(definition)


def generate_description(definition: ToolDefinition) -> str:
    """The text made by rule; equal definitions give equal texts."""
    schema = definition.input_schema
    required = frozenset(cast("list[str]", schema.get("required", [])))
    properties = cast("dict[str, Json]", schema.get("properties", {}))
    needed = [_input(definition, name, properties[name]) for name in properties if name in required]
    optional = [_input(definition, name, properties[name]) for name in properties if name not in required]
    parts = [_purpose(definition), "\n".join([REQUIRED, *(needed or ["- none"])])]
    if optional:
        parts.append("\n".join([OPTIONAL, *optional]))
    parts.append(f"{OUTPUTS}\n{' '.join(_outputs(definition))}")
    return "\n\n".join(parts)


def check_description(text: str, definition: ToolDefinition) -> list[str]:
    """What is missing in a text for parents; empty if nothing is."""
    missing: list[str] = []
    if not text.startswith(OPENING):
        missing.append(f"it must begin with {OPENING!r}")
    missing += [f"it lacks the heading {heading!r}" for heading in (REQUIRED, OUTPUTS) if heading not in text]
    required = cast("list[str]", definition.input_schema.get("required", []))
    missing += [f"it does not list the required input {name!r}" for name in required if f"- {name}:" not in text]
    return missing


def _purpose(definition: ToolDefinition) -> str:
    description = " ".join(definition.description.split())
    if not description:
        description = definition.title or definition.name
    first = description.partition(" ")[0]
    if description.startswith(OPENING):
        opening = description
    elif first.lower() in _VERBS:
        opening = f"{OPENING} to {first.lower()}{description[len(first) :]}"
    else:
        opening = f"{OPENING} for the following: {description}"
    opening = opening if opening.endswith((".", "!", "?")) else f"{opening}."
    return " ".join(filter(None, (opening, *_abilities(definition), definition.usage)))


def _abilities(definition: ToolDefinition) -> Iterator[str]:
    """What the steps of a fixed sequence are for, where their author says it."""
    implementation = definition.implementation
    if isinstance(implementation, AgenticImplementation):
        purposes = [step.purpose.strip().rstrip(".") for step in implementation.steps if step.purpose.strip()]
        if purposes:
            yield f"It does this for you: {'; '.join(purposes)}."


def _input(definition: ToolDefinition, name: str, schema: Json) -> str:
    found = cast("JsonSchema", schema) if isinstance(schema, dict) else {}
    description = " ".join(str(found.get("description", "")).split()) or _unsaid(found.get("type"))
    description = description if description.endswith((".", "!", "?")) else f"{description}."
    values = found.get("enum")
    if isinstance(values, list):
        description += f" One of: {', '.join(map(str, cast('list[Json]', values)))}."
    examples = list(_examples(definition, name))
    quoted = ", ".join(f'"{example}"' for example in dict.fromkeys(examples))
    return f"- {name}: {description} Examples: {quoted}." if quoted else f"- {name}: {description}"


def _unsaid(kind: Json) -> str:
    return f"A value of type {kind}." if isinstance(kind, str) else "A value as its schema says."


def _examples(definition: ToolDefinition, name: str) -> Iterator[str]:
    """Texts that were given for an input; the example queries of an agentic tool are tasks."""
    for example in definition.examples:
        if isinstance(example.input.get(name), str):
            yield example.input[name]
    implementation = definition.implementation
    if name == "task" and isinstance(implementation, AgenticImplementation):
        yield from implementation.context.example_queries


def _outputs(definition: ToolDefinition) -> Iterator[str]:
    implementation = definition.implementation
    schema = definition.output_schema
    if isinstance(implementation, AgenticImplementation):
        fields = list(_fields(implementation.result_schema or schema))
        yield f"Returns {', '.join(fields)}." if fields else "Returns a summary of what was done."
        yield (
            "If the task is unclear, or a limit or a rule keeps it from being done, it fails with an error that asks "
            "or says why, and with what was done. All details are handled inside the tool."
        )
        return
    fields = list(_fields(schema))
    if fields:
        yield f"Returns an object with {', '.join(fields)}."
    elif schema and schema.get("type") == "array":
        yield "Returns a list."
    else:
        yield "Returns the result of the call."


def _fields(schema: JsonSchema | None) -> Iterator[str]:
    for name, field in cast("dict[str, Json]", (schema or {}).get("properties", {})).items():
        description = cast("JsonSchema", field).get("description") if isinstance(field, dict) else None
        yield f"{name} ({' '.join(str(description).split()).rstrip('.')})" if description else name
