"""What a step gives to the tool that it calls, and what it makes of the output. Pure.

A handler gives arguments, and an output, where the step says nothing itself. The handlers that ask an agent are
called as 004 writes them: `agentRef`, `prompt` and `context`, whose names the prompt reads.
"""

from collections.abc import Mapping
from typing import cast

from toolcrib.contracts import InvalidExpression, Json, JsonObject
from toolcrib.contracts.workflows import AGENT_HANDLERS, StepRegistration, WorkflowStep
from toolcrib.core.expressions import resolve
from toolcrib.core.expressions.values import is_object, kind
from toolcrib.workflows.values.graph import shared_names
from toolcrib.workflows.values.sizes import held
from toolcrib.workflows.values.step_errors import unresolved, unusable


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
        return _for_agent(step, names) if step.handler_ref in AGENT_HANDLERS else _resolved(given, names)
    except InvalidExpression as problem:
        raise unresolved(step.name, "input", problem) from problem


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
        return held(resolve(mapping, {**names, "output": output}))
    except InvalidExpression as problem:
        raise unresolved(step.name, "output", problem) from problem


def value_of(step: WorkflowStep, names: Mapping[str, Json]) -> Json:
    """What a step puts out that does nothing else.

    Raises:
        StepFailed: An expression has no value.
    """
    try:
        return held(resolve(step.output, names))
    except InvalidExpression as problem:
        raise unresolved(step.name, "output", problem) from problem


def _resolved(given: JsonObject, names: Mapping[str, Json]) -> JsonObject:
    return cast("JsonObject", held(resolve(given, names)))


def _for_agent(step: WorkflowStep, names: Mapping[str, Json]) -> JsonObject:
    told = held(resolve(step.input.get("context", {}), names))
    if not is_object(told):
        raise unusable(step.name, "input/context", f"it must be an object, and is {kind(told)}; give it names")
    near = {name: told[name] for name in shared_names(step)}
    message = held(resolve(step.input.get("prompt", ""), {**names, **near}))
    return {"message": message, "context": told} if told else {"message": message}
