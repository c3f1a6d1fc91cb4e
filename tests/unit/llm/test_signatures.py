from typing import Any

import pytest

from toolcrib.llm.base.schema_signatures import signature

pytestmark = pytest.mark.requirement("llm.tools_by_schema")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "date"}, "date"),
        ({"type": ["integer", "null"]}, "integer | null"),
        ({"enum": ["a", 1, None]}, '"a" | 1 | null'),
        ({"const": "x"}, '"x"'),
        ({"anyOf": [{"type": "string"}, {"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"oneOf": [{"type": "boolean"}, {"type": "null"}]}, "boolean | null"),
        ({"allOf": [{"type": "string"}, {"const": "x"}]}, 'string & "x"'),
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
        ({"type": "array"}, "any[]"),
        ({"type": "object"}, "object"),
        ({}, "any"),
        ({"$ref": "#/$defs/Nowhere"}, "any"),
        ({"$ref": "#"}, "any"),
    ],
)
def test_a_schema_has_a_short_signature(schema: dict[str, Any], expected: str):
    assert signature(schema) == expected


def test_an_object_names_its_fields_what_is_optional_and_what_they_mean():
    schema: dict[str, Any] = {
        "properties": {
            "company": {"type": "string", "description": "part of\n the name"},
            "limit": {"type": "integer", "default": 20},
            "stage": {"$ref": "#/$defs/a~1b"},
        },
        "required": ["company"],
        "$defs": {"a/b": {"enum": ["won"]}},
    }

    assert signature(schema) == '{company: string (part of the name), limit?: integer = 20, stage?: "won"}'


def test_a_schema_that_contains_itself_ends():
    node: dict[str, Any] = {"type": "object", "properties": {"next": {"$ref": "#"}}}

    assert signature(node).count("next") == 5
    assert signature(node).endswith("any}}}}}")
