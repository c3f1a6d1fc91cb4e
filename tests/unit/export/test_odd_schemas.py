"""Exports of the schemas of the JSON Schema Test Suite (draft 2020-12, © Julian Berman, MIT licence).

`json_schema_suite.json` has each of its schemas with the values that the suite says are not valid for it.
"""

import json
from pathlib import Path
from typing import Any, cast

import jsonschema_rs
import pytest

from tests.twins import make_definition
from toolcrib import Crib
from toolcrib.contracts import InvalidDefinition, JsonSchema, ToolDefinition
from toolcrib.core.export import DIALECTS, FORMATS, SchemaDialect, lint_schema, translate_schema
from toolcrib.core.registry.schema.validation import compile_schema

pytestmark = pytest.mark.requirement("authoring.portable_odd")

SUITE: dict[str, tuple[Any, list[Any]]] = json.loads(Path(__file__).with_name("json_schema_suite.json").read_bytes())


def as_argument(schema: Any) -> JsonSchema:
    """A schema of arguments with the schema as that of its only one."""
    defs: JsonSchema = {"$defs": schema["$defs"]} if isinstance(schema, dict) and "$defs" in schema else {}
    return {"type": "object", "properties": {"x": schema}, "required": ["x"], "additionalProperties": False, **defs}


def can_be_saved(schema: JsonSchema) -> bool:
    """Whether a tool can have the schema: not if it needs the network, for instance."""
    try:
        compile_schema(schema)
    except InvalidDefinition:
        return False
    return True


def as_json_schema(openapi: Any) -> Any:
    """A schema in Gemini's form of OpenAPI as JSON Schema."""
    if not isinstance(openapi, dict):
        return openapi
    node = cast("dict[str, Any]", openapi)
    made: dict[str, Any] = {}
    for keyword, value in node.items():
        match keyword:
            case "properties":
                made[keyword] = {name: as_json_schema(part) for name, part in value.items()}
            case "items":
                made[keyword] = as_json_schema(value)
            case "anyOf":
                made[keyword] = [as_json_schema(part) for part in value]
            case "type":
                made[keyword] = value.lower()
            case "nullable":
                continue
            case _:
                made[keyword] = value
    return {"anyOf": [made, {"type": "null"}]} if node.get("nullable") else made


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_odd_schema_breaks_a_translation_and_what_has_no_form_is_told(dialect: SchemaDialect) -> None:
    told: list[str] = []
    for name, (schema, _) in SUITE.items():
        for whole in [as_argument(schema), *([cast("JsonSchema", schema)] if isinstance(schema, dict) else [])]:
            found = translate_schema(whole, dialect)
            if list(found.refused) != lint_schema(found.schema, dialect):
                told.append(name)

    assert told == []


@pytest.mark.parametrize("dialect", ["gemini", "openai_strict"])
def test_a_value_that_only_the_translation_allows_is_announced_by_what_is_lost(dialect: SchemaDialect) -> None:
    silent: list[tuple[str, Any]] = []
    for name, (schema, invalid) in SUITE.items():
        found = translate_schema(as_argument(schema), dialect)
        if found.lost or found.refused or not can_be_saved(as_argument(schema)):
            continue
        portable = jsonschema_rs.validator_for(as_json_schema(found.schema) if dialect == "gemini" else found.schema)
        silent += [(name, value) for value in invalid if portable.is_valid({"x": value})]

    assert silent == []


async def test_every_form_describes_every_tool_that_can_be_saved() -> None:
    refused = 0
    saved: list[ToolDefinition] = []
    async with Crib("memory://") as crib:
        for place, (schema, _) in enumerate(SUITE.values()):
            definition = make_definition(f"odd_{place}").model_copy(update={"input_schema": as_argument(schema)})
            try:
                saved.append(await crib.check(definition))
            except InvalidDefinition:
                refused += 1
                continue
            await crib.save(saved[-1])
        counts = {form: len(await crib.export(form=form)) for form in FORMATS}

    assert refused < 40
    assert {form: count for form, count in counts.items() if count != len(saved)} == {}
