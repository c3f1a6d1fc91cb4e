"""Is a workflow well formed, and does it fit what it calls? All problems at once, and what follows from the rest."""

from dataclasses import dataclass, replace
from typing import Any, Self

from toolcrib.contracts import EFFECTS, SideEffects, ToolDefinition
from toolcrib.contracts.workflows import Derived, WorkflowDefinition, WorkflowImplementation, WorkflowProblem
from toolcrib.workflows.checks.calls import call_problems, effects_problems
from toolcrib.workflows.checks.checking import kind_problems
from toolcrib.workflows.checks.expressions import Expressions
from toolcrib.workflows.checks.names_part import name_problems
from toolcrib.workflows.checks.structure.cycles import circle_problems
from toolcrib.workflows.checks.structure.layout import Layout
from toolcrib.workflows.checks.structure.surroundings import Surroundings
from toolcrib.workflows.checks.types.schemas import schema_of


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
    layout = Layout(definition, around)
    expressions = Expressions(layout)
    problems = [
        *name_problems(layout),
        *kind_problems(layout),
        *call_problems(layout),
        *circle_problems(layout),
        *expressions.problems(),
        *effects_problems(layout),
    ]
    derived: dict[Derived, Any] = {}
    if definition.side_effects is None:
        derived["side_effects"] = _effects(layout)
    output_schema = None if definition.output_schema is not None else schema_of(expressions.output)
    if output_schema is not None:
        derived["output_schema"] = output_schema
    implementation = layout.implementation.model_copy(update={"derived": tuple(derived)})
    tool = definition.tool().model_copy(update={**derived, "implementation": implementation})
    return Checked(tool, implementation, tuple(problems))


def _effects(layout: Layout) -> SideEffects:
    called: set[SideEffects] = {tool.definition.side_effects for tool in layout.callees.values()}
    return EFFECTS[max(map(EFFECTS.index, called), default=0)]
