"""Finds cycles between steps, each reported once with the edge to remove. Linear in the edges."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

from toolcrib.contracts.workflows import EdgeKind, WorkflowProblem
from toolcrib.workflows.checks.structure.prepared_definition import Layout
from toolcrib.workflows.values.graph import Edge

_PREFERRED: Final[Mapping[EdgeKind, int]] = {"error": 0, "order": 1, "data": 2}
_MOST_SHOWN: Final = 8


def cycle_problems(layout: Layout) -> Iterator[WorkflowProblem]:
    """One problem for each group of steps that all wait for each other."""
    for inside in _edges_by_group(layout):
        edge = min(inside, key=lambda edge: (not _is_back(layout, edge), _PREFERRED[edge.kind]))
        way = [edge.source, *_way(edge, inside)]
        step = layout.by_name[edge.target if edge.kind != "error" else edge.source]
        yield WorkflowProblem(
            path=edge.path,
            message=f"the steps wait for each other: {_path_text(way)}",
            suggestion=_instead(edge),
            step=step.name,
        )


def order_steps(layout: Layout) -> list[str]:
    """Names of the steps, each after those that it waits for; those in cycles, and behind them, are left out."""
    followers, waiting = _followers(layout)
    ready = deque(name for name, count in waiting.items() if not count)
    found: list[str] = []
    while ready:
        found.append(ready.popleft())
        for follower in followers[found[-1]]:
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    return found


def _edges_by_group(layout: Layout) -> Iterator[list[Edge]]:
    """The edges inside each group of steps that all wait for each other."""
    group_of: dict[str, int] = {}
    found: list[list[Edge]] = []
    for group in _groups(layout):
        group_of |= dict.fromkeys(group, len(found))
        found.append([])
    for edge in layout.edges:
        group = group_of.get(edge.source)
        if group is not None and group == group_of.get(edge.target) and edge.source != edge.target:
            found[group].append(edge)
    yield from found


def _groups(layout: Layout) -> Iterator[set[str]]:
    """Steps that can be reached from each other: those in cycles and on the ways between them (Kosaraju)."""
    left = layout.by_name.keys() - set(order_steps(layout))
    forward: dict[str, list[str]] = {name: [] for name in left}
    backward: dict[str, list[str]] = {name: [] for name in left}
    for edge in layout.edges:
        if edge.source in left and edge.target in left and edge.source != edge.target:
            forward[edge.source].append(edge.target)
            backward[edge.target].append(edge.source)
    grouped: set[str] = set()
    for name in reversed(_postorder(forward)):
        if name in grouped:
            continue
        group, waiting = {name}, [name]
        while waiting:
            new = set(backward[waiting.pop()]) - group - grouped
            group |= new
            waiting += new
        grouped |= group
        if len(group) > 1:
            yield group


def _postorder(forward: Mapping[str, list[str]]) -> list[str]:
    """Names in the order in which a search that goes deep first is done with them."""
    seen: set[str] = set()
    found: list[str] = []
    for start in sorted(forward):
        waiting = [(start, iter(forward[start]))] if start not in seen else []
        seen.add(start)
        while waiting:
            name, rest = waiting[-1]
            following = next((one for one in rest if one not in seen), None)
            if following is None:
                found.append(name)
                waiting.pop()
            else:
                seen.add(following)
                waiting.append((following, iter(forward[following])))
    return found


def _followers(layout: Layout) -> tuple[Mapping[str, set[str]], dict[str, int]]:
    followers: dict[str, set[str]] = {name: set() for name in layout.by_name}
    for edge in layout.edges:
        if edge.source != edge.target:
            followers[edge.source].add(edge.target)
    waiting = dict.fromkeys(layout.by_name, 0)
    for names in followers.values():
        for name in names:
            waiting[name] += 1
    return followers, waiting


def _way(edge: Edge, inside: list[Edge]) -> list[str]:
    """The shortest way from the end of an edge back to its beginning."""
    followers: dict[str, list[str]] = {}
    for other in inside:
        followers.setdefault(other.source, []).append(other.target)
    came_from: dict[str, str] = {}
    waiting = deque([edge.target])
    while edge.source not in came_from and waiting:
        name = waiting.popleft()
        for following in followers.get(name, ()):
            if following not in came_from and following != edge.target:
                came_from[following] = name
                waiting.append(following)
    way = [edge.source]
    while way[-1] != edge.target:
        way.append(came_from[way[-1]])
    return way[::-1]


def _is_back(layout: Layout, edge: Edge) -> bool:
    """Whether an edge leads to a step that stands further up."""
    return layout.places[edge.target] < layout.places[edge.source]


def _path_text(way: list[str]) -> str:
    if len(way) <= _MOST_SHOWN:
        return " -> ".join(way)
    half = _MOST_SHOWN // 2
    return f"{' -> '.join(way[:half])} -> … {len(way) - 2 * half} more … -> {' -> '.join(way[-half:])}"


def _instead(edge: Edge) -> str:
    match edge.kind:
        case "error":
            return f"{edge.source!r} goes back to {edge.target!r}, which it waits for; let it go to another step"
        case "order":
            return f"take {edge.source!r} out of depends_on of {edge.target!r}"
        case "data":
            return f"do not read ${{{edge.reference}}} in {edge.target!r}"
