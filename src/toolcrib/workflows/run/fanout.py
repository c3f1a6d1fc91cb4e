"""A step that runs once per element of a list, some elements in parallel.

Waiting elements free their places for others. The output is the list of the elements' outputs, in order, with null for
failed elements.
"""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeAlias

import orjson

from toolcrib.contracts import InvalidExpression, Json, JsonObject, ToolError
from toolcrib.contracts.workflows import MAX_ITEM_ERRORS, ForEach, ItemError, SettledStep, WorkflowStep
from toolcrib.core.expressions import Template
from toolcrib.core.expressions.values import is_list, kind
from toolcrib.core.runs import ConcurrentCalls
from toolcrib.workflows.values.step_environment import StepEnvironment
from toolcrib.workflows.values.step_errors import no_value, unusable

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
