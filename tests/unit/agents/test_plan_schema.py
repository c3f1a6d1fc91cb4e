"""The JSON Schema of a plan: what a model may write for a fixed sequence of steps."""

from typing import Any

import jsonschema_rs
import pytest

from toolcrib.agents.evidence.plan_schema import plan_schema, step_schema
from toolcrib.contracts import AgenticStep, JsonSchema
from toolcrib.core.registry import SchemaValidator, compile_schema

pytestmark = pytest.mark.requirement("agents.plan_schema")

SEARCH = AgenticStep(id="search", tool="crm.search", purpose="Find the deals")
UPDATE = AgenticStep(id="update", tool="crm.update")
ANYTHING: JsonSchema = {"type": "object"}


def later(schema: JsonSchema) -> SchemaValidator:
    """The schema of a plan whose second step has one argument `x` with this schema."""
    inputs = {"search": ANYTHING, "update": {"type": "object", "properties": {"x": schema}, "required": ["x"]}}
    return compile_schema(plan_schema([SEARCH, UPDATE], inputs))


def says(x: Any) -> dict[str, Any]:
    """A plan that gives this for `x`."""
    return {"reasoning": "", "search": {"input": {}}, "update": {"input": {"x": x}}}


def test_a_plan_has_the_steps_in_order_and_reasons_first():
    schema = plan_schema([SEARCH, UPDATE], {"search": ANYTHING, "update": ANYTHING})

    assert list(schema["properties"]) == ["reasoning", "question", "search", "update"]
    assert schema["required"] == ["reasoning", "search", "update"]
    assert schema["properties"]["search"]["description"] == "Find the deals"
    assert schema["properties"]["update"]["description"] == "crm.update"
    assert "$defs" not in schema


def test_only_a_later_step_can_be_done_for_each_item():
    schema = plan_schema([SEARCH, UPDATE], {"search": ANYTHING, "update": ANYTHING})

    assert "for_each" not in schema["properties"]["search"]["properties"]
    assert "for_each" in schema["properties"]["update"]["properties"]


def test_a_step_that_is_skipped_needs_no_arguments():
    required: JsonSchema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    validator = compile_schema(plan_schema([SEARCH, UPDATE], {"search": required, "update": required}))

    assert validator.is_valid({"reasoning": "", "search": {"skip": True}, "update": {"skip": True}})
    assert not validator.is_valid({"reasoning": "", "search": {"input": {}}, "update": {"skip": True}})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "maxLength": 3}, "abc"),
        ({"type": "string", "minLength": 40}, "a" * 40),
        ({"type": "string", "format": "date"}, "2026-01-31"),
        ({"type": "string", "pattern": "^[0-9]$"}, "1"),
        ({"type": ["string", "null"]}, None),
        ({"const": "card"}, "card"),
        ({"enum": ["a", "b"]}, "b"),
        ({"type": "integer"}, 3),
        ({"type": "number", "minimum": 1}, 1.5),
        ({"type": "boolean"}, True),
        ({"type": "array"}, [1]),
        ({"type": "array", "items": {"type": "integer"}}, [1, 2]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, None),
        ({"oneOf": [{"type": "integer"}, {"type": "string", "format": "uuid"}]}, 3),
        ({"allOf": [{"type": "integer"}, {"minimum": 1}]}, 3),
        ({}, {"a": 1}),
        (True, 1),
    ],
    ids=str,
)
def test_every_value_of_a_later_step_may_be_a_reference(schema: Any, value: Any):
    validator = later(schema)

    assert validator.is_valid(says(value))
    assert validator.is_valid(says("${search.results[0].x}"))


@pytest.mark.parametrize(
    ("schema", "inside"),
    [
        ({"type": "array", "items": {"type": "integer"}}, ["${item.n}"]),
        ({"type": "object", "properties": {"n": {"type": "integer"}}}, {"n": "${search.n}"}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"any": "${search.n}"}),
        ({"type": "object", "properties": {"n": {"enum": [1]}}, "additionalProperties": False}, {"n": "${search.n}"}),
        ({"anyOf": [{"type": "object", "properties": {"n": {"type": "integer"}}}, {"type": "null"}]}, {"n": "${a.n}"}),
        (
            {
                "oneOf": [
                    {"type": "object", "properties": {"kind": {"const": "card"}, "n": {"type": "integer"}}},
                    {"type": "object", "properties": {"kind": {"const": "bank"}, "n": {"type": "integer"}}},
                ]
            },
            {"kind": "${a.kind}", "n": "${a.n}"},
        ),
    ],
    ids=str,
)
def test_references_may_stand_deep_inside(schema: JsonSchema, inside: Any):
    assert later(schema).is_valid(says(inside))


