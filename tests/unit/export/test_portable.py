"""Schemas in the dialects of vendors, judged by the linter and by the vendors' own packages."""

import copy
from itertools import pairwise
from typing import Any

import pytest
from agents.strict_schema import ensure_strict_json_schema
from google.genai import types as google
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.core.export import DIALECTS, SchemaDialect, drop_nulls, lint_schema, translate_schema
from toolcrib.core.registry.schema.validation import compile_schema
from toolcrib.llm.base.strict import strict_schema

pytestmark = pytest.mark.requirement("authoring.portable")

NODE: JsonSchema = {
    "type": "object",
    "properties": {
        "node": {"$ref": "#/$defs/node"},
        "stage": {"oneOf": [{"const": "won"}, {"const": "lost", "description": "Gone"}]},
        "amount": {"type": ["integer", "null"], "exclusiveMinimum": 0, "multipleOf": 5, "default": 5},
        "when": {"type": "string", "format": "date", "minLength": 3},
        "price": {"allOf": [{"type": "number"}, {"maximum": 9}]},
        "level": {"enum": [1, 2, None]},
        "mixed": {"type": ["string", "integer"], "minLength": 1, "minimum": 3},
    },
    "required": ["when"],
    "$defs": {
        "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "additionalProperties": False}
    },
}


def of_field(schema: Json, **root: Json) -> JsonSchema:
    return {"type": "object", "properties": {"x": schema}, "required": ["x"], "additionalProperties": False, **root}


def field_of(schema: Json, dialect: SchemaDialect) -> tuple[Any, tuple[str, ...]]:
    found = translate_schema(of_field(schema), dialect)
    return found.schema["properties"]["x"], found.lost


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_translated_has_no_fault_in_the_dialect(dialect: SchemaDialect):
    found = translate_schema(NODE, dialect)

    assert (found.refused, lint_schema(found.schema, dialect)) == ((), [])


def test_dialects_without_keywords_of_their_own_keep_a_schema_as_it_is():
    assert translate_schema(NODE, "openai").schema == NODE
    assert translate_schema(NODE, "anthropic").schema == NODE


@pytest.mark.parametrize(
    ("schema", "expected", "lost"),
    [
        ({"type": "string", "format": "uuid"}, {"type": "string", "format": "uuid"}, 0),
        ({"type": "string", "minLength": 2}, {"type": "string", "description": "(minLength: 2)"}, 1),
        ({"type": "string", "default": "a"}, {"type": "string"}, 0),
        ({"type": "string", "default": "a", "minLength": 1}, {"type": "string"}, 1),
        ({"const": 3, "examples": [3]}, {"const": 3}, 0),
        ({"allOf": [{"type": "string"}, {"pattern": "^a"}]}, {"type": "string", "pattern": "^a"}, 0),
        ({"allOf": [{"type": "string", "pattern": "b"}, {"pattern": "^a"}]}, {"type": "string", "pattern": "b"}, 1),
        ({"oneOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}]}, 1),
        ({"minimum": 1}, {"type": "number", "minimum": 1}, 0),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            {"type": "array", "items": {"type": "string"}, "description": "(uniqueItems: true)"},
            1,
        ),
    ],
    ids=str,
)
def test_openai_strict_keeps_what_it_knows_and_describes_the_rest(schema: JsonSchema, expected: Json, lost: int):
    found, losses = field_of(schema, "openai_strict")

    assert {key: found[key] for key in expected} == expected
    assert not found.keys() & {"default", "minLength", "examples", "allOf", "oneOf"}
    assert len(losses) == lost


def test_openai_strict_requires_an_optional_property_and_lets_it_be_null():
    schema: JsonSchema = {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "none": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "stage": {"enum": ["won"], "description": "Stage"},
            "both": {"type": ["string", "null"]},
        },
        "additionalProperties": False,
    }
    found = translate_schema(schema, "openai_strict")

    assert found.lost == ()
    assert found.schema["required"] == ["text", "either", "none", "stage", "both"]
    assert found.schema["properties"] == {
        "text": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        "none": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "stage": {"anyOf": [{"enum": ["won"], "type": "string"}, {"type": "null"}], "description": "Stage"},
        "both": {"type": ["string", "null"]},
    }


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "additionalProperties: false"),
        ({"type": "array"}, "the type of its items"),
        ({}, "it must say its type"),
    ],
    ids=str,
)
def test_openai_strict_says_what_it_has_no_form_for(schema: JsonSchema, why: str):
    found = translate_schema(of_field(schema), "openai_strict")

    assert any(why in reason and reason.startswith("properties.x") for reason in found.refused)


