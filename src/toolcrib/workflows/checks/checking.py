"""Is a workflow well formed, and does it fit what it calls? All problems at once, and what follows from the rest."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

from toolcrib.contracts import EFFECTS, InvalidDefinition, InvalidExpression, SideEffects, ToolDefinition
from toolcrib.contracts.workflows import WorkflowDefinition, WorkflowImplementation, WorkflowProblem
from toolcrib.workflows.checks.surroundings import Surroundings
from toolcrib.workflows.graph import plan_of


@dataclass(frozen=True, slots=True)
class Checked:
    """A workflow as it would be published, and what is wrong with that."""

    tool: ToolDefinition
    implementation: WorkflowImplementation
    problems: tuple[WorkflowProblem, ...]

    @property
    def errors(self) -> tuple[WorkflowProblem, ...]:
        """What is wrong."""
        return tuple(problem for problem in self.problems if problem.is_error)

    @property
    def warnings(self) -> tuple[WorkflowProblem, ...]:
        """What its author should know."""
        return tuple(problem for problem in self.problems if not problem.is_error)

    def with_error(self, message: str) -> Self:
        """The same with one thing more that is wrong with it as a whole."""
        return replace(self, problems=(*self.problems, WorkflowProblem(path="", message=message)))


def check_workflow(definition: WorkflowDefinition, around: Surroundings) -> Checked:
    """Hold a definition against what there is in its realm.

    Args:
        definition: The definition.
        around: What it is held against.
    """
    implementation = around.bind(definition)
    effects = _effects(implementation, around)
    derived = {"side_effects": effects} if definition.side_effects is None else {}
    implementation = implementation.model_copy(update={"derived": tuple(derived)})
    tool = definition.tool().model_copy(update={**derived, "implementation": implementation})
    return Checked(tool, implementation, tuple(_problems(implementation)))


def _problems(implementation: WorkflowImplementation) -> Iterator[WorkflowProblem]:
    try:
        plan_of(implementation)
    except (InvalidDefinition, InvalidExpression) as problem:
        yield WorkflowProblem(path="", message=str(problem))


def _effects(implementation: WorkflowImplementation, around: Surroundings) -> SideEffects:
    called: set[SideEffects] = {tool.definition.side_effects for tool in around.callees(implementation).values()}
    return EFFECTS[max(map(EFFECTS.index, called), default=0)]
