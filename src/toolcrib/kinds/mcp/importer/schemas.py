"""Schemas as servers send them, in the dialect that the rest of the house reads: JSON Schema 2020-12.

Most servers write draft 7 (`"$schema": "http://json-schema.org/draft-07/schema#"`), which differs for what occurs in
schemas of arguments only in how it writes tuples. Nothing is fetched: a schema that refers elsewhere is refused where
the definition is checked.
"""

from typing import Final, cast

from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.kinds.mcp.importer.prose import legible_schema

_MOST_LEVELS: Final = 100


def input_schema(said: Json) -> JsonSchema:
    """The schema of a tool's arguments: an object, without arguments if the server gives none."""
    schema = cast("JsonSchema", said) if isinstance(said, dict) else JsonSchema()
    return {"type": "object", **_modern(schema)}


def output_schema(said: Json) -> JsonSchema | None:
    """The schema of a tool's structured output; null if the server promises none."""
    return _modern(cast("JsonSchema", said)) if isinstance(said, dict) else None


def text_arguments(names: dict[str, bool], described: dict[str, str]) -> JsonSchema:
    """The schema of arguments that are texts, as those of prompts and templates are.

    Args:
        names: Whether each is required.
        described: What some of them mean.
    """
    properties = {
        name: {"type": "string", **({"description": described[name]} if described.get(name) else {})} for name in names
    }
    required = [name for name, is_required in names.items() if is_required]
    schema: JsonSchema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _modern(schema: JsonSchema) -> JsonSchema:
    shown = legible_schema(schema)
    return cast("JsonSchema", _tuples(shown, _MOST_LEVELS))


def _tuples(value: Json, levels: int) -> Json:
    """`items` as a list (draft 7) becomes `prefixItems`, and its `additionalItems` becomes `items`."""
    if levels == 0:
        return value
    if isinstance(value, list):
        return [_tuples(item, levels - 1) for item in cast("list[Json]", value)]
    if not isinstance(value, dict):
        return value
    members = {name: _tuples(item, levels - 1) for name, item in cast("JsonObject", value).items() if name != "$schema"}
    if isinstance(members.get("items"), list):
        members["prefixItems"] = members.pop("items")
        if "additionalItems" in members:
            members["items"] = members.pop("additionalItems")
    return members
