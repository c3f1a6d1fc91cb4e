"""What is known of a value, as a JSON Schema: what publishing says of a workflow's output if its author does not.

Every value that there will be meets it. What is not known, or too much to be said, is left open.
"""

from collections.abc import Sequence
from typing import Final

from toolcrib.contracts import JsonObject, JsonSchema
from toolcrib.core.registry.schema.value_facts import ALL_KINDS, type_names
from toolcrib.workflows.checks.types.shapes import Described, Form, Made, Shape

_DEEPEST: Final = 5
_MOST_MEMBERS: Final = 100
_FOLLOWED: Final = frozenset({"$ref", "$dynamicRef", "$defs", "definitions", "$schema", "$id", "allOf"})
"""Keywords that mean something else, or nothing, in another document."""


def schema_of(shape: Shape) -> JsonSchema | None:
    """The schema of a shape; null if nothing can be said."""
    return _of_shape(shape, 0) or None


def _of_shape(shape: Shape, depth: int) -> JsonSchema:
    schemas: list[JsonSchema] = []
    for form in shape:
        schema = _of_form(form, depth)
        if not schema:
            return {}
        if schema not in schemas:
            schemas.append(schema)
    return _either(schemas)


def _either(schemas: Sequence[JsonSchema]) -> JsonSchema:
    match schemas:
        case []:
            return {}
        case [only]:
            return only
        case _:
            return {"anyOf": list(schemas)}


def _of_form(form: Form, depth: int) -> JsonSchema:
    if form.kinds == ALL_KINDS:
        return {}
    types = type_names(form.kinds)
    typed: JsonSchema = {"type": types[0] if len(types) == 1 else list(types)}
    if depth < _DEEPEST and isinstance(form, Made):
        return {**typed, **_inside(form, depth)}
    if isinstance(form, Described) and len(form.parts) == 1 and not _follows(form.parts[0]):
        return dict(form.parts[0])
    return typed


def _inside(form: Made, depth: int) -> JsonObject:
    if form.items is not None:
        items = _of_shape(form.items, depth + 1)
        return {"items": items} if items else {}
    if form.members is None or len(form.members) > _MOST_MEMBERS:
        return {}
    members = {name: _of_shape(member, depth + 1) for name, member in form.members.items()}
    return {"properties": members, "required": sorted(form.required)}


def _follows(node: object) -> bool:
    """Whether a schema leads somewhere in its document."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        match found:
            case dict():
                if _FOLLOWED & found.keys():
                    return True
                waiting += found.values()
            case list():
                waiting += found
            case _:
                pass
    return False
