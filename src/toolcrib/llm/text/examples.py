"""Examples of calls: those of the tool's author, then ones derived from its schema.

An example is omitted rather than guessed, for example if a string has a pattern.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from toolcrib.contracts import Json, JsonObject
from toolcrib.llm.base.json_values import arr, obj, text
from toolcrib.llm.base.messages import ToolExample
from toolcrib.llm.text.calls import WrittenCall
from toolcrib.llm.text.functions import FunctionParameter, ToolFunction
from toolcrib.llm.text.literals import UNDEFINED, Undefined
from toolcrib.llm.text.typescript import Types, literal

WANTED: Final = 3
"""Examples of each tool."""
_LONGEST: Final = 400
"""Characters of one; a longer one costs more than it teaches."""
_DEEPEST: Final = 3
_FORMATS: Mapping[str, str] = {
    "date": "2025-01-31",
    "date-time": "2025-01-31T09:30:00Z",
    "email": "ada@example.com",
    "time": "09:30:00Z",
    "uri": "https://example.com/",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
}
_BEYOND: Final = frozenset(
    {
        "allOf",
        "dependentRequired",
        "dependentSchemas",
        "if",
        "maxProperties",
        "minProperties",
        "not",
        "patternProperties",
    }
)
"""Keywords whose meaning a derived value could miss."""
_TEXTS = ("example", "another example", "text")


class _Unknown(Exception):
    """A schema does not tell any of its values."""


def examples_of(function: ToolFunction) -> tuple[ToolExample, ...]:
    """Up to three different examples of a tool, as short as they are."""
    found: dict[str, ToolExample] = {}
    for example in (*function.tool.examples, *_derive_examples(function)):
        call = write_call(function, example.arguments)
        if len(call) <= _LONGEST and len(found) < WANTED:
            found.setdefault(call, example)
    return tuple(found.values())


def write_call(function: ToolFunction, arguments: JsonObject) -> str:
    """A call with these arguments, as a model is to write it."""
    names = {parameter.name: parameter.shown for parameter in function.parameters}
    last = max((place for place, name in enumerate(names) if name in arguments), default=-1)
    values = [arguments.get(name, UNDEFINED) for name in [*names][: last + 1]]
    if arguments and (function.is_open or not names.keys() >= arguments.keys()):
        return f"{function.shown}({literal(arguments)})"
    call = WrittenCall(function.shown, tuple(values), {}, 0, 0, "")
    if function.arguments(call) == arguments:
        return f"{function.shown}({', '.join(map(_argument, values))})"
    named = (f"{names[name]}: {literal(value)}" for name, value in arguments.items())
    return f"{function.shown}({', '.join(named)})"


def _argument(value: Json | Undefined) -> str:
    return "undefined" if isinstance(value, Undefined) else literal(value)


def _derive_examples(function: ToolFunction) -> Iterator[ToolExample]:
    """Calls with the required parameters, with all of them, and with more of them one by one."""
    schema = function.types.follow_references(function.tool.schema)
    names = {parameter.name for parameter in function.parameters}
    if not schema.keys().isdisjoint({*_BEYOND, "anyOf", "oneOf"}) or not names.issuperset(arr(schema.get("required"))):
        return
    optional = [parameter for parameter in function.parameters if not parameter.is_required]
    choices: list[Callable[[FunctionParameter], bool]] = [
        lambda parameter: parameter.is_required,
        lambda _: True,
        *(lambda parameter, one=one: parameter.is_required or parameter is one for one in optional),
        *(lambda parameter: parameter.is_required for _ in _TEXTS[1:]),
    ]
    for variant, is_chosen in enumerate(choices):
        samples = _Samples(function.types, variant)
        try:
            chosen = {one.name: samples.of(one.schema) for one in function.parameters if is_chosen(one)}
        except _Unknown:
            continue
        yield ToolExample(chosen)


class _Samples:
    """Values that schemas tell; another variant tells others where there are several."""

    def __init__(self, types: Types, variant: int) -> None:
        self._types = types
        self._variant = variant

    def of(self, part: Any, depth: int = 0) -> Json:
        """A value of a part.

        Raises:
            _Unknown: The schema does not tell any.
        """
        schema = self._types.follow_references(part)
        if depth > _DEEPEST or not schema.keys().isdisjoint(_BEYOND):
            raise _Unknown
        for values in (arr(schema.get("examples")), arr(schema.get("enum"))):
            if values:
                return values[self._variant % len(values)]
        for keyword in ("const", "default"):
            if schema.get(keyword) is not None:
                return schema[keyword]
        for keyword in ("anyOf", "oneOf"):
            for branch in arr(schema.get(keyword)):
                return self.of(branch, depth + 1)
        kinds = arr(schema.get("type")) or [schema.get("type")]
        return self._kind(text(kinds[0]), schema, depth)

    def _kind(self, kind: str, schema: dict[str, Any], depth: int) -> Json:
        match kind:
            case "boolean":
                return self._variant % 2 == 0
            case "integer" | "number":
                return self._number(schema)
            case "string":
                return self._text(schema)
            case "array" if schema.keys().isdisjoint({"prefixItems", "contains", "maxItems"}):
                if schema.get("minItems", 0) > 1:
                    raise _Unknown
                return [self.of(schema.get("items"), depth + 1)]
            case "object":
                parts = obj(schema.get("properties"))
                return {name: self.of(parts.get(name), depth + 1) for name in arr(schema.get("required"))}
            case _:
                raise _Unknown

    def _number(self, schema: dict[str, Any]) -> Json:
        if not schema.keys().isdisjoint({"multipleOf", "exclusiveMinimum", "exclusiveMaximum"}):
            raise _Unknown
        lowest = schema.get("minimum", 1 + self._variant)
        highest = schema.get("maximum", lowest)
        return min(max(lowest, min(1 + self._variant, highest)), highest)

    def _text(self, schema: dict[str, Any]) -> Json:
        value = _FORMATS.get(text(schema.get("format")), _TEXTS[self._variant % len(_TEXTS)])
        is_known = "pattern" not in schema and ("format" not in schema or schema["format"] in _FORMATS)
        if not is_known or not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
            raise _Unknown
        return value
