"""Schema Objects of OpenAPI 3.0 and 3.1 as JSON Schema 2020-12, with every reference inside the schema itself.

A `$ref` into the document becomes a `$ref` into the schema's own `$defs`; a definition that is not reached is left out,
a circular one costs nothing. What is malformed is dropped and reported, so that every result is a valid schema.
Requests have no `readOnly` properties, responses no `writeOnly` ones. Pure; nothing is fetched.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal, TypeAlias, cast

import orjson

from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.providers.openapi.document import Document
from toolcrib.providers.openapi.keywords import LIST_KEYWORDS, MAP_KEYWORDS, SCHEMA_KEYWORDS, is_annotation, is_valid
from toolcrib.providers.openapi.losses import Losses
from toolcrib.providers.openapi.text import lean

MAX_DEFINITIONS_BYTES: Final = 64 * 1024
"""What the definitions of one schema may take as JSON; those farther from the root are left open beyond it."""

Direction: TypeAlias = Literal["request", "response"]

_HIDDEN: Final = {"request": "readOnly", "response": "writeOnly"}
_COMPOSED: Final = ("$ref", "allOf", "anyOf", "oneOf")
_LOCAL: Final = "#/$defs/"


@dataclass(frozen=True, slots=True)
class _Definition:
    schema: JsonSchema
    references: tuple[str, ...]
    """Names of the definitions that it refers to."""
    bytes: int
    losses: tuple[tuple[str, str], ...]


class Schemas:
    """Converts the schemas of one document in one direction; each component is converted once.

    Args:
        document: Where references lead.
        direction: Whether the schemas are of requests or of responses.
    """

    def __init__(self, document: Document, direction: Direction) -> None:
        self._document = document
        self._hidden = _HIDDEN[direction]
        self._names: dict[str, str] = {}
        self._pointers: dict[str, str] = {}
        self._definitions: dict[str, _Definition] = {}

    def convert(self, schema: Json, losses: Losses) -> JsonSchema:
        """One schema; its references point into `$defs`, which `bundle` adds."""
        found = self._schema(schema, losses)
        return found if isinstance(found, dict) else _from_flag(accepted=found)

    def follow(self, schema: JsonSchema) -> JsonSchema:
        """A converted schema with its outermost reference replaced by what it refers to."""
        reference = schema.get("$ref")
        if reference is None:
            return schema
        rest = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
        return {**self._definition(reference.removeprefix(_LOCAL)).schema, **rest}

    def bundle(self, schema: JsonSchema, losses: Losses) -> JsonSchema:
        """The schema with the definitions that it needs, nearest first, as far as they fit."""
        definitions: dict[str, JsonSchema] = {}
        size = left_open = 0
        waiting = deque(_references(schema))
        while waiting:
            name = waiting.popleft()
            if name in definitions:
                continue
            definition = self._definition(name)
            for what, why in definition.losses:
                losses.note(what, why)
            if size + definition.bytes > MAX_DEFINITIONS_BYTES:
                definitions[name] = {}
                left_open += 1
                continue
            size += definition.bytes
            definitions[name] = definition.schema
            waiting.extend(definition.references)
        if left_open:
            losses.note(
                "schema", f"{left_open} definitions left open: all take more than {MAX_DEFINITIONS_BYTES} bytes"
            )
        return {**schema, "$defs": dict(sorted(definitions.items()))} if definitions else schema

    def _definition(self, name: str) -> _Definition:
        known = self._definitions.get(name)
        if known is None:
            losses = Losses()
            schema = self.convert(self._document.at(self._pointers[name]), losses)
            found = tuple((loss.what, loss.why) for loss in losses.report())
            known = _Definition(schema, tuple(dict.fromkeys(_references(schema))), len(orjson.dumps(schema)), found)
            self._definitions[name] = known
        return known

    def _schema(self, schema: Json, losses: Losses) -> JsonSchema | bool:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            losses.note("schema", f"left open: {type(schema).__name__} is no schema")
            return {}
        source = cast("JsonObject", schema)
        if self._document.version == "3.0" and "$ref" in source:
            source = {key: source[key] for key in ("$ref", "description", "nullable") if key in source}
        result: JsonSchema = {}
        for keyword, value in _modern(source).items():
            self._keyword(result, keyword, value, losses)
        self._hide(source, result)
        return _nullable(result) if source.get("nullable") is True else result

    def _keyword(self, result: JsonSchema, keyword: str, value: Json, losses: Losses) -> None:
        if keyword == "$ref":
            self._reference(result, value, losses)
        elif keyword == "description":
            result |= {"description": text} if (text := lean(value, losses)) else {}
        elif keyword in SCHEMA_KEYWORDS and isinstance(value, dict | bool):
            result[keyword] = self._schema(value, losses)
        elif keyword in LIST_KEYWORDS and isinstance(value, list) and value:
            result[keyword] = [self._schema(member, losses) for member in cast("list[Json]", value)]
        elif keyword in MAP_KEYWORDS and isinstance(value, dict):
            members = cast("JsonObject", value).items()
            result[keyword] = {name: self._schema(member, losses) for name, member in members}
        elif is_valid(keyword, value):
            result[keyword] = value
        elif not is_annotation(keyword):
            losses.note(f"schema keyword {keyword}", "left out: not of JSON Schema 2020-12, or with a value it forbids")

    def _reference(self, result: JsonSchema, reference: Json, losses: Losses) -> None:
        if not isinstance(reference, str) or self._document.at(reference) is None:
            losses.note(f"reference {reference!r}", "left open: it leads to nothing inside the document")
            return
        result["$ref"] = _LOCAL + self._name(reference)

    def _name(self, pointer: str) -> str:
        name = self._names.get(pointer)
        if name is None:
            stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", pointer.rpartition("/")[2]) or "schema"
            name = stem
            number = 2
            while name in self._pointers:
                name = f"{stem}_{number}"
                number += 1
            self._names[pointer] = name
            self._pointers[name] = pointer
        return name

    def _hide(self, source: JsonObject, result: JsonSchema) -> None:
        """Leave out the properties that this direction does not have."""
        properties: JsonObject = result.get("properties", {})
        raw: JsonObject = source.get("properties", {}) if properties else {}
        hidden = [name for name in properties if isinstance(raw[name], dict) and raw[name].get(self._hidden) is True]
        for name in hidden:
            del properties[name]
        if hidden and "required" in result:
            result["required"] = [name for name in result["required"] if name not in hidden]


def _modern(source: JsonObject) -> JsonObject:
    """Bounds of 3.0, whose `exclusiveMinimum` is a flag of `minimum`, as 2020-12 writes them."""
    found = dict(source)
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        flag = found.get(exclusive)
        if isinstance(flag, bool):
            del found[exclusive]
            if flag and bound in found:
                found[exclusive] = found.pop(bound)
    return found


def _nullable(schema: JsonSchema) -> JsonSchema:
    """The schema, or null."""
    if any(keyword in schema for keyword in _COMPOSED):
        outer = {key: schema[key] for key in ("description", "default") if key in schema}
        inner = {key: value for key, value in schema.items() if key not in outer}
        return {**outer, "anyOf": [inner, {"type": "null"}]}
    found = dict(schema)
    types = found.get("type")
    if isinstance(types, str):
        found["type"] = list(dict.fromkeys([types, "null"]))
    elif isinstance(types, list):
        found["type"] = list(dict.fromkeys([*cast("list[str]", types), "null"]))
    if "enum" in found and None not in found["enum"]:
        found["enum"] = [*found["enum"], None]
    return found


def _from_flag(*, accepted: bool) -> JsonSchema:
    return {} if accepted else {"not": {}}


def _references(schema: Json) -> Iterator[str]:
    """Names of the definitions that a converted schema refers to, in order."""
    if not isinstance(schema, dict):
        return
    schema = cast("JsonSchema", schema)
    if "$ref" in schema:
        yield schema["$ref"].removeprefix(_LOCAL)
    for keyword, value in schema.items():
        if keyword in SCHEMA_KEYWORDS:
            yield from _references(value)
        elif keyword in LIST_KEYWORDS:
            yield from chain.from_iterable(map(_references, value))
        elif keyword in MAP_KEYWORDS:
            yield from chain.from_iterable(map(_references, value.values()))