@pytest.mark.parametrize(
    ("schema", "expected", "lost"),
    [
        ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}, 0),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "STRING", "nullable": True}, 0),
        ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9}, {"minimum": 1, "maximum": 8}, 0),
        ({"type": "number", "exclusiveMinimum": 0}, {"description": "(exclusiveMinimum: 0)"}, 1),
        ({"const": "a"}, {"type": "STRING", "enum": ["a"]}, 0),
        ({"enum": [1, 2]}, {"type": "INTEGER", "description": "(enum: [1,2])"}, 1),
        ({"enum": ["a", None]}, {"type": "STRING", "enum": ["a"], "nullable": True}, 0),
        ({"type": "string", "format": "date-time"}, {"format": "date-time"}, 0),
        ({"type": "string", "format": "email"}, {"description": '(format: "email")'}, 1),
        (
            {"type": ["string", "integer"], "minLength": 2},
            {"anyOf": [{"type": "STRING", "minLength": 2}, {"type": "INTEGER"}]},
            0,
        ),
        (
            {"type": "object", "properties": {"y": {"type": "boolean"}}, "additionalProperties": False},
            {"type": "OBJECT"},
            0,
        ),
    ],
    ids=str,
)
def test_gemini_gets_its_subset_of_openapi(schema: JsonSchema, expected: Json, lost: int):
    found, losses = field_of(schema, "gemini")

    assert {key: found[key] for key in expected} == expected
    assert len(losses) == lost


@pytest.mark.parametrize("dialect", ["openai_strict", "gemini"])
def test_references_are_written_out_and_cut_where_a_schema_contains_itself(dialect: SchemaDialect):
    found = translate_schema(NODE, dialect)
    node = found.schema["properties"]["node"]

    assert "$ref" not in str(found.schema)
    assert set(node["properties"]) == {"next"}
    assert "properties.node.properties.next: the reference #/$defs/node to a schema that contains it" in found.lost


@pytest.mark.parametrize("dialect", DIALECTS)
def test_alternatives_at_the_top_become_optional_properties_and_a_sentence(dialect: SchemaDialect):
    schema: JsonSchema = {
        "type": "object",
        "properties": {"note": {"type": "string"}},
        "required": ["note"],
        "additionalProperties": False,
        "oneOf": [
            {"properties": {"id": {"type": "integer"}}, "required": ["id", "kind"]},
            {"properties": {"name": {"type": "string"}, "kind": {"type": "string"}}, "required": ["name", "kind"]},
        ],
    }
    found = translate_schema(schema, dialect)

    assert lint_schema(found.schema, dialect) == []
    assert set(found.schema["properties"]) == {"note", "id", "name", "kind"}
    assert set(found.schema["required"]) >= {"note", "kind"}
    assert "Give id with kind, or name with kind." in found.schema["description"]
    assert "(root): which properties go together" in found.lost


def test_alternatives_of_one_property_stay_alternatives():
    number: JsonSchema = {"properties": {"x": {"type": "integer"}}}
    text: JsonSchema = {"properties": {"x": {"type": "string"}}}
    found = translate_schema({"type": "object", "anyOf": [number, text, text]}, "openai").schema

    values = compile_schema(found)
    assert not [value for value in (1, "a") if values.problems({"x": value})]


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_a_condition_at_the_top_is_listed_as_lost(dialect: SchemaDialect):
    found = translate_schema({"type": "object", "properties": {}, "not": {"required": ["x"]}}, dialect)

    assert found.lost == (("(root): not",) if dialect == "openai" else ())


