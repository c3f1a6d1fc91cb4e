"""JSON Schema 2020-12 validation, with messages that a model can act on.

Validators come from jsonschema-rs, always offline: by default that library would fetch remote and file references.
Schemas are compiled once. Patterns are limited to what a linear-time engine supports. Formats are annotations, as in
2020-12. The work of a schema is bounded in advance, because a validator cannot be stopped: `{"allOf": [A, A]}`
evaluates `A` twice, so forty such levels would be 2^40 evaluations.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import Final, cast
from urllib.parse import unquote

import jsonschema_rs
import orjson

from toolcrib.contracts import (
    InvalidDefinition,
    Json,
    JsonObject,
    JsonSchema,
    canonical,
    escape_name,
    resolve_pointer,
)

MOST_EVALUATIONS: Final = 20_000
"""Schemas that one value may have to meet at one place, each as often as it is composed."""

_DEEPEST: Final = 200
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLES: Final = ("else", "if", "not", "then")
_REFERENCES: Final = ("$dynamicRef", "$ref")
_COMPOSING_ORDER: Final = (*_LISTS, *_SINGLES, "dependentSchemas", *_REFERENCES)
_COMPOSING: Final = frozenset(_COMPOSING_ORDER)
_NAME_ORDER: Final = ("$anchor", "$dynamicAnchor", "$id")
_NAMES: Final = frozenset(_NAME_ORDER)
_COMPOSING_TEXT: Final = re.compile(b'"(?:%b)":' % b"|".join(re.escape(name).encode() for name in _COMPOSING_ORDER))
"""What stands in the canonical text of every schema that is composed of others."""
_DEFAULT_TEXT: Final = b'"default":'
_LARGE: Final = 4096
"""Bytes of a schema above which its validator is not kept when it is only checked."""


def check_composition(schema: JsonSchema) -> None:
    """Refuse a schema that is too much work for one value.

    Args:
        schema: A schema that has been compiled.

    Raises:
        InvalidDefinition: Some place of it composes more than `MOST_EVALUATIONS` schemas, or 200 inside each other; or
            a reference is of a form whose work cannot be counted.
    """
    composition = _Composition(schema)
    for node in composition.nodes:
        composition.count(node)


class _Composition:
    """The counts of one schema's parts; a part that is composed of itself counts once."""

    def __init__(self, schema: JsonSchema) -> None:
        self._root = schema
        self._counts: dict[int, int] = {}
        self._targets: dict[str, Json] = {}
        """What references lead to."""
        self.nodes: list[JsonSchema] = []
        """The parts that are composed of others, in the order in which they are found."""
        self._has_resources = False
        self._named: dict[str, JsonSchema] = {}
        waiting: list[Json] = [schema]
        while waiting:
            node = waiting.pop()
            if isinstance(node, dict):
                self._read(cast("JsonSchema", node))
                inside = cast("JsonSchema", node).values()
            else:
                inside = cast("list[Json]", node)
            waiting += [part for part in inside if isinstance(part, dict | list)]

    def _read(self, node: JsonSchema) -> None:
        """Note what a part is called and whether it is composed of others."""
        if not _COMPOSING.isdisjoint(node):
            self.nodes.append(node)
        if not _NAMES.isdisjoint(node):
            self._has_resources = self._has_resources or (node is not self._root and isinstance(node.get("$id"), str))
            names = (node.get(keyword) for keyword in _NAME_ORDER)
            self._named |= {name.removesuffix("#"): node for name in names if isinstance(name, str)}

    def count(self, node: JsonSchema, depth: int = 0) -> int:
        """Evaluations of one value by a part."""
        known = self._counts.get(id(node))
        if known is not None:
            return known
        if depth > _DEEPEST:
            raise InvalidDefinition(f"more than {_DEEPEST} schemas are composed inside each other; use fewer levels")
        if _COMPOSING.isdisjoint(node):
            return 1
        self._counts[id(node)] = 0
        total = 1
        for part in self._parts_of(node):
            total += self.count(part, depth + 1)
        if total > MOST_EVALUATIONS:
            raise InvalidDefinition(
                f"one value would be checked against more than {MOST_EVALUATIONS} schemas, because allOf, anyOf, oneOf "
                "and references multiply; compose fewer of them"
            )
        self._counts[id(node)] = total
        return total

    def _parts_of(self, node: JsonSchema) -> Iterator[JsonSchema]:
        """The parts that the same value must be checked against."""
        for keyword in _COMPOSING_ORDER:
            if keyword not in node:
                continue
            found = node[keyword]
            if keyword in _LISTS:
                parts = cast("list[Json]", found) if isinstance(found, list) else []
            elif keyword == "dependentSchemas":
                parts = list(cast("JsonSchema", found).values()) if isinstance(found, dict) else []
            elif keyword in _REFERENCES:
                parts = [self._target(found)] if isinstance(found, str) else []
            else:
                parts = [found]
            for part in parts:
                if isinstance(part, dict):
                    yield cast("JsonSchema", part)

    def _target(self, reference: str) -> Json:
        """What a reference leads to: a pointer (RFC 6901), an anchor, or a part with an `$id`.

        One that leads nowhere is data that looks like a reference, since the schema has been compiled; unless parts
        have ids of their own, by which references can be written in more ways than are followed here.
        """
        if reference in self._targets:
            return self._targets[reference]
        base, _, fragment = unquote(reference).partition("#")
        node: Json = self._named.get(base) if base else self._root
        if fragment and not fragment.startswith("/"):
            node = self._named.get(fragment)
        elif fragment:
            node = resolve_pointer(node, fragment)
        if node is None and self._has_resources:
            raise InvalidDefinition(f"reference {reference!r} cannot be followed; refer to '#/$defs/NAME'")
        self._targets[reference] = node
        return node


