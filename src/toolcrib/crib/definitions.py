"""What a program may say of an agentic tool, an agent or a workflow that it defines, beside its name."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypedDict, Unpack

from pydantic import ValidationError

from toolcrib.contracts import (
    AgentDefinition,
    AgenticContext,
    AgenticStatus,
    AgenticStep,
    AgentMemory,
    AllocatedTool,
    Grounding,
    Guardrail,
    InvalidDefinition,
    Json,
    JsonObject,
    JsonSchema,
    Limits,
    LLMConfig,
    PinnedHandle,
    ResponseFormat,
    SideEffects,
    ToolDefinition,
)
from toolcrib.contracts.workflows import WorkflowDefinition, WorkflowStep
from toolcrib.core.registry import FunctionTool, as_function_tool
from toolcrib.crib.handle import Agent
from toolcrib.workflows.checks import read_definition, refusal

Usable: TypeAlias = str | FunctionTool[..., Any] | Callable[..., Any] | ToolDefinition
"""A tool: one of the crib's by reference, a function, or a definition."""


class AgenticOptions(TypedDict, total=False):
    """Of an agentic tool."""

    steps: Sequence[str | AgenticStep]
    """The fixed sequence."""
    tools: Sequence[str | AllocatedTool]
    """What the model may choose from."""
    description: str
    """What a parent agent reads."""
    system_prompt: str | None
    """A template; a default one if null."""
    context: AgenticContext | None
    """Reference data, documentation."""
    input_schema: JsonSchema | None
    """Parameters; one `task` if null."""
    result_schema: JsonSchema | None
    """Shape of the answer; `{"summary": text}` if null."""
    grounding: Grounding
    """How sure one must be of what the model takes from a task: `evidence` (default), `strict`, `off`."""
    preview_above: int
    """A change of more items than this waits for a person, who is shown what would change; 500 by default."""
    version: str
    """Semantic version."""


class AgentOptions(TypedDict, total=False):
    """Of an agent; each is the field of `AgentDefinition` with its name, which has some more of every tool."""

    description: str
    title: str
    system_prompt: str
    prompt_fragments: Sequence[str]
    response_format: ResponseFormat
    """`structured` if a `response_schema` is given."""
    response_schema: JsonSchema
    tool_categories: Sequence[str]
    tool_tags: Sequence[str]
    excluded_tools: Sequence[str]
    max_tools_in_context: int
    delegates: Sequence[str | Agent]
    """By name, or as `Crib.agent` gave them."""
    side_effects: SideEffects
    parallel_tool_calls: bool
    durable: bool
    memory: AgentMemory
    guardrails: Sequence[Guardrail]
    requires_approval: bool
    principal_ref: str
    realms: Sequence[str]
    can_create_workflows: bool
    pins: Sequence[PinnedHandle]
    status: AgenticStatus
    security_uri: str
    category: str
    tags: Sequence[str]
    usage: str
    input_schema: JsonSchema
    version: str


class WorkflowOptions(TypedDict, total=False):
    """Of a workflow; each is the field of `WorkflowDefinition` with its name, which has some more of every tool."""

    description: str
    title: str
    input_schema: JsonSchema
    output_schema: JsonSchema
    output: Json
    side_effects: SideEffects
    guardrails: Sequence[Guardrail]
    requires_confirmation: bool
    status: AgenticStatus
    security_uri: str
    category: str
    tags: Sequence[str]
    usage: str
    version: str


def agent_definition(
    name: str,
    llm: LLMConfig,
    tools: Sequence[str | AllocatedTool],
    limits: Limits | None,
    **options: Unpack[AgentOptions],
) -> AgentDefinition:
    """The definition of an agent.

    Args:
        name: Its name.
        llm: Its model.
        tools: By reference, pattern of names, group or tag.
        limits: What a run may spend; the usual ones if null.
        **options: What else is to be said.

    Raises:
        InvalidDefinition: A field is unknown or not of its type; the message names it.
    """
    given: dict[str, Any] = {**options}
    if "response_schema" in given:
        given.setdefault("response_format", "structured")
    if limits is not None:
        given["limits"] = limits
    if "delegates" in given:
        given["delegates"] = [one.definition.name if isinstance(one, Agent) else one for one in given["delegates"]]
    try:
        return AgentDefinition.model_validate({"name": name, "llm": llm, "tools": tuple(tools), **given})
    except ValidationError as problem:
        found = problem.errors()[0]
        place = ".".join(map(str, found["loc"]))
        said = found["msg"].removeprefix("Value error, ")
        msg = ": ".join(filter(None, (f"agent {name!r}", place, said)))
        raise InvalidDefinition(msg) from None


def workflow_definition(
    name: str, steps: Sequence[WorkflowStep | JsonObject], limits: Limits | None, **options: Unpack[WorkflowOptions]
) -> WorkflowDefinition:
    """The definition of a workflow.

    Args:
        name: Its name.
        steps: Its steps.
        limits: What a run may spend; the usual ones if null.
        **options: What else is to be said.

    Raises:
        InvalidDefinition: A field is unknown or not of its type; `problems` has all of them.
    """
    given: JsonObject = {"name": name, "steps": list(steps), **options}
    if limits is not None:
        given["limits"] = limits
    found = read_definition(given)
    if found.definition is None:
        raise refusal(name, found.problems)
    return found.definition


def reference_of(tool: Usable, add: Callable[[FunctionTool[..., Any] | ToolDefinition], None]) -> str:
    """The reference of a tool; what is none yet is added.

    Raises:
        InvalidDefinition: No tool can be made of the function.
    """
    if isinstance(tool, str):
        return tool
    addition = tool if isinstance(tool, ToolDefinition) else as_function_tool(tool)
    add(addition)
    definition = addition if isinstance(addition, ToolDefinition) else addition.definition
    return f"{definition.name}@{definition.version}"
