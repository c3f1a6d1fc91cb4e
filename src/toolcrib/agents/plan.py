"""The plan of a deterministic run: what the model fills in, and how it becomes calls.

The steps are fixed; the model writes each one's input. A string `${search_deals.results[*].id}` refers to an earlier
step's output. With `for_each`, an input is written for one `item`: a list that holds one element with `${item…}` is
repeated for all items, in batches as large as the tool's schema allows; without such a list the tool is called once
per item.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from toolcrib.contracts import AgenticStep, InvalidExpression, Json, JsonObject, JsonSchema
from toolcrib.expressions import compile_expression, references_of, resolve

REFERENCE = r"^\$\{.+\}$"
"""Pattern of a string that is one reference."""

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


def plan_schema(steps: Sequence[AgenticStep], inputs: Mapping[str, JsonSchema]) -> JsonSchema:
    """The JSON Schema of a whole plan.

    Args:
        steps: The fixed sequence.
        inputs: Input schema of each step's tool, by step id.
    """
    properties: JsonObject = {
        "reasoning": {"type": "string", "description": "One or two sentences: what the task asks for."},
        "question": {
            "type": ["string", "null"],
            "description": "Only if the task cannot be done as asked: what must be clarified. Else null.",
        },
    }
    definitions: JsonObject = {}
    for number, step in enumerate(steps):
        alone = _renamed(step_schema(step, inputs[step.id], first=number == 0), step.id)
        definitions.update({f"{step.id}_{name}": item for name, item in alone.pop("$defs", {}).items()})
        properties[step.id] = alone
    return {
        "type": "object",
        "properties": properties,
        "required": ["reasoning", *(step.id for step in steps)],
        "additionalProperties": False,
        **({"$defs": definitions} if definitions else {}),
    }


def step_schema(step: AgenticStep, schema: JsonSchema, *, first: bool) -> JsonSchema:
    """The JSON Schema of one step of a plan; a first step has nothing to refer to."""
    definitions = schema.get("$defs", {})
    body = {name: item for name, item in schema.items() if name != "$defs"}
    properties: JsonObject = {
        "skip": {"type": "boolean", "description": "True only if the task does not need this step."},
        "input": body if first else _referable(body),
    }
    if not first:
        properties["for_each"] = {
            "type": ["string", "null"],
            "description": "Reference to a list of an earlier step, e.g. ${" + "first_step.results}; else null.",
        }
    return {
        "type": "object",
        "description": step.purpose or step.tool,
        "properties": properties,
        "required": ["input"],
        "additionalProperties": False,
        **({"$defs": definitions if first else _referable_each(definitions)} if definitions else {}),
    }


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
    items = _items(plan.for_each, scope)
    path = next(_repeated_lists(plan.input, ()), None)
    if path is None:
        return [_object(resolve(plan.input, {**scope, "item": item})) for item in items]
    size = _batch_size(schema, path) or len(items) or 1
    element = cast("list[Json]", _at(plan.input, path))[0]
    rows = [resolve(element, {**scope, "item": item}) for item in items]
    frame = _replaced(plan.input, path, [])
    batches = [rows[start : start + size] for start in range(0, len(rows), size)]
    return [_object(_replaced(resolve(frame, scope), path, batch)) for batch in batches]


def _items(reference: str, scope: Mapping[str, Json]) -> list[Json]:
    source = reference.strip().removeprefix("${").removesuffix("}")
    value = compile_expression(source).evaluate(scope)
    if not isinstance(value, list):
        msg = f"for_each '{reference}' is {type(value).__name__}, not a list; refer to the list itself"
        raise InvalidExpression(msg)
    return cast("list[Json]", value)


def _object(value: Json) -> JsonObject:
    return cast("JsonObject", value)


def _repeated_lists(value: Json, path: Path) -> Iterator[Path]:
    """Places of lists with one element that refers to `item`, outermost first."""
    if isinstance(value, list):
        elements = cast("list[Json]", value)
        if len(elements) == 1 and _mentions_item(elements[0]):
            yield path
        else:
            for index, element in enumerate(elements):
                yield from _repeated_lists(element, (*path, index))
    elif isinstance(value, dict):
        for name, item in cast("JsonObject", value).items():
            yield from _repeated_lists(item, (*path, name))


def _mentions_item(value: Json) -> bool:
    return any(reference.partition(".")[0] == "item" for reference in references_of(value))


def _batch_size(schema: JsonSchema, path: Path) -> int | None:
    node: Any = schema
    for part in path:
        node = _dereferenced(node, schema)
        node = node.get("items", {}) if isinstance(part, int) else node.get("properties", {}).get(part, {})
    maximum = _dereferenced(node, schema).get("maxItems")
    return maximum if isinstance(maximum, int) and maximum > 0 else None


def _dereferenced(node: Any, schema: JsonSchema) -> JsonSchema:
    while isinstance(node, dict) and "$ref" in node:
        name = str(cast("JsonObject", node)["$ref"]).removeprefix("#/$defs/")
        node = schema.get("$defs", {}).get(name, {})
    return cast("JsonSchema", node) if isinstance(node, dict) else {}


def _at(value: Json, path: Path) -> Json:
    for part in path:
        value = value[part]
    return value


def _replaced(value: Json, path: Path, new: Json) -> Json:
    if not path:
        return new
    head, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {**cast("JsonObject", value), str(head): _replaced(value[head], rest, new)}
    copy = list(cast("list[Json]", value))
    copy[cast("int", head)] = _replaced(copy[cast("int", head)], rest, new)
    return copy


def _referable(schema: Json) -> Json:
    """The schema, where every value but an object may also be a reference."""
    if not isinstance(schema, dict):
        return schema
    node = cast("JsonObject", schema)
    if "properties" in node:
        return {**node, "properties": _referable_each(node["properties"])}
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in node:
            return {**node, keyword: [_referable(item) for item in cast("list[Json]", node[keyword])]}
    if "$ref" in node or not node or node.get("type") == "object":
        return node
    if node.get("type") == "array":
        node = {**node, "items": _referable(node.get("items", {}))}
    elif node.get("type") == "string" and not {"enum", "const", "format", "pattern", "maxLength"} & node.keys():
        return node
    return {"anyOf": [node, {"type": "string", "pattern": REFERENCE}]}


def _referable_each(schemas: JsonObject) -> JsonObject:
    return {name: _referable(item) for name, item in schemas.items()}


def _renamed(node: Json, step: str) -> Any:
    """The schema with references to `$defs` prefixed by the step, so that the steps of a plan share one `$defs`."""
    if isinstance(node, list):
        return [_renamed(item, step) for item in cast("list[Json]", node)]
    if not isinstance(node, dict):
        return node
    result = {name: _renamed(item, step) for name, item in cast("JsonObject", node).items()}
    reference = result.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        result["$ref"] = f"#/$defs/{step}_{reference.removeprefix('#/$defs/')}"
    return result
