"""The program of a composite tool: rules choose the operation to call and compute its arguments.

It uses no model and no randomness: equal arguments call the same operation with the same arguments. The operation is a
call of the run, at the position named after its route, in the revision that the run has pinned.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, cast

import orjson

from toolcrib.contracts import (
    ErrorCode,
    InvalidDefinition,
    InvalidExpression,
    Json,
    JsonObject,
    JsonSchema,
    Reason,
    ToolEnvelope,
    ToolError,
    ToolRevision,
)
from toolcrib.core.executor import CallRequest, error
from toolcrib.core.expressions import Template, resolve
from toolcrib.core.expressions.values import is_object, is_true
from toolcrib.core.policy import least
from toolcrib.core.registry import Registry, compile_schema
from toolcrib.core.runs import RunContext, RunEnd, end_of_failed_call
from toolcrib.kinds.composite.shape import CompositeImplementation, CompositeRoute

_MOST_SHOWN = 500
"""Characters of the arguments in a message."""


class _Refused(Exception):
    """The arguments are refused, and no operation is called; this is the error."""

    def __init__(self, problem: ToolError) -> None:
        super().__init__(problem.message)
        self.problem = problem


class _Operation(NamedTuple):
    """A route with the revision of its operation."""

    route: CompositeRoute
    tool: ToolRevision


class Composite:
    """Runs composite tools.

    Args:
        registry: Finds the operations.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def __call__(self, context: RunContext, tool: ToolRevision) -> RunEnd:
        """Call the operation of the first route whose condition holds; its end is the run's."""
        implementation = tool.definition.implementation
        if not isinstance(implementation, CompositeImplementation):
            msg = f"tool {tool.ref!r} is of kind {implementation.kind!r}, not composite"
            raise InvalidDefinition(msg)
        realm, pins = context.run.realm, context.request.pins
        operations = [
            _Operation(route, await self._registry.resolve(realm, route.tool, pins)) for route in implementation.routes
        ]
        context.policy = replace(
            context.policy,
            allowed=frozenset(operation.tool.name for operation in operations),
            side_effects=least(context.policy.side_effects, tool.definition.side_effects),
        )
        scope = {"input": _with_absent(tool.definition.input_schema, cast("JsonObject", context.request.input))}
        try:
            chosen = _choose_operation(tool, operations, scope)
            arguments = _arguments(tool, chosen, scope, cast("JsonObject", context.request.input))
        except _Refused as refusal:
            return RunEnd(status="failed", stop_reason="error", error=refusal.problem)
        envelope = await context.make(
            CallRequest(chosen.route.id, chosen.tool.name, arguments, chosen.tool.content_hash)
        )
        return _end(tool, chosen.route, envelope, scope)


def _with_absent(schema: JsonSchema, arguments: JsonObject) -> JsonObject:
    """The arguments, with null for those that are declared and were not given."""
    return {**dict.fromkeys(cast("JsonObject", schema.get("properties", {}))), **arguments}


def _choose_operation(tool: ToolRevision, operations: list[_Operation], scope: Mapping[str, Json]) -> _Operation:
    """The first operation whose condition holds."""
    for operation in operations:
        when = operation.route.when
        if when is None:
            return operation
        try:
            holds = is_true(Template.parse(when, "${}").render(scope))
        except InvalidExpression as problem:
            raise _Refused(_unusable(tool, operation.route, "when", problem)) from problem
        if holds:
            return operation
    conditions = "; ".join(f"{operation.route.id}: {operation.route.when}" for operation in operations)
    given = orjson.dumps(scope["input"]).decode()
    given = given if len(given) <= _MOST_SHOWN else f"{given[:_MOST_SHOWN]}…"
    message = (
        f"{tool.name!r} has no operation for these arguments: none of its conditions holds ({conditions}) with "
        f"input {given}; correct the arguments"
    )
    raise _Refused(error(ErrorCode.VALIDATION_ERROR, Reason.NO_ROUTE, message))


def _arguments(
    tool: ToolRevision, operation: _Operation, scope: Mapping[str, Json], arguments: JsonObject
) -> JsonObject:
    """The operation's arguments: as mapped, without the nulls that it does not take, over the route's defaults."""
    route, schema = operation.route, operation.tool.definition.input_schema
    if route.input is None:
        given = {name: value for name, value in arguments.items() if _takes(schema, name)}
    else:
        try:
            given = cast("JsonObject", resolve(route.input, scope))
        except InvalidExpression as problem:
            raise _Refused(_unusable(tool, route, "input", problem)) from problem
    return {**route.defaults, **{name: value for name, value in given.items() if not _is_left_out(schema, name, value)}}


def _takes(schema: JsonSchema, name: str) -> bool:
    """Whether an operation has an argument: a declared one, or any, if it declares none."""
    declared = cast("JsonObject", schema.get("properties", {}))
    return name in declared or not declared


def _is_left_out(schema: JsonSchema, name: str, value: Json) -> bool:
    """Whether an argument is a null that the operation does not take as a value."""
    if value is not None:
        return False
    declared = cast("JsonObject", schema.get("properties", {})).get(name, False)
    if not is_object(declared):
        return declared is not True
    shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return not compile_schema({**shared, **declared}).is_valid(None)


def _end(tool: ToolRevision, route: CompositeRoute, envelope: ToolEnvelope, scope: Mapping[str, Json]) -> RunEnd:
    """The run's end of its call's."""
    if envelope.error is not None:
        return end_of_failed_call(envelope)
    warnings = _losses(envelope)
    if route.output is None or not envelope.ok:
        return RunEnd(output=envelope.output, warnings=warnings, attachments=envelope.attachments)
    try:
        output = Template.parse(route.output, "${}").render({**scope, "output": envelope.output})
    except InvalidExpression as problem:
        message = (
            f"{envelope.name!r} was called by {tool.name!r} and succeeded, but output of route {route.id!r} cannot be "
            f"made of what it brought: {problem}"
        )
        failure = error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, message)
        return RunEnd(status="failed", stop_reason="error", error=failure, warnings=warnings)
    return RunEnd(output=output, warnings=warnings, attachments=envelope.attachments)


def _losses(envelope: ToolEnvelope) -> tuple[str, ...]:
    if envelope.truncated:
        return (f"the output of {envelope.name!r} was too large and is cut; the whole is attached",)
    return ()


def _unusable(tool: ToolRevision, route: CompositeRoute, field: str, problem: InvalidExpression) -> ToolError:
    message = f"{field} of route {route.id!r} of {tool.name!r} has no value for these arguments: {problem}"
    return error(ErrorCode.VALIDATION_ERROR, Reason.REFERENCE_UNRESOLVED, message)
