"""Draws a workflow as a tree: sequential steps in a row, parallel steps on branches."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from toolcrib.contracts.workflows import GraphEdge, GraphNode, GraphState, WorkflowGraph, WorkflowProblem
from toolcrib.interfaces.cli.render.console import plain

_COLOURS: Final[Mapping[GraphState, str]] = {"ok": "", "held": "yellow", "broken": "red"}


def draw_graph(graph: WorkflowGraph) -> RenderableType:
    """All steps, what each calls and waits for, and its state; then the problems."""
    drawing = _Drawing(graph)
    tree = Tree(plain(f"{graph.workflow}: {graph.state}", _COLOURS[graph.state] or "bold"))
    rows = [(tree, drawing.roots)]
    while rows:
        branch, names = rows.pop()
        for name in names:
            own, last = branch.add(drawing.label(name)), name
            row = own if len(names) > 1 else branch
            while len(drawing.below[last]) == 1:
                (last,) = drawing.below[last]
                own = row.add(drawing.label(last))
            rows.append((own, drawing.below[last]))
    return Group(tree, *drawing.faults("output"), *map(_problem, graph.problems))


class _Drawing:
    """The place of each step in the tree: below the last step that it waits for."""

    def __init__(self, graph: WorkflowGraph) -> None:
        self._nodes = {node.name: node for node in graph.nodes}
        self._into: defaultdict[str, list[GraphEdge]] = defaultdict(list)
        for edge in graph.edges:
            self._into[edge.target].append(edge)
        self.roots: list[str] = []
        self.below: defaultdict[str, list[str]] = defaultdict(list)
        self._above: dict[str, str] = {}
        placed: dict[str, int] = {}
        for name in _in_order(self._nodes, self._into):
            before = [each for each in self._before(name) if each in placed]
            if before:
                self._above[name] = max(before, key=placed.__getitem__)
                self.below[self._above[name]].append(name)
            else:
                self.roots.append(name)
            placed[name] = len(placed)

    def label(self, name: str) -> Text:
        """A step in a line, and below it its state and that of its edges."""
        node = self._nodes[name]
        label = plain(name, "bold").append_text(plain(f"  {_does(node)}"))
        before = self._before(name)
        if before and before != [self._above.get(name)]:
            label.append_text(plain(f"  after {', '.join(before)}", "dim"))
        origins = [edge.source for edge in self._into[name] if edge.kind == "error"]
        if origins:
            label.append_text(plain(f"  if {' or '.join(origins)} fails", "dim"))
        if node.state != "ok":
            label.append_text(_fault(node.state, node.reason))
        for fault in self.faults(name):
            label.append_text(fault)
        return label

    def faults(self, target: str) -> Iterator[Text]:
        """Edges into a step, or into the output, that are not as they were, if a step does not say why already."""
        for edge in self._into[target]:
            if edge.state != "ok" and not any(reason in str(edge.reason) for reason in self._reasons(edge)):
                yield _fault(edge.state, f"{edge.path} ({edge.reference or edge.source}): {edge.reason}")

    def _reasons(self, edge: GraphEdge) -> Iterator[str]:
        """What the steps at its ends say of themselves."""
        ends = (self._nodes[name] for name in (edge.source, edge.target) if name in self._nodes)
        return (node.reason for node in ends if node.reason is not None)

    def _before(self, name: str) -> Sequence[str]:
        sources = (edge.source for edge in self._into[name] if edge.source in self._nodes)
        return list(dict.fromkeys(sources))


def _in_order(nodes: Mapping[str, GraphNode], into: Mapping[str, Sequence[GraphEdge]]) -> Iterator[str]:
    """Names, each after those that it waits for; those of a cycle come last, in the given order."""
    after: defaultdict[str, list[str]] = defaultdict(list)
    waits = Counter[str]()
    for name in nodes:
        for source in {edge.source for edge in into.get(name, ()) if edge.source in nodes}:
            after[source].append(name)
            waits[name] += 1
    ready = [name for name in nodes if not waits[name]]
    listed = set[str]()
    for name in ready:  # grows as it is read
        yield name
        listed.add(name)
        for follower in after[name]:
            waits[follower] -= 1
            if not waits[follower]:
                ready.append(follower)
    yield from (name for name in nodes if name not in listed)


def _does(node: GraphNode) -> str:
    if node.reference is None:
        return node.kind
    revision = "" if node.tool in {None, node.reference} else f" → {node.tool}"
    effects = "" if node.side_effects is None else f", {node.side_effects}"
    account = "" if node.account is None else f", as {node.account}"
    return f"{node.kind} {node.reference}{revision}{effects}{account}"


def _fault(state: GraphState, reason: str | None) -> Text:
    return plain(f"\n  {state}: {reason or 'no reason is known'}", _COLOURS[state])


def _problem(problem: WorkflowProblem) -> Text:
    return plain(f"{'error' if problem.is_error else 'warning'}: {problem}", "red" if problem.is_error else "yellow")