LABELS = "x-labels"
"""Keyword beside `enum` in schemas of ours: a mapping from value to what people call it."""

_MOST_PROBLEMS = 20
_MOST_VALUES = 12
_SHORTEST_CONTAINED, _MOST_CONTAINED = 3, 3
"""Characters of a text that says something when it stands inside a value, and how many such values are told."""


@dataclass(frozen=True, slots=True)
class SchemaProblem:
    """One way in which a value does not meet its schema."""

    path: str
    """JSON pointer of the place; empty for the whole."""
    problem: str

    def __str__(self) -> str:
        return f"{self.path or 'input'}: {self.problem}"

    def as_json(self) -> JsonObject:
        """The problem as it stands in an error's details."""
        return {"path": self.path, "problem": self.problem}


class SchemaValidator:
    """A compiled schema.

    Args:
        schema: The document.
        text: Its canonical form, if that is at hand.

    Raises:
        InvalidDefinition: The document is not a schema, refers to something outside itself, or is too much work.
    """

    def __init__(self, schema: JsonSchema, text: bytes | None = None) -> None:
        self.schema = schema
        try:
            self._validator = jsonschema_rs.Draft202012Validator(
                schema, offline=True, pattern_options=jsonschema_rs.RegexOptions()
            )
        except jsonschema_rs.ValidationError as error:
            raise InvalidDefinition(f"at {_pointer(error.instance_path) or '/'}: {_explain_schema(error)}") from None
        except ValueError as error:  # its parts stand too deep inside each other
            raise InvalidDefinition(f"the schema cannot be compiled: {error}; use fewer levels, or $defs") from None
        text = canonical(schema) if text is None else text
        if _COMPOSING_TEXT.search(text):
            check_composition(schema)
        self.has_defaults = _DEFAULT_TEXT in text
        """Whether `with_defaults` may change a value at all."""
        self.is_valid: Callable[[Json], bool] = self._validator.is_valid
        """Whether a value meets the schema."""

    def problems(self, value: Json) -> Sequence[SchemaProblem]:
        """What is wrong with the value, at most twenty problems; empty if nothing is."""
        if self.is_valid(value):
            return ()
        errors = self._validator.iter_errors(value)
        return [self._explain(error) for error, _ in zip(errors, range(_MOST_PROBLEMS), strict=False)]

    def with_defaults(self, value: JsonObject) -> JsonObject:
        """The object with the defaults of absent properties filled in, also in nested objects."""
        return cast("JsonObject", self._fill(self.schema, value)) if self.has_defaults else value

    @cached_property
    def invalid_defaults(self) -> Sequence[SchemaProblem]:
        """The defaults, of properties and nested properties, that the schema itself refuses."""
        if not self.has_defaults:
            return ()
        found = (self._wrong(path, default) for path, default in self._declared_defaults())
        return [problem for problem in found if problem is not None]

    def _wrong(self, path: tuple[str, ...], default: Json) -> SchemaProblem | None:
        """What is wrong with a default, seen in an object that holds nothing else."""
        instance = default
        for name in reversed(path):
            instance = {name: instance}
        errors = self._validator.iter_errors(instance)
        own = (error for error in errors if tuple(map(str, error.instance_path[: len(path)])) == path)
        return next((SchemaProblem(_pointer(path), self._explain(error).problem) for error in own), None)

    def _declared_defaults(self) -> Iterator[tuple[tuple[str, ...], Json]]:
        """Each default with the shortest way to it. A definition is visited once: it may refer to itself."""
        waiting: deque[tuple[tuple[str, ...], JsonSchema]] = deque([((), self.schema)])
        visited: set[str] = set()
        while waiting:
            path, schema = waiting.popleft()
            if (reference := schema.get("$ref")) is not None:
                if reference in visited:
                    continue
                visited.add(reference)
            for name, part in self._properties(schema).items():
                if isinstance(part, dict):
                    property_schema = cast("JsonSchema", part)
                    if "default" in property_schema:
                        yield (*path, name), property_schema["default"]
                    else:
                        waiting.append(((*path, name), property_schema))

    def _fill(self, schema: Json, value: Json) -> Json:
        if not (isinstance(schema, dict) and isinstance(value, dict)):
            return value
        declared, filled = self._properties(cast("JsonSchema", schema)), dict(cast("JsonObject", value))
        for name, part in declared.items():
            if name in filled:
                if isinstance(filled[name], dict):
                    filled[name] = self._fill(part, filled[name])
            elif isinstance(part, dict) and "default" in part:
                default = cast("JsonObject", part)["default"]
                filled[name] = default if isinstance(default, str | int) else deepcopy(default)
        return filled

    def _properties(self, schema: JsonSchema) -> JsonObject:
        reference = schema.get("$ref", "")
        if reference.startswith("#/"):
            schema = {**_children(resolve_pointer(self.schema, reference)), **schema}
        return cast("JsonObject", schema.get("properties", {}))

    def _explain(self, error: jsonschema_rs.ValidationError) -> SchemaProblem:
        kind = error.kind
        message = _short(error.message)
        if kind.name == "enum":
            message = _explain_enum(error.instance, kind.value, self._parent(error).get(LABELS, {}))
        elif kind.name == "additionalProperties":
            message = _explain_unexpected(kind.value, self._parent(error).get("properties", {}))
        elif kind.name == "falseSchema":
            whole = list(error.schema_path)[-1:] == ["additionalProperties"]
            message = "no property is known here; send {}" if whole else "this is not allowed here; leave it out"
        elif kind.name in ("anyOf", "oneOf"):
            message = self._explain_alternatives(error, kind.value) or message
        return SchemaProblem(_pointer(error.instance_path), message)

    def _explain_alternatives(
        self, error: jsonschema_rs.ValidationError, branches: Sequence[Sequence[jsonschema_rs.ValidationError]]
    ) -> str:
        """What the value would need to be, leaving out alternatives of another type, such as null, if others remain."""
        firsts = [branch[0] for branch in branches if branch]
        here = list(error.instance_path)
        close = [first for first in firsts if first.kind.name != "type" or list(first.instance_path) != here]
        found = [self._explain(first) for first in close or firsts]
        return _short("; or ".join(part.problem if part.path == _pointer(here) else str(part) for part in found))

    def _parent(self, error: jsonschema_rs.ValidationError) -> JsonSchema:
        return self._node(list(error.schema_path)[:-1])

    def _node(self, path: Iterable[str | int]) -> JsonSchema:
        node: Json = self.schema
        for part in path:
            node = _children(node).get(str(part))
        return _children(node)


