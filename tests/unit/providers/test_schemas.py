"""Schema Objects as JSON Schema 2020-12."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.contracts import JsonSchema
from toolcrib.providers.openapi.document import Document, Version
from toolcrib.providers.openapi.keywords import LIST_KEYWORDS, MAP_KEYWORDS, SCHEMA_KEYWORDS
from toolcrib.providers.openapi.losses import Losses
from toolcrib.providers.openapi.schemas import MAX_DEFINITIONS_BYTES, Direction, Schemas


def converted(
    schema: Any,
    *,
    components: dict[str, Any] | None = None,
    version: Version = "3.1",
    direction: Direction = "request",
    losses: Losses | None = None,
) -> JsonSchema:
    schemas = Schemas(Document({"components": {"schemas": components or {}}}, version), direction)
    found = losses or Losses()
    return schemas.bundle(schemas.convert(schema, found), found)


@pytest.mark.requirement("providers.schemas_valid")
@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": ["string", "null"], "nullable": True}, {"type": ["string", "null"]}),
        ({"enum": ["a"], "type": "string", "nullable": True}, {"enum": ["a", None], "type": ["string", "null"]}),
        ({"enum": ["a", None], "nullable": True}, {"enum": ["a", None]}),
        (
            {"allOf": [{"type": "object"}], "nullable": True, "description": "d"},
            {"description": "d", "anyOf": [{"allOf": [{"type": "object"}]}, {"type": "null"}]},
        ),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
        ({"exclusiveMaximum": True}, {}),
    ],
)
def test_openapi_3_0_is_written_as_2020_12(schema: Any, expected: Any) -> None:
    assert converted(schema, version="3.0") == expected


@pytest.mark.requirement("providers.schemas_valid")
@pytest.mark.parametrize(
    ("schema", "what"),
    [
        ({"type": "file"}, "schema keyword type"),
        ({"type": []}, "schema keyword type"),
        ({"required": True}, "schema keyword required"),
        ({"pattern": "("}, "schema keyword pattern"),
        ({"multipleOf": 0}, "schema keyword multipleOf"),
        ({"minLength": -1}, "schema keyword minLength"),
        ({"maximum": True}, "schema keyword maximum"),
        ({"items": ["a"]}, "schema keyword items"),
        ({"allOf": []}, "schema keyword allOf"),
        ({"dependentRequired": {"a": "b"}}, "schema keyword dependentRequired"),
        ({"unheard": 1}, "schema keyword unheard"),
        ({"properties": {"a": "text"}}, "schema"),
        ({"$ref": "#/components/schemas/Missing"}, "reference '#/components/schemas/Missing'"),
        ({"$ref": 7}, "reference 7"),
        ({"$ref": "https://elsewhere.test/schema.json"}, "reference 'https://elsewhere.test/schema.json'"),
    ],
)
def test_what_is_malformed_is_dropped_and_reported(schema: Any, what: str) -> None:
    losses = Losses()
    jsonschema_rs.Draft202012Validator(converted(schema, losses=losses))
    assert [loss.what for loss in losses.report()] == [what]


@pytest.mark.requirement("providers.schemas_valid")
def test_annotations_are_dropped_in_silence_and_flags_become_schemas() -> None:
    losses = Losses()
    source: dict[str, Any] = {
        "title": "T",
        "example": 1,
        "x-order": 2,
        "xml": {},
        "additionalProperties": False,
        "deprecated": True,
    }
    assert converted(source, losses=losses) == {"additionalProperties": False, "deprecated": True}
    assert converted(True, losses=losses) == {}
    assert converted(False, losses=losses) == {"not": {}}
    assert losses.report() == ()


_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "(", "object", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "$ref", "type"]), inner, max_size=3)
    ),
    max_leaves=5,
)
_KEYWORDS = st.sampled_from(
    sorted(
        SCHEMA_KEYWORDS
        | LIST_KEYWORDS
        | MAP_KEYWORDS
        | {"$ref", "type", "enum", "required", "pattern", "minimum", "exclusiveMinimum", "maxItems", "nullable"}
        | {"uniqueItems", "format", "multipleOf", "description", "dependentRequired", "const", "default", "readOnly"}
    )
)
_SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    _VALUES,
    lambda inner: st.dictionaries(_KEYWORDS, inner | st.lists(inner, max_size=2) | _VALUES, max_size=5),
    max_leaves=12,
)


@pytest.mark.requirement("providers.schemas_valid")
@given(schema=_SCHEMAS, component=_SCHEMAS)
def test_every_conversion_is_a_valid_schema_of_2020_12(schema: Any, component: Any) -> None:
    source = {"properties": {"a": schema, "b": {"$ref": "#/components/schemas/C"}}}
    for direction in ("request", "response"):
        found = converted(source, components={"C": component}, direction=direction)
        jsonschema_rs.Draft202012Validator(found)


@pytest.mark.requirement("providers.schemas_self_contained")
def test_circular_references_stay_references_and_unreached_definitions_are_left_out() -> None:
    components = {
        "Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}},
        "Other": {"type": "string"},
    }
    assert converted({"$ref": "#/components/schemas/Node"}, components=components) == {
        "$ref": "#/$defs/Node",
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    }


@pytest.mark.requirement("providers.schemas_self_contained")
def test_definitions_are_found_in_every_place_a_schema_can_stand() -> None:
    reference = {"$ref": "#/components/schemas/C"}
    for schema in (
        {"properties": {"default": reference}},
        {"anyOf": [reference]},
        {"items": reference},
        {"additionalProperties": reference},
    ):
        assert converted(schema, components={"C": {"type": "null"}})["$defs"] == {"C": {"type": "null"}}
    assert "$defs" not in converted({"const": reference, "items": True})


@pytest.mark.requirement("providers.schemas_self_contained")
def test_definitions_of_one_name_in_two_places_are_kept_apart() -> None:
    components = {"A": {"properties": {"x": {"type": "string"}}}, "B": {"properties": {"x": {"type": "number"}}}}
    found = converted(
        {
            "items": {"$ref": "#/components/schemas/A/properties/x"},
            "not": {"$ref": "#/components/schemas/B/properties/x"},
        },
        components=components,
    )
    assert found["$defs"] == {"x": {"type": "string"}, "x_2": {"type": "number"}}


@pytest.mark.requirement("providers.schemas_self_contained")
def test_definitions_beyond_the_bound_are_left_open_and_reported() -> None:
    large = {"enum": ["x" * MAX_DEFINITIONS_BYTES]}
    losses = Losses()
    schema = {"anyOf": [{"$ref": "#/components/schemas/Small"}, {"$ref": "#/components/schemas/Large"}]}
    found = converted(schema, components={"Small": {"type": "null"}, "Large": large}, losses=losses)
    assert found["$defs"] == {"Large": {}, "Small": {"type": "null"}}
    assert losses.report()[0].why.startswith("1 definitions left open")


@pytest.mark.requirement("providers.losses")
def test_losses_inside_a_definition_count_for_every_schema_that_uses_it() -> None:
    losses = Losses("GET /a")
    converted({"$ref": "#/components/schemas/C"}, components={"C": {"type": "file"}}, losses=losses)
    assert [(loss.operation, loss.what) for loss in losses.report()] == [("GET /a", "schema keyword type")]


@pytest.mark.requirement("providers.schemas_directed")
def test_each_direction_hides_what_only_the_other_one_has() -> None:
    schema = {
        "required": ["id", "name", "password"],
        "properties": {"id": {"readOnly": True}, "name": {}, "password": {"writeOnly": True}},
    }
    request, response = converted(schema), converted(schema, direction="response")
    assert (request["required"], list(request["properties"])) == (["name", "password"], ["name", "password"])
    assert (response["required"], list(response["properties"])) == (["id", "name"], ["id", "name"])


@pytest.mark.requirement("providers.schemas_valid")
def test_siblings_of_a_reference_count_in_3_1_but_not_in_3_0() -> None:
    schema = {"$ref": "#/components/schemas/C", "description": "d", "minLength": 3, "nullable": True}
    components = {"C": {"type": "string"}}
    assert converted(schema, components=components, version="3.0") == {
        "description": "d",
        "anyOf": [{"$ref": "#/$defs/C"}, {"type": "null"}],
        "$defs": components,
    }
    assert converted({**schema, "nullable": False}, components=components)["minLength"] == 3


@pytest.mark.requirement("providers.lean_descriptions")
def test_descriptions_lose_markup_and_are_cut_between_words() -> None:
    losses = Losses()
    assert converted({"description": "<p>Fish &amp;\n chips</p>"}) == {"description": "Fish & chips"}
    found = converted({"description": "word " * 200}, losses=losses)["description"]
    assert len(found) <= 500
    assert found.endswith("word…")
    assert [loss.what for loss in losses.report()] == ["descriptions"]
    assert len(converted({"description": "x" * 600})["description"]) == 500