def test_a_whole_object_is_written_out_and_not_referred_to():
    assert not later({"type": "object", "properties": {"n": {"type": "integer"}}}).is_valid(says("${search.n}"))


def test_what_is_neither_valid_nor_a_reference_is_refused():
    validator = later({"type": "integer"})

    assert not validator.is_valid(says("three"))
    assert not validator.is_valid(says("about ${search.n}"))


def test_a_first_step_has_nothing_to_refer_to():
    inputs: dict[str, JsonSchema] = {"search": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    validator = compile_schema(plan_schema([SEARCH], inputs))

    assert not validator.is_valid({"reasoning": "", "search": {"input": {"n": "${search.n}"}}})


def test_steps_whose_definitions_have_the_same_name_keep_their_own():
    def of(kind: str) -> JsonSchema:
        return {
            "type": "object",
            "properties": {"filter": {"$ref": "#/$defs/Filter"}},
            "$defs": {"Filter": {"type": "object", "properties": {"by": {"$ref": "#/$defs/By"}}}, "By": {"type": kind}},
        }

    schema = plan_schema([SEARCH, UPDATE], {"search": of("string"), "update": of("integer")})
    validator = compile_schema(schema)

    jsonschema_rs.meta.validate(schema)
    plan: dict[str, Any] = {
        "reasoning": "",
        "search": {"input": {"filter": {"by": "name"}}},
        "update": {"input": {"filter": {"by": 3}}},
    }
    assert validator.is_valid(plan)
    plan["update"]["input"]["filter"]["by"] = "${search.n}"
    assert validator.is_valid(plan)
    plan["update"]["input"]["filter"]["by"] = "name"
    assert not validator.is_valid(plan)


def test_names_of_steps_and_definitions_never_run_into_each_other():
    def of(name: str, kind: str) -> JsonSchema:
        return {"type": "object", "properties": {"x": {"$ref": f"#/$defs/{name}"}}, "$defs": {name: {"type": kind}}}

    steps = [AgenticStep(id="a", tool="a"), AgenticStep(id="a_b", tool="a")]
    validator = compile_schema(plan_schema(steps, {"a": of("b_c", "string"), "a_b": of("c", "integer")}))

    assert validator.is_valid({"reasoning": "", "a": {"input": {"x": "text"}}, "a_b": {"input": {"x": 1}}})


def test_a_schema_may_refer_to_itself_and_to_its_own_properties():
    tree: JsonSchema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.com/tree",
        "type": "object",
        "properties": {
            "name": {"type": "integer"},
            "alias": {"$ref": "#/properties/name"},
            "children": {"type": "array", "items": {"$ref": "#"}},
            "kind": {"$ref": "#/$defs/input"},
        },
        "$defs": {"input": {"enum": ["leaf"]}},
        "additionalProperties": False,
    }
    validator = compile_schema(plan_schema([SEARCH, UPDATE], {"search": tree, "update": tree}))

    def plan(first: Any, second: Any) -> dict[str, Any]:
        return {"reasoning": "", "search": {"input": first}, "update": {"input": second}}

    good: dict[str, Any] = {"name": 1, "alias": 2, "kind": "leaf", "children": [{"name": 3, "children": []}]}
    assert validator.is_valid(plan(good, good))
    assert not validator.is_valid(plan({"children": [{"name": "text"}]}, good))
    assert not validator.is_valid(plan(good, {"children": [{"other": 1}]}))
    assert not validator.is_valid(plan({"kind": "branch"}, good))
    assert validator.is_valid(plan(good, {"children": [{"alias": "${search.n}"}]}))


def test_one_step_alone_has_a_schema_too():
    schema: JsonSchema = {
        "type": "object",
        "properties": {"stage": {"$ref": "#/$defs/Stage"}},
        "$defs": {"Stage": {"enum": ["won", "lost"]}},
    }

    alone = compile_schema(step_schema(UPDATE, schema, first=False))

    assert alone.is_valid({"input": {"stage": "won"}, "for_each": "${search.results}"})
    assert alone.is_valid({"input": {"stage": "${item.stage}"}})
    assert not alone.is_valid({"input": {"stage": "new"}})
