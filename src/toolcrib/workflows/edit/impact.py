"""The impact of a new tool revision on workflows that are bound to it: on their runs, and on their graphs.

For runs, the lock decides: they use the new revision, use the bound one (`held`), or fail. For graphs, the checks of
publishing decide, edge by edge. Nothing is saved here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

from toolcrib.contracts import AgenticImplementation, Dependent, ToolDefinition, ToolRevision, Verdict
from toolcrib.contracts.workflows import GraphEdge, WorkflowDefinition, WorkflowImplementation
from toolcrib.core.registry import Lock, LockedReference, dependents_of, meant
from toolcrib.workflows.checks import CheckContext, check_workflow, draw
from toolcrib.workflows.edit.published_status import mark_edge, standing_of

NamedKind: TypeAlias = Literal["workflow_step", "condition", "provider"]
"""What tools and workflows name that is no tool."""

_MOST_REASONS = 10


class _Judgement(NamedTuple):
    verdict: Verdict
    held: bool = False
    reasons: tuple[str, ...] = ()
    edges: tuple[GraphEdge, ...] = ()


def judge_dependents(dependents: Sequence[Dependent], proposed: ToolRevision, around: CheckContext) -> list[Dependent]:
    """Dependents of a tool with what a proposed revision does to those that are workflows; the others as they are.

    Args:
        dependents: As the registry has found them, direct ones first.
        proposed: The revision that would be saved.
        around: The realm.
    """
    known: dict[str, _Judgement] = {}
    for dependent in dependents:
        tool = around.registry.find_by_ref(around.realm, dependent.name) if dependent.kind == "workflow" else None
        if tool is not None:
            known[dependent.name] = _judgement(tool, dependent, proposed, around, known)
    return [
        dependent if dependent.name not in known else dependent.model_copy(update=known[dependent.name]._asdict())
        for dependent in dependents
    ]


def users_of(name: str, kind: NamedKind, around: CheckContext) -> list[Dependent]:
    """What uses something that is no tool, and what is bound to that, direct ones first.

    Users of the workflow vocabulary are held: what a name meant when a workflow was published is part of it. Those of
    a provider are not, because nobody can go on with a system as it was.

    Args:
        name: Of a workflow step, a condition or a provider.
        kind: Which of them.
        around: The realm.
    """
    found: dict[str, Dependent] = {}
    judged_so: dict[str, object] = {"verdict": "may_break", "held": kind != "provider"}
    for tool in around.registry.current(around.realm):
        if not _uses(tool.definition, name, kind):
            continue
        path = (tool.name, name)
        kind_of_tool = tool.definition.implementation.kind
        direct = Dependent(name=tool.ref, kind=kind_of_tool, reference=name, satisfied=True, path=path)
        found[tool.ref] = direct.model_copy(update=judged_so)
        for user in dependents_of(tool, around.registry, ()):
            indirect = {"path": (*user.path, name), **judged_so}
            found.setdefault(user.name, user.model_copy(update=indirect))
    return sorted(found.values(), key=lambda each: (len(each.path), each.name))


def _uses(definition: ToolDefinition, name: str, kind: NamedKind) -> bool:
    workflow = definition.implementation
    match kind:
        case "provider":
            return definition.provider == name or (
                isinstance(workflow, AgenticImplementation)
                and any(data.provider == name for data in workflow.context.provider_data)
            )
        case "workflow_step":
            return isinstance(workflow, WorkflowImplementation) and name in workflow.handlers
        case "condition":
            return isinstance(workflow, WorkflowImplementation) and name in workflow.conditions


def _judgement(
    tool: ToolRevision,
    dependent: Dependent,
    proposed: ToolRevision,
    around: CheckContext,
    known: Mapping[str, _Judgement],
) -> _Judgement:
    workflow = tool.definition.implementation
    if not isinstance(workflow, WorkflowImplementation) or not workflow.bound:
        return _by_fit(tool, proposed, around, _Judgement(dependent.verdict or "unaffected"))
    refs = [ref for ref in workflow.bound if meant(ref, around.registry, around.realm, proposed) is proposed]
    if not refs:
        between = (judgement for ref, judgement in known.items() if ref.partition("@")[0] in dependent.path[1:-1])
        return next((judgement._replace(edges=()) for judgement in between), _Judgement("unaffected"))
    lock = Lock(workflow, around.registry, around.realm, proposed=proposed)
    called = lock.pins(workflow.callees).keys() | set(workflow.callees)
    judgement = _Judgement("unaffected")
    for ref in refs:
        judgement = _worse(judgement, _of_lock(lock.of(ref), is_locked=ref in called))
    if judgement.verdict == "unaffected":
        return judgement
    return _by_fit(tool, proposed, around, judgement)


def _of_lock(locked: LockedReference, *, is_locked: bool) -> _Judgement:
    """What becomes of the runs."""
    reasons = () if locked.reason is None else (locked.reason,)
    if not is_locked:
        return _Judgement("may_break" if locked.change else "unaffected", reasons=reasons)
    match locked.state:
        case "broken":
            return _Judgement("breaks", reasons=reasons)
        case "held":
            return _Judgement("may_break", held=True, reasons=reasons)
        case "ok":
            return _Judgement("unaffected" if locked.reason is None else "may_break", reasons=reasons)


def _by_fit(tool: ToolRevision, proposed: ToolRevision, around: CheckContext, judgement: _Judgement) -> _Judgement:
    """A judgement with the edges of the definition that the proposed revision breaks."""
    definition = WorkflowDefinition.of(tool.definition)
    named = {ref: meant(ref, around.registry, around.realm, proposed) for ref in _callees(tool)}
    instead = {ref: found for ref, found in named.items() if found is proposed}
    after = check_workflow(definition, replace(around, instead=instead)).errors
    before = check_workflow(definition, around).errors if after else ()
    problems = [problem for problem in after if problem not in before]
    edges = [mark_edge(edge, problems, {}) for edge in draw(tool.definition).edges] if problems else []
    if judgement.verdict == "breaks":
        edges += standing_of(tool, around, proposed).edges
    broken = {(edge.path, edge.source, edge.reference): edge for edge in edges if edge.state == "broken"}
    return _worse(
        judgement,
        _Judgement(
            "breaks" if problems else "unaffected",
            reasons=tuple(str(problem) for problem in problems),
            edges=tuple(broken.values()),
        ),
    )


def _callees(tool: ToolRevision) -> tuple[str, ...]:
    workflow = tool.definition.implementation
    return workflow.callees if isinstance(workflow, WorkflowImplementation) else ()


def _worse(one: _Judgement, other: _Judgement) -> _Judgement:
    order: tuple[Verdict, ...] = ("unaffected", "may_break", "breaks")
    return _Judgement(
        order[max(order.index(one.verdict), order.index(other.verdict))],
        one.held or other.held,
        tuple(dict.fromkeys((*one.reasons, *other.reasons)))[:_MOST_REASONS],
        (*one.edges, *other.edges),
    )
