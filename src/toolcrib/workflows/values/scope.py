"""The scope of a run's expressions, and the arguments and outputs of steps.

Handlers give arguments and outputs where the step has none; those that ask an agent take `agentRef`, `prompt` and
`context`. In a dry run, the outputs of skipped calls, and everything derived from them, are unknown. Pure.
"""

from collections.abc import Mapping
from typing import Final, cast

from toolcrib.contracts import InvalidExpression, Json, JsonObject
from toolcrib.contracts.workflows import AGENT_HANDLERS, SettledStep, StepRegistration, WorkflowStep
from toolcrib.core.expressions import resolve
from toolcrib.core.expressions.values import is_object, kind
from toolcrib.workflows.values.graph import Edge, WorkflowPlan, shared_names
from toolcrib.workflows.values.step_errors import check_size, no_value, unusable


class Scope:
    """The names and values of one run; grows as steps come to their ends.

    Args:
        arguments: What the run was asked.
    """

    def __init__(self, arguments: Json) -> None:
        self._steps: JsonObject = {}
        self._ok: set[str] = set()
        self.names: JsonObject = {"input": arguments, "steps": self._steps}
        """For expressions that stand in no `for_each`."""

    def settle(self, step: WorkflowStep, settled: SettledStep, shown: Json) -> None:
        """From now on expressions can read what has become of a step.

        Args:
            step: The step.
            settled: How it has ended.
            shown: What they read under its name.
        """
        failure = None if settled.error is None else settled.error.model_dump(mode="json")
        self._steps[step.name] = {
            "status": settled.status,
            "reason": settled.reason,
            "output": settled.output,
            "error": failure,
            "tries": settled.tries,
            "items": settled.items,
            "failed": settled.failed,
            "errors": [error.model_dump(mode="json") for error in settled.errors],
        }
        if settled.ok:
            self._ok.add(step.name)
        # Steps that are known by one name are alternatives: what one of them has brought is not taken away by another.
        if settled.ok or step.known_as not in self.names:
            self.names[step.known_as] = shown

    def has_output(self, name: str) -> bool:
        """Whether a step has put out something."""
        return name in self._ok

    def with_error(self, origin: str) -> JsonObject:
        """The names for a step that another one has gone to.

        Args:
            origin: The step that has failed, which they read as `error`.
        """
        return {**self.names, "error": {**self._steps[origin]["error"], "step": origin}}


DRY_RUN: Final = "dry run: "
"""Begins the reason of every step that is skipped because this is a dry run."""


class DryRun:
    """Knows which outputs a dry run has no value for.

    Args:
        plan: The graph of the workflow.
        scope: What has become of the steps.
    """

    def __init__(self, plan: WorkflowPlan, scope: Scope) -> None:
        self._scope = scope
        self._without: set[str] = set()
        """Steps that would have put out something."""
        self._reads: dict[str, list[Edge]] = {}
        for edge in plan.edges:
            if edge.kind == "data" and not _is_about(edge):
                self._reads.setdefault(edge.target, []).append(edge)

    def settle(self, settled: SettledStep) -> None:
        """A step has ended; if it was skipped because this is a dry run, its output is not known."""
        if settled.status == "skipped" and settled.output is None and (settled.reason or "").startswith(DRY_RUN):
            self._without.add(settled.step)

    def lacking(self, target: str) -> str | None:
        """Why a step, or `output`, has no value here: it reads the output of a call that was not made.

        Steps that are known by one name stand in for each other: one that has put out something is enough.
        """
        for edge in self._reads.get(target, ()):
            if edge.source in self._without and not any(
                self._scope.has_output(other.source)
                for other in self._reads[target]
                if other.reference == edge.reference
            ):
                return f"{DRY_RUN}needs the output of {edge.source}"
        return None


def _is_about(edge: Edge) -> bool:
    """Whether an edge reads what has become of a step, and not its output."""
    path = (edge.reference or "").split(".")
    return path[0] == "steps" and len(path) > 2 and path[2] != "output"


def arguments_of(step: WorkflowStep, handlers: Mapping[str, StepRegistration], names: Mapping[str, Json]) -> JsonObject:
    """The arguments of a step's call.

    Args:
        step: The step.
        handlers: The registrations by name.
        names: What its expressions can read.

    Raises:
        StepFailed: An expression has no value.
    """
    registered = handlers.get(step.handler_ref or "")
    given = step.input if registered is None else {**registered.input_mapping, **step.input}
    try:
        return _for_agent(step, names) if step.handler_ref in AGENT_HANDLERS else _resolve_input(given, names)
    except InvalidExpression as problem:
        raise no_value(step.name, "input", problem) from problem


def output_mapping(step: WorkflowStep, handlers: Mapping[str, StepRegistration]) -> Json:
    """What a step makes of what its tool puts out: null for all of it as it is."""
    if step.output is not None:
        return step.output
    registered = handlers.get(step.handler_ref or "")
    return None if registered is None else registered.output_mapping or None


def output_of(step: WorkflowStep, mapping: Json, names: Mapping[str, Json], output: Json) -> Json:
    """What a step puts out.

    Args:
        step: The step.
        mapping: As of `output_mapping`.
        names: What its expressions can read.
        output: What has come of it, which they read as `output`.

    Raises:
        StepFailed: An expression has no value.
    """
    if mapping is None:
        return output
    try:
        return check_size(resolve(mapping, {**names, "output": output}))
    except InvalidExpression as problem:
        raise no_value(step.name, "output", problem) from problem


def value_of(step: WorkflowStep, names: Mapping[str, Json]) -> Json:
    """What a step puts out that does nothing else.

    Raises:
        StepFailed: An expression has no value.
    """
    try:
        return check_size(resolve(step.output, names))
    except InvalidExpression as problem:
        raise no_value(step.name, "output", problem) from problem


def _resolve_input(given: JsonObject, names: Mapping[str, Json]) -> JsonObject:
    return cast("JsonObject", check_size(resolve(given, names)))


def _for_agent(step: WorkflowStep, names: Mapping[str, Json]) -> JsonObject:
    variables = check_size(resolve(step.input.get("context", {}), names))
    if not is_object(variables):
        raise unusable(step.name, "input/context", f"it must be an object, and is {kind(variables)}; give it names")
    near = {name: variables[name] for name in shared_names(step)}
    message = check_size(resolve(step.input.get("prompt", ""), {**names, **near}))
    return {"message": message, "context": variables} if variables else {"message": message}