def compile_schema(schema: JsonSchema) -> SchemaValidator:
    """The validator of a schema, remembered by the schema's canonical content.

    Raises:
        InvalidDefinition: The document is not a schema, or refers to something outside itself.
    """
    return _compile(canonical(schema))


def checked_schema(schema: JsonSchema) -> SchemaValidator:
    """The validator of a schema that is only to be checked: a large one is not kept, because it may never be used.

    Raises:
        InvalidDefinition: As `compile_schema`.
    """
    text = canonical(schema)
    return _compile(text) if len(text) <= _LARGE else SchemaValidator(schema, text)


@lru_cache(maxsize=4096)
def _compile(text: bytes) -> SchemaValidator:
    return SchemaValidator(orjson.loads(text), text)


def _explain_schema(error: jsonschema_rs.ValidationError) -> str:
    if error.kind.name == "format" and error.kind.value == "regex":
        return (
            f"pattern {_short(str(error.instance))!r} is not a regular expression that matches in linear time; "
            "write it without look-around, back-references and large counted repetitions"
        )
    if error.kind.name == "$ref":
        return f"{error.message}; put what $ref names into $defs of the same schema"
    return _short(error.message)


def _explain_enum(value: Json, values: Sequence[Json], labels: Mapping[str, str]) -> str:
    spoken = {str(labels.get(str(item), item)).casefold(): item for item in values}
    spoken.update({str(item).casefold(): item for item in values})
    wanted = str(value).casefold()
    inside = [text for text in spoken if len(wanted) >= _SHORTEST_CONTAINED and wanted in text][:_MOST_CONTAINED]
    close = get_close_matches(wanted, spoken, n=5, cutoff=0.5)
    near = [_with_label(spoken[text], labels) for text in (*inside, *close)]
    shown = list(dict.fromkeys(near))[:3] or [_with_label(item, labels) for item in values[:_MOST_VALUES]]
    kind = "nearest" if near else "valid"
    return f"{_short(_text(value))} is not one of the {len(values)} valid values; {kind}: {', '.join(shown)}"


def _explain_unexpected(names: Sequence[str], properties: Mapping[str, Json]) -> str:
    known = sorted(properties)
    near = get_close_matches(names[0], known, n=3) or known[:_MOST_VALUES]
    return f"{names[0]!r} is not a property here; known: {', '.join(near) or 'none'}"


def _with_label(value: Json, labels: Mapping[str, str]) -> str:
    text = _text(value)
    label = labels.get(str(value))
    return f"{text} ({label})" if label is not None else text


def _text(value: Json) -> str:
    """A value as the sender would have to write it, with the quotes of this module's messages."""
    return repr(value) if isinstance(value, str) else canonical(value).decode()


def _pointer(path: Iterable[str | int]) -> str:
    return "".join(f"/{escape_name(str(part))}" for part in path)


def _short(text: str, ends: int = 150) -> str:
    """The text, without the middle of a long one: messages begin with the value and end with what is wrong with it."""
    return text if len(text) <= 2 * ends else f"{text[:ends]}…{text[-ends:]}"


def _children(node: Json) -> JsonObject:
    if isinstance(node, list):
        return {str(index): item for index, item in enumerate(cast("list[Json]", node))}
    return cast("JsonObject", node) if isinstance(node, dict) else {}
