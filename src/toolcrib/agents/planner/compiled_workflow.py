"""Converts a deterministic agentic tool to a workflow: its plan, steps and answer become steps of a graph.

The workflow makes the same calls at the same positions, with the same answer. A model makes the plan and the answer,
and reviews a step only if a reference cannot be resolved. In the graph, a person can insert steps, such as an approval
of the plan, and rerun from a step.
"""

from collections.abc import Iterator
from itertools import count
from typing import Any, Final

from toolcrib.agents.planner.step_handlers import FORMAT, PLAN, STEP
from toolcrib.contracts import AgenticImplementation, InvalidDefinition, Json, JsonObject, ToolRevision
from toolcrib.contracts.tools.agent_definitions import CallRules
from toolcrib.contracts.workflows import SCOPE, WorkflowDefinition, WorkflowStep

_SUFFIX: Final = "-workflow"


def workflow_of(tool: ToolRevision) -> WorkflowDefinition:
    """The workflow that an agentic tool is; it names the tool's version, whose steps, prompt and model it uses.

    Raises:
        InvalidDefinition: The tool is not agentic, its model chooses its tools as it goes, or it has no steps.
    """
    definition = tool.definition
    implementation = definition.implementation
    if not isinstance(implementation, AgenticImplementation):
        msg = f"tool {tool.ref!r} is of kind {implementation.kind!r}; only an agentic tool is compiled to a workflow"
        raise InvalidDefinition(msg)
    if implementation.mode != "deterministic":
        msg = f"agentic tool {tool.ref!r}: in mode 'agentic' its model decides what comes next, so it has no graph"
        raise InvalidDefinition(f"{msg}; call it as a step, or define it in mode 'deterministic'")
    if not implementation.steps:
        raise InvalidDefinition(f"agentic tool {tool.ref!r} has no steps; allot at least one tool")
    shared: dict[str, Any] = {name: getattr(definition, name) for name in CallRules.model_fields}
    return WorkflowDefinition(
        **shared,
        name=f"{definition.name}{_SUFFIX}",
        version=definition.version,
        title=definition.title,
        description=definition.description,
        long_description=f"Compiled from the agentic tool {tool.ref}.",
        tags=definition.tags,
        usage=definition.usage,
        examples=definition.examples,
        source="auto_generated",
        input_schema=definition.input_schema,
        output_schema=definition.output_schema,
        steps=tuple(_steps(tool, implementation)),
        output="${format}",
        limits=implementation.limits,
    )


def _steps(tool: ToolRevision, implementation: AgenticImplementation) -> list[WorkflowStep]:
    shared: JsonObject = {"tool": tool.ref, "input": "${input}"}
    made = [WorkflowStep(name="plan", title="Plan", handler_ref=PLAN, input=shared)]
    shared = {**shared, "plan": "${plan}"}
    done: JsonObject = {}
    names_in_use = SCOPE | {step.id for step in implementation.steps}
    for step in implementation.steps:
        # A step of a workflow cannot have a name by which expressions read something else.
        name = step.id if step.id not in SCOPE else next(free for free in _others(step.id) if free not in names_in_use)
        made.append(
            WorkflowStep(
                name=name,
                title=step.purpose or step.id,
                description=f"Calls {step.tool}, for each item of an earlier list if the plan says so.",
                handler_ref=STEP,
                input={**shared, "step": step.id, "done": dict(done)},
                condition=f"${{!plan.steps.{step.id}.skip}}",
                on_error="continue",
            )
        )
        done[step.id] = f"${{steps.{name}}}"
    inputs: dict[str, Json] = {**shared, "done": done}
    return [*made, WorkflowStep(name="format", title="Answer", handler_ref=FORMAT, input=inputs, join="always")]


def _others(name: str) -> Iterator[str]:
    return (f"{name}_{number}" for number in count(2))
