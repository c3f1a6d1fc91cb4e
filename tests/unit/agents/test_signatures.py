"""Schemas as short types, and the form of a plan that follows from them."""

from typing import Any

import pytest

from tests.unit.agents.test_fields import SEARCH, UPDATE
from toolcrib.agents.evidence.plan_schema import lists_before, plan_example
from toolcrib.agents.toolset.signatures import brief, signature
from toolcrib.contracts import JsonSchema

PROPERTIES = ["name", "company", "stage", "owner_id", "amount", "close_date"]
FILTER: JsonSchema = {
    "type": "object",
    "properties": {
        "property": {"enum": PROPERTIES},
        "operator": {"enum": ["EQ", "GT", "LT", "LTE", "BETWEEN"]},
        "value": {"type": ["string", "number"]},
    },
    "required": ["property", "operator"],
}


@pytest.mark.requirement("agents.signatures")
def test_a_signature_says_what_a_schema_says_in_one_line_and_repeats_no_definition():
    pair: JsonSchema = {
        "type": "object",
        "properties": {
            "one": {"$ref": "#/$defs/Filter"},
            "two": {"type": "array", "items": {"$ref": "#/$defs/Filter"}},
        },
        "required": ["one"],
        "$defs": {"Filter": FILTER},
    }

    assert signature(pair) == (
        "{one: Filter, two?: Filter[]}\n"
        "Filter = {property: name | company | stage | owner_id | amount | close_date, operator: EQ | GT | LT | LTE | "
        "BETWEEN, value?: string | number}"
    )
    assert len(signature(SEARCH)) < 0.6 * len(str(SEARCH))


@pytest.mark.requirement("agents.signatures")
@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"enum": ["a b", 1, None]}, '"a b" | 1 | null'),
        ({"const": "x"}, "x"),
        ({"enum": ["s1", "s2", "s3"], "x-labels": {"s1": "Won", "s2": "B", "s3": "B"}}, '"Won" | s2 ("B") | s3 ("B")'),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"type": "array", "items": {"type": ["string", "null"]}}, "(string | null)[]"),
        ({"type": "string", "format": "date"}, "date"),
        ({"type": "object"}, "object"),
        ({"$ref": "#/$defs/gone"}, "any"),
        (True, "any"),
        ({"type": "integer", "default": 3, "description": "So many."}, "integer /* So many. Default 3. */"),
        (
            {"allOf": [{"properties": {"a": {"type": "string"}}}], "required": ["a"]},
            "{a: string}",
        ),
        ({"allOf": [{"type": "string"}, {"enum": ["x"]}]}, "string & x"),
    ],
)
def test_each_kind_of_schema_has_a_type(schema: Any, written: str):
    assert signature({"properties": {"it": schema}}) == f"{{it?: {written}}}"


@pytest.mark.requirement("agents.signatures")
def test_a_brief_text_is_whole_sentences():
    assert brief("One. Two  is\nlonger. Three.", 20) == "One. Two is longer."
    assert brief("A first sentence of any length.", 5) == "A first sentence of any length."


FOUND: JsonSchema = {
    "type": "object",
    "properties": {
        "results": {
            "type": "array",
            "items": {"properties": {"id": {}, "lines": {"type": "array", "items": {"properties": {"sku": {}}}}}},
        }
    },
}


@pytest.mark.requirement("agents.plan_example")
def test_an_example_links_a_step_to_the_list_whose_items_have_its_fields():
    steps = [("find", SEARCH, FOUND), ("move", UPDATE, None)]

    assert plan_example(steps, reads=False) == (
        '{"reasoning":…,"find":{"input":{"filters":[{"property":…,"operator":…,"value":…},…]}},'
        '"move":{"for_each":"${find.results}","input":{"inputs":[{"id":"${item.id}","properties":{…:…}}]}}}'
    )
    assert lists_before(steps[:1]) == ["${find.results}", "${find.results[*].lines}"]


@pytest.mark.requirement("agents.plan_example")
def test_an_example_links_nothing_where_nothing_fits():
    note: JsonSchema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

    steps = [("find", SEARCH, FOUND), ("note", note, None)]

    assert plan_example(steps, reads=False).endswith('"note":{"input":{"text":…}}}')
    assert lists_before(steps) is None


@pytest.mark.requirement("agents.plan_example")
def test_an_example_of_a_plan_that_says_where_its_values_come_from_begins_with_its_reading():
    steps = [("find", SEARCH, FOUND), ("move", UPDATE, None)]

    written = plan_example(steps, reads=True)

    assert written.startswith('{"reading":[')
    assert written.endswith(plan_example(steps, reads=False).removeprefix("{"))
