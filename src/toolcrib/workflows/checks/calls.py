"""Checks the calls of steps: does the tool exist, may the step use it, and do the arguments fit?

Also checks steps that run a part of a deterministic agentic tool.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from toolcrib.contracts import EFFECTS, AgenticImplementation, NotFound, ToolRevision
from toolcrib.contracts.workflows import (
    AGENT_HANDLERS,
    AGENTIC_HANDLERS,
    BUILT_IN_HANDLERS,
    ConditionUse,
    StepRegistration,
    WorkflowProblem,
    WorkflowStep,
)
from toolcrib.core.policy import is_in_service
from toolcrib.core.registry import means_many, misfits
from toolcrib.workflows.checks.structure.prepared_definition import Layout
from toolcrib.workflows.checks.types.value_types import article

_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "agentic.plan": ("tool", "input"),
    "agentic.step": ("tool", "input", "step", "plan", "done"),
    "agentic.format": ("tool", "input", "plan", "done"),
}
_NOT_TAKEN: Final = ("retry", "timeout_s")
"""Fields of a step that say how one call is made; a stage makes several, each as its tool says."""


def stage_problems(layout: Layout, step: WorkflowStep, handler: str) -> Iterator[WorkflowProblem]:
    """What is wrong with such a step.

    Args:
        layout: The workflow.
        step: The step.
        handler: The handler that it names.
    """
    for name in _NEEDS[handler]:
        if name not in step.input:
            yield layout.error(step, ("input",), f"{handler} needs {name!r}", "add it")
    for name in sorted(step.input.keys() - set(_NEEDS[handler])):
        yield layout.error(
            step, ("input", name), f"{handler} does not take {name!r}", layout.nearest.near(name, _NEEDS[handler])
        )
    for name in sorted(step.model_fields_set & set(_NOT_TAKEN)):
        message = f"{handler} makes several calls, and {name} is of one"
        yield layout.error(step, (name,), message, "set it in the tools that the agentic tool calls")
    named = step.input.get("tool")
    if "tool" in step.input and (not isinstance(named, str) or "${" in named):
        message = "tool must name an agentic tool by its name, without an expression: the graph is fixed before it runs"
        yield layout.error(step, ("input", "tool"), message, "write the name of the tool")
        return
    tool = layout.callee(step)
    if tool is not None:
        yield from _stage_tool_problems(layout, step, tool)


def _stage_tool_problems(layout: Layout, step: WorkflowStep, tool: ToolRevision) -> Iterator[WorkflowProblem]:
    implementation = tool.definition.implementation
    if not isinstance(implementation, AgenticImplementation) or implementation.mode != "deterministic":
        message = f"{tool.name!r} is not a deterministic agentic tool"
        yield layout.error(step, ("input", "tool"), message, "name one, or call it as the step's tool")
        return
    if tool.definition.requires_confirmation and not layout.definition.requires_confirmation:
        message = f"{tool.name!r} requires confirmation, and the workflow that does its parts does not"
        yield layout.error(step, ("input", "tool"), message, "set requires_confirmation of the workflow")
    ids = [one.id for one in implementation.steps]
    wanted = step.input.get("step")
    if isinstance(wanted, str) and "${" not in wanted and wanted not in ids:
        yield layout.error(
            step, ("input", "step"), f"{tool.name!r} has no step {wanted!r}", layout.nearest.near(wanted, ids)
        )


_ASKED: Final = frozenset({"agent_ref", "agentRef", "prompt", "context"})
"""What a handler that asks an agent takes."""


def call_problems(layout: Layout) -> Iterator[WorkflowProblem]:
    """What is wrong with what the steps name, and with the arguments that they give by name."""
    for step in layout.steps:
        if step.handler_ref is not None:
            yield from _handler_problems(layout, step, step.handler_ref)
        if isinstance(step.condition, ConditionUse):
            yield from _condition_problems(layout, step, step.condition)
        if step.principal_ref is not None:
            yield from _account_problems(layout, step, step.principal_ref)
        reference = step.callee(layout.implementation.handlers)
        if reference is not None:
            yield from _tool_problems(layout, step, reference)


def effects_problems(layout: Layout) -> Iterator[WorkflowProblem]:
    """A workflow that says of itself that it does less than what it calls."""
    declared = layout.definition.side_effects
    if declared is None:
        return
    for step in layout.steps:
        tool = layout.callee(step)
        if tool is not None and EFFECTS.index(tool.definition.side_effects) > EFFECTS.index(declared):
            does = tool.definition.side_effects
            message = f"side_effects is {declared!r}, and {tool.name!r} in step {step.name!r} {does}"
            yield layout.error(None, ("side_effects",), message, f"say {does!r}, or leave it out")
            return


def argument_field(step: WorkflowStep) -> str:
    """The field under which a step says which tool it calls."""
    if step.handler_ref in AGENT_HANDLERS:
        return f"input/{_agent_field(step)}"
    if step.handler_ref in AGENTIC_HANDLERS:
        return "input/tool"
    return next(field for field in ("tool", "agent", "workflow", "handler_ref") if getattr(step, field) is not None)


def _agent_field(step: WorkflowStep) -> str:
    """The member of its input in which a step that asks an agent names it, also written `agentRef`."""
    return "agentRef" if "agentRef" in step.input and "agent_ref" not in step.input else "agent_ref"


def _handler_problems(layout: Layout, step: WorkflowStep, name: str) -> Iterator[WorkflowProblem]:
    registered = layout.implementation.handlers.get(name)
    if name in AGENT_HANDLERS:
        yield from _asking_problems(layout, step)
    elif name in AGENTIC_HANDLERS:
        yield from stage_problems(layout, step, name)
    elif registered is None:
        around = layout.around
        known = {*BUILT_IN_HANDLERS, *(one.name for one in around.steps.current(around.realm))}
        yield layout.error(
            step, ("handler_ref",), f"there is no workflow step {name!r}", layout.nearest.near(name, known)
        )
    elif not registered.enabled:
        message = f"workflow step {name!r} is disabled"
        yield layout.error(step, ("handler_ref",), message, "enable it, or name its tool")


def _asking_problems(layout: Layout, step: WorkflowStep) -> Iterator[WorkflowProblem]:
    named = step.input.get(_agent_field(step))
    field = ("input", _agent_field(step))
    if not isinstance(named, str) or "${" in named:
        message = "agent_ref must name an agent by its name, without an expression: the graph is fixed before it runs"
        yield layout.error(step, field, message, "write the name of an agent")
    if "prompt" not in step.input:
        yield layout.error(step, ("input",), "the agent is asked nothing", "give it a prompt")
    for name in sorted(step.input.keys() - _ASKED):
        message = f"a step that asks an agent does not take {name!r}"
        yield layout.error(step, ("input", name), message, layout.nearest.near(name, _ASKED))


def _condition_problems(layout: Layout, step: WorkflowStep, use: ConditionUse) -> Iterator[WorkflowProblem]:
    bound = layout.implementation.conditions.get(use.ref)
    if bound is None:
        around = layout.around
        known = [one.name for one in around.conditions.current(around.realm)]
        yield layout.error(
            step, ("condition", "ref"), f"there is no condition {use.ref!r}", layout.nearest.near(use.ref, known)
        )
        return
    if not bound.enabled:
        message = f"condition {use.ref!r} is disabled"
        yield layout.error(step, ("condition", "ref"), message, "enable it, or write its expression")
    for name in bound.parameters:
        if name not in use.input:
            message = f"condition {use.ref!r} reads {name!r}, which is not given"
            yield layout.error(step, ("condition", "input"), message, "add it")
    for name in use.input:
        if name not in bound.parameters:
            message = f"condition {use.ref!r} does not read {name!r}"
            yield layout.error(step, ("condition", "input", name), message, layout.nearest.near(name, bound.parameters))


def _account_problems(layout: Layout, step: WorkflowStep, name: str) -> Iterator[WorkflowProblem]:
    account = layout.around.accounts.find(layout.around.realm, name)
    if account is None:
        message = f"there is no service account {name!r}"
        yield layout.error(step, ("principal_ref",), message, "save it, or leave principal_ref out")
    elif not account.enabled:
        message = f"service account {name!r} is disabled"
        yield layout.error(step, ("principal_ref",), message, "enable it, or leave principal_ref out")


def _tool_problems(layout: Layout, step: WorkflowStep, reference: str) -> Iterator[WorkflowProblem]:
    field = argument_field(step).split("/")
    if step.handler_ref in BUILT_IN_HANDLERS and "${" in reference:
        return
    if "${" in reference:
        message = f"{reference!r} is an expression, but the graph is fixed before it runs"
        yield layout.error(step, field, message, "write a step with a condition for each tool, or let an agent choose")
        return
    if means_many(reference):
        message = f"{reference!r} can match several tools, and a step calls one"
        yield layout.error(step, field, message, "name it")
        return
    tool = layout.callees.get(reference)
    if tool is None:
        yield layout.error(step, field, *_missing(layout, step, reference))
        return
    yield from _use_problems(layout, step, tool, field)
    if step.handler_ref not in BUILT_IN_HANDLERS:
        yield from _argument_problems(layout, step, tool)


def _kind_for(step: WorkflowStep) -> Literal["agent", "workflow"] | None:
    """The kind of tool that the step's field is for; null for any kind."""
    if step.agent is not None or step.handler_ref in AGENT_HANDLERS:
        return "agent"
    return "workflow" if step.workflow is not None else None