def test_anthropic_refuses_names_of_properties_that_it_cannot_write():
    schema: JsonSchema = {"type": "object", "properties": {"first name": {"type": "string"}}}

    assert "first name" in translate_schema(schema, "anthropic").refused[0]
    assert translate_schema(schema, "openai").refused == ()


@pytest.mark.parametrize(
    ("schema", "dialect", "problem"),
    [
        ({"type": "array"}, "openai", "(root): the type must be 'object'"),
        ({"type": "object", "anyOf": []}, "anthropic", "(root): 'anyOf' is not allowed at the top"),
        (of_field({"type": "string", "minLength": 1}), "openai_strict", "'minLength' is not supported"),
        (of_field({"type": "string", "format": "uri"}), "openai_strict", "the format 'uri' is not supported"),
        (of_field(True), "openai_strict", "a schema must be an object, not True"),
        ({"type": "object", "properties": {"x": {"type": "string"}}}, "openai_strict", "require all its properties"),
        (of_field({"anyOf": [{"type": "array"}]}), "openai_strict", "properties.x.anyOf.0: a list must say"),
        (of_field({"$ref": "#/$defs/a"}, **{"$defs": {"a": {}}}), "openai_strict", "$defs.a: it must say its type"),
        (of_field({"type": "array", "items": {"type": "string"}}), "gemini", "properties.x.items: the type 'string'"),
        ({"type": "OBJECT", "properties": {"x": {"type": "INTEGER", "enum": [1]}}}, "gemini", "an enum must be texts"),
    ],
    ids=str,
)
def test_the_linter_names_the_place_and_the_rule(schema: JsonSchema, dialect: SchemaDialect, problem: str):
    assert any(problem in found for found in lint_schema(schema, dialect))


def test_a_schema_that_writes_itself_out_without_end_is_cut():
    names = [f"d{level}" for level in range(40)]
    definitions: JsonObject = {
        name: {
            "type": "object",
            "properties": {side: {"$ref": f"#/$defs/{below}"} for side in ("left", "right")},
        }
        for name, below in pairwise(names)
    }
    definitions[names[-1]] = {"type": "string"}
    found = translate_schema(of_field({"$ref": "#/$defs/d0"}, **{"$defs": definitions}), "gemini")

    assert lint_schema(found.schema, "gemini") == []
    assert found.lost


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_schema_that_combines_itself_ends(keyword: str, dialect: SchemaDialect):
    part: JsonObject = {"type": "object", keyword: [{"$ref": "#/$defs/a"}], "properties": {"y": {"type": "string"}}}
    schema = of_field({"$ref": "#/$defs/a"}, **{"$defs": {"a": part}})

    assert translate_schema(schema, dialect).schema["type"] in {"object", "OBJECT"}
    assert drop_nulls({"x": {"y": None}}, schema) == {"x": {}}


# Random schemas, each with a value that meets it ----------------------------------------------------------------------

NAMES = st.sampled_from("abcde")


def leaves() -> st.SearchStrategy[tuple[JsonSchema, Any]]:
    texts = st.text("xyz", min_size=1, max_size=3)
    numbers = st.integers(1, 20)
    return st.one_of(
        texts.map(lambda value: ({"type": "string"}, value)),
        texts.map(lambda value: ({"type": "string", "minLength": 1, "maxLength": 3, "default": "x"}, value)),
        texts.map(lambda value: ({"enum": [value, "other"]}, value)),
        texts.map(lambda value: ({"const": value}, value)),
        numbers.map(lambda value: ({"type": "integer", "exclusiveMinimum": 0, "maximum": 20}, value)),
        numbers.map(lambda value: ({"enum": [value, None]}, value)),
        numbers.map(lambda value: ({"type": ["integer", "null", "string"], "minimum": 1}, value)),
        st.just(({"type": ["string", "null"], "format": "uri"}, None)),
        st.booleans().map(lambda value: ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, value)),
    )


