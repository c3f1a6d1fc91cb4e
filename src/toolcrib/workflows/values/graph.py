"""The graph of a workflow: the dependencies of steps, declared or read by expressions.

Pure: a definition in, a plan out. Tools are not checked here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

from toolcrib.contracts import InvalidDefinition, InvalidExpression, Json, JsonObject
from toolcrib.contracts.workflows import AGENT_HANDLERS, ConditionUse, EdgeKind, WorkflowImplementation, WorkflowStep
from toolcrib.core.expressions import references_of


class Edge(NamedTuple):
    """One step comes before another one, or gives a part of the output."""

    source: str
    target: str
    """A step, or `output`."""
    kind: EdgeKind
    reference: str | None
    """What an expression reads."""
    path: str
    """JSON pointer into the definition."""


@dataclass(frozen=True, slots=True)
class StepNode:
    """A step with its place in the graph."""

    step: WorkflowStep
    callee: str | None
    """The tool that it calls."""
    waits_for: frozenset[str]
    """Steps that come before it."""
    comes_from: frozenset[str]
    """Steps that go to it when they fail; empty for a step that is not only run then."""
    followers: tuple[str, ...]
    """Steps that wait for it."""


@dataclass(frozen=True, slots=True)
class WorkflowPlan:
    """A workflow as it is run."""

    nodes: Mapping[str, StepNode]
    """By name, in the order of the definition."""
    edges: tuple[Edge, ...]

    @property
    def roots(self) -> list[str]:
        """The steps that wait for nothing."""
        return [name for name, node in self.nodes.items() if not node.waits_for]

    @property
    def ends(self) -> list[str]:
        """See `ends_of`."""
        return ends_of(self.nodes, self.edges)

    def after(self, name: str) -> set[str]:
        """A step and all that follow it, however far away."""
        found, waiting = {name}, [name]
        while waiting:
            new = set(self.nodes[waiting.pop()].followers) - found
            found |= new
            waiting += new
        return found


def plan_of(implementation: WorkflowImplementation) -> WorkflowPlan:
    """The graph of a definition.

    Raises:
        InvalidDefinition: Two steps have one name, an edge leads to no step, or the graph has a cycle.
        InvalidExpression: An expression does not compile.
    """
    steps = {step.name: step for step in implementation.steps}
    if len(steps) < len(implementation.steps):
        names = [step.name for step in implementation.steps]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidDefinition(f"two steps are named {twice!r}; give each a name of its own")
    edges = tuple(edges_of(implementation))
    unknown = next((edge for edge in edges if edge.source not in steps or edge.target not in {*steps, "output"}), None)
    if unknown is not None:
        missing = unknown.source if unknown.source not in steps else unknown.target
        raise InvalidDefinition(f"{unknown.path}: there is no step {missing!r}")
    before: dict[str, set[str]] = {name: set() for name in steps}
    origins: dict[str, set[str]] = {name: set() for name in steps}
    after: dict[str, dict[str, None]] = {name: {} for name in steps}
    for edge in edges:
        if edge.target == "output":
            continue
        before[edge.target].add(edge.source)
        after[edge.source][edge.target] = None
        if edge.kind == "error":
            origins[edge.target].add(edge.source)
    nodes = {
        name: StepNode(
            step=step,
            callee=step.callee(implementation.handlers),
            waits_for=frozenset(before[name]),
            comes_from=frozenset(origins[name]),
            followers=tuple(after[name]),
        )
        for name, step in steps.items()
    }
    plan = WorkflowPlan(nodes, edges)
    cycle = cycle_in(plan)
    if cycle:
        raise InvalidDefinition(f"the steps wait for each other: {' -> '.join(cycle)}; take one of these edges out")
    return plan


def ends_of(names: Iterable[str], edges: Iterable[Edge]) -> list[str]:
    """The steps that nothing waits for unless they fail, but for those that are only gone to then.

    Args:
        names: Of the steps, in their order.
        edges: All edges between them; those to the output do not matter.
    """
    between = [edge for edge in edges if edge.target != "output"]
    error_edges = {(edge.source, edge.target) for edge in between if edge.kind == "error"}
    no_end = {target for _, target in error_edges}
    no_end |= {edge.source for edge in between if (edge.source, edge.target) not in error_edges}
    return [name for name in names if name not in no_end]


def cycle_in(plan: WorkflowPlan) -> list[str]:
    """Names of steps that wait for each other, the first one again at the end; empty if there is no cycle."""
    open_before = {name: len(node.waits_for) for name, node in plan.nodes.items()}
    ready = [name for name, count in open_before.items() if not count]
    while ready:
        for follower in plan.nodes[ready.pop()].followers:
            open_before[follower] -= 1
            if not open_before[follower]:
                ready.append(follower)
    left = {name for name, count in open_before.items() if count}
    if not left:
        return []
    way = [next(name for name in plan.nodes if name in left)]
    while way[-1] not in way[:-1]:
        way.append(min(plan.nodes[way[-1]].waits_for & left))
    return way[way.index(way[-1]) :][::-1]


def edges_of(implementation: WorkflowImplementation, *, lenient: bool = False) -> Iterator[Edge]:
    """All edges of a definition, also those that lead nowhere; the same step may be named by several.

    Args:
        implementation: The definition.
        lenient: Whether expressions that do not compile are passed over.

    Raises:
        InvalidExpression: An expression does not compile.
    """
    known: dict[str, list[str]] = {}
    for step in implementation.steps:
        known.setdefault(step.known_as, []).append(step.name)
    for place, step in enumerate(implementation.steps):
        path = f"/steps/{place}"
        for index, name in enumerate(step.depends_on):
            yield Edge(name, step.name, "order", None, f"{path}/depends_on/{index}")
        if step.goes_to is not None:
            yield Edge(step.name, step.goes_to, "error", None, f"{path}/on_error/go_to")
        for where, value, own in _expressions_of(step, implementation):
            for reference in _references(value, lenient=lenient):
                yield from _data_edges(reference, step.name, f"{path}{where}", known, own)
    for reference in _references(implementation.output, lenient=lenient):
        yield from _data_edges(reference, "output", "/output", known, frozenset())


def _references(value: Json, *, lenient: bool) -> list[str]:
    try:
        return sorted(references_of(value))
    except InvalidExpression:
        if lenient:
            return []
        raise


def _data_edges(
    reference: str, target: str, path: str, known: Mapping[str, list[str]], own: frozenset[str]
) -> Iterator[Edge]:
    root, _, rest = reference.partition(".")
    if root in own:
        return
    if root == "steps" and rest:
        yield Edge(rest.partition(".")[0], target, "data", reference, path)
    for source in known.get(root, ()):
        if source != target:
            yield Edge(source, target, "data", reference, path)


def _expressions_of(
    step: WorkflowStep, implementation: WorkflowImplementation
) -> Iterator[tuple[str, Json, frozenset[str]]]:
    """Where a step has expressions, the expressions, and the names that they find nearer than the graph's."""
    nothing = frozenset[str]()
    handler = implementation.handlers.get(step.handler_ref or "")
    for name, value in step.input.items():
        yield f"/input/{name}", value, shared_names(step) if name == "prompt" else nothing
    if handler is not None:
        mapping = {name: value for name, value in handler.input_mapping.items() if name not in step.input}
        yield "/handler_ref", mapping, nothing
    yield "/output", step.output, nothing
    if step.for_each is not None:
        yield "/for_each", step.for_each.items, nothing
    if isinstance(step.condition, ConditionUse):
        yield "/condition/input", step.condition.input, nothing
        bound = implementation.conditions.get(step.condition.ref)
        if bound is not None:
            yield "/condition/ref", bound.expression, frozenset(bound.parameters)
    elif step.condition is not None:
        yield "/condition", step.condition, nothing
    if step.wait is not None:
        yield "/wait", [step.wait.seconds, step.wait.until], nothing
    if step.approval is not None:
        yield "/approval", [step.approval.message, step.approval.show], nothing


def shared_names(step: WorkflowStep) -> frozenset[str]:
    """Names that the prompt of an agent handler reads from its own `context`."""
    if step.handler_ref not in AGENT_HANDLERS:
        return frozenset()
    given = step.input.get("context")
    return frozenset(cast("JsonObject", given)) if isinstance(given, dict) else frozenset()
