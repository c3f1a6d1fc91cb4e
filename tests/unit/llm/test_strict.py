"""Strict schemas: made where the meaning stays, refused where it would change."""

from typing import Any

import pytest

from toolcrib.llm.base.strict import StrictDialect, strict_schema

pytestmark = pytest.mark.requirement("llm.strict_schemas")

TEXT = {"type": "string"}


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def opened(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (opened(), closed()),
        (opened(a=TEXT, b=opened(c=TEXT)), closed(a=TEXT, b=closed(c=TEXT))),
        ({**opened(a={**TEXT, "default": "x", "examples": ["y"]}), "$schema": "s"}, closed(a=TEXT)),
        (opened(a={"type": "array", "items": opened()}), closed(a={"type": "array", "items": closed()})),
        (opened(a={"anyOf": [TEXT, {"type": "null"}]}), closed(a={"anyOf": [TEXT, {"type": "null"}]})),
        (opened(a={"allOf": [TEXT]}), closed(a={"anyOf": [TEXT]})),
        (
            opened(a={"oneOf": [opened(k={"const": 1})], "discriminator": {"propertyName": "k"}}),
            closed(a={"anyOf": [closed(k={"const": 1})]}),
        ),
        (
            {**opened(a={"$ref": "#/$defs/x", "description": "d"}), "$defs": {"x": opened()}},
            {**closed(a={"anyOf": [{"$ref": "#/$defs/x"}], "description": "d"}), "$defs": {"x": closed()}},
        ),
        (
            opened(a={"type": ["string", "null"], "format": "date"}),
            closed(a={"type": ["string", "null"], "format": "date"}),
        ),
    ],
)
@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_a_schema_of_required_and_closed_parts_has_a_strict_form(
    schema: dict[str, Any], strict: dict[str, Any], dialect: StrictDialect
):
    assert strict_schema(schema, dialect) == strict


def nested(depth: int) -> dict[str, Any]:
    return opened(a=nested(depth - 1)) if depth else opened(a=TEXT)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "string"},
        {**opened(a=TEXT), "additionalProperties": True},
        {**opened(a=TEXT), "additionalProperties": TEXT},
        {**opened(a=TEXT), "required": ["a", "b"]},
        {**opened(a=TEXT), "not": {}},
        opened(a={}),
        opened(a=True),
        opened(a={"type": "array"}),
        opened(a={"properties": {}}),
        opened(a={"type": "string", "properties": {}}),
        opened(a={"oneOf": [TEXT]}),
        opened(a={"allOf": [TEXT, TEXT]}),
        opened(a={"allOf": TEXT}),
        opened(a={"anyOf": TEXT}),
        opened(a={"anyOf": [TEXT], "allOf": [TEXT]}),
        opened(a={"$ref": "#/$defs/x", "anyOf": [TEXT]}),
        opened(a={**TEXT, "format": "regex"}),
        opened(a={**TEXT, "minLength": 1}),
        opened(a={"type": ["object", "null"]}),
        {**opened(), "$defs": []},
        {"anyOf": [opened()]},
        nested(11),
        opened(**{f"p{i}": TEXT for i in range(5001)}),
    ],
)
@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_a_schema_that_would_change_its_meaning_has_none(schema: dict[str, Any], dialect: StrictDialect):
    assert strict_schema(schema, dialect) is None


def test_optional_properties_are_anthropic_s_only():
    schema = {"type": "object", "properties": {"a": TEXT}}

    assert strict_schema(schema, "openai") is None
    assert strict_schema(schema, "anthropic") == {**closed(a=TEXT), "required": []}


def test_ranges_are_openai_s_only():
    schema = opened(a={"type": "integer", "minimum": 1}, b={"type": "array", "items": TEXT, "maxItems": 3})

    assert strict_schema(schema, "openai") == {**schema, "additionalProperties": False}
    assert strict_schema(schema, "anthropic") is None


@pytest.mark.parametrize("reference", ["#/$defs/x", "#", "#/$defs/unknown"])
def test_recursion_is_openai_s_only(reference: str):
    schema = {
        **opened(a={"$ref": "#/$defs/x"}),
        "$defs": {"x": opened(y={"type": "array", "items": {"$ref": reference}})},
    }

    assert strict_schema(schema, "openai") is not None
    assert strict_schema(schema, "anthropic") is None


def test_the_given_schema_is_left_alone():
    schema = opened(a=opened())

    assert strict_schema(schema, "openai") is not strict_schema(schema, "openai")
    assert schema == opened(a=opened())
