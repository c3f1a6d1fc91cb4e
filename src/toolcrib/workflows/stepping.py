"""One step of a run: its condition, its elements, its tries, and what becomes of it."""

from collections.abc import Mapping
from typing import TypeAlias, cast

from toolcrib.contracts import ErrorCode, InvalidExpression, Json, JsonObject, Reason, ToolError, ToolRevision
from toolcrib.contracts.workflows import (
    AGENT_HANDLERS,
    AGENTIC_HANDLERS,
    ConditionUse,
    ForEach,
    SettledStep,
    WorkflowImplementation,
    WorkflowStep,
)
from toolcrib.executor import ToolCall, error
from toolcrib.expressions import Template, resolve
from toolcrib.expressions.values import is_list, is_true
from toolcrib.runs import Pending, RunContext
from toolcrib.workflows.graph import Node, shared_names
from toolcrib.workflows.handlers import Handler
from toolcrib.workflows.scope import Scope

Callee: TypeAlias = ToolRevision | ToolError
"""What a reference means in a run, or why it means nothing."""


class Stepping:
    """Runs the steps of one run.

    Args:
        context: Of the run.
        implementation: The workflow.
        scope: What expressions read.
        callees: The tools by reference.
        handlers: The handlers that come with the crib, by name.
    """

    def __init__(
        self,
        context: RunContext,
        implementation: WorkflowImplementation,
        scope: Scope,
        callees: Mapping[str, Callee],
        handlers: Mapping[str, Handler],
    ) -> None:
        self._context = context
        self._implementation = implementation
        self._scope = scope
        self._callees = callees
        self._handlers = handlers

    def left_out(self, node: Node) -> SettledStep | None:
        """How a step ends whose condition does not hold, or has no value."""
        step = node.step
        if step.condition is None:
            return None
        try:
            if self._holds(step.condition):
                return None
        except InvalidExpression as problem:
            return self._unresolved(step, "condition", problem)
        told = step.condition if isinstance(step.condition, str) else step.condition.ref
        return SettledStep(step=step.name, status="skipped", reason=f"its condition does not hold: {told}")

    async def run(self, node: Node, origin: str | None) -> SettledStep:
        """Run a step to its end.

        Args:
            node: The step.
            origin: The step that has failed and gone to it.
        """
        names = self._scope.names
        if origin is not None:
            names = self._scope.with_names(error=names["steps"][origin]["error"])
        if node.step.for_each is not None:
            return await self._run_each(node, node.step.for_each, names)
        return await self._run_once(node, names, node.step.name)

    def not_told(self, settled: SettledStep) -> set[str]:
        """Fields of a settled step that the journal need not have, because a call of it tells them."""
        step = next(step for step in self._implementation.steps if step.name == settled.step)
        computed = step.output is not None or step.callee(self._implementation.handlers) is None
        return set() if computed or step.handler_ref in AGENTIC_HANDLERS else {"output"}

    def _holds(self, condition: str | ConditionUse) -> bool:
        if isinstance(condition, str):
            return is_true(Template.parse(condition, "${}").render(self._scope.names))
        bound = self._implementation.conditions[condition.ref]
        given = cast("JsonObject", resolve(condition.input, self._scope.names))
        return is_true(Template.parse(bound.expression, "${}").render(given))

    async def _run_each(self, node: Node, each: ForEach, names: JsonObject) -> SettledStep:
        step = node.step
        try:
            items = Template.parse(each.items, "${}").render(names)
        except InvalidExpression as problem:
            return self._unresolved(step, "for_each", problem)
        if not is_list(items):
            return self._unresolved(step, "for_each", InvalidExpression(f"{each.items} is no list"))
        ended: dict[int, SettledStep] = {}
        running: dict[Pending[SettledStep], int] = {}
        begun = 0
        while begun < len(items) or running:
            stopped = each.on_item_error == "fail" and any(one.error is not None for one in ended.values())
            while begun < len(items) and len(running) < each.max_concurrency and not stopped:
                own = {**names, "item": items[begun], "index": begun}
                position = f"{step.name}[{begun}]"
                running[self._context.start(self._run_once(node, own, position))] = begun
                begun += 1
            if not running:
                break
            for done in await self._context.wait_any(list(running)):
                ended[running.pop(done)] = done.result()
        return _gathered(step, each, ended, len(items))

    async def _run_once(self, node: Node, names: JsonObject, position: str) -> SettledStep:
        """One call of a step, or its value."""
        step = node.step
        try:
            if node.callee is None:
                return SettledStep(step=step.name, status="succeeded", output=resolve(step.output, names))
            arguments = self._arguments(step, names)
        except InvalidExpression as problem:
            return self._unresolved(step, "input", problem)
        callee = self._callees[node.callee]
        if isinstance(callee, ToolError):
            return SettledStep(step=step.name, status="failed", error=callee)
        if step.handler_ref in self._handlers:
            return await self._handle(step, self._handlers[step.handler_ref], callee, arguments, position)
        envelope = await self._context.call(ToolCall(position, callee.name, arguments, callee.content_hash))
        if not envelope.ok:
            return SettledStep(step=step.name, status="failed", error=envelope.error, positions=(position,))
        if step.output is None:
            return SettledStep(step=step.name, status="succeeded", output=envelope.output, positions=(position,))
        try:
            output = resolve(step.output, {**names, "output": envelope.output})
        except InvalidExpression as problem:
            return self._unresolved(step, "output", problem)
        return SettledStep(step=step.name, status="succeeded", output=output, positions=(position,))

    async def _handle(
        self, step: WorkflowStep, handler: Handler, tool: ToolRevision, arguments: JsonObject, position: str
    ) -> SettledStep:
        """One step by code that comes with the crib."""
        settled = (await handler(tool, arguments, position)).model_copy(update={"step": step.name})
        if step.output is None or settled.status == "failed":
            return settled
        try:
            output = resolve(step.output, {**self._scope.names, "output": settled.output})
        except InvalidExpression as problem:
            return self._unresolved(step, "output", problem)
        return settled.model_copy(update={"output": output})

    def _arguments(self, step: WorkflowStep, names: JsonObject) -> JsonObject:
        handler = self._implementation.handlers.get(step.handler_ref or "")
        given = step.input if handler is None else {**handler.input_mapping, **step.input}
        if step.handler_ref not in AGENT_HANDLERS:
            return cast("JsonObject", resolve(given, names))
        told = cast("JsonObject", resolve(given.get("context", {}), names))
        near = {name: told[name] for name in shared_names(step)}
        arguments: JsonObject = {"message": resolve(given.get("prompt", ""), {**names, **near})}
        return {**arguments, "context": told} if told else arguments

    def _unresolved(self, step: WorkflowStep, field: str, problem: InvalidExpression) -> SettledStep:
        message = f"{field} of step {step.name!r} has no value: {problem}"
        failure = error(ErrorCode.VALIDATION_ERROR, Reason.REFERENCE_UNRESOLVED, message, step=step.name)
        return SettledStep(step=step.name, status="failed", error=failure)


def _gathered(step: WorkflowStep, each: ForEach, ended: Mapping[int, SettledStep], count: int) -> SettledStep:
    """What becomes of a step of what became of its elements."""
    failed = [index for index, one in sorted(ended.items()) if one.error is not None]
    outputs: list[Json] = [ended[index].output if index in ended else None for index in range(count)]
    settled = SettledStep(step=step.name, status="succeeded", output=outputs, items=count, failed=len(failed))
    if not failed:
        return settled
    first = ended[failed[0]].error
    if each.on_item_error == "continue":
        return settled.model_copy(update={"status": "partial", "error": first})
    return settled.model_copy(update={"status": "failed", "error": first, "output": None})
