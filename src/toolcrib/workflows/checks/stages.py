"""Steps that do a part of a deterministic agentic tool: do they name one, and give it what it needs?"""

from collections.abc import Iterator, Mapping
from typing import Final

from toolcrib.contracts import AgenticImplementation, ToolRevision
from toolcrib.contracts.workflows import WorkflowProblem, WorkflowStep
from toolcrib.workflows.checks.structure.layout import Layout

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
        message = "tool must name an agentic tool in so many words: the graph is known before it runs"
        yield layout.error(step, ("input", "tool"), message, "write the name of the tool")
        return
    tool = layout.callee(step)
    if tool is not None:
        yield from _tool_problems(layout, step, tool)


def _tool_problems(layout: Layout, step: WorkflowStep, tool: ToolRevision) -> Iterator[WorkflowProblem]:
    implementation = tool.definition.implementation
    if not isinstance(implementation, AgenticImplementation) or implementation.mode != "deterministic":
        message = f"{tool.name!r} is no deterministic agentic tool"
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
