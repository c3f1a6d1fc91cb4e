"""How a planned step becomes the inputs of its calls."""

from typing import Any

import pytest

from toolcrib.agents.evidence.plan_schema import StepPlan, expand
from toolcrib.contracts import InvalidExpression, JsonSchema

pytestmark = pytest.mark.requirement("agents.plan_expansion")

DEALS = [{"id": f"d{number}", "stage": f"s{number}"} for number in range(5)]
SCOPE = {"search": {"results": DEALS, "total": 5, "none": []}, "input": {"task": "t"}}


def batched(ids: JsonSchema, **others: Any) -> JsonSchema:
    """A schema with a list `ids`."""
    return {"type": "object", "properties": {"ids": ids}, **others}


def expanded(written: dict[str, Any], schema: JsonSchema | None = None) -> list[dict[str, Any]]:
    """The inputs of what a model wrote."""
    return expand(StepPlan.read(written), schema or {"type": "object"}, SCOPE)


def ids_of(schema: JsonSchema) -> list[list[str]]:
    """The ids of each call when all deals are batched under this schema."""
    inputs = expanded({"for_each": "${search.results}", "input": {"ids": ["${item.id}"]}}, schema)
    return [entry["ids"] for entry in inputs]


def test_references_become_values_of_their_type():
    assert expanded({"input": {"n": "${search.total}", "text": "${search.total} deals", "fixed": [1]}}) == [
        {"n": 5, "text": "5 deals", "fixed": [1]}
    ]


def test_a_step_that_is_skipped_has_no_calls():
    assert expanded({"skip": True}) == []


@pytest.mark.parametrize(
    "written", [{}, {"input": None}, {"input": {}, "for_each": None}, {"input": {}, "for_each": ""}]
)
def test_what_is_left_out_is_an_empty_input_once(written: dict[str, Any]):
    assert expanded(written) == [{}]


@pytest.mark.parametrize("reference", ["${search.results}", " ${search.results} ", "search.results"])
def test_a_step_is_done_for_every_item_with_or_without_marks(reference: str):
    inputs = expanded({"for_each": reference, "input": {"id": "${item.id}", "of": "${search.total}"}})

    assert inputs == [{"id": deal["id"], "of": 5} for deal in DEALS]


def test_a_list_with_one_element_is_repeated_for_all_items():
    inputs = expanded({"for_each": "${search.results}", "input": {"ids": ["${item.id}"], "of": "${search.total}"}})

    assert inputs == [{"ids": ["d0", "d1", "d2", "d3", "d4"], "of": 5}]


def test_elements_may_be_objects_and_lists_may_lie_deep():
    inputs = expanded(
        {
            "for_each": "${search.results}",
            "input": {"body": {"updates": [{"id": "${item.id}", "to": {"stage": "won"}}]}},
        },
        {
            "type": "object",
            "properties": {"body": {"type": "object", "properties": {"updates": {"type": "array", "maxItems": 4}}}},
        },
    )

    assert [len(entry["body"]["updates"]) for entry in inputs] == [4, 1]
    assert inputs[1] == {"body": {"updates": [{"id": "d4", "to": {"stage": "won"}}]}}


def test_a_list_inside_a_list_is_repeated_where_it_stands():
    inputs = expanded(
        {"for_each": "${search.results}", "input": {"groups": [{"name": "all"}, {"ids": ["${item.id}"]}]}},
        {
            "type": "object",
            "properties": {"groups": {"items": {"properties": {"ids": {"type": "array", "maxItems": 3}}}}},
        },
    )

    assert [entry["groups"][1]["ids"] for entry in inputs] == [["d0", "d1", "d2"], ["d3", "d4"]]


def test_an_item_that_is_also_used_outside_the_list_has_a_call_of_its_own():
    inputs = expanded({"for_each": "${search.results}", "input": {"ids": ["${item.id}"], "stage": "${item.stage}"}})

    assert inputs == [{"ids": [deal["id"]], "stage": deal["stage"]} for deal in DEALS]


def test_a_list_that_does_not_mention_the_item_is_the_same_for_every_item():
    inputs = expanded({"for_each": "${search.results}", "input": {"id": "${item.id}", "tags": ["${search.total}"]}})

    assert inputs == [{"id": deal["id"], "tags": [5]} for deal in DEALS]


@pytest.mark.requirement("agents.plan_batches")
@pytest.mark.parametrize(
    "schema",
    [
        batched({"type": "array", "maxItems": 2}),
        batched({"anyOf": [{"type": "array", "maxItems": 2}, {"type": "null"}]}),
        batched({"allOf": [{"type": "array", "maxItems": 4}, {"maxItems": 2}]}),
        batched({"$ref": "#/$defs/Ids"}, **{"$defs": {"Ids": {"$ref": "#/$defs/More"}, "More": {"maxItems": 2}}}),
        batched({"$ref": "#/$defs/a~1b~0c"}, **{"$defs": {"a/b~c": {"maxItems": 2}}}),
        batched({"$ref": "#/properties/other"})
        | {"properties": {"ids": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"maxItems": 2}}},
        {"allOf": [{"$ref": "#/$defs/Body"}], "$defs": {"Body": batched({"maxItems": 2})}},
    ],
    ids=["array", "nullable", "all of", "references", "escaped", "overlaid", "whole body"],
)
def test_batches_are_as_large_as_the_schema_allows_wherever_it_says_so(schema: JsonSchema):
    assert ids_of(schema) == [["d0", "d1"], ["d2", "d3"], ["d4"]]


@pytest.mark.requirement("agents.plan_batches")
@pytest.mark.parametrize(
    "schema",
    [
        {},
        batched({"type": "array"}),
        batched({"maxItems": 0}),
        batched({"$ref": "#/$defs/gone"}),
        batched({"$ref": "#/$defs/loop"}, **{"$defs": {"loop": {"$ref": "#/$defs/loop"}}}),
        batched({"$ref": "#/properties/ids/maxItems/x"}),
        batched(True),  # pyright: ignore[reportArgumentType] - a schema may be a boolean
    ],
    ids=["nothing", "no limit", "nothing allowed", "dangling", "circular", "through a value", "boolean"],
)
def test_a_schema_without_a_limit_takes_all_items_at_once(schema: JsonSchema):
    assert ids_of(schema) == [["d0", "d1", "d2", "d3", "d4"]]


def test_no_items_are_no_calls():
    assert expanded({"for_each": "${search.none}", "input": {"ids": ["${item.id}"]}}) == []
    assert expanded({"for_each": "${search.none}", "input": {"id": "${item.id}"}}) == []


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"for_each": "${search.total}", "input": {}}, r"for_each '\${search.total}' is int, not a list"),
        ({"for_each": "${search.deals}", "input": {}}, "deals"),
        ({"for_each": "${search.results}", "input": {"id": "${item.key}"}}, r"/id: .*key"),
        ({"for_each": "${search.results}", "input": {"ids": ["${item.key}"]}}, "key"),
        ({"input": {"id": "${serch.total}"}}, "serch"),
        ({"input": {"id": "${search.total"}}, "never closed"),
        ({"for_each": "${search.results}", "input": {"ids": ["${item.id"]}}, "never closed"),
    ],
)
def test_what_cannot_be_resolved_is_an_error_that_names_it(written: dict[str, Any], said: str):
    with pytest.raises(InvalidExpression, match=said):
        expanded(written)
