"""Checks a whole definition, each of its steps, and the workflow vocabulary. Reports all problems at once."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias

from toolcrib.contracts import EFFECTS, InvalidDefinition, InvalidExpression, SideEffects, ToolDefinition, canonical
from toolcrib.contracts.workflows import (
    AGENT_HANDLERS,
    AGENTIC_HANDLERS,
    BUILT_IN_HANDLERS,
    MAX_WAIT_S,
    SCOPE,
    ConditionBinding,
    Derived,
    StepRegistration,
    StepRetry,
    Wait,
    WorkflowDefinition,
    WorkflowImplementation,
    WorkflowProblem,
    WorkflowStep,
)
from toolcrib.core.expressions import Template, references_of
from toolcrib.core.expressions.syntax import Chain, Constant, ListOf, Node, Not
from toolcrib.core.registry import Registry
from toolcrib.core.runs import check_pins
from toolcrib.workflows.checks.calls import call_problems, effects_problems
from toolcrib.workflows.checks.expressions import Expressions
from toolcrib.workflows.checks.structure.cycles import cycle_problems
from toolcrib.workflows.checks.structure.prepared_definition import CheckContext, Layout
from toolcrib.workflows.checks.types.value_types import schema_of

Relation: TypeAlias = Literal["exclusive", "unclear", "together"]
"""Never both; not understood; both in some run, as far as their conditions are concerned."""

_COLUMN: Final = re.compile(r"column=\d+")
_TRUE: Final = frozenset({b"true"})


class _Case(NamedTuple):
    """What a condition says of a value: that it is among some, or that it is not."""

    value: str
    among: frozenset[bytes]
    is_among: bool


def relation(one: WorkflowStep, other: WorkflowStep, by_name: Mapping[str, WorkflowStep]) -> Relation:
    """Whether two steps can both come to their ends."""
    if _leads_to(one, other, by_name) or _leads_to(other, one, by_name):
        return "exclusive"
    if one.condition is None or other.condition is None:
        return "together"
    first, second = _case_of(one), _case_of(other)
    return "exclusive" if first is not None and second is not None and _exclude(first, second) else "unclear"


def _leads_to(one: WorkflowStep, other: WorkflowStep, by_name: Mapping[str, WorkflowStep]) -> bool:
    """Whether a step is only run after another one has failed."""
    step: WorkflowStep | None = one
    for _ in by_name:
        if step is None or step.goes_to is None:
            return False
        if step.goes_to == other.name:
            return True
        step = by_name.get(step.goes_to)
    return False


def _exclude(one: _Case, other: _Case) -> bool:
    if one.value != other.value or not (one.is_among or other.is_among):
        return False
    if one.is_among and other.is_among:
        return not one.among & other.among
    inside, outside = (one, other) if one.is_among else (other, one)
    return inside.among <= outside.among


def _case_of(step: WorkflowStep) -> _Case | None:
    if not isinstance(step.condition, str):
        return None
    try:
        template = Template.parse(step.condition, "${}")
    except InvalidExpression:
        return None
    if len(template.parts) != 1 or not template.placeholders:
        return None
    return _case(template.placeholders[0].expression.tree)


def _case(node: Node) -> _Case | None:
    if isinstance(node, Not):
        inner = _case(node.operand)
        return None if inner is None else inner._replace(is_among=not inner.is_among)
    if isinstance(node, Chain) and len(node.rest) == 1:
        operation = node.rest[0]
        listed = _constants(operation.operand)
        if operation.operator in {"==", "!="} and isinstance(operation.operand, Constant):
            among = frozenset({canonical(operation.operand.value)})
            return _Case(_expression_text(node.first), among, operation.operator == "==")
        if operation.operator == "in" and listed is not None:
            return _Case(_expression_text(node.first), listed, is_among=True)
    return _Case(f"truth of {_expression_text(node)}", _TRUE, is_among=True)


def _constants(node: Node) -> frozenset[bytes] | None:
    if not isinstance(node, ListOf):
        return None
    values = [item.value for item in node.items if isinstance(item, Constant)]
    return frozenset(map(canonical, values)) if len(values) == len(node.items) else None


def _expression_text(node: Node) -> str:
    """An expression as it is, wherever it stands."""
    return _COLUMN.sub("", repr(node))


_MOST_ALTERNATIVES: Final = 50


def name_problems(layout: Layout) -> Iterator[WorkflowProblem]:
    """What is wrong with the names of steps, and with the steps that others name."""
    yield from _own_names(layout)
    yield from _shared_names(layout)
    for step in layout.steps:
        for index, name in enumerate(step.depends_on):
            yield from _other(layout, step, name, ("depends_on", index))
        if step.goes_to is not None:
            yield from _other(layout, step, step.goes_to, ("on_error", "go_to"))


def _own_names(layout: Layout) -> Iterator[WorkflowProblem]:
    seen: set[str] = set()
    for step in layout.steps:
        if step.name in seen:
            yield layout.error(step, ("name",), f"two steps are named {step.name!r}", "give each a name of its own")
        seen.add(step.name)
        for field, name in (("name", step.name), ("save_as", step.save_as)):
            if name in SCOPE:
                message = f"{name!r} has another meaning in expressions"
                yield layout.error(step, (field,), message, f"use another name than {', '.join(sorted(SCOPE))}")


def _shared_names(layout: Layout) -> Iterator[WorkflowProblem]:
    for name, steps in layout.known.items():
        if len(steps) == 1 or len({step.name for step in steps}) < len(steps):
            continue
        for place, step in enumerate(steps[:_MOST_ALTERNATIVES]):
            related = {other.name: relation(step, other, layout.by_name) for other in steps[:place]}
            both = next((other for other in related if related[other] == "together"), None)
            unclear = next((other for other in related if related[other] == "unclear"), None)
            field = ("save_as" if step.save_as else "name",)
            if both is not None:
                message = f"expressions would read the output of {both!r} and of {step.name!r} as {name!r}"
                instead = "save one of them as something else, or let one go to the other when it fails"
                yield layout.error(step, field, message, instead)
            elif unclear is not None:
                message = f"if {unclear!r} and {step.name!r} both run, {name!r} is the output of the later one"
                yield layout.warning(step, field, message, "make their conditions exclude each other")


def _other(layout: Layout, step: WorkflowStep, name: str, field: tuple[str | int, ...]) -> Iterator[WorkflowProblem]:
    """What is wrong with a step that another one names."""
    if name == step.name:
        yield layout.error(step, field, f"step {name!r} would wait for itself", "take it out")
    elif name not in layout.by_name:
        yield layout.error(step, field, f"there is no step {name!r}", layout.nearest.near(name, layout.by_name))


_WHATS: Final = ("tool", "agent", "workflow", "handler_ref", "wait", "approval")
_ENDS: Final = ("seconds", "until", "signal")
_OF_CALLS: Final = ("input", "retry", "timeout_s", "principal_ref")
"""Fields that only a step has a use for that calls something."""
_EXAMPLE: Final = "write it like 2026-01-31T12:00:00Z"


def kind_problems(layout: Layout) -> Iterator[WorkflowProblem]:
    """What is wrong with the steps as such, wherever they stand."""
    for step in layout.steps:
        given = [field for field in _WHATS if getattr(step, field) is not None]
        if len(given) > 1:
            message = f"step {step.name!r} has {' and '.join(given)}, but a step does only one thing"
            yield layout.error(step, (), message, "make a step of each")
        elif not given and step.output is None:
            message = f"step {step.name!r} does nothing"
            yield layout.error(step, (), message, f"give it one of {', '.join(_WHATS)}, or an output")
        else:
            yield from _useless(layout, step)
        if step.wait is not None:
            yield from _wait_problems(layout, step, step.wait)
        yield from _pin_problems(layout, step)


def _useless(layout: Layout, step: WorkflowStep) -> Iterator[WorkflowProblem]:
    """Fields that do nothing in a step of this kind."""
    if step.kind in {"wait", "approval", "value"}:
        for field in _OF_CALLS:
            value = getattr(step, field)
            if value not in (None, {}, StepRetry()):
                message = f"{field} has no effect in a step without a call"
                yield layout.error(step, (field,), message, "take it out")
    if step.for_each is not None and step.wait is not None and step.wait.signal is not None:
        message = f"every element would wait for the same signal {step.wait.signal!r}"
        yield layout.error(step, ("for_each",), message, "take it out")
    if step.join != "all" and step.name not in layout.before:
        message = f"join is {step.join!r}, and the step depends on no other step"
        yield layout.warning(step, ("join",), message, "take it out")
    if step.join == "always" and step.handler_ref not in AGENTIC_HANDLERS:  # these need a plan, or there is no run
        yield from _never(layout, step)


def _never(layout: Layout, step: WorkflowStep) -> Iterator[WorkflowProblem]:
    """A step that is to run in any case does not if one before it ends the run."""
    for name in layout.before.get(step.name, ()):
        earlier = layout.by_name[name]
        if earlier.kind not in {"value", "wait"} and earlier.on_error == "fail":
            message = f"join is 'always', and if step {name!r} fails the run ends, and this step does not run"
            yield layout.warning(step, ("join",), message, f"let {name!r} continue on_error, or go to a step")
            return


def _wait_problems(layout: Layout, step: WorkflowStep, wait: Wait) -> Iterator[WorkflowProblem]:
    given = [field for field in _ENDS if getattr(wait, field) is not None]
    if len(given) != 1:
        message = f"a wait with {' and '.join(given) or 'nothing'} has no single end"
        yield layout.error(step, ("wait",), message, f"give it one of {', '.join(_ENDS)}")
    if wait.timeout_s is not None and wait.signal is None:
        yield layout.error(
            step, ("wait", "timeout_s"), "timeout_s applies to a signal, and the wait has none", "take it out"
        )
    if isinstance(wait.seconds, str) and "${" not in wait.seconds:
        message = f"seconds is the text {wait.seconds!r}"
        yield layout.error(step, ("wait", "seconds"), message, "write a number, or ${…} that gives one")
    elif isinstance(wait.seconds, float) and not 0 <= wait.seconds <= MAX_WAIT_S:
        message = f"seconds is {wait.seconds:g}, and must be from 0 to {MAX_WAIT_S:,.0f}"
        yield layout.error(step, ("wait", "seconds"), message)
    if wait.until is not None and "${" not in wait.until and not _is_moment(wait.until):
        message = f"until is {wait.until!r}, which is not a time with a time zone"
        yield layout.error(step, ("wait", "until"), message, _EXAMPLE)


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _pin_problems(layout: Layout, step: WorkflowStep) -> Iterator[WorkflowProblem]:
    if not step.pins:
        return
    callee = layout.callee(step)
    asks_agent = step.agent is not None or step.handler_ref in AGENT_HANDLERS
    if not asks_agent and not (callee is not None and callee.definition.has_model):
        yield layout.error(step, ("pins",), "pins name calls of a model, and the step asks no model", "take them out")
        return
    try:
        check_pins(step.name, step.pins)
    except InvalidDefinition as problem:
        yield layout.error(step, ("pins",), str(problem))


def check_registration(registration: StepRegistration, registry: Registry, realm: str) -> None:
    """Refuse a name for a tool that no step could use.

    Raises:
        InvalidDefinition: Its name comes with the crib, or one of its mappings does not compile.
        NotFound: There is no such tool.
    """
    if registration.name in BUILT_IN_HANDLERS:
        msg = f"workflow step {registration.name!r} is built in; give yours another name"
        raise InvalidDefinition(msg)
    registry.require(realm, registration.tool)
    for field in ("input_mapping", "output_mapping"):
        try:
            references_of(getattr(registration, field))
        except InvalidExpression as problem:
            msg = f"workflow step {registration.name!r}: {field}: {problem}"
            raise InvalidDefinition(msg) from problem


def check_condition(condition: ConditionBinding) -> None:
    """Refuse a condition that is not one expression over its parameters.

    Raises:
        InvalidDefinition: Names the condition, what is wrong and what to do.
    """
    problem = next(_condition_problems(condition), None)
    if problem is not None:
        raise InvalidDefinition(f"condition {condition.name!r}: {problem}")


def _condition_problems(condition: ConditionBinding) -> Iterator[str]:
    if len(set(condition.parameters)) < len(condition.parameters):
        yield f"two of its parameters have one name: {', '.join(condition.parameters)}; give each its own"
    try:
        template = Template.parse(condition.expression, "${}")
        template.check(condition.parameters)
    except InvalidExpression as problem:
        yield f"expression: {problem}"
        return
    if len(template.parts) != 1 or not template.placeholders:
        yield f"{condition.expression!r} is not one expression; write it as ${{…}}, and nothing else"
    unread = set(condition.parameters) - {reference.partition(".")[0] for reference in template.references}
    if unread:
        yield f"its expression does not read {', '.join(sorted(unread))}; take it out of the parameters"


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


def check_workflow(definition: WorkflowDefinition, around: CheckContext) -> Checked:
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
        *cycle_problems(layout),
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
