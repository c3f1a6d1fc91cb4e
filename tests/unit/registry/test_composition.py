"""The bound on what one value must be checked against."""

from typing import Any

import pytest

from toolcrib.contracts import InvalidDefinition, JsonSchema
from toolcrib.core.registry import SchemaValidator

pytestmark = pytest.mark.requirement("registry.bounded_composition")


def doubled(levels: int, keyword: str = "allOf") -> JsonSchema:
    """Few bytes that are two to the power of `levels` evaluations."""
    definitions: dict[str, Any] = {
        f"D{level}": {keyword: [{"$ref": f"#/$defs/D{level + 1}"}] * 2} for level in range(levels)
    }
    return {"$ref": "#/$defs/D0", "$defs": {**definitions, f"D{levels}": {"type": "object"}}}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_a_schema_that_doubles_its_work_at_each_level_is_refused(keyword: str):
    with pytest.raises(InvalidDefinition, match="more than 20000 schemas"):
        SchemaValidator(doubled(40, keyword))


def test_composition_of_a_sane_size_is_accepted():
    assert SchemaValidator(doubled(8)).is_valid({})


def test_a_ladder_of_conditions_is_bounded_too():
    levels: dict[str, Any] = {}
    for level in range(40):
        below = {"$ref": f"#/$defs/D{level + 1}"}
        levels[f"D{level}"] = {"if": below, "then": below, "dependentSchemas": {"a": below}, "not": {"not": below}}

    with pytest.raises(InvalidDefinition, match="multiply"):
        SchemaValidator({"$ref": "#/$defs/D0", "$defs": {**levels, "D40": {}}})


def test_parts_that_stand_too_deep_inside_each_other_are_refused():
    schema: JsonSchema = {"type": "object"}
    for _ in range(250):
        schema = {"allOf": [schema]}

    with pytest.raises(InvalidDefinition, match="use fewer levels"):
        SchemaValidator(schema)


def test_a_long_chain_of_references_is_refused():
    chain = {f"D{level}": {"$ref": f"#/$defs/D{level + 1}"} for level in range(300)}

    with pytest.raises(InvalidDefinition, match="200 schemas are composed inside each other"):
        SchemaValidator({"$ref": "#/$defs/D0", "$defs": {**chain, "D300": {}}})


def test_a_part_that_is_composed_of_itself_counts_once():
    node = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/N"}, {"items": {"$ref": "#"}}]}

    assert SchemaValidator({"$ref": "#/$defs/N", "$defs": {"N": node}}).is_valid("a")


@pytest.mark.parametrize(
    "reference", ["#/$defs/A%20B", "#here", "#/$defs/list/anyOf/0"], ids=["escaped", "anchor", "list"]
)
def test_references_of_all_forms_are_followed(reference: str):
    definitions: dict[str, Any] = {
        "A B": doubled(4)["$defs"]["D4"],
        "anchored": {"$anchor": "here", "type": "object"},
        "list": {"anyOf": [{"type": "object"}]},
    }
    assert not SchemaValidator({"$ref": reference, "$defs": definitions}).is_valid(1)


def test_data_that_looks_like_a_reference_is_data():
    schema = {"type": "object", "properties": {"a": {"default": {"$ref": "elsewhere.json", "allOf": [1]}}}}

    assert SchemaValidator(schema).is_valid({})


def test_a_reference_that_cannot_be_followed_is_refused_where_parts_have_ids():
    part = {"$id": "https://example.com/parts/", "$defs": {"x": {"$id": "x"}}}

    with pytest.raises(InvalidDefinition, match="refer to '#/\\$defs/NAME'"):
        SchemaValidator({"$id": "https://example.com/", "$defs": {"p": part}, "$ref": "parts/x"})
