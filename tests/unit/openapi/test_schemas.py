"""Schema Objects as JSON Schema 2020-12."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.contracts import JsonSchema
from toolcrib.core.providers.imports import Losses
from toolcrib.core.registry import compile_schema
from toolcrib.kinds.http.openapi.read.documents import Dialect, Document, Library
from toolcrib.kinds.http.openapi.read.nodes import Node
from toolcrib.kinds.http.openapi.schemas.keywords import LIST_KEYWORDS, MAP_KEYWORDS, SCHEMA_KEYWORDS
from toolcrib.kinds.http.openapi.schemas.schemas import MAX_DEFINITIONS_BYTES, Direction, SchemaConverter


def converted(
    schema: Any,
    *,
    components: dict[str, Any] | None = None,
    version: Dialect = "3.1",
    direction: Direction = "request",
    losses: Losses | None = None,
) -> JsonSchema:
    library = Library({"components": {"schemas": components or {}}})
    schemas = SchemaConverter(Document(library, version, version), direction)
    found = Losses() if losses is None else losses
    return schemas.bundle(schemas.convert(Node(schema, "/schema", ""), found), "/schema", found)


def named(losses: Losses) -> dict[str, str]:
    """Losses by `effect what`, those of definitions included."""
    every = [losses, *losses.components.values()]
    return {f"{loss.effect} {loss.what}": loss.why for part in every for loss in part.report()}


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
        ({"type": "thing"}, "keyword type"),
        ({"type": []}, "keyword type"),
        ({"type": ["string", "thing"]}, "keyword type"),
        ({"required": {}}, "keyword required"),
        ({"pattern": "("}, "keyword pattern"),
        ({"pattern": "(?=a)b"}, "keyword pattern"),
        ({"pattern": "(x{1000}){1000}"}, "keyword pattern"),
        ({"pattern": "x" * 5000}, "keyword pattern"),
        ({"patternProperties": {"(": {}}}, "keyword patternProperties"),
        ({"multipleOf": 0}, "keyword multipleOf"),
        ({"minLength": -1}, "keyword minLength"),
        ({"maxLength": "many"}, "keyword maxLength"),
        ({"maximum": True}, "keyword maximum"),
        ({"items": "a"}, "keyword items"),
        ({"allOf": []}, "keyword allOf"),
        ({"enum": []}, "keyword enum"),
        ({"enum": "a"}, "keyword enum"),
        ({"enum": ["x" * 100] * 200}, "keyword enum"),
        ({"dependentRequired": {"a": "b"}}, "keyword dependentRequired"),
        ({"dependencies": []}, "keyword dependencies"),
        ({"unheard": 1}, "keyword unheard"),
        ({"properties": []}, "keyword properties"),
        ({"properties": {"a": "text"}}, "schema"),
        ({"description": 7}, "description"),
        ({"default": 1, "type": "string"}, "keyword default"),
        ({"properties": {"a": {"default": "x", "enum": ["y"]}}}, "keyword default"),
        ({"$ref": "#/components/schemas/Missing"}, "reference '#/components/schemas/Missing'"),
        ({"$ref": 7}, "reference 7"),
        ({"$ref": "https://elsewhere.test/schema.json"}, "reference 'https://elsewhere.test/schema.json'"),
    ],
)
def test_what_is_malformed_is_dropped_and_reported(schema: Any, what: str) -> None:
    losses = Losses()
    jsonschema_rs.Draft202012Validator(converted(schema, losses=losses))
    assert [(loss.effect, loss.what) for loss in losses.report()] == [("dropped", what)]


@pytest.mark.requirement("providers.schemas_repaired")
@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "String"}, {"type": "string"}),
        ({"type": ["String", "Null"]}, {"type": ["string", "null"]}),
        ({"type": "int"}, {"type": "integer"}),
        ({"type": "file"}, {"type": "string", "format": "binary"}),
        ({"type": "date", "format": "year"}, {"type": "string", "format": "year"}),
        ({"type": "any"}, {}),
        ({"minimum": "5"}, {"minimum": 5}),
        ({"maximum": "0.5"}, {"maximum": 0.5}),
        ({"maxLength": 10.0}, {"maxLength": 10}),
        ({"uniqueItems": "true"}, {"uniqueItems": True}),
        ({"format": 7}, {"format": "7"}),
        ({"required": ["a", "a", 1]}, {"required": ["a"]}),
        ({"pattern": "/^a$/i"}, {"pattern": "(?i)^a$"}),
        ({"type": "string", "enum": [1, True]}, {"type": "string", "enum": ["1", "true"]}),
        ({"type": "integer", "enum": ["1", "2"]}, {"type": "integer", "enum": [1, 2]}),
        ({"type": "string", "enum": [1, None]}, {"type": "string", "enum": ["1", None]}),
        ({"type": "boolean", "enum": ["true"]}, {"type": "boolean", "enum": [True]}),
        ({"type": "integer", "enum": ["a"]}, {"type": ["string"], "enum": ["a"]}),
        ({"allOf": {"type": "null"}}, {"allOf": [{"type": "null"}]}),
        (
            {"properties": {"a": {"required": True, "type": "null"}, "b": {"required": "false"}}},
            {"properties": {"a": {"type": "null"}, "b": {}}, "required": ["a"]},
        ),
        ({"$dynamicRef": "#/components/schemas/C"}, {"$ref": "#/$defs/C", "$defs": {"C": {"type": "null"}}}),
    ],
)
def test_what_a_document_plainly_means_is_taken_as_that_and_reported(schema: Any, expected: Any) -> None:
    losses = Losses()
    assert converted(schema, components={"C": {"type": "null"}}, losses=losses) == expected
    assert {loss.effect for loss in losses.report()} == {"changed"}


@pytest.mark.requirement("providers.schemas_repaired")
@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"items": [{"type": "null"}], "additionalItems": False}, {"prefixItems": [{"type": "null"}], "items": False}),
        (
            {"dependencies": {"a": ["b"], "c": {"type": "object"}}},
            {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"type": "object"}}},
        ),
        ({"minimum": 1, "exclusiveMinimum": "true"}, {"exclusiveMinimum": 1}),
        ({"type": "string", "example": "a"}, {"type": "string", "examples": ["a"]}),
        ({"examples": [1, 2]}, {"examples": [1, 2]}),
        ({"type": "string", "x-nullable": True}, {"type": ["string", "null"]}),
    ],
)
def test_older_words_of_json_schema_are_said_in_those_of_2020_12_without_a_loss_that_matters(
    schema: Any, expected: Any
) -> None:
    losses = Losses()
    assert converted(schema, losses=losses) == expected
    assert not [loss for loss in losses.report() if loss.matters]


@pytest.mark.requirement("providers.schemas_valid")
def test_annotations_are_dropped_without_a_loss_that_matters_and_flags_become_schemas() -> None:
    losses = Losses()
    source: dict[str, Any] = {
        "title": "T",
        "example": "x" * 200,
        "x-order": 2,
        "xml": {},
        "$id": "https://a.test/x",
        "readOnly": True,
        "$defs": {"unused": {}},
        "additionalProperties": False,
        "deprecated": True,
    }
    assert converted(source, losses=losses) == {"additionalProperties": False, "deprecated": True}
    assert {loss.what for loss in losses.report()} == {
        "title",
        "example",
        "x-order",
        "xml",
        "$id",
        "readOnly",
        "definition unused",
    }
    assert not any(loss.matters for loss in losses.report())
    assert converted(True) == {}
    assert converted(False) == {"not": {}}


@pytest.mark.requirement("providers.discriminators")
def test_alternatives_are_told_apart_by_the_constant_of_their_discriminator() -> None:
    components: dict[str, Any] = {"Cat": {"type": "object"}, "Dog": {"type": "object"}, "Ant": {"type": "object"}}
    refs = [{"$ref": f"#/components/schemas/{name}"} for name in components]
    mapping = {"cat": "#/components/schemas/Cat", "kitty": "Cat", "dog": "Dog", "eel": "Eel"}
    losses = Losses()
    schema = {"oneOf": [*refs, {"type": "null"}], "discriminator": {"propertyName": "kind", "mapping": mapping, "x": 1}}
    found = converted(schema, components=components, losses=losses)
    assert found["oneOf"] == [
        {"$ref": "#/$defs/Cat", "properties": {"kind": {"enum": ["cat", "kitty"]}}, "required": ["kind"]},
        {"$ref": "#/$defs/Dog", "properties": {"kind": {"const": "dog"}}, "required": ["kind"]},
        {"$ref": "#/$defs/Ant", "properties": {"kind": {"const": "Ant"}}, "required": ["kind"]},
        {"type": "null"},
    ]
    assert named(losses)["dropped mapping eel"] == "leads to nothing known"
    assert "dropped x" in named(losses)


@pytest.mark.requirement("providers.discriminators")
@pytest.mark.parametrize("mapped", [True, False])
def test_a_base_with_a_discriminator_offers_its_subtypes_to_a_request(mapped: bool) -> None:
    base: dict[str, Any] = {"type": "object", "discriminator": {"propertyName": "kind"}}
    if mapped:
        base["discriminator"] = {"propertyName": "kind", "mapping": {"Cat": "Cat", "Pet": "#/components/schemas/Pet"}}
    cat = {"allOf": [{"$ref": "#/components/schemas/Pet"}, {"properties": {"claws": {"type": "integer"}}}]}
    components = {"Pet": base, "Cat": cat}
    losses = Losses()
    found = converted({"$ref": "#/components/schemas/Pet"}, components=components, losses=losses)
    assert found["anyOf"] == [
        {"$ref": "#/$defs/Cat", "properties": {"kind": {"const": "Cat"}}, "required": ["kind"]},
        {"$ref": "#/$defs/Pet"},
    ]
    assert found["$defs"]["Cat"]["allOf"][0] == {"$ref": "#/$defs/Pet"}
    assert named(losses)["changed discriminator"] == "offered as alternatives: Cat"
    answer = converted({"$ref": "#/components/schemas/Pet"}, components=components, direction="response")
    assert answer["$ref"] == "#/$defs/Pet"


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
        compile_schema(found)


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
    large = {"const": "x" * MAX_DEFINITIONS_BYTES["request"]}
    losses = Losses()
    schema = {"anyOf": [{"$ref": "#/components/schemas/Small"}, {"$ref": "#/components/schemas/Large"}]}
    found = converted(schema, components={"Small": {"type": "null"}, "Large": large}, losses=losses)
    assert found["$defs"] == {"Large": {}, "Small": {"type": "null"}}
    assert named(losses)["dropped definitions of the request"].startswith("left open")
    assert losses.report()[0].places == ("/components/schemas/Large",)


@pytest.mark.requirement("providers.losses")
def test_losses_inside_a_definition_count_for_every_schema_that_uses_it() -> None:
    losses = Losses()
    converted({"$ref": "#/components/schemas/C"}, components={"C": {"type": "thing"}}, losses=losses)
    assert losses.report() == ()
    (component,) = losses.components["/components/schemas/C"].report()
    assert (component.what, component.places) == ("keyword type", ("/components/schemas/C/type",))


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
    assert [loss.what for loss in losses.report()] == ["description"]
    assert converted({"description": "See [the *docs*](https://a.test/x) ![i](y)"}) == {
        "description": "See the *docs* i"
    }
    assert len(converted({"description": "x" * 600})["description"]) == 500
