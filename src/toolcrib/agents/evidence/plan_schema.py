"""Plans of deterministic runs: their schema, their calls, and examples of their form.

The steps are fixed; the model writes each one's input. A string `${search_deals.results[*].id}` refers to an earlier
step's output. With `for_each`, an input is written for one `item`: a list with one element that contains `${item…}` is
repeated for all items, in batches as large as the tool's schema allows; without such a list, the tool is called once
per item.

    {"search_deals":{"input":{"company":…}},
     "update_deals":{"for_each":"${search_deals.results}","input":{"ids":["${item.id}"],"stage":…}}}

An example is derived from the tools' schemas as a hint for the model; the plan is checked without it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

import orjson

from toolcrib.contracts import AgenticStep, InvalidExpression, Json, JsonObject, JsonSchema, resolve_pointer
from toolcrib.core.expressions import compile_expression, references_of, resolve

REFERENCE = r"^\$\{.+\}$"
"""Pattern of a string that is one reference."""

_DEFINITIONS = "#/$defs/"
_COMPOSED = frozenset({"$ref", "allOf", "anyOf", "properties"})
_RESTRICTING = frozenset({"const", "enum", "format", "maxLength", "minLength", "pattern"})
"""Keywords of a text that a reference may not meet."""

_QUESTION: JsonSchema = {
    "description": "Only if the task cannot be done as asked: what must be clarified. Else null.",
    "anyOf": [
        {"type": ["string", "null"]},
        {
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "choices": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"label": {"type": "string"}, "outcome": {"type": "string"}},
                        "required": ["label", "outcome"],
                        "additionalProperties": False,
                    },
                },
            },
            "required": ["text"],
            "additionalProperties": False,
        },
    ],
}
READING = "reading"
"""Where a plan says what the words of its task are for; no step may be called so."""

_LONGEST_REASONING = 300
"""Characters; small models repeat themselves where nothing ends a text."""

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class StepPlan:
    """What the model wants of one step."""

    skip: bool
    for_each: str | None
    input: JsonObject

    @classmethod
    def read(cls, value: JsonObject) -> "StepPlan":
        """From a plan that met its schema."""
        return cls(bool(value.get("skip")), value.get("for_each") or None, value.get("input") or {})


def plan_schema(
    steps: Sequence[AgenticStep], inputs: Mapping[str, JsonSchema], reading: JsonSchema | None = None
) -> JsonSchema:
    """The JSON Schema of a whole plan.

    Args:
        steps: The fixed sequence.
        inputs: Input schema of each step's tool, by step id.
        reading: Schema of what the plan says of the task's words; null if it need not say where its values come from.
    """
    properties: JsonObject = {} if reading is None else {READING: reading}
    properties |= {
        "reasoning": {
            "type": "string",
            "description": "Briefly: each condition that the task sets for the items, then what they get.",
        },
        "question": _QUESTION,
    }
    definitions: JsonObject = {}
    for number, step in enumerate(steps):
        alone = _prefix_references(step_schema(step, inputs[step.id], first=number == 0), f"{step.id}.")
        definitions.update({f"{step.id}.{name}": item for name, item in alone.pop("$defs", {}).items()})
        properties[step.id] = alone
    return {
        "type": "object",
        "properties": properties,
        "required": ["reasoning", *(step.id for step in steps)],
        "additionalProperties": False,
        **({"$defs": definitions} if definitions else {}),
    }


def step_schema(step: AgenticStep, schema: JsonSchema, *, first: bool) -> JsonSchema:
    """The JSON Schema of one step of a plan; a first step has nothing to refer to.

    The input is optional, because a step that is skipped has none; one that is missing is refused at its call.
    """
    body, definitions = _embeddable(schema)
    properties: JsonObject = {
        "skip": {"type": "boolean", "description": "True only if the task does not need this step."},
    }
    if not first:
        properties["for_each"] = {
            "type": ["string", "null"],
            "description": "Reference to a list of an earlier step, e.g. ${" + "first_step.results}; else null.",
        }
    properties["input"] = body if first else _referable(body)
    return {
        "type": "object",
        "description": step.purpose or step.tool,
        "properties": properties,
        "additionalProperties": False,
        **({"$defs": definitions if first else _referable_each(definitions)} if definitions else {}),
    }


def prompt_schema(schema: JsonSchema, lists: Mapping[str, Sequence[str]]) -> JsonSchema:
    """The schema of a plan as it is shown: it begins with its reading, and later steps say what they are done for.

    It only makes a good plan easier to write than a bad one; what is accepted is the schema of the plan itself.

    Args:
        schema: What `plan_schema` made.
        lists: References to the lists that a step may be done for, by step id.
    """
    steps = {
        name: {
            **step,
            "properties": {
                **step["properties"],
                "for_each": {**step["properties"]["for_each"], "enum": [*lists[name], None]},
            },
            "required": ["for_each"],
        }
        for name, step in schema["properties"].items()
        if lists.get(name)
    }
    reasoning = {**schema["properties"]["reasoning"], "maxLength": _LONGEST_REASONING}
    properties = {**schema["properties"], "reasoning": reasoning, **steps}
    begins = [READING] if READING in properties else []
    return {**schema, "properties": properties, "required": [*begins, *schema["required"]]}


def expand(plan: StepPlan, schema: JsonSchema, scope: Mapping[str, Json]) -> list[JsonObject]:
    """The inputs of a step's calls, references resolved.

    Args:
        plan: What the model wrote.
        schema: Input schema of the step's tool, for the size of batches.
        scope: Outputs of earlier steps by id, and `input`.

    Raises:
        InvalidExpression: A reference cannot be resolved, or `for_each` is no list.
    """
    if plan.skip:
        return []
    if plan.for_each is None:
        return [_object(resolve(plan.input, scope))]
    items = items_of(plan, scope)
    path = next(_item_list_paths(plan.input, ()), None)
    frame = plan.input if path is None else replace_at(plan.input, path, [])
    if path is None or _mentions_item(frame):
        return [_object(resolve(plan.input, {**scope, "item": item})) for item in items]
    size = _batch_size(schema, path) or len(items) or 1
    element = cast("list[Json]", _at(plan.input, path))[0]
    rows = [resolve(element, {**scope, "item": item}) for item in items]
    batches = [rows[start : start + size] for start in range(0, len(rows), size)]
    return [_object(replace_at(resolve(frame, scope), path, batch)) for batch in batches]


def items_of(plan: StepPlan, scope: Mapping[str, Json]) -> list[Json]:
    """What a step is done for; empty if it is done once.

    Raises:
        InvalidExpression: The reference cannot be resolved, or is no list.
    """
    if plan.for_each is None:
        return []
    source = plan.for_each.strip().removeprefix("${").removesuffix("}")
    value = compile_expression(source).evaluate(scope)
    if not isinstance(value, list):
        msg = f"for_each '{plan.for_each}' is {type(value).__name__}, not a list; refer to the list itself"
        raise InvalidExpression(msg)
    return cast("list[Json]", value)


def _object(value: Json) -> JsonObject:
    return cast("JsonObject", value)


def _item_list_paths(value: Json, path: Path) -> Iterator[Path]:
    """Places of lists with one element that refers to `item`, outermost first."""
    if isinstance(value, list):
        elements = cast("list[Json]", value)
        if len(elements) == 1 and _mentions_item(elements[0]):
            yield path
        else:
            for index, element in enumerate(elements):
                yield from _item_list_paths(element, (*path, index))
    elif isinstance(value, dict):
        for name, item in cast("JsonObject", value).items():
            yield from _item_list_paths(item, (*path, name))


def _mentions_item(value: Json) -> bool:
    return any(reference.partition(".")[0] == "item" for reference in references_of(value))


def _batch_size(schema: JsonSchema, path: Path) -> int | None:
    """The smallest `maxItems` that the schema sets for a place."""
    places: list[Json] = [schema]
    for part in path:
        places = [_below(node, part) for place in places for node in composing(place, schema)]
    sizes = [node.get("maxItems") for place in places for node in composing(place, schema)]
    return min((size for size in sizes if isinstance(size, int) and size > 0), default=None)


def _below(node: JsonSchema, part: str | int) -> Json:
    if isinstance(part, int):
        return node.get("items")
    properties: JsonObject = node.get("properties", {})
    return properties.get(part)


def composing(schema: Json, root: JsonSchema) -> list[JsonSchema]:
    """The schema and everything that it refers to or is composed of, each once, however it is nested."""
    found: list[JsonSchema] = []
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict) or any(node is known for known in found):
            continue
        found.append(cast("JsonSchema", node))
        waiting += [branch for keyword in ("anyOf", "oneOf", "allOf") for branch in found[-1].get(keyword, ())]
        if (reference := found[-1].get("$ref")) is not None:
            waiting.append(resolve_pointer(root, reference))
    return found


def _at(value: Json, path: Path) -> Json:
    for part in path:
        value = value[part]
    return value


def replace_at(value: Json, path: Path, new: Json) -> Json:
    """The value with something else at a place."""
    if not path:
        return new
    head, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {**cast("JsonObject", value), str(head): replace_at(value[head], rest, new)}
    copy = list(cast("list[Json]", value))
    copy[cast("int", head)] = replace_at(copy[cast("int", head)], rest, new)
    return copy


def _embeddable(schema: JsonSchema) -> tuple[JsonSchema, JsonObject]:
    """An input schema without its `$defs`, and these: so it can stand inside another schema that has them.

    References to other places than `$defs` are led to a copy of the whole that stands there too.
    """
    body = {name: item for name, item in schema.items() if name not in ("$defs", "$id", "$schema")}
    definitions: JsonObject = dict(schema.get("$defs", {}))
    whole = next(name for number in count(1) if (name := f"input{number}") not in definitions)
    led = {name: _move_references(item, f"{_DEFINITIONS}{whole}") for name, item in {**definitions, "": body}.items()}
    alone = led.pop("")
    if (alone, led) == (body, definitions):
        return body, definitions
    return alone, {**led, whole: alone}


def _move_references(node: Json, place: str) -> Any:
    """The schema with references to its root, or below it but not to `$defs`, led to a place."""
    return _with_references(node, lambda to: to if to.startswith(_DEFINITIONS) else place + to.removeprefix("#"))


def _prefix_references(node: Json, prefix: str) -> Any:
    """The schema with references to `$defs` led to the same names with a prefix, so that steps share one `$defs`."""
    return _with_references(node, lambda to: f"{_DEFINITIONS}{prefix}{to.removeprefix(_DEFINITIONS)}")


def _with_references(node: Json, change: Callable[[str], str]) -> Any:
    if isinstance(node, list):
        return [_with_references(item, change) for item in cast("list[Json]", node)]
    if not isinstance(node, dict):
        return node
    result = {name: _with_references(item, change) for name, item in cast("JsonObject", node).items()}
    if isinstance(result.get("$ref"), str):
        result["$ref"] = change(result["$ref"])
    return result


def _referable(schema: Json) -> Json:
    """The schema, where every value but an object may also be a reference."""
    if not isinstance(schema, dict):
        return schema
    node = dict(cast("JsonObject", schema))
    alternatives = node.pop("oneOf", None) or node.get("anyOf")
    if alternatives:
        # A reference would fit several alternatives, so one of them becomes any of them; the call itself is stricter.
        node["anyOf"] = [_referable(item) for item in cast("list[Json]", alternatives)]
    if "allOf" in node:
        node["allOf"] = [_referable(item) for item in cast("list[Json]", node["allOf"])]
    if "properties" in node:
        node["properties"] = _referable_each(node["properties"])
    if isinstance(node.get("additionalProperties"), dict):
        node["additionalProperties"] = _referable(node["additionalProperties"])
    if not node or _COMPOSED & node.keys() or node.get("type") == "object":
        return node
    if node.get("type") == "array":
        node["items"] = _referable(node.get("items", {}))
    elif node.get("type") == "string" and not _RESTRICTING & node.keys():
        return node
    return {"anyOf": [node, {"type": "string", "pattern": REFERENCE}]}


def _referable_each(schemas: JsonObject) -> JsonObject:
    return {name: _referable(item) for name, item in schemas.items()}


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
    return None if example is None else cast("JsonObject", _drop_open_places(example))


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


def _drop_open_places(value: Json) -> Json:
    """The value without its open places, and without what is then empty."""
    if isinstance(value, list):
        return [left for item in cast("list[Json]", value) if (left := _drop_open_places(item)) not in _NOTHING]
    if isinstance(value, dict):
        each = {name: _drop_open_places(item) for name, item in cast("JsonObject", value).items() if name != _OPEN}
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
