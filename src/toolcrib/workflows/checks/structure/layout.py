"""A definition as it is looked at: its steps by every name that leads to them, and the tools that they call."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from toolcrib.contracts import ToolRevision, escaped
from toolcrib.contracts.workflows import WorkflowDefinition, WorkflowImplementation, WorkflowProblem, WorkflowStep
from toolcrib.core.registry import Lock
from toolcrib.workflows.checks.structure.nearest import Nearest
from toolcrib.workflows.checks.structure.surroundings import Surroundings
from toolcrib.workflows.values.graph import Edge, edges_of, ends_of


@dataclass(frozen=True)
class Layout:
    """What all checks of one definition look at.

    Args:
        definition: The definition.
        around: What it is held against.
    """

    definition: WorkflowDefinition
    around: Surroundings
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
        return start + "".join(f"/{escaped(str(name))}" for name in names)

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
