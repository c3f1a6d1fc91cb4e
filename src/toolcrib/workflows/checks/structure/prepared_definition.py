"""A definition prepared for checks: its steps by name, its tools, the realm's definitions, suggestions, and its graph.

The graph is drawn even if the definition is invalid.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from typing import Any, Final, TypeVar

from toolcrib.contracts import InvalidDefinition, ToolDefinition, ToolRevision, escape_name
from toolcrib.contracts.workflows import (
    ConditionBinding,
    ConditionUse,
    GraphEdge,
    GraphNode,
    StepRegistration,
    WorkflowDefinition,
    WorkflowGraph,
    WorkflowImplementation,
    WorkflowParts,
    WorkflowProblem,
    WorkflowStep,
)
from toolcrib.core.policy import Accounts
from toolcrib.core.registry import Lock, Named, Registry, lock_of
from toolcrib.workflows.values.agent_outputs import handles_of
from toolcrib.workflows.values.graph import Edge, edges_of, ends_of

_MOST_COMPARED: Final = 500
_MOST_SHOWN: Final = 8
_MOST_SUGGESTIONS: Final = 100
_MOST_WORK: Final = 4_000_000
"""Pairs of characters, of a name and of those that it is compared with, for all suggestions about one definition."""


def near(name: str, known: Iterable[str]) -> str:
    """What to write instead: the closest name, else those that there are.

    Args:
        name: That is not known.
        known: Those that are; the first 500 are looked at.
    """
    names = sorted(islice(known, _MOST_COMPARED))
    found = get_close_matches(name, names, n=1)
    if found:
        return f"did you mean {found[0]!r}?"
    more = ", …" if len(names) > _MOST_SHOWN else ""
    return f"available: {', '.join(names[:_MOST_SHOWN])}{more}" if names else "there is none"


class Nearest:
    """The same for one definition: after a hundred suggestions its author has enough to do, and there are no more.

    Long names are compared slowly: when that was too much work, there are no more either.
    """

    def __init__(self) -> None:
        self._left = _MOST_SUGGESTIONS
        self._work = _MOST_WORK

    def take(self) -> bool:
        """Count one suggestion; false if there are no more."""
        self._left -= 1
        return self._left >= 0

    def near(self, name: str, known: Iterable[str]) -> str | None:
        """As the function of this name, or null."""
        names = list(islice(known, _MOST_COMPARED))
        self._work -= len(name) * sum(map(len, names))
        return near(name, names) if self._work >= 0 and self.take() else None


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What there is in a realm at this moment."""

    realm: str
    registry: Registry
    steps: Named[StepRegistration]
    conditions: Named[ConditionBinding]
    accounts: Accounts
    instead: Mapping[str, ToolRevision] = field(default_factory=dict[str, ToolRevision])
    """What references shall mean in place of what they mean now: a proposed revision, or the one that runs take."""

    def bind(self, definition: WorkflowDefinition) -> WorkflowImplementation:
        """A workflow with what it names, as that is now; what there is not is left out."""
        handlers = {step.handler_ref for step in definition.steps if step.handler_ref is not None}
        conditions = {step.condition.ref for step in definition.steps if isinstance(step.condition, ConditionUse)}
        parts = {name: getattr(definition, name) for name in WorkflowParts.model_fields}
        named = WorkflowImplementation(
            **parts,
            handlers=_drop_missing({name: self.steps.find(self.realm, name) for name in sorted(handlers)}),
            conditions=_drop_missing({name: self.conditions.find(self.realm, name) for name in sorted(conditions)}),
        )
        return named.model_copy(update={"bound": lock_of(named.callees, self.registry, self.realm)})

    def tool(self, ref: str) -> ToolRevision | None:
        """The tool that a reference means, or null."""
        return self.instead.get(ref) or self.registry.find_by_ref(self.realm, ref)

    def callees(self, implementation: WorkflowImplementation) -> Mapping[str, ToolRevision]:
        """The tools that it calls, by reference; those that there are."""
        return _drop_missing({ref: self.tool(ref) for ref in implementation.callees})


def _drop_missing(among: Mapping[str, _T | None]) -> dict[str, _T]:
    return {name: one for name, one in among.items() if one is not None}


