"""JSON schemas of type hints: what a function accepts and returns. Pydantic makes them; they are reduced here."""

import json
from collections.abc import Mapping
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, Union, cast, get_args, get_origin

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import PydanticSerializationError

from toolcrib.contracts import Json, JsonObject, JsonSchema

_NAMED = frozenset({"properties", "patternProperties", "$defs"})
"""Keywords whose values are schemas by name."""
_DATA = frozenset({"default", "const", "enum", "examples"})
"""Keywords whose values are no schemas."""


def schema_of_arguments(model: type[BaseModel]) -> JsonSchema:
    """What a model accepts."""
    return _lean(model.model_json_schema(schema_generator=_Generator))


def schema_of_results(adapter: TypeAdapter[Any]) -> JsonSchema:
    """What values of a type become."""
    return _lean(adapter.json_schema(mode="serialization", schema_generator=_Generator))


class _Generator(GenerateJsonSchema):
    """Pydantic's, but a default that JSON has no form for is left out without a word: the function has it."""

    def encode_default(self, dft: Any) -> Any:
        encoded = super().encode_default(dft)
        try:
            json.dumps(encoded, allow_nan=False)
        except ValueError as error:
            raise PydanticSerializationError(str(error)) from error
        return encoded

    def render_warning_message(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Nothing: who could read it has not written the type."""


def _lean(schema: JsonSchema) -> JsonSchema:
    """The schema without the titles that pydantic makes from names: a model pays for every token."""
    lean: JsonSchema = {}
    for key, value in schema.items():
        if key in _NAMED:
            lean[key] = {name: _lean_part(part) for name, part in value.items()}
        elif key in _DATA:
            lean[key] = value
        elif key != "title":
            lean[key] = _lean_part(value)
    return lean


def _lean_part(part: Json) -> Json:
    if isinstance(part, list):
        return [_lean_part(item) for item in cast("list[Json]", part)]
    return _lean(cast("JsonSchema", part)) if isinstance(part, dict) else part


SIMPLE_TYPES: Final[Mapping[Any, str]] = {str: "string", int: "integer", float: "number", bool: "boolean"}
"""Types whose schema is their name, in arguments and in results."""


def simple_schema(hint: Any) -> JsonSchema | None:
    """The schema of a type that is made of text, numbers, booleans, null, lists and objects, as pydantic writes it.

    Making a model of such a signature only to have its schema would be most of what a tool costs to add.

    Args:
        hint: A type hint.

    Returns:
        A new schema; null for any other type.
    """
    if hint is Any:
        return {}
    if type(hint) is type:
        return {"type": SIMPLE_TYPES[hint]} if hint in SIMPLE_TYPES else None
    origin, inside = get_origin(hint), get_args(hint)
    if origin is list and len(inside) == 1:
        items = simple_schema(inside[0])
        return None if items is None else {"items": items, "type": "array"}
    if origin is dict and len(inside) == 2 and inside[0] is str:
        values = simple_schema(inside[1])
        return None if values is None else {"additionalProperties": values or True, "type": "object"}
    if origin in (UnionType, Union) and len(inside) == 2 and inside[1] is NoneType:
        some = simple_schema(inside[0])
        return None if some is None else {"anyOf": [some, {"type": "null"}]}
    return None


def single_types(hint: Any) -> frozenset[type] | None:
    """The types of the JSON values that pydantic hands to a parameter as they are; null if there may be others."""
    if type(hint) is type:
        return frozenset((hint,)) if hint in SIMPLE_TYPES else None
    inside = get_args(hint) if get_origin(hint) in (UnionType, Union) else ()
    if len(inside) == 2 and inside[1] is NoneType and type(inside[0]) is type and inside[0] in SIMPLE_TYPES:
        return frozenset(inside)
    return None


class ArgumentTypes(NamedTuple):
    """The types of a function's arguments."""

    types: Mapping[str, frozenset[type]]
    needed: frozenset[str]
    """Names of those without a default."""

    def hold(self, arguments: JsonObject) -> bool:
        """Whether all arguments are of their types, as they are, and none is missing."""
        types = self.types
        for name, value in arguments.items():
            if name not in types or type(value) not in types[name]:
                return False
        return self.needed <= arguments.keys()


def fits_simply(default: object, schema: JsonSchema) -> bool:
    """Whether a default is surely of the type of a simple schema; only null and single values are looked at."""
    kinds = [schema, *cast("list[JsonSchema]", schema.get("anyOf", ()))]
    names = {kind.get("type") for kind in kinds}
    if default is None:
        return "null" in names
    if type(default) is float:
        return "number" in names and isfinite(default)
    return type(default) in SIMPLE_TYPES and SIMPLE_TYPES[type(default)] in names
