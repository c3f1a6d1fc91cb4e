"""Checks that each name of a definition has one meaning, and whether two steps are alternatives.

Alternatives may share a `save_as`. Two steps are alternatives if one runs only after the other has failed and gone to
it, directly or indirectly, or if their conditions compare the same value with constants that exclude each other: `x ==
1` and `x == 2`, `x in [1, 2]` and `!(x in [1, 2, 3])`, `x` and `!x`. Two steps with other conditions are accepted with
a warning.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from toolcrib.contracts import InvalidExpression, canonical
from toolcrib.contracts.workflows import SCOPE, WorkflowProblem, WorkflowStep
from toolcrib.core.expressions import Template
from toolcrib.core.expressions.syntax import Chain, Constant, ListOf, Node, Not
from toolcrib.workflows.checks.structure.layout import Layout

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
