"""JSON Schema 2020-12 validation whose messages a model can act on.

Validators come from jsonschema-rs, always offline: by default that library would fetch remote and file references.
Schemas are compiled once. Patterns are limited to what a linear-time engine can match, so a schema cannot hold up the
process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from toolcrib.contracts import InvalidDefinition, Json, JsonObject, JsonSchema, canonical

if TYPE_CHECKING:
    import jsonschema_rs

LABELS = "x-labels"
"""Keyword beside `enum` in schemas of ours: a mapping from value to what people call it."""

_MOST_PROBLEMS = 20
_MOST_VALUES = 12


@dataclass(frozen=True, slots=True)
class Problem:
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
    """A compiled schema."""

    def __init__(self, schema: JsonSchema) -> None:
        import jsonschema_rs  # noqa: PLC0415 - a binary module, loaded when the first schema is compiled

        self.schema = schema
        try:
            self._validator = jsonschema_rs.Draft202012Validator(
                schema, offline=True, pattern_options=jsonschema_rs.RegexOptions()
            )
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            place = "/".join(map(str, getattr(error, "instance_path", None) or ()))
            raise InvalidDefinition(f"at /{place}: {getattr(error, 'message', error)}") from None
        self._defaults = _has_defaults(schema)

    def is_valid(self, value: Json) -> bool:
        """Whether the value meets the schema."""
        return self._validator.is_valid(value)

    def problems(self, value: Json) -> Sequence[Problem]:
        """What is wrong with the value, at most twenty problems; empty if nothing is."""
        if self._validator.is_valid(value):
            return ()
        errors = self._validator.iter_errors(value)
        return [self._explain(error) for error, _ in zip(errors, range(_MOST_PROBLEMS), strict=False)]

    def with_defaults(self, value: JsonObject) -> JsonObject:
        """The object with the defaults of absent properties filled in, also in nested objects."""
        return cast("JsonObject", _fill(self.schema, value)) if self._defaults else value

    def _explain(self, error: "jsonschema_rs.ValidationError") -> Problem:
        path = "".join(f"/{_escape(part)}" for part in error.instance_path)
        if type(error.kind).__name__.endswith("Enum"):
            parent = self._node(list(error.schema_path)[:-1])
            return Problem(path, _explain_enum(error.instance, parent))
        if type(error.kind).__name__.endswith("AdditionalProperties"):
            parent = self._node(list(error.schema_path)[:-1])
            return Problem(path, _explain_unexpected(error.instance, parent) or error.message)
        return Problem(path, _short(error.message))

    def _node(self, path: Sequence[str | int]) -> JsonSchema:
        node: Any = self.schema
        for part in path:
            if isinstance(node, dict) and part == "$ref":
                reference = str(cast("JsonObject", node).get("$ref", ""))
                node = _pointer(self.schema, reference)
            elif isinstance(node, dict):
                node = cast("JsonObject", node).get(str(part), {})
            elif isinstance(node, list) and isinstance(part, int):
                node = cast("list[Json]", node)[part]
        return cast("JsonSchema", node) if isinstance(node, dict) else {}


def compile_schema(schema: JsonSchema) -> SchemaValidator:
    """The validator of a schema, remembered by the schema's canonical content.

    Raises:
        InvalidDefinition: The document is not a schema, or refers to something outside itself.
    """
    return _compile(canonical(schema))


@lru_cache(maxsize=4096)
def _compile(content: bytes) -> SchemaValidator:
    import orjson  # noqa: PLC0415 - see SchemaValidator

    return SchemaValidator(orjson.loads(content))


def _explain_enum(value: Json, schema: JsonSchema) -> str:
    values = cast("list[Json]", schema.get("enum", []))
    labels = cast("Mapping[str, str]", schema.get(LABELS, {}))
    spoken = {str(labels.get(str(item), item)).casefold(): item for item in values}
    spoken.update({str(item).casefold(): item for item in values})
    near = [spoken[text] for text in get_close_matches(str(value).casefold(), list(spoken), n=5, cutoff=0.5)]
    unique = list(dict.fromkeys(map(str, near)))[:3]
    shown = unique or [str(item) for item in values[:_MOST_VALUES]]
    names = ", ".join(f"{item!r} ({labels[item]})" if item in labels else repr(item) for item in shown)
    kind = "nearest" if unique else "valid"
    return f"{_short(repr(value))} is not one of the {len(values)} valid values; {kind}: {names}"


def _explain_unexpected(value: Json, schema: JsonSchema) -> str | None:
    known = sorted(cast("JsonObject", schema.get("properties", {})))
    extra = [name for name in cast("JsonObject", value) if name not in known]
    if not extra:
        return None
    near = get_close_matches(extra[0], known, n=3) or known[:_MOST_VALUES]
    return f"{extra[0]!r} is not a property here; known: {', '.join(near) or 'none'}"


def _pointer(schema: JsonSchema, reference: str) -> Json:
    node: Any = schema
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        node = cast("JsonObject", node).get(name, {}) if isinstance(node, dict) else {}
    return node


def _escape(part: str | int) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")


def _short(text: str, limit: int = 300) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def _has_defaults(schema: Json) -> bool:
    if not isinstance(schema, dict):
        return False
    properties = cast("JsonObject", cast("JsonObject", schema).get("properties", {}))
    return any(isinstance(item, dict) and ("default" in item or _has_defaults(item)) for item in properties.values())


def _fill(schema: Json, value: Json) -> Json:
    if not (isinstance(schema, dict) and isinstance(value, dict)):
        return value
    filled = dict(cast("JsonObject", value))
    for name, part in cast("JsonObject", cast("JsonObject", schema).get("properties", {})).items():
        if name in filled:
            filled[name] = _fill(part, filled[name])
        elif isinstance(part, dict) and "default" in part:
            filled[name] = part["default"]
    return filled
