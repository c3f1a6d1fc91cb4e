"""What a plan for given tools looks like: an example with open places, and the lists that a step can be done for.

    {"search_deals":{"input":{"company":…}},
     "update_deals":{"for_each":"${search_deals.results}","input":{"ids":["${item.id}"],"stage":…}}}

Derived from the tools' schemas. A hint for the model that plans, nothing else: what it writes is checked as if there
were none.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import orjson

from toolcrib.agents.evidence.plan import composing
from toolcrib.contracts import Json, JsonObject, JsonSchema

_DEEPEST = 6
_OPEN = "…"
"""Stands for what the task says."""
_UNKNOWN = frozenset({"id"})
_NOTHING: tuple[Json, ...] = (_OPEN, {}, [])

Shapes = Sequence[tuple[str, JsonSchema, JsonSchema | None]]
"""Id, input schema and output schema of each step, in their order."""


def plan_example(steps: Shapes, *, reads: bool) -> str:
    """A plan with open places, as JSON but for these; later steps are done for the items of earlier lists.

    Args:
        steps: What goes into them and what comes out.
        reads: Whether it begins with a reading of the task.
    """
    plan = {
        step: _step_example(schema, steps[:place]) or {"input": _Example(schema, frozenset()).of(schema, "", 0)}
        for place, (step, schema, _) in enumerate(steps)
    }
    written = orjson.dumps({**({"reading": [_OPEN]} if reads else {}), "reasoning": _OPEN, **plan}).decode()
    return written.replace(f'"{_OPEN}"', _OPEN)


def frame_of(schema: JsonSchema, earlier: Shapes) -> JsonObject | None:
    """The plan of a step for every item of the nearest earlier list, with nothing but what links it to the item.

    Items of which the output says nothing are taken to have an `id`; that is found out when the plan is carried out.

    Args:
        schema: What goes into it.
        earlier: What goes into the steps before it and what comes out.
    """
    example = _step_example(schema, earlier) or _step_example(schema, earlier, of_unknown=True)
    return None if example is None else cast("JsonObject", _filled(example))


def lists_before(steps: Shapes) -> list[str] | None:
    """References to all lists in the outputs of these steps, or null if an output is not described."""
    if any(output is None for _, _, output in steps):
        return None
    found = [path for step, _, output in steps for path, _ in _lists(output, cast("JsonSchema", output), step, 0)]
    return [f"${{{path}}}" for path in found]


def _step_example(schema: JsonSchema, earlier: Shapes, *, of_unknown: bool = False) -> JsonObject | None:
    """The example of a step for every item of the nearest earlier list, or null if no field fits one."""
    for step, _, output in reversed(earlier):
        for path, fields in _lists(output, output or {}, step, 0, unknown=_UNKNOWN if of_unknown else frozenset()):
            example = _Example(schema, fields)
            written = example.of(schema, "", 0)
            if example.linked:
                return {"for_each": f"${{{path}}}", "input": written}
    return None


def _filled(value: Json) -> Json:
    """The value without its open places, and without what is then empty."""
    if isinstance(value, list):
        return [left for item in cast("list[Json]", value) if (left := _filled(item)) not in _NOTHING]
    if isinstance(value, dict):
        each = {name: _filled(item) for name, item in cast("JsonObject", value).items() if name != _OPEN}
        return {name: left for name, left in each.items() if left not in _NOTHING}
    return value


def _lists(
    node: Json, root: JsonSchema, path: str, depth: int, *, unknown: frozenset[str] = frozenset()
) -> Iterator[tuple[str, frozenset[str]]]:
    """Lists of objects in an output: the path of each and the fields of its items, outermost first.

    `unknown` are the fields of objects of which nothing is said; without any, their lists are left out.
    """
    below: list[tuple[str, Json]] = []
    for part in composing(node, root):
        if "items" in part:
            items = composing(part["items"], root)
            fields = frozenset(name for item in items for name in item.get("properties", ()))
            if not fields and any(item.get("type") == "object" for item in items):
                fields = unknown
            if fields:
                yield path, fields
            below += [(f"[*].{name}", inner) for item in items for name, inner in item.get("properties", {}).items()]
        below += [(f".{name}", inner) for name, inner in part.get("properties", {}).items()]
    if depth < _DEEPEST:
        for step, inner in below:
            yield from _lists(inner, root, path + step, depth + 1, unknown=unknown)


class _Example:
    """Writes an input that has what is required, with references to the fields of an item where names agree."""

    def __init__(self, root: JsonSchema, fields: frozenset[str]) -> None:
        self._root = root
        self._fields = fields
        self.linked = False

    def of(self, node: Json, name: str, depth: int) -> Any:
        """The example of one value."""
        parts = composing(node, self._root)
        properties: Mapping[str, Json] = {
            key: item for part in parts for key, item in part.get("properties", {}).items()
        }
        items = next((part["items"] for part in parts if "items" in part), None)
        if depth > _DEEPEST:
            return _OPEN
        if items is not None:
            element = self.of(items, name.removesuffix("s"), depth + 1)
            return [element] if self._fields else [element, _OPEN]
        if not properties:
            return self._leaf(name)
        required = [key for part in parts for key in part.get("required", ()) if key in properties]
        optional = [key for key in properties if key not in required]
        if not required and depth:
            return {_OPEN: _OPEN}
        shown = required + (optional[:1] if not self._fields else [])
        return {key: self.of(properties[key], key, depth + 1) for key in shown}

    def _leaf(self, name: str) -> str:
        field = name if name in self._fields else "id" if name.endswith("_id") and "id" in self._fields else None
        if field is None:
            return _OPEN
        self.linked = True
        return f"${{item.{field}}}"
