"""One step of a run: its condition, its action and its result.

A step, and each element of a `for_each`, ends in a `SettledStep`. Only cancellation and suspension leave it otherwise.
"""

from collections.abc import Mapping
from typing import cast

from toolcrib.contracts import InvalidExpression, Json, JsonObject, Reason, ToolError
from toolcrib.contracts.workflows import ConditionBinding, ConditionUse, SettledStep, WorkflowStep
from toolcrib.core.expressions import Template, resolve
from toolcrib.core.expressions.values import is_true
from toolcrib.workflows.run import waits
from toolcrib.workflows.run.call import StepCaller
from toolcrib.workflows.run.fanout import FanOut, elements_of
from toolcrib.workflows.values.agent_outputs import AgentNodes
from toolcrib.workflows.values.graph import StepNode, WorkflowPlan
from toolcrib.workflows.values.scope import DryRun, Scope, output_of, value_of
from toolcrib.workflows.values.step_environment import StepEnvironment
from toolcrib.workflows.values.step_errors import StepFailed, check_size, denial, failure_of_run, no_value


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
    bound = _require_binding(step, condition, bindings)
    try:
        given = cast("JsonObject", resolve(condition.input, names))
    except InvalidExpression as problem:
        raise no_value(step.name, f"condition {condition.ref!r}", problem) from problem
    return _is_true(step, bound.expression, given, f"condition {condition.ref!r}")


def _is_true(step: WorkflowStep, expression: str, names: Mapping[str, Json], field: str) -> bool:
    try:
        return is_true(Template.parse(expression, "${}").render(names))
    except InvalidExpression as problem:
        raise no_value(step.name, field, problem) from problem


def _require_binding(
    step: WorkflowStep, use: ConditionUse, bindings: Mapping[str, ConditionBinding]
) -> ConditionBinding:
    bound = bindings.get(use.ref)
    if bound is None:
        message = f"names the condition {use.ref!r}, which the workflow was not published with; save it, publish again"
        raise denial(step.name, Reason.NOT_FOUND, message)
    if not bound.enabled:
        message = f"names the condition {use.ref!r}, which is disabled; enable it and publish the workflow again"
        raise denial(step.name, Reason.TOOL_DISABLED, message)
    return bound


class StepRunner:
    """Carries out the steps of one run.

    Args:
        setting: The run.
        plan: Its graph.
        scope: What expressions read.
    """

    def __init__(self, setting: StepEnvironment, plan: WorkflowPlan, scope: Scope) -> None:
        self._setting = setting
        self._scope = scope
        self._agents = AgentNodes(setting, plan)
        self._calling = StepCaller(setting, self._agents)
        self._dry = DryRun(plan, scope) if setting.context.request.skips_writes else None

    def settle_by_condition(self, node: StepNode, origin: str | None) -> SettledStep | None:
        """How a step ends that does not run: its condition does not hold or has no value; null if it runs.

        Args:
            node: The step.
            origin: The step that has failed and gone to it, if it was one.
        """
        step = node.step
        lacking = None if self._dry is None else self._dry.lacking(step.name)
        if lacking is not None:
            return SettledStep(step=step.name, status="skipped", reason=lacking)
        try:
            if holds(step, self._setting.implementation.conditions, self._names(origin)):
                return None
        except StepFailed as failure:
            return _failure(node, failure)
        told = step.condition if isinstance(step.condition, str) else step.condition and step.condition.ref
        return SettledStep(step=step.name, status="skipped", reason=f"its condition does not hold: {told}")

    async def run(self, node: StepNode, origin: str | None) -> SettledStep:
        """Carry out a step to its end.

        Args:
            node: The step.
            origin: The step that has failed and gone to it, if it was one.
        """
        step, names = node.step, self._names(origin)
        if step.for_each is None:
            return await self._once(node, names, step.name)
        try:
            elements = elements_of(step, step.for_each, names)
        except StepFailed as failure:
            return _failure(node, failure)
        fan = FanOut(self._setting, step, step.for_each, elements)
        settled = await fan.run(names, lambda own, position: self._once(node, own, position))
        if self._calling.is_told(node):
            return settled  # the outputs are what its calls have brought
        try:
            check_size(settled.output)
        except InvalidExpression as problem:
            return _failure(node, no_value(step.name, "output", problem))
        return settled

    async def settle(self, node: StepNode, settled: SettledStep) -> JsonObject:
        """From now on expressions can read what has become of a step.

        Returns:
            What the journal is told of it: a call tells its output itself.
        """
        self._scope.settle(node.step, settled, await self._agents.visible_output(node, settled))
        if self._dry is not None:
            self._dry.settle(settled)
        is_told = self._calling.is_told(node) and settled.reused is None
        told = settled.model_dump(mode="json", exclude_defaults=True, exclude={"output"} if is_told else None)
        # An output of null is told too where a call has another one.
        return {**told, "output": settled.output} if settled.positions and not is_told else told

    def failure(self, node: StepNode, error: ToolError) -> ToolError:
        """How the run fails by one of its steps; a handler says itself how."""
        if node.step.handler_ref in self._setting.handlers:
            return error
        return failure_of_run(node.step.name, error)

    def lacking(self, target: str) -> str | None:
        """Why a dry run cannot make something of the outputs of steps, if it cannot; see `DryRun.lacking`."""
        return None if self._dry is None else self._dry.lacking(target)

    # Inside -----------------------------------------------------------------------------------------------------------

    def _names(self, origin: str | None) -> JsonObject:
        return self._scope.names if origin is None else self._scope.with_error(origin)

    async def _once(self, node: StepNode, names: JsonObject, position: str) -> SettledStep:
        """A step without a `for_each`, or one element of it."""
        try:
            return await self._carry_out(node, names, position)
        except StepFailed as failure:
            return _failure(node, failure)

    async def _carry_out(self, node: StepNode, names: JsonObject, position: str) -> SettledStep:
        step, setting = node.step, self._setting
        if step.wait is not None:
            if setting.context.request.dry_run:
                return waits.in_dry_run(step, step.wait, names)
            came = await waits.wait(setting.context, step, step.wait, names, position)
        elif step.approval is not None:
            if setting.context.request.dry_run:
                return waits.approval_in_dry_run(step, step.approval, names)
            came = await waits.ask(setting, step, step.approval, names, position)
        elif step.kind == "value":
            return _success(step, value_of(step, names))
        else:
            return await self._calling.call(node, names, position)
        return _success(step, output_of(step, step.output, names, came))


def _success(step: WorkflowStep, output: Json) -> SettledStep:
    return SettledStep(step=step.name, status="succeeded", output=output)


def _failure(node: StepNode, failure: StepFailed) -> SettledStep:
    return SettledStep(step=node.step.name, status="failed", error=failure.error)
