"""What fields hold, and texts that become the numbers that are wanted."""

from typing import Any

import pytest

from tests.unit.agents.test_grounding import LISTS, SEARCH, UPDATE, VOCABULARY, search, update
from toolcrib.agents.fields import closed_words, kinds_of, numbered, property_names
from toolcrib.agents.grounding import Task, doubts, mentioned
from toolcrib.agents.mentions import read_mentions
from toolcrib.contracts import JsonSchema

pytestmark = pytest.mark.requirement("agents.fields")

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


def test_fields_are_known_by_name_unless_schemas_differ():
    assert KINDS == {
        "amount": "number",
        "close_date": "day",
        "company": "text",
        "id": "text",
        "limit": "number",
        "name": "text",
    }


def test_closed_words_are_those_of_every_enum():
    assert closed_words({"anyOf": [{"enum": ["a", 1]}, {"properties": {"x": {"enum": ["b"]}}}]}) == {"a", "b"}
    assert property_names(DEAL)[:2] == ["results", "amount"]


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        (("amount", "GT", "50000"), 50000),
        (("amount", "GT", "0.5"), 0.5),
        (("amount", "GT", "50k"), "50k"),
        (("name", "EQ", "2026"), "2026"),
        (("close_date", "GT", "2026-01-01"), "2026-01-01"),
        (("amount", "GT", 7), 7),
    ],
)
def test_a_text_becomes_a_number_only_where_its_field_holds_numbers(condition: tuple[str, str, Any], value: Any):
    assert numbered(search(condition), LISTS, KINDS)["filters"][0]["value"] == value


def test_a_field_that_takes_only_numbers_gets_one():
    changed = numbered(update(amount="1200", name="1200"), LISTS, {})

    assert changed["inputs"][0] == {"id": "${item.id}", "properties": {"amount": 1200, "name": "1200"}}


def held(text: str) -> Task:
    return Task(read_mentions(text), read_mentions(text), LISTS, VOCABULARY, KINDS)


def test_mentions_are_told_with_the_fields_that_they_may_be():
    task = held("Move the Globex deals of Hugo Rossi over 50k to Won")

    assert list(map(str, mentioned(task))) == [
        "'Globex' (name or company)",
        "'Hugo Rossi' (owner_id)",
        "'Won' (stage)",
        "'50000' (limit or amount: above it)",
    ]


def test_a_name_is_told_with_the_first_word_of_its_sentence_where_that_may_be_part_of_it():
    assert list(map(str, mentioned(held("Acme Corp deals go to Won")))) == [
        "'Acme Corp' (name or company)",
        "'Won' (stage)",
    ]
    assert list(map(str, mentioned(held("Move Globex deals")))) == ["'Globex' (name or company)"]


def test_a_missing_mention_is_asked_about_with_its_step_and_fields():
    task = held("Move all Globex deals to Won")

    (doubt,) = doubts([search(), update(stage="s2")], task)

    assert str(doubt) == "the task mentions 'Globex', but no step uses it"
    assert doubt.advice(task, "find").endswith(
        "add it to find as name or company and keep the other conditions, unless it is what the items get"
    )
