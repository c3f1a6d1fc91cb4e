"""JSON Schema as the Gemini API takes it.

The API ignores keywords that it does not know, and refuses a reference with neighbours and formats of its own choice.
Nothing is lost by leaving those out: a schema here only tells the model what to write, while arguments and answers
are held against the whole schema elsewhere.
https://ai.google.dev/api/generate-content#FIELDS.response_json_schema
"""

from functools import lru_cache
from typing import Any, cast

import orjson

_FORMATS = frozenset({"date", "date-time", "time"})
_OF_ONE = frozenset({"additionalProperties", "items", "not"})
_OF_MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_BY_NAME = frozenset({"$defs", "properties"})
_TYPES: dict[type, str] = {bool: "boolean", str: "string", int: "integer", float: "number"}


def gemini_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema for a model of this API. Equal schemas are worked on once."""
    return orjson.loads(_gemini_json(orjson.dumps(schema)))


@lru_cache(maxsize=1024)
def _gemini_json(schema: bytes) -> bytes:
    return orjson.dumps(_walk(orjson.loads(schema)))


def _walk(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    schema = cast("dict[str, Any]", value)
    if "$ref" in schema:
        return {keyword: _inner(keyword, content) for keyword, content in schema.items() if keyword.startswith("$")}
    made = {keyword: _inner(keyword, content) for keyword, content in schema.items()}
    if "const" in made:
        _as_choice(made, made.pop("const"))
    if isinstance(made.get("format"), str) and made["format"] not in _FORMATS:
        described = f"{made.get('description', '')} (format: {made.pop('format')})"
        made["description"] = described.lstrip()
    return made


def _inner(keyword: str, content: Any) -> Any:
    if keyword in _OF_ONE:
        return _walk(content)
    if keyword in _OF_MANY and isinstance(content, list):
        return [_walk(branch) for branch in cast("list[Any]", content)]
    if keyword in _BY_NAME and isinstance(content, dict):
        return {name: _walk(branch) for name, branch in cast("dict[str, Any]", content).items()}
    return content


def _as_choice(schema: dict[str, Any], value: Any) -> None:
    """A constant as a choice of one; the API knows choices of texts and numbers only."""
    if type(value) in _TYPES:
        schema.setdefault("type", _TYPES[type(value)])
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        schema["enum"] = [value]
