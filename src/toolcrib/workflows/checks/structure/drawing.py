"""The graph of a definition as it stands, sound or not: nothing that can be drawn is left out."""

from collections.abc import Mapping, Sequence
from typing import Final

from toolcrib.contracts import InvalidDefinition, ToolDefinition, ToolRevision
from toolcrib.contracts.workflows import (
    GraphEdge,
    GraphNode,
    WorkflowGraph,
    WorkflowImplementation,
    WorkflowProblem,
    WorkflowStep,
)
from toolcrib.workflows.values.agent_outputs import handles_of
from toolcrib.workflows.values.graph import edges_of

_NOTHING: Final[Mapping[str, ToolRevision]] = {}


def draw(
    tool: ToolDefinition,
    problems: Sequence[WorkflowProblem] = (),
    callees: Mapping[str, ToolRevision] = _NOTHING,
) -> WorkflowGraph:
    """The graph of a workflow that need not be published.

    Args:
        tool: The workflow.
        problems: What is wrong with it.
        callees: The tools by reference, as far as they are there.

    Raises:
        InvalidDefinition: The tool is no workflow.
    """
    implementation = tool.implementation
    if not isinstance(implementation, WorkflowImplementation):
        raise InvalidDefinition(f"tool {tool.name!r} is of kind {implementation.kind!r}, not a workflow")
    nodes = [_node(step, step.callee(implementation.handlers), callees) for step in implementation.steps]
    edges = [GraphEdge(**edge._asdict()) for edge in edges_of(implementation, lenient=True)]
    return WorkflowGraph(
        workflow=f"{tool.name}@{tool.version}",
        side_effects=tool.side_effects,
        nodes=tuple(nodes),
        edges=tuple(edges),
        problems=tuple(problems),
    )


def _node(step: WorkflowStep, reference: str | None, callees: Mapping[str, ToolRevision]) -> GraphNode:
    found = callees.get(reference or "")
    return GraphNode(
        name=step.name,
        kind=step.kind,
        title=step.title,
        reference=reference,
        tool=None if found is None else found.ref,
        content_hash=None if found is None else found.content_hash,
        side_effects=None if found is None else found.definition.side_effects,
        account=step.principal_ref,
        handles=handles_of(step, found),
    )
