"""The state of a published workflow: its graph as published, each part with its current state and reason.

No part is ever omitted. The lock (`registry.locks`) decides what a run uses; this module only reports it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from toolcrib.contracts import InvalidDefinition, ToolRevision
from toolcrib.contracts.workflows import (
    ConditionUse,
    GraphEdge,
    GraphNode,
    WorkflowDefinition,
    WorkflowGraph,
    WorkflowImplementation,
    WorkflowProblem,
    WorkflowStep,
)
from toolcrib.core.registry import Lock, LockedReference
from toolcrib.workflows.checks import CheckContext, check_workflow, draw


def standing_of(tool: ToolRevision, around: CheckContext, proposed: ToolRevision | None = None) -> WorkflowGraph:
    """The graph of a published workflow against the realm as it is now.

    Args:
        tool: The workflow.
        around: The realm.
        proposed: A revision of a tool that is looked at as if it were saved.

    Raises:
        InvalidDefinition: The tool is no workflow.
    """
    workflow = tool.definition.implementation
    if not isinstance(workflow, WorkflowImplementation):
        raise InvalidDefinition(f"tool {tool.ref!r} is of kind {workflow.kind!r}, not a workflow")
    lock = Lock(workflow, around.registry, around.realm, proposed=proposed)
    callees = {ref: found for ref in workflow.callees if (found := lock.of(ref).tool) is not None}
    definition = WorkflowDefinition.of(tool.definition)
    problems = check_workflow(definition, replace(around, instead=callees)).problems
    drawn = draw(tool.definition, problems, callees)
    steps = {step.name: step for step in workflow.steps}
    nodes = tuple(_node(node, steps[node.name], lock, workflow, around) for node in drawn.nodes)
    broken = {node.name: node for node in nodes if node.state == "broken"}
    edges = tuple(mark_edge(edge, problems, broken) for edge in drawn.edges)
    return drawn.model_copy(update={"content_hash": tool.content_hash, "nodes": nodes, "edges": edges})


def mark_edge(edge: GraphEdge, problems: Sequence[WorkflowProblem], broken: Mapping[str, GraphNode]) -> GraphEdge:
    """An edge with what has become of it: broken by a problem where it stands, or by a node that it belongs to.

    Args:
        edge: As it is drawn.
        problems: What is wrong with the definition.
        broken: Nodes that do not work, by name.
    """
    for problem in problems:
        if problem.is_error and _stands_at(problem, edge):
            return edge.model_copy(update={"state": "broken", "reason": problem.message})
    for name in (edge.source, edge.target):
        if name in broken:
            reason = f"step {name!r} does not work: {broken[name].reason}"
            return edge.model_copy(update={"state": "broken", "reason": reason})
    return edge


def _stands_at(problem: WorkflowProblem, edge: GraphEdge) -> bool:
    """Whether a problem is one of an edge: in the same place, and of what it reads if it is about that."""
    is_there = problem.path == edge.path or problem.path.startswith(f"{edge.path}/")
    return is_there and problem.reference in {None, edge.reference}


def _node(
    node: GraphNode, step: WorkflowStep, lock: Lock, workflow: WorkflowImplementation, around: CheckContext
) -> GraphNode:
    notices = tuple(_vocabulary(step, workflow, around))
    reference = node.reference
    if reference is None:
        return node if not notices else node.model_copy(update={"state": "held", "reason": "; ".join(notices)})
    own = lock.node(reference)
    found = _with_inside(own, lock)
    reasons = [*([found.reason] if found.reason is not None else []), *notices, *lock.choices(reference)]
    state = "held" if found.state == "ok" and notices else found.state
    tool = own.tool if own.cause is None else None
    return node.model_copy(
        update={
            "tool": None if tool is None else tool.ref,
            "content_hash": None if tool is None else tool.content_hash,
            "side_effects": None if tool is None else tool.definition.side_effects,
            "state": state,
            "reason": "; ".join(reasons) or None,
        }
    )


def _with_inside(found: LockedReference, lock: Lock) -> LockedReference:
    """What a reference means; of a workflow, with what has become of its own steps, at any depth."""
    inner = lock.inside(found.ref)
    if inner is None or found.cause is not None:
        return found
    for step in inner.workflow.steps:
        ref = step.callee(inner.workflow.handlers)
        below = None if ref is None else _with_inside(inner.node(ref), inner)
        if below is None or below.reason is None or found.state == "broken":
            continue
        if below.state == "broken" or found.state == "ok":
            reason = f"step {step.name!r} of {found.ref!r}: {below.reason}"
            found = found._replace(state=below.state, reason=reason, cause=below.cause)
    return found


def _vocabulary(step: WorkflowStep, workflow: WorkflowImplementation, around: CheckContext) -> Sequence[str]:
    """What has become of the names that a step uses; it goes on with what they meant when it was published."""
    notices: list[str] = []
    handler = workflow.handlers.get(step.handler_ref or "")
    if handler is not None:
        now = around.steps.find(around.realm, handler.name)
        if now != handler:
            notices.append(_of_name("workflow step", handler.name, is_gone=now is None))
    bound = workflow.conditions.get(step.condition.ref) if isinstance(step.condition, ConditionUse) else None
    if bound is not None:
        now = around.conditions.find(around.realm, bound.name)
        if now != bound:
            notices.append(_of_name("condition", bound.name, is_gone=now is None))
    return notices


def _of_name(what: str, name: str, *, is_gone: bool) -> str:
    has = "is gone" if is_gone else "has changed"
    return f"{what} {name!r} {has}: what it was when the workflow was published is used until it is published again"
