"""Whether a step runs: its own condition, or one that it names. Pure."""

from collections.abc import Mapping
from typing import cast

from toolcrib.contracts import InvalidExpression, Json, JsonObject, Reason
from toolcrib.contracts.workflows import ConditionBinding, ConditionUse, WorkflowStep
from toolcrib.core.expressions import Template, resolve
from toolcrib.core.expressions.values import is_true
from toolcrib.workflows.values.step_errors import denied, unresolved


def holds(step: WorkflowStep, bindings: Mapping[str, ConditionBinding], names: Mapping[str, Json]) -> bool:
    """Whether the condition of a step holds; one without a condition always runs.

    Args:
        step: The step.
        bindings: The conditions that have names, as they were when the workflow was published.
        names: What its expressions can read.

    Raises:
        StepFailed: The condition has no value, or the one that is named is not there or disabled.
    """
    condition = step.condition
    if condition is None:
        return True
    if isinstance(condition, str):
        return _is_true(step, condition, names, "condition")
    bound = _bound(step, condition, bindings)
    try:
        given = cast("JsonObject", resolve(condition.input, names))
    except InvalidExpression as problem:
        raise unresolved(step.name, f"condition {condition.ref!r}", problem) from problem
    return _is_true(step, bound.expression, given, f"condition {condition.ref!r}")


def _is_true(step: WorkflowStep, expression: str, names: Mapping[str, Json], field: str) -> bool:
    try:
        return is_true(Template.parse(expression, "${}").render(names))
    except InvalidExpression as problem:
        raise unresolved(step.name, field, problem) from problem


def _bound(step: WorkflowStep, use: ConditionUse, bindings: Mapping[str, ConditionBinding]) -> ConditionBinding:
    bound = bindings.get(use.ref)
    if bound is None:
        message = f"names the condition {use.ref!r}, which the workflow was not published with; save it, publish again"
        raise denied(step.name, Reason.NOT_FOUND, message)
    if not bound.enabled:
        message = f"names the condition {use.ref!r}, which is disabled; enable it and publish the workflow again"
        raise denied(step.name, Reason.TOOL_DISABLED, message)
    return bound
