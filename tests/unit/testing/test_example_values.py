"""Values that are made to meet a schema."""

from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.contracts import InvalidInput
from toolcrib.core.registry import compile_schema
from toolcrib.testing import example_value, example_values

pytestmark = pytest.mark.requirement("testing.example_values")

DEAL = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "stage": {"enum": ["Won", "Lost"]},
        "amount": {"anyOf": [{"type": "null"}, {"type": "number", "exclusiveMinimum": 0, "maximum": 10}]},
        "owner": {"$ref": "#/$defs/person"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": True},
    },
    "required": ["id", "owner"],
    "$defs": {
        "person": {
            "type": "object",
            "properties": {"name": {"type": "string", "minLength": 20}, "boss": {"$ref": "#/$defs/person"}},
            "required": ["name"],
            "additionalProperties": False,
        }
    },
}
SCHEMAS: list[dict[str, Any]] = [
    {},
    DEAL,
    {"const": 3},
    {"type": ["null", "integer"], "minimum": 5, "maximum": 5},
    {"type": "null"},
    {"type": "boolean"},
    {"type": "integer", "exclusiveMinimum": 10, "multipleOf": 7},
    {"type": "integer", "multipleOf": 0.5},
    {"type": "number", "multipleOf": 0.25, "maximum": 1},
    {"type": "number", "minimum": 0.5, "maximum": 0.5},
    {"type": "number", "exclusiveMaximum": 0},
    {"maximum": -3},
    {"type": "string", "pattern": "^[A-Z]{3}$"},
    {"type": "string", "pattern": "^ord_[0-9]{5}$"},
    {"type": "string", "minLength": 3, "maxLength": 4},
    {"type": "string", "format": "date-time"},
    {"type": "array", "prefixItems": [{"const": 1}, {"const": "b"}], "items": False},
    {"type": "array", "contains": {"const": 4}},
    {"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 3, "uniqueItems": True},
    {"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}},
    {"type": "object", "minProperties": 2, "properties": {"a": {"type": "string"}, "b": {"type": "null"}}},
    {"allOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"properties": {"b": True}, "required": ["b"]}]},
    {"enum": [1, 2, 3], "allOf": [{"enum": [2, 3]}, {"enum": [3, 4]}]},
    {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2.5, "maximum": 2.9}]},
    {"type": "object", "properties": {"kind": {"const": "a"}, "a": {}}, "dependentRequired": {"kind": ["a"]}},
    {"type": "string", "examples": ["Acme"]},
    {"type": "integer", "default": 7},
    {"items": {"type": "integer"}, "minItems": 1},
    {"allOf": [True, {"const": 1}]},
]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_the_value_meets_the_schema_and_is_the_same_again(schema: dict[str, Any], seed: int):
    value = example_value(schema, seed=seed)

    assert compile_schema(schema).problems(value) == ()
    assert example_value(schema, seed=seed) == value


def test_without_a_seed_only_what_is_required_is_filled():
    value = example_value(DEAL)

    assert set(value) == {"id", "owner"}
    assert set(value["owner"]) == {"name"}


def test_seeds_make_different_values():
    assert len({str(example_value(DEAL, seed=seed)) for seed in range(10)}) > 5


def test_a_reference_into_a_list_is_followed():
    schema = {"properties": {"b": {"$ref": "#/x/0"}}, "required": ["b"], "x": [{"const": "here"}]}

    assert example_value(schema) == {"b": "here"}


Schema: TypeAlias = dict[str, Any]


def array_of(item: Schema, least: int) -> Schema:
    return {"type": "array", "items": item, "minItems": least}


def one_of(first: Schema, second: Schema) -> Schema:
    return {"anyOf": [first, second]}


def object_of(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": properties, "required": sorted(properties)[:1]}


def larger(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    properties = st.dictionaries(st.sampled_from("abc"), inner, min_size=1)
    return st.builds(array_of, inner, st.integers(0, 3)) | st.builds(one_of, inner, inner) | properties.map(object_of)


_LEAVES: list[Schema] = [
    {"type": "string"}, {"type": "integer", "minimum": 3}, {"enum": ["x", None]}, {"type": "boolean"}, {"const": {}},
]  # fmt: skip
_SCHEMAS = st.recursive(st.sampled_from(_LEAVES), larger, max_leaves=8)


@given(schema=_SCHEMAS, seed=st.integers(0, 5))
def test_any_schema_of_ordinary_parts_gets_a_value(schema: dict[str, Any], seed: int):
    assert compile_schema(schema).problems(example_value(schema, seed=seed)) == ()


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"not": {}}, "write the value yourself"),
        ({"allOf": [False]}, "a part of it allows no value"),
        ({"properties": {"a": False}, "required": ["a"]}, "a part of it allows no value"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "no number is between 3 and 2"),
        ({"type": "integer", "minimum": 3, "maximum": 4, "multipleOf": 5}, "no multiple of 5 is between 3 and 4"),
        ({"properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "contains itself without an end"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "refers to itself without an end"),
        ({"type": "array", "items": {"const": 1}, "minItems": 2, "uniqueItems": True}, "write the value yourself"),
        ({"type": "string", "pattern": "^a{3}$", "maxLength": 2}, "no text was found for the pattern '^a{3}$'"),
    ],
)
def test_what_cannot_be_met_is_told(schema: dict[str, Any], told: str):
    with pytest.raises(InvalidInput) as refused:
        example_value(schema)

    assert told in str(refused.value)


def test_without_hypothesis_an_unusual_pattern_names_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "hypothesis", None)

    with pytest.raises(InvalidInput, match="install hypothesis, which finds more"):
        example_value({"type": "string", "pattern": "^ord_[0-9]{5}$"})
    assert example_values.example_value({"type": "string", "pattern": "^[0-9]+$"}) == "1"