@st.composite
def objects(draw: st.DrawFn, parts: st.SearchStrategy[tuple[JsonSchema, Any]]) -> tuple[JsonSchema, Any]:
    fields = draw(st.dictionaries(NAMES, parts, min_size=1, max_size=4))
    required = [name for name in fields if draw(st.booleans())]
    value = {name: one for name, (_, one) in fields.items() if name in required or draw(st.booleans())}
    schema: JsonSchema = {"type": "object", "properties": {name: one for name, (one, _) in fields.items()}}
    return {**schema, "required": required, "additionalProperties": False}, value


def nested(parts: st.SearchStrategy[tuple[JsonSchema, Any]]) -> st.SearchStrategy[tuple[JsonSchema, Any]]:
    lists = parts.map(lambda part: ({"type": "array", "items": part[0], "minItems": 1}, [part[1], part[1]]))
    return st.one_of(objects(parts), lists)


SCHEMAS = objects(st.recursive(leaves(), nested, max_leaves=6))


def with_nulls(value: Any, schema: Any) -> Any:
    """What a model writes that must give every property."""
    if isinstance(value, list):
        return [with_nulls(item, schema["items"]) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return value
    parts = schema["properties"]
    return {name: with_nulls(value[name], parts[name]) if name in value else None for name in parts}  # pyright: ignore[reportUnknownArgumentType]


@given(SCHEMAS, st.sampled_from(DIALECTS))
def test_every_schema_has_a_form_in_every_dialect_and_stays_as_it_was(case: tuple[JsonSchema, Any], dialect: Any):
    schema, _ = case
    before = copy.deepcopy(schema)
    found = translate_schema(schema, dialect)

    assert (found.refused, lint_schema(found.schema, dialect)) == ((), [])
    assert schema == before


@given(SCHEMAS)
def test_a_strict_model_can_write_what_the_tool_takes_and_the_tool_takes_what_it_writes(case: tuple[JsonSchema, Any]):
    schema, value = case
    strict = translate_schema(schema, "openai_strict").schema
    written = with_nulls(value, schema)

    assert not compile_schema(strict).problems(written)
    assert not compile_schema(schema).problems(drop_nulls(written, schema))


@given(SCHEMAS)
def test_openai_finds_nothing_to_change_in_a_strict_schema(case: tuple[JsonSchema, Any]):
    strict = translate_schema(case[0], "openai_strict").schema

    assert ensure_strict_json_schema(copy.deepcopy(strict)) == strict
    assert strict_schema(strict, "openai") is not None


@given(SCHEMAS)
def test_google_takes_the_declaration_and_gives_it_back_unchanged(case: tuple[JsonSchema, Any]):
    schema = translate_schema(case[0], "gemini").schema
    taken = google.FunctionDeclaration.model_validate({"name": "f", "parameters": schema})

    assert taken.parameters is not None
    assert taken.parameters.model_dump(mode="json", by_alias=True, exclude_none=True) == schema


def test_nulls_are_kept_where_the_schema_or_a_requirement_asks_for_them():
    schema: JsonSchema = {
        "type": "object",
        "$defs": {"part": {"type": "object", "properties": {"x": {"type": "string"}}}},
        "properties": {
            "free": True,
            "any": {},
            "constant": {"const": None},
            "part": {"$ref": "#/$defs/part"},
            "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}},
            "text": {"type": "string"},
            "needed": {"type": "string"},
        },
        "allOf": [{"properties": {"more": {"type": "string"}}}],
        "anyOf": [{"properties": {"other": {"type": "string"}}}, {"properties": {"other": {"type": "integer"}}}],
        "required": ["needed"],
    }
    given = dict.fromkeys(("free", "any", "constant", "needed", "unknown"))
    dropped = {"text": None, "more": None, "other": None, "part": {"x": None}, "parts": [{"x": None}, {"x": "a"}]}

    assert drop_nulls({**given, **dropped}, schema) == {**given, "part": {}, "parts": [{}, {"x": "a"}]}
