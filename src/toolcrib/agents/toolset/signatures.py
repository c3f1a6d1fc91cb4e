"""JSON Schemas as types, for people and models to read, in a fifth of the schema's tokens.

    {company: string, stage?: "Qualified" | "Proposal", limit?: integer /* At most so many. */}

`?` marks optional members. Lengths and limits of numbers are omitted; the schema decides what is valid.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, cast

import orjson

from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.core.registry import LABELS

_DEFINITIONS = "#/$defs/"
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_PLAIN_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_CHOICES = (("anyOf", " | "), ("oneOf", " | "), ("allOf", " & "))


def signature(schema: JsonSchema, *, note: int = 160) -> str:
    """The type that a schema describes; definitions that it uses more than once follow on lines of their own.

    Args:
        schema: JSON Schema of an object.
        note: Most characters of what is said about a value; 0 says nothing.
    """
    writer = _Writer(schema, note)
    return "\n".join((writer.describe(writer.root), *writer.shared_types()))


def brief(text: str, limit: int) -> str:
    """The first sentences of a text that fit, at least one; white space as single spaces."""
    first, *others = _SENTENCE.split(" ".join(text.split()))
    for sentence in others:
        if len(first) + len(sentence) >= limit:
            break
        first = f"{first} {sentence}"
    return first


class _Writer:
    """Writes the types of one schema; see `signature`."""

    def __init__(self, schema: JsonSchema, note: int) -> None:
        self.root = {name: item for name, item in schema.items() if name != "$defs"}
        self._definitions: Mapping[str, JsonSchema] = schema.get("$defs", {})
        self._note_limit = note
        text = orjson.dumps(schema).decode()
        self._shared = {
            name
            for name, item in self._definitions.items()
            if text.count(f'"{_DEFINITIONS}{name}"') > 1 and not _is_scalar(item)
        }
        self._used: list[str] = []

    def shared_types(self) -> Iterator[str]:
        """The definitions that were mentioned, also while the earlier ones are being written."""
        place = 0
        while place < len(self._used):
            name = self._used[place]
            yield f"{name} = {self.describe(self._definitions[name])}"
            place += 1

    def describe(self, schema: Json) -> str:
        """A type and what is said about it."""
        note = self._note(schema)
        return f"{self._type(schema)} /* {note} */" if note else self._type(schema)

    def _type(self, schema: Json) -> str:
        if not isinstance(schema, dict):
            return "any"
        node = cast("JsonSchema", schema)
        if "$ref" in node:
            return self._reference(node["$ref"])
        if "const" in node or "enum" in node:
            return self._enum(node)
        if "allOf" in node and (whole := self._merge_objects(node)) is not None:
            return self._object(whole)
        for keyword, sign in _CHOICES:
            if keyword in node:
                return sign.join(dict.fromkeys(self._type(part) for part in node[keyword]))
        kinds: Any = node.get("type", "object" if "properties" in node else "any")
        return " | ".join(self._kind(kind, node) for kind in ([kinds] if isinstance(kinds, str) else kinds))

    def _reference(self, reference: str) -> str:
        name = reference.removeprefix(_DEFINITIONS)
        if name not in self._definitions:
            return "any"
        if name not in self._shared:
            return self._type(self._definitions[name])
        if name not in self._used:
            self._used.append(name)
        return name

    def _enum(self, node: JsonSchema) -> str:
        values: list[Json] = node.get("enum", [node.get("const")])
        labels: Mapping[str, str] = node.get(LABELS, {})
        counts = Counter(labels.values())
        return " | ".join(_label_or_value(value, labels.get(str(value)), counts) for value in values)

    def _merge_objects(self, node: JsonSchema) -> JsonSchema | None:
        """One object in place of objects that must all hold; null if they are anything else."""
        whole: JsonSchema = {"properties": dict(node.get("properties", {})), "required": [*node.get("required", ())]}
        for part in cast("list[JsonSchema]", node["allOf"]):
            name = str(part.get("$ref", "")).removeprefix(_DEFINITIONS)
            found = self._definitions.get(name, part)
            if "properties" not in found:
                return None
            whole["properties"] |= found["properties"]
            whole["required"] += found.get("required", ())
        return whole

    def _kind(self, kind: str, node: JsonSchema) -> str:
        if kind == "array":
            element = self._type(node.get("items", {}))
            return f"({element})[]" if " | " in element and not element.startswith("{") else f"{element}[]"
        if kind == "object":
            return self._object(node)
        return str(node["format"]) if kind == "string" and "format" in node else kind

    def _object(self, node: JsonSchema) -> str:
        required = node.get("required", ())
        fields = [
            f"{name}{'' if name in required else '?'}: {self.describe(item)}"
            for name, item in cast("JsonObject", node.get("properties", {})).items()
        ]
        return "{" + ", ".join(fields) + "}" if fields else "object"

    def _note(self, schema: Json) -> str:
        """What is said about a value: its description, or that of the definition which is written in its place."""
        if not isinstance(schema, dict) or not self._note_limit:
            return ""
        node = cast("JsonSchema", schema)
        name = str(node.get("$ref", "")).removeprefix(_DEFINITIONS)
        if name and name not in self._shared and "description" not in node:
            return self._note(self._definitions.get(name))
        default = node.get("default")
        default_note = f"Default {_value(default)}." if default not in (None, [], {}) else ""
        return " ".join(filter(None, (brief(str(node.get("description", "")), self._note_limit), default_note)))


def _is_scalar(schema: JsonSchema) -> bool:
    """Whether a type is so short that a name for it would be longer."""
    return schema.keys().isdisjoint({"enum", "properties", "items", "anyOf", "oneOf", "allOf", "$ref"})


def _label_or_value(value: Json, label: str | None, counts: Mapping[str, int]) -> str:
    """A value by its label, if people have one for it that no other value has."""
    if label is None:
        return _value(value)
    return f'"{label}"' if counts[label] == 1 else f'{_value(value)} ("{label}")'


def _value(value: Json) -> str:
    return value if isinstance(value, str) and _PLAIN_WORD.fullmatch(value) else orjson.dumps(value).decode()