def _missing(layout: Layout, step: WorkflowStep, reference: str) -> tuple[str, str | None]:
    realm, wanted = layout.around.realm, _kind_for(step)
    name = reference.partition("@")[0]
    if wanted is not None and layout.around.registry.find_by_ref(realm, name) is None:
        known = layout.around.registry.index(realm).having("kind", wanted)
        return f"no {wanted} {reference!r} in realm {realm!r}", layout.nearest.near(name, known)
    if not layout.nearest.take():
        return f"no tool {reference!r} in realm {realm!r}", None
    try:
        layout.around.registry.require(realm, reference)
    except NotFound as problem:
        message, _, known = str(problem).partition("; ")
        return message, known
    return f"tool {reference!r} cannot be called", "name another one"


def _use_problems(
    layout: Layout, step: WorkflowStep, tool: ToolRevision, field: list[str]
) -> Iterator[WorkflowProblem]:
    """Why a step cannot use a tool that there is."""
    instead = f"use {tool.replacement!r} instead" if tool.replacement else None
    why = f": {tool.status_message}" if tool.status_message else ""
    if tool.status == "blocked":  # what another release has saved is, whatever it was
        yield layout.error(step, field, f"tool {tool.ref!r} is blocked{why}", instead or "name another one")
        return
    kind, wanted = tool.definition.implementation.kind, _kind_for(step)
    if wanted is not None and kind != wanted:
        message = f"{tool.name!r} is of kind {kind!r}, not {wanted}"
        yield layout.error(step, field, message, f"name it as the step's tool, or name {article(wanted)}")
    if "workflow_step" not in tool.definition.available_as:
        message = f"tool {tool.name!r} is not available as a workflow's step"
        yield layout.error(step, field, message, "add 'workflow_step' to its available_as, or name another one")
    if not is_in_service(tool):
        yield layout.error(step, field, f"tool {tool.ref!r} is disabled or a draft", "enable it, or name another one")
    elif tool.status == "deprecated":
        yield layout.warning(step, field, f"tool {tool.ref!r} is deprecated{why}", instead)
    yield from _problems_within(layout, step, field)


def _problems_within(layout: Layout, step: WorkflowStep, field: list[str]) -> Iterator[WorkflowProblem]:
    """What the tool calls in its turn, and cannot."""
    reference = step.callee(layout.implementation.handlers)
    for way, inner in () if reference is None else layout.lock.within(reference):
        if inner.state == "broken":
            yield layout.warning(step, field, f"{' calls '.join(way)} calls {inner.ref}: {inner.reason}")
            return


def _argument_problems(layout: Layout, step: WorkflowStep, tool: ToolRevision) -> Iterator[WorkflowProblem]:
    registered = layout.implementation.handlers.get(step.handler_ref or "")
    given = {**_input_mapping(registered), **step.input}
    for misfit in misfits(given, tool.definition.input_schema, tool.name):
        field = ("input", misfit.name) if misfit.name in step.input else ("input",)
        yield layout.error(step, field, misfit.problem, misfit.instead)


def _input_mapping(registered: StepRegistration | None) -> dict[str, object]:
    return {} if registered is None else registered.input_mapping
