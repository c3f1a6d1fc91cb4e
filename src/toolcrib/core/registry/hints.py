"""JSON schemas of Python types, as models are shown them: without what pydantic adds for people.

The types are pydantic's to judge; nothing here knows of functions or tools.
"""

import json
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import PydanticSerializationError

from toolcrib.contracts import Json, JsonSchema

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
