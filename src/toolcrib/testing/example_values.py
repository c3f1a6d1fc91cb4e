"""Makes a value that meets a JSON Schema, the same one each time for the same seed.

Values are tried and validated: first one with required properties only, then larger and more varied ones. A generator
for property tests is not needed here, and the known one for schemas is no longer maintained.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final, cast

from toolcrib.contracts import InvalidInput, Json, JsonObject, JsonSchema
from toolcrib.core.registry import compile_schema

_ATTEMPTS: Final = 40
"""Values that are tried."""
_DEEPEST: Final = 12
"""Levels of nesting, after which a schema that contains itself is given up."""
_OPTIONAL_UNTIL: Final = 3
"""Levels in which optional properties are filled."""
_FORMATS: Final[Mapping[str, str]] = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "duration": "PT1H",
    "email": "ann@example.com",
    "hostname": "example.com",
    "idn-email": "ann@example.com",
    "idn-hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "iri": "https://example.com/1",
    "json-pointer": "/name",
    "password": "a-password",
    "regex": "a+",
    "time": "12:00:00Z",
    "uri": "https://example.com/1",
    "uri-reference": "/1",
    "url": "https://example.com/1",
    "uuid": "12345678-1234-4234-8234-123456789abc",
}
_WORDS: Final = ("alpha", "bravo", "delta", "gamma", "kilo", "lima", "oscar", "tango")
_SAMPLES: Final = (
    "a", "A", "1", "abc", "ABC", "Abc", "123", "12.50", "A1", "a-1", "a_b", "AB-123", "EUR", "en-US", "#aabbcc", "true",
    "1.0.0", "12:30", "+491234567", "abcd1234", *_FORMATS.values(),
)  # fmt: skip
"""Texts that are tried where a pattern is wanted."""


def example_value(schema: JsonSchema, *, seed: int = 0) -> Json:
    """A value that meets a JSON Schema.

    Args:
        schema: The schema, draft 2020-12; its references lead into itself.
        seed: The same schema and seed give the same value. With 0, optional properties are left out where possible.

    Raises:
        InvalidInput: No value was found; the message has the schema's unmet part.
        InvalidDefinition: The document is not a schema.

    Example:
        from toolcrib.testing import example_value

        deal = {"type": "object", "properties": {"stage": {"enum": ["Won", "Lost"]}}, "required": ["stage"]}
        print(example_value(deal))
    """
    validator, problem = compile_schema(schema), ""
    for attempt in range(_ATTEMPTS):
        rng = Random(f"{seed}/{attempt}")  # noqa: S311 - values of a test
        share = 0.0 if seed == attempt == 0 else rng.random() if attempt % 4 else 1.0
        try:
            value = _Maker(schema, rng, optional_share=share).make(schema, 0)
        except _NoValueError as failure:
            problem = str(failure)
            continue
        problems = validator.problems(value)
        if not problems:
            return value
        problem = str(problems[0])
    msg = f"no example was found that meets the schema: {problem}; write the value yourself"
    raise InvalidInput(msg)


class _NoValueError(Exception):
    """A part of the schema that cannot be met."""


class _Maker:
    """Makes one value.

    Args:
        root: Where references begin.
        rng: Makes the choices.
        optional_share: How many of the optional properties are filled, 0 to 1.
    """

    def __init__(self, root: JsonSchema, rng: Random, *, optional_share: float) -> None:
        self._root = root
        self._rng = rng
        self._share = optional_share

    def make(self, part: Json, depth: int) -> Json:
        """A value for a part of the schema."""
        if depth > _DEEPEST:
            raise _NoValueError("it contains itself without an end")
        if part is False:
            raise _NoValueError("a part of it allows no value")
        schema = self._flat(cast("JsonSchema", part) if isinstance(part, dict) else {}, depth)
        if "const" in schema:
            return schema["const"]
        for keyword in ("enum", "examples"):
            if schema.get(keyword):
                return self._rng.choice(schema[keyword])
        if "default" in schema and not self._share:
            return schema["default"]
        makers: Mapping[str, Callable[[JsonSchema, int], Json]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": self._integer,
            "number": self._number,
            "boolean": lambda _schema, _depth: self._rng.random() < 0.5,
            "null": lambda _schema, _depth: None,
        }
        return makers[self._type(schema)](schema, depth)

    def _flat(self, schema: JsonSchema, depth: int) -> JsonSchema:
        """The schema with its references and combinations resolved, one branch of each choice taken."""
        if depth > _DEEPEST * 2:
            raise _NoValueError("it refers to itself without an end")
        flat: JsonObject = {key: value for key, value in schema.items() if key not in {"$ref", "allOf", *_CHOICES}}
        parts: list[Json] = [_resolve(self._root, schema["$ref"])] if "$ref" in schema else []
        parts += schema.get("allOf", ())
        parts += [self._branch(schema[keyword]) for keyword in _CHOICES if schema.get(keyword)]
        for part in parts:
            if part is False:
                raise _NoValueError("a part of it allows no value")
            if isinstance(part, dict):
                flat = _merged(flat, self._flat(cast("JsonSchema", part), depth + 1))
        return flat

    def _branch(self, branches: Sequence[Json]) -> Json:
        if self._share:
            return self._rng.choice(branches)
        return next((one for one in branches if one != {"type": "null"}), branches[0])

    def _type(self, schema: JsonSchema) -> str:
        declared = schema.get("type")
        if isinstance(declared, list):
            names = [name for name in cast("list[str]", declared) if name != "null"] or ["null"]
            return self._rng.choice(names)
        if isinstance(declared, str):
            return declared
        return next((kind for keyword, kind in _IMPLIED.items() if keyword in schema), "string")

    def _object(self, schema: JsonSchema, depth: int) -> Json:
        properties = cast("JsonObject", schema.get("properties", {}))
        required = list(dict.fromkeys(schema.get("required", ())))
        optional = [name for name in properties if name not in required]
        share = self._share if depth < _OPTIONAL_UNTIL else 0.0
        chosen = [*required, *(name for name in optional if self._rng.random() < share)]
        chosen += [name for name in optional if name not in chosen][
            : max(schema.get("minProperties", 0) - len(chosen), 0)
        ]
        further = schema.get("additionalProperties", True)
        value = {name: self.make(properties.get(name, further), depth + 1) for name in chosen}
        while len(value) < schema.get("minProperties", 0):
            value[f"key_{len(value) + 1}"] = self.make(further, depth + 1)
        return value

    def _array(self, schema: JsonSchema, depth: int) -> Json:
        prefix = list(schema.get("prefixItems", ()))
        least = max(schema.get("minItems", 0), 1 if "contains" in schema else 0, len(prefix))
        most = schema.get("maxItems", least + 2)
        length = max(least, min(most, 1 if depth < _OPTIONAL_UNTIL else 0))
        items = schema.get("contains", schema.get("items", True))
        value = [self.make(one, depth + 1) for one in prefix[:most]]
        for _ in range(_ATTEMPTS):
            if len(value) >= length:
                break
            made = self.make(items, depth + 1)
            if not schema.get("uniqueItems") or made not in value:
                value.append(made)
        return value

    def _string(self, schema: JsonSchema, _depth: int) -> Json:
        least, most = schema.get("minLength", 0), schema.get("maxLength")
        if "pattern" in schema:
            return self._matching(schema)
        text = _FORMATS.get(schema.get("format", "")) or self._rng.choice(_WORDS)
        while len(text) < least:
            text = f"{text} {self._rng.choice(_WORDS)}"
        return text[: most if most is not None else None]

    def _matching(self, schema: JsonSchema) -> str:
        """A text that matches a pattern: a sample, or what hypothesis finds if it is installed."""
        wanted = {key: schema[key] for key in ("pattern", "minLength", "maxLength") if key in schema}
        is_valid = compile_schema({"type": "string", **wanted}).is_valid
        samples = [sample for sample in _SAMPLES if is_valid(sample)]
        if samples:
            return samples[0] if not self._share else self._rng.choice(samples)
        for text in _generated(schema["pattern"], is_valid, self._rng):
            return text
        msg = f"no text was found for the pattern {schema['pattern']!r}; install hypothesis, which finds more"
        raise _NoValueError(msg)

    def _integer(self, schema: JsonSchema, depth: int) -> Json:
        low, high = _bounds(schema)
        step = schema.get("multipleOf", 1)
        if float(step).is_integer():
            first = -(-low // int(step))
            last = high // int(step)
            if first > last:
                raise _NoValueError(f"no multiple of {step} is between {low} and {high}")
            return self._rng.randint(int(first), int(last)) * int(step)
        return self._number(schema, depth)

    def _number(self, schema: JsonSchema, _depth: int) -> Json:
        low, high = _bounds(schema, whole=False)
        step = schema.get("multipleOf")
        if step:
            return round(self._rng.randint(int(-(-low // step)), int(high // step)) * step, 10)
        return low if low == high else round(self._rng.uniform(low, high), 2 if high - low > 1 else 6)


_CHOICES: Final = ("anyOf", "oneOf")
_IMPLIED: Final[Mapping[str, str]] = {
    "properties": "object", "required": "object", "additionalProperties": "object", "items": "array",
    "prefixItems": "array", "minimum": "number", "maximum": "number",
}  # fmt: skip
"""The type that a keyword implies where a schema names none."""


def _resolve(root: JsonSchema, reference: str) -> Json:
    part: Any = root  # compiling has shown that the reference leads somewhere
    for step in reference.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        part = cast("Any", part[int(name)] if isinstance(part, list) else part[name])
    return part


def _merged(one: JsonObject, other: JsonObject) -> JsonObject:
    merged = {**one, **other}
    if "properties" in one and "properties" in other:
        merged["properties"] = {**one["properties"], **other["properties"]}
    if "required" in one and "required" in other:
        merged["required"] = [*one["required"], *other["required"]]
    if "enum" in one and "enum" in other:
        merged["enum"] = [value for value in one["enum"] if value in other["enum"]]
    return merged


def _bounds(schema: JsonSchema, *, whole: bool = True) -> tuple[float, float]:
    """The least and the greatest number that is allowed; a range of 100 where an end is open."""
    gap = 1 if whole else 0.001
    lows = [schema[key] + shift for key, shift in (("minimum", 0), ("exclusiveMinimum", gap)) if key in schema]
    highs = [schema[key] - shift for key, shift in (("maximum", 0), ("exclusiveMaximum", gap)) if key in schema]
    low = max(lows) if lows else min(1, *highs) if highs else 1
    high = min(highs) if highs else low + 100
    if whole:
        low, high = -(-low // 1), high // 1
    if low > high:
        raise _NoValueError(f"no number is between {json.dumps(low)} and {json.dumps(high)}")
    return low, high


def _generated(pattern: str, is_valid: Callable[[Json], bool], rng: Random) -> Iterator[str]:
    try:
        from hypothesis import errors, find, settings, strategies  # noqa: PLC0415 - for unusual patterns only
    except ModuleNotFoundError:
        return
    quiet = settings(database=None, deadline=None, max_examples=200)
    try:
        yield find(strategies.from_regex(pattern), is_valid, settings=quiet, random=rng)
    except (errors.NoSuchExample, errors.InvalidArgument):
        return