@dataclass(frozen=True)
class Layout:
    """What all checks of one definition look at.

    Args:
        definition: The definition.
        around: What it is held against.
    """

    definition: WorkflowDefinition
    around: CheckContext
    nearest: Nearest = field(default_factory=Nearest)
    """Suggests what may have been meant."""

    @cached_property
    def implementation(self) -> WorkflowImplementation:
        """The workflow with what it names, as that is now."""
        return self.around.bind(self.definition)

    @cached_property
    def callees(self) -> Mapping[str, ToolRevision]:
        """The tools that there are, by reference."""
        return self.around.callees(self.implementation)

    @property
    def steps(self) -> tuple[WorkflowStep, ...]:
        """All of them, in their order."""
        return self.definition.steps

    @cached_property
    def by_name(self) -> Mapping[str, WorkflowStep]:
        """Steps by their own names; of several with one name the first."""
        return {step.name: step for step in reversed(self.steps)}

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where each stands, by its name and in this order; of several with one name the first."""
        first: dict[str, int] = {}
        for place, step in enumerate(self.steps):
            first.setdefault(step.name, place)
        return first

    @cached_property
    def known(self) -> Mapping[str, list[WorkflowStep]]:
        """Steps by the names under which expressions read them."""
        found: dict[str, list[WorkflowStep]] = {}
        for step in self.steps:
            found.setdefault(step.known_as, []).append(step)
        return found

    @cached_property
    def gone_to(self) -> Mapping[str, list[str]]:
        """Names of the steps that go to a step when they fail, by its name."""
        found: dict[str, list[str]] = {}
        for step in self.steps:
            if step.goes_to is not None:
                found.setdefault(step.goes_to, []).append(step.name)
        return found

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """The edges between steps that there are."""
        edges = edges_of(self.implementation, lenient=True)
        return tuple(edge for edge in edges if edge.source in self.by_name and edge.target in self.by_name)

    @cached_property
    def before(self) -> Mapping[str, Mapping[str, None]]:
        """Names of the steps that each step waits for, by its name, each once and in order."""
        found: dict[str, dict[str, None]] = {}
        for edge in self.edges:
            found.setdefault(edge.target, {})[edge.source] = None
        return found

    @cached_property
    def ends(self) -> Sequence[WorkflowStep]:
        """The steps whose outputs are those of the workflow, if it does not say it itself."""
        return [self.by_name[name] for name in ends_of(self.places, self.edges)]

    @cached_property
    def lock(self) -> Lock:
        """What the runs would call that begin right after it was published."""
        return Lock(self.implementation, self.around.registry, self.around.realm)

    def callee(self, step: WorkflowStep) -> ToolRevision | None:
        """The tool that a step calls, if there is one."""
        reference = step.callee(self.implementation.handlers)
        return None if reference is None else self.callees.get(reference)

    def path(self, step: WorkflowStep | None, *names: Any) -> str:
        """Where something of a step stands; of the definition itself if there is no step."""
        start = "" if step is None else f"/steps/{self.place(step)}"
        return start + "".join(f"/{escape_name(str(name))}" for name in names)

    def place(self, step: WorkflowStep) -> int:
        """The number of a step, also of one whose name another one has."""
        return self._places[id(step)]

    @cached_property
    def _places(self) -> Mapping[int, int]:
        return {id(step): place for place, step in enumerate(self.steps)}

    def error(
        self, step: WorkflowStep | None, names: Iterable[Any], message: str, instead: str | None = None
    ) -> WorkflowProblem:
        """Something that is wrong.

        Args:
            step: Where; null for the definition itself.
            names: Of the field, and what is below it.
            message: What is wrong.
            instead: What to do.
        """
        path = self.path(step, *names)
        return WorkflowProblem(path=path, message=message, suggestion=instead, step=step and step.name)

    def warning(
        self, step: WorkflowStep | None, names: Iterable[Any], message: str, instead: str | None = None
    ) -> WorkflowProblem:
        """Something that its author should know; as `error`."""
        return self.error(step, names, message, instead).model_copy(update={"is_error": False})


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
