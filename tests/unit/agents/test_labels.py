"""What people call a value, in place of the value."""

from datetime import UTC, datetime

import pytest

from toolcrib.agents.evidence.word_matching import replace_labels, spoken
from toolcrib.contracts import JsonObject, JsonSchema
from toolcrib.core.providers import ReferenceItem, ReferenceList


def listed(name: str, **labels: str) -> ReferenceList:
    items = tuple(ReferenceItem(value, label) for value, label in labels.items())
    return ReferenceList(name, items, datetime(2026, 1, 1, tzinfo=UTC), None)


LISTS = {
    "stage": listed("stages", s1="New lead", s2="Won", s3="Lost"),
    "owner_id": listed("owners", o1="Dana Quinn", o2="Hugo Rossi"),
}


@pytest.mark.requirement("agents.labels")
def test_labels_become_values_by_property_and_in_pairs():
    written: JsonObject = {
        "filters": [{"property": "stage", "operator": "EQ", "value": "new LEAD"}],
        "stage": ["Won", "s3", "?"],
        "note": "Won",
    }

    assert replace_labels(written, LISTS) == {
        "filters": [{"property": "stage", "operator": "EQ", "value": "s1"}],
        "stage": ["s2", "s3", "?"],
        "note": "Won",
    }


@pytest.mark.requirement("agents.labels")
def test_a_schema_takes_labels_that_are_unique_beside_the_values():
    schema: JsonSchema = {
        "properties": {"stage": {"enum": ["1", "2", "3"], "x-labels": {"1": "A", "2": "B", "3": "B"}}}
    }

    assert spoken(schema)["properties"]["stage"]["enum"] == ["1", "2", "3", "A"]
