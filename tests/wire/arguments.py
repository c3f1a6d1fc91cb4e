"""Valid arguments for any input schema, from a fixed seed: what a caller that reads the schema may send.

Not every schema can be met by construction (`not`, clashing `allOf`), so what comes out is held against the schema, and
other choices are tried a bounded number of times.
"""

import base64
import math
from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any, Final, cast

from hypothesis import find, settings
from hypothesis import strategies as st

from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.core.registry import SchemaValidator

MAX_DEPTH: Final = 6
MOST_TRIES: Final = 60

_FORMATS: Final[Mapping[str, str]] = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "email": "jane@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/a",
    "url": "https://example.com/a",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
}
_WORDS: Final = ("deal", "Acme Corp", "a/b?c=d&e", "Müller", "100 %", "1")


class Unmet(Exception):
    """No value was found that meets the schema."""


def arguments(schema: JsonSchema, seed: int) -> JsonObject:
    """Arguments that meet a schema.

    Args:
        schema: Of an object.
        seed: Equal seeds make equal arguments. 0 gives what is required and nothing else.

    Raises:
        Unmet: None were found.
    """
    validator = SchemaValidator(schema)
    share = 0.0 if seed == 0 else 0.5
    tried = (_Maker(schema, Random(f"{seed}/{attempt}"), share).make(schema, 0) for attempt in range(MOST_TRIES))
    found = next((value for value in tried if validator.is_valid(value)), None)
    if found is None:
        raise Unmet(f"no arguments in {MOST_TRIES} tries")
    return cast("JsonObject", found)


class _Maker:
    def __init__(self, root: JsonSchema, random: Random, share: float) -> None:
        self._root = root
        self._random = random
        self._share = share
        """Of the optional properties that are given."""

    def make(self, given: Json, depth: int) -> Json:
        """A value for a schema."""
        schema = self._resolved(given)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._random.choice(schema["enum"])
        kinds: Any = schema.get("type") or self._guess(schema)
        kind = str(self._random.choice(cast("list[str]", kinds)) if isinstance(kinds, list) else kinds)
        match kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "string":
                return self._string(schema)
            case "integer" | "number":
                return self._number(schema, whole=kind == "integer")
            case "boolean":
                return self._random.random() < 0.5
            case _:
                return None

    def _guess(self, schema: JsonSchema) -> str:
        for keyword, kind in (("properties", "object"), ("items", "array"), ("minimum", "number")):
            if keyword in schema:
                return kind
        return "string"

    def _resolved(self, given: Json) -> JsonSchema:
        """A schema without references and alternatives: one of each is chosen, and all of `allOf` joined."""
        if not isinstance(given, dict):
            return {}
        schema = dict(cast("JsonSchema", given))
        for _ in range(50):
            if "$ref" in schema:
                target = self._root
                for part in str(schema.pop("$ref"))[2:].split("/"):
                    target = target[part.replace("~1", "/").replace("~0", "~")]
                schema = _joined(target, schema)
            elif "allOf" in schema:
                for part in schema.pop("allOf"):
                    schema = _joined(schema, self._resolved(part))
            elif "oneOf" in schema or "anyOf" in schema:
                keyword = "oneOf" if "oneOf" in schema else "anyOf"
                schema = _joined(schema, self._resolved(self._random.choice(schema.pop(keyword))))
            else:
                break
        return schema

    def _object(self, schema: JsonSchema, depth: int) -> JsonObject:
        properties: JsonObject = schema.get("properties", {})
        required = set(schema.get("required", ()))
        share = self._share if depth < MAX_DEPTH else 0.0
        names = [name for name in properties if name in required or self._random.random() < share]
        made = {name: self.make(properties[name], depth + 1) for name in names}
        extra = schema.get("additionalProperties")
        for name in required - made.keys():
            made[name] = self.make(extra, depth + 1)
        while len(made) < schema.get("minProperties", 0) or (
            isinstance(extra, dict) and not made and self._random.random() < share
        ):
            made[f"key{len(made)}"] = self.make(extra, depth + 1)
        return made

    def _array(self, schema: JsonSchema, depth: int) -> list[Json]:
        least = schema.get("minItems", 0)
        most = min(schema.get("maxItems", least + 2), least + 2)
        count = self._random.randint(max(least, 1 if depth < MAX_DEPTH else 0), max(most, least, 1))
        count = min(count, schema.get("maxItems", count))
        first = schema.get("prefixItems", [])
        return [self.make(first[i] if i < len(first) else schema.get("items", {}), depth + 1) for i in range(count)]

    def _string(self, schema: JsonSchema) -> str:
        if schema.get("contentEncoding") == "base64":
            return base64.b64encode(b"some bytes").decode()
        if "pattern" in schema:
            return matching(schema["pattern"])
        text = _FORMATS.get(schema.get("format", ""), self._random.choice(_WORDS))
        least, most = schema.get("minLength", 0), schema.get("maxLength", 10_000)
        return (text + "x" * max(0, least - len(text)))[:most]

    def _number(self, schema: JsonSchema, *, whole: bool) -> int | float:
        low = schema.get("minimum", schema.get("exclusiveMinimum", -5))
        high = schema.get("maximum", schema.get("exclusiveMaximum", max(low, 0) + 100))
        step = schema.get("multipleOf", 1)
        least = math.floor(low / step) + 1 if "exclusiveMinimum" in schema else math.ceil(low / step)
        most = math.ceil(high / step) - 1 if "exclusiveMaximum" in schema else math.floor(high / step)
        if most < least:
            return (low + high) / 2
        number = self._random.randint(least, most) * step
        return number if whole or self._random.random() < 0.5 or step != 1 or number >= high else number + 0.5


@cache
def matching(pattern: str) -> str:
    """The simplest text that a pattern is found in."""
    try:
        return find(st.from_regex(pattern), lambda _: True, settings=settings(database=None, derandomize=True))
    except ValueError:  # a pattern of ECMAScript that Python does not read
        return "x"


def _joined(first: JsonSchema, second: JsonSchema) -> JsonSchema:
    """Both schemas in one, as far as their keywords can stand together."""
    made = {**first, **second}
    for keyword in ("properties", "$defs"):
        if keyword in first and keyword in second:
            made[keyword] = {**first[keyword], **second[keyword]}
    if "required" in first and "required" in second:
        made["required"] = list(dict.fromkeys([*first["required"], *second["required"]]))
    return made
