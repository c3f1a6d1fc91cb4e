"""The graph of a definition as it stands, sound or not: nothing that can be drawn is left out."""

from collections.abc import Sequence

from toolcrib.contracts import InvalidDefinition, ToolDefinition
from toolcrib.contracts.workflows import GraphEdge, GraphNode, WorkflowGraph, WorkflowImplementation, WorkflowProblem
from toolcrib.workflows.graph import edges_of


def draw(tool: ToolDefinition, problems: Sequence[WorkflowProblem] = ()) -> WorkflowGraph:
    """The graph of a workflow that need not be published.

    Args:
        tool: The workflow.
        problems: What is wrong with it.

    Raises:
        InvalidDefinition: The tool is no workflow.
    """
    implementation = tool.implementation
    if not isinstance(implementation, WorkflowImplementation):
        raise InvalidDefinition(f"tool {tool.name!r} is of kind {implementation.kind!r}, not a workflow")
    nodes = [
        GraphNode(name=step.name, kind=step.kind, title=step.title, reference=step.callee(implementation.handlers))
        for step in implementation.steps
    ]
    edges = [GraphEdge(**edge._asdict()) for edge in edges_of(implementation, lenient=True)]
    return WorkflowGraph(
        workflow=f"{tool.name}@{tool.version}", nodes=tuple(nodes), edges=tuple(edges), problems=tuple(problems)
    )
