"""One step of a run: its condition, its action and its result.

A step, and each element of a `for_each`, ends in a `SettledStep`. Only cancellation and suspension leave it otherwise.
"""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeAlias, cast

import orjson

from toolcrib.contracts import InvalidExpression, Json, JsonObject, Reason, ToolError
from toolcrib.contracts.workflows import (
    MAX_ITEM_ERRORS,
    ConditionBinding,
    ConditionUse,
    ForEach,
    ItemError,
    SettledStep,
    WorkflowStep,
)
from toolcrib.core.expressions import Template, resolve
from toolcrib.core.expressions.values import is_list, is_true, kind
from toolcrib.core.runs import ConcurrentCalls
from toolcrib.workflows.run import waits
from toolcrib.workflows.run.step_calls import StepCaller
from toolcrib.workflows.values.agent_outputs import AgentNodes
from toolcrib.workflows.values.graph import StepNode, WorkflowPlan
from toolcrib.workflows.values.scope import DryRun, Scope, output_of, value_of
from toolcrib.workflows.values.step_environment import StepEnvironment
from toolcrib.workflows.values.step_errors import StepFailed, check_size, denial, failure_of_run, no_value, unusable

CarryOut: TypeAlias = Callable[[JsonObject, str], Coroutine[Any, Any, SettledStep]]
"""Carries out one element: with the names that it reads, at its position."""

MAX_WAITING: Final = 1_000
"""Elements of one step that wait for somebody outside at once."""

_MOST_SHOWN: Final = 100
"""Characters of a value in a message."""
_MOST_TOLD: Final = 500
"""Characters of the error of an element, where there may be many."""


def elements_of(step: WorkflowStep, each: ForEach, names: Mapping[str, Json]) -> list[Json]:
    """The elements that a step is carried out for.

    Raises:
        StepFailed: The expression has no value, or one that is no list.
    """
    try:
        found = Template.parse(each.items, "${}").render(names)
    except InvalidExpression as problem:
        raise no_value(step.name, "for_each", problem) from problem
    if is_list(found):
        return found
    shown = orjson.dumps(found).decode()
    shown = shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}…"
    message = f"{each.items} must be a list, and is {kind(found)}: {shown}; name a list, or write [value]"
    raise unusable(step.name, "for_each", message)


class FanOut:
    """One step over its elements.

    Args:
        setting: The run.
        step: The step.
        each: How it goes over them.
        elements: The list.
    """

    def __init__(self, setting: StepEnvironment, step: WorkflowStep, each: ForEach, elements: list[Json]) -> None:
        self._setting = setting
        self._step = step
        self._each = each
        self._elements = elements
        self._open: set[int] = set()
        """Elements that are begun and not ended."""
        self._ended = 0
        self._outputs: list[Json] = [None] * len(elements)
        self._failures: dict[int, ToolError] = {}
        self._skipped: dict[int, str | None] = {}
        self._tried_again: dict[int, SettledStep] = {}
        self._agent_runs: dict[int, str | None] = {}

    async def run(self, names: JsonObject, carry_out: CarryOut) -> SettledStep:
        """Carry out all of them, or as many as are begun before one fails that must not.

        Args:
            names: What the step's expressions can read.
            carry_out: Carries out one.
        """
        context, begun = self._setting.context, 0
        underway: ConcurrentCalls[int, SettledStep] = context.underway()
        while True:
            while begun < len(self._elements) and self._may_begin(begun, underway):
                own = {**names, "item": self._elements[begun], "index": begun}
                with underway.watching():
                    underway.add(begun, context.start(carry_out(own, self._position(begun))))
                self._open.add(begun)
                begun += 1
            if self._is_stopped and not underway.working:
                await self._give_up(underway)
            if not self._open:
                return self._settle_step()
            await underway.stir()
            for index, pending in underway.take_ended():
                self._take(index, pending.result())

    async def _give_up(self, underway: ConcurrentCalls[int, SettledStep]) -> None:
        """What waits for somebody outside is not waited for any more."""
        await underway.stop()
        for index in sorted(self._open):
            await self._setting.context.give_up(self._position(index))
        self._open.clear()

    def _position(self, index: int) -> str:
        return f"{self._step.name}[{index}]"

    @property
    def _is_stopped(self) -> bool:
        failed = bool(self._failures) and self._each.on_item_error == "fail"
        return failed or self._setting.ending

    def _may_begin(self, index: int, underway: ConcurrentCalls[int, SettledStep]) -> bool:
        """Whether another element may begin: those that wait for somebody outside take no places, up to a number.

        After a failure none does, but for those that had begun before it when the run was worked on before.
        """
        if self._is_stopped and not self._setting.context.has_begun(self._position(index)):
            return False
        return underway.waiting < MAX_WAITING and underway.working < self._each.max_concurrency

    def _take(self, index: int, settled: SettledStep) -> None:
        self._open.discard(index)
        self._ended += 1
        if settled.error is not None:
            self._failures[index] = settled.error
        elif settled.status == "skipped":
            self._skipped[index] = settled.reason
        self._outputs[index] = settled.output
        if settled.agent_runs:
            self._agent_runs[index] = settled.agent_runs[0]
        if settled.tries > 1:
            self._tried_again[index] = settled

    def _settle_step(self) -> SettledStep:
        """What becomes of the step of what has become of its elements."""
        failed, count = sorted(self._failures), len(self._elements)
        if not failed and self._ended < count:
            reason = f"the run has failed when {self._ended} of its {count} elements had ended"
            return SettledStep(step=self._step.name, status="cut_off", reason=reason, items=count)
        settled = SettledStep(
            step=self._step.name,
            status="succeeded",
            output=self._outputs,
            items=count,
            failed=len(failed),
            errors=tuple(_item_error(index, self._failures[index]) for index in failed[:MAX_ITEM_ERRORS]),
            positions=tuple(self._tried_again[index].positions[0] for index in sorted(self._tried_again)),
            tries=max((each.tries for each in self._tried_again.values()), default=1),
            agent_runs=tuple(map(self._agent_runs.get, range(count))) if self._agent_runs else (),
        )
        if failed:
            first = self._failures[failed[0]]
            if self._each.on_item_error == "continue":
                return settled.model_copy(update={"status": "partial", "error": first})
            return settled.model_copy(update={"status": "failed", "error": first, "output": None})
        if self._skipped:
            reason = f"{self._skipped[min(self._skipped)]} ({len(self._skipped)} of {count} elements)"
            return settled.model_copy(update={"status": "skipped", "reason": reason})
        return settled


def _item_error(index: int, failure: ToolError) -> ItemError:
    message = failure.message
    if len(message) > _MOST_TOLD:
        message = f"{message[:_MOST_TOLD]}…"
    return ItemError(index=index, code=failure.code, message=message)


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
        condition = step.condition if isinstance(step.condition, str) else step.condition and step.condition.ref
        return SettledStep(step=step.name, status="skipped", reason=f"its condition does not hold: {condition}")

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
        entry = settled.model_dump(mode="json", exclude_defaults=True, exclude={"output"} if is_told else None)
        # An output of null is told too where a call has another one.
        return {**entry, "output": settled.output} if settled.positions and not is_told else entry

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
