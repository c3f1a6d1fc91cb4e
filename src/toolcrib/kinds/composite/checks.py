"""The checks of a composite tool when it is saved: is it well formed, and do its routes fit their operations?

The checks find in advance what would fail in a call, as far as the schemas show it: an argument that an operation does
not accept, or a required argument that no route supplies.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from toolcrib.contracts import (
    EFFECTS,
    InvalidDefinition,
    InvalidExpression,
    Json,
    JsonObject,
    JsonSchema,
    ToolDefinition,
    ToolRevision,
)
from toolcrib.core.expressions import Template, references_of
from toolcrib.core.registry import compile_schema, misfits
from toolcrib.kinds.composite.shape import CompositeImplementation, CompositeRoute

_INPUT: Final = "input"
_OUTPUT: Final = "output"


def composite_definition(
    name: str, input_schema: JsonSchema, routes: Sequence[CompositeRoute], **fields: Any
) -> ToolDefinition:
    """The definition of a composite tool.

    Args:
        name: The tool's name.
        input_schema: Its parameters.
        routes: Operations in order: the first whose condition holds is called.
        **fields: Further fields of `ToolDefinition`. Without `side_effects`, they are those of the operations.
    """
    implementation = CompositeImplementation(routes=tuple(routes))
    return ToolDefinition(name=name, input_schema=input_schema, implementation=implementation, **fields)


def check_composite(definition: ToolDefinition, implementation: CompositeImplementation) -> None:
    """Refuse routes that could not be taken, or whose expressions could not be evaluated.

    Raises:
        InvalidDefinition: Names the tool, the route, what is wrong and what to do.
    """
    problem = next(_problems(definition, implementation), None)
    if problem is not None:
        raise InvalidDefinition(f"composite tool {definition.name!r}: {problem}")


def check_operations(
    definition: ToolDefinition, implementation: CompositeImplementation, operations: Mapping[str, ToolRevision]
) -> ToolDefinition:
    """Hold the routes against their operations; side effects, where the tool says nothing, are those of its operations.

    Args:
        definition: The definition of a composite tool.
        implementation: Its routes.
        operations: The operations of the routes, by reference.

    Raises:
        InvalidDefinition: A route does not fit its operation, or an operation does more than the tool says.
    """
    for route in implementation.routes:
        problem = next(_route_misfits(definition, route, operations[route.tool]), None)
        if problem is not None:
            raise InvalidDefinition(f"composite tool {definition.name!r}: route {route.id!r}: {problem}")
    reached = [operations[route.tool].definition for route in implementation.routes]
    most = max(reached, key=lambda operation: EFFECTS.index(operation.side_effects))
    if "side_effects" not in definition.model_fields_set:
        return definition.model_copy(update={"side_effects": most.side_effects})
    if EFFECTS.index(most.side_effects) > EFFECTS.index(definition.side_effects):
        msg = (
            f"composite tool {definition.name!r} says side_effects {definition.side_effects!r}, and its operation "
            f"{most.name!r} {most.side_effects}; say {most.side_effects!r}"
        )
        raise InvalidDefinition(msg)
    return definition


def _problems(definition: ToolDefinition, implementation: CompositeImplementation) -> Iterator[str]:
    earlier: dict[str, CompositeRoute] = {}
    for route in implementation.routes:
        if route.id in earlier:
            yield f"route id {route.id!r} stands twice; give every route an id of its own"
        certain = next((other.id for other in earlier.values() if other.when is None), None)
        if certain is not None:
            yield (
                f"route {route.id!r} is never taken, because {certain!r} before it has no condition; give that a "
                "`when`, or put it last"
            )
        earlier[route.id] = route
        yield from (f"route {route.id!r}: {problem}" for problem in _route_problems(definition, route))


def _route_problems(definition: ToolDefinition, route: CompositeRoute) -> Iterator[str]:
    inputs = [f"{_INPUT}.{name}" for name in definition.parameter_names()] or [_INPUT]
    if route.when is not None:
        yield from _expression_problems("when", route.when, inputs, alone=True)
    if route.output is not None:
        yield from _expression_problems("output", route.output, [*inputs, _OUTPUT], alone=False)
    if route.input is not None:
        yield from _mapping_problems(route.input, inputs)


def _expression_problems(field: str, text: str, known: Collection[str], *, alone: bool) -> Iterator[str]:
    try:
        template = Template.parse(text, "${}")
        template.check(known)
    except InvalidExpression as problem:
        yield f"{field}: {problem}"
        return
    if not template.placeholders or (alone and len(template.parts) > 1):
        yield f"{field} {text!r} is not an expression; write it as ${{…}}, and nothing beside it"


def _mapping_problems(mapping: JsonObject, known: Collection[str]) -> Iterator[str]:
    try:
        references = references_of(mapping)
    except InvalidExpression as problem:
        yield f"input: {problem}"
        return
    for reference in sorted(references):
        yield from _expression_problems("input", f"${{{reference}}}", known, alone=True)


def _route_misfits(definition: ToolDefinition, route: CompositeRoute, operation: ToolRevision) -> Iterator[str]:
    schema = operation.definition.input_schema
    own = definition.parameter_names()
    properties = cast("JsonObject", schema.get("properties", {}))
    given = route.input if route.input is not None else [name for name in own if name in properties or not properties]
    yield from map(str, misfits({*given, *route.defaults}, schema, operation.name))
    for name, value in {**route.defaults, **(route.input or {})}.items():
        yield from _value_misfits(schema, name, value)


def _value_misfits(schema: JsonSchema, name: str, value: Json) -> Iterator[str]:
    """What is wrong with a value that no expression changes."""
    declared = cast("JsonObject", schema.get("properties", {})).get(name)
    if value is None or not isinstance(declared, dict) or references_of(value):
        return
    shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    for problem in compile_schema({**shared, **cast("JsonSchema", declared)}).problems(value):
        yield f"{name}: {problem.problem}"
