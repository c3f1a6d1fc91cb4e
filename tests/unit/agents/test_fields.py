"""What fields hold, and texts that become the numbers that are wanted."""

from datetime import UTC, datetime
from typing import Any

import pytest

from toolcrib.agents.evidence import Step
from toolcrib.agents.evidence.field_values import kinds_of, property_names, value_names, with_numbers
from toolcrib.contracts import JsonSchema
from toolcrib.core.providers import ReferenceItem, ReferenceList

pytestmark = pytest.mark.requirement("agents.fields")

FILTER: JsonSchema = {
    "type": "object",
    "properties": {
        "property": {"enum": ["name", "company", "stage", "owner_id", "amount", "close_date"]},
        "operator": {"enum": ["EQ", "GT", "LT"]},
        "value": {"type": ["string", "number"]},
    },
    "required": ["property", "operator"],
}
SEARCH: JsonSchema = {
    "type": "object",
    "properties": {
        "filters": {"type": "array", "items": {"$ref": "#/$defs/Filter"}},
        "order": {"enum": ["up", "down"]},
        "limit": {"type": "integer", "default": 20},
    },
    "$defs": {"Filter": FILTER},
}
UPDATE: JsonSchema = {
    "type": "object",
    "properties": {
        "inputs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "properties": {
                        "type": "object",
                        "properties": {
                            "stage": {
                                "enum": ["s1", "s2", "s3"],
                                "x-labels": {"s1": "New lead", "s2": "Won", "s3": "Lost"},
                            },
                            "name": {"type": "string"},
                            "amount": {"type": "number"},
                        },
                    },
                },
                "required": ["id", "properties"],
            },
        }
    },
    "required": ["inputs"],
}
DEAL: JsonSchema = {
    "type": "object",
    "properties": {
        "results": {
            "type": "array",
            "items": {
                "properties": {
                    "amount": {"type": ["number", "null"]},
                    "name": {"type": "string"},
                    "company": {"type": "string"},
                    "stage": {"type": "string"},
                    "close_date": {"type": "string", "format": "date"},
                    "link": {"type": "string", "format": "uri"},
                    "won": {"type": "boolean"},
                }
            },
        }
    },
}
KINDS = kinds_of([SEARCH, UPDATE, DEAL])
OWNERS = ReferenceList(
    "owners",
    (ReferenceItem("17", "Dana Quinn"), ReferenceItem("18", "Hugo Rossi")),
    datetime(2026, 1, 1, tzinfo=UTC),
    None,
)
LISTS = {"owner_id": OWNERS}


def search(*filters: tuple[str, str, Any]) -> Step:
    written = [{"property": name, "operator": operator, "value": value} for name, operator, value in filters]
    return Step("find", {"filters": written}, SEARCH, writes=False)


def update(**properties: Any) -> Step:
    return Step("move", {"inputs": [{"id": "${item.id}", "properties": properties}]}, UPDATE, writes=True)


def test_fields_are_known_by_name_unless_schemas_differ():
    assert KINDS == {
        "amount": "number",
        "close_date": "day",
        "company": "text",
        "id": "text",
        "limit": "number",
        "name": "text",
    }


def test_every_field_of_a_schema_is_named():
    assert property_names(DEAL)[:2] == ["results", "amount"]


def test_what_people_call_the_values_of_a_schema_is_told_without_fields_and_words_of_comparisons():
    assert value_names(UPDATE) == {"New lead", "Won", "Lost"}
    assert value_names(SEARCH) == {"owner id", "close date", "stage", "company", "name", "amount", "down"}
    assert value_names({"enum": ["in_progress", 1, "ok"]}) == {"in progress"}


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        (("amount", "GT", "50000"), 50000),
        (("amount", "GT", "0.5"), 0.5),
        (("amount", "GT", "50k"), "50k"),
        (("name", "EQ", "2026"), "2026"),
        (("close_date", "GT", "2026-01-01"), "2026-01-01"),
        (("owner_id", "EQ", "17"), "17"),
        (("amount", "GT", 7), 7),
    ],
)
def test_a_text_becomes_a_number_only_where_its_field_holds_numbers(condition: tuple[str, str, Any], value: Any):
    assert with_numbers(search(condition), LISTS, KINDS)["filters"][0]["value"] == value


def test_a_field_that_takes_only_numbers_gets_one():
    changed = with_numbers(update(amount="1200", name="1200"), LISTS, {})

    assert changed["inputs"][0] == {"id": "${item.id}", "properties": {"amount": 1200, "name": "1200"}}
