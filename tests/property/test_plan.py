"""Properties of plans: fan-out loses nothing and keeps the order, and schemas stay schemas, whatever the sizes."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.agents.evidence.plan_schema import StepPlan, expand, plan_schema
from toolcrib.contracts import AgenticStep, JsonSchema
from toolcrib.core.registry import compile_schema

items = st.lists(st.integers() | st.text(max_size=5) | st.booleans() | st.none(), max_size=60)


@pytest.mark.requirement("agents.plan_batches")
@given(items, st.integers(min_value=1, max_value=70) | st.none())
def test_batches_lose_no_item_keep_the_order_and_are_never_larger_than_allowed(found: list[Any], most: int | None):
    ids: JsonSchema = {"type": "array"} if most is None else {"type": "array", "maxItems": most}
    plan = StepPlan(skip=False, for_each="${search}", input={"ids": ["${item}"], "fixed": 1})

    inputs = expand(plan, {"type": "object", "properties": {"ids": ids}}, {"search": found})

    assert [item for call in inputs for item in call["ids"]] == found
    assert all(call["ids"] and call["fixed"] == 1 for call in inputs)
    if most is not None:
        assert all(len(call["ids"]) == most for call in inputs[:-1])
        assert all(len(call["ids"]) <= most for call in inputs)


@pytest.mark.requirement("agents.plan_expansion")
@given(items)
def test_without_a_list_there_is_one_call_for_each_item_in_order(found: list[Any]):
    plan = StepPlan(skip=False, for_each="search", input={"one": "${item}"})

    assert expand(plan, {"type": "object"}, {"search": found}) == [{"one": item} for item in found]


leaves: st.SearchStrategy[JsonSchema] = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 0},
        {"enum": ["a", 1, None]},
        {"type": ["number", "null"]},
        {"$ref": "#/$defs/Shared"},
        {"$ref": "#"},
        {"const": True},
        {},
    ]
)


def nested(inner: st.SearchStrategy[JsonSchema]) -> st.SearchStrategy[JsonSchema]:
    """Schemas of lists, objects and choices of others."""
    some = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        inner.map(lambda item: {"type": "array", "items": item}),
        st.dictionaries(st.sampled_from("xyz"), inner, max_size=3).map(
            lambda properties: {"type": "object", "properties": properties}
        ),
        st.tuples(st.sampled_from(["anyOf", "oneOf", "allOf"]), some).map(lambda choice: {choice[0]: choice[1]}),
    )


schemas = st.recursive(leaves, nested, max_leaves=8)


@pytest.mark.requirement("agents.plan_schema")
@given(schemas, schemas)
def test_the_schema_of_a_plan_is_a_valid_schema_that_refers_to_nothing_outside(first: JsonSchema, second: JsonSchema):
    def tool(argument: JsonSchema) -> JsonSchema:
        return {"type": "object", "properties": {"x": argument}, "$defs": {"Shared": {"type": "integer"}}}

    steps = [AgenticStep(id="one", tool="t"), AgenticStep(id="two", tool="t")]
    schema = plan_schema(steps, {"one": tool(first), "two": tool(second)})

    jsonschema_rs.meta.validate(schema)
    compile_schema(schema)


@pytest.mark.requirement("agents.plan_schema")
@given(schemas, st.from_type(dict[str, int]) | st.integers() | st.none() | st.text(max_size=3))
def test_what_a_tool_takes_a_later_step_may_plan(argument: JsonSchema, value: Any):
    """A plan is never stricter than the call: only looser, by references."""
    tool: JsonSchema = {
        "type": "object",
        "properties": {"x": argument},
        "$defs": {"Shared": {"type": "integer"}},
    }
    steps = [AgenticStep(id="one", tool="t"), AgenticStep(id="two", tool="t")]
    planned = compile_schema(plan_schema(steps, {"one": tool, "two": tool}))

    if compile_schema(tool).is_valid({"x": value}):
        assert planned.is_valid({"reasoning": "", "one": {"input": {"x": value}}, "two": {"input": {"x": value}}})
