"""Comparing schemas, held against the validator: what is called harmless refuses nothing that was taken before."""

from copy import deepcopy
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.contracts import InvalidDefinition, Json, JsonSchema
from toolcrib.core.registry import SchemaValidator, compare_input, compare_output, compile_schema
from toolcrib.core.registry.schema.subsumption import refusals

pytestmark = pytest.mark.requirement("registry.changes")

NAMES = ("a", "b")
HARMFUL = {"narrowing", "breaking"}

VALUES = st.recursive(
    st.sampled_from([None, True, 0, 1, 2, 3.5, "", "x", "xyz"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=5,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])


def some(**keywords: Any) -> st.SearchStrategy[JsonSchema]:
    """A schema with some of these keywords."""
    return st.fixed_dictionaries({}, optional=keywords)


LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.booleans(),
    st.just({"$ref": "#/$defs/shared"}),
    some(type=TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True)),
    some(enum=st.lists(VALUES, min_size=1, max_size=3), const=VALUES),
    some(type=st.just("integer"), minimum=st.integers(0, 2), exclusiveMaximum=st.integers(1, 3), multipleOf=st.just(2)),
    some(type=st.just("string"), minLength=st.integers(0, 2), maxLength=st.integers(0, 3), pattern=st.just("x")),
)


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "additionalProperties": inner},
            optional={
                "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=2),
                "required": st.lists(st.sampled_from(NAMES), unique=True),
                "minProperties": st.integers(0, 2),
                "patternProperties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=1),
                "dependentRequired": st.just({"a": ["b"]}),
                "propertyNames": st.just({"maxLength": 1}),
                "unevaluatedProperties": st.booleans(),
            },
        ),
        some(type=st.just("array"), items=inner, prefixItems=several, maxItems=st.integers(0, 2), contains=inner),
        some(anyOf=several, allOf=several),
        some(oneOf=several, type=TYPES),
        some(**{"not": inner, "if": inner, "then": inner}),
    )


NESTED = st.recursive(LEAVES, larger, max_leaves=8)


def with_shared(whole: Json, shared: Json) -> JsonSchema:
    return {"allOf": [whole], "$defs": {"shared": shared}}


SCHEMAS = st.builds(with_shared, NESTED, NESTED)


def usable(schema: JsonSchema) -> SchemaValidator | None:
    try:
        return compile_schema(schema)
    except InvalidDefinition:
        return None


@given(SCHEMAS, SCHEMAS, st.lists(VALUES, min_size=1, max_size=20))
@settings(max_examples=300)
def test_a_value_that_is_refused_now_is_never_proved_to_be_taken(
    before: JsonSchema, after: JsonSchema, values: list[Json]
) -> None:
    old, new = usable(before), usable(after)
    if old is None or new is None or refusals(before, after, "arguments"):
        return

    assert [value for value in values if old.is_valid(value) and not new.is_valid(value)] == []


@given(SCHEMAS, st.lists(st.integers(0, 5), max_size=4), st.lists(VALUES, min_size=1, max_size=20))
@settings(max_examples=300)
def test_small_changes_that_are_called_harmless_refuse_nothing(
    before: JsonSchema, cuts: list[int], values: list[Json]
) -> None:
    after = changed(before, cuts)
    old, new = usable(before), usable(after)
    if old is None or new is None or {found.change_class for found in compare_input(before, after)} & HARMFUL:
        return

    assert [value for value in values if old.is_valid(value) and not new.is_valid(value)] == []


@given(SCHEMAS)
def test_a_schema_does_not_differ_from_itself_or_from_a_copy_with_other_words(schema: JsonSchema) -> None:
    if usable(schema) is None:
        return

    assert compare_input(schema, {**schema, "description": "Other words."}) == []
    assert compare_output(schema, {**schema, "title": "Other words."}) == []


@given(SCHEMAS, SCHEMAS)
def test_what_is_harmful_one_way_is_harmless_the_other(one: JsonSchema, other: JsonSchema) -> None:
    there = {found.place for found in compare_input(one, other) if found.change_class in HARMFUL}
    back = {found.place for found in compare_input(other, one)}

    assert there <= back


@pytest.mark.requirement("registry.changes_bounded")
def test_schemas_that_multiply_or_contain_themselves_are_compared_with_bounded_work() -> None:
    def tower(leaf: str) -> JsonSchema:
        levels = {f"l{n}": {"anyOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2 + [{"type": "null"}]} for n in range(40)}
        return {"$ref": "#/$defs/l0", "$defs": {**levels, "l40": {"type": leaf}}}

    def chain(leaf: str) -> JsonSchema:
        levels = {f"l{n}": {"properties": {"next": {"$ref": f"#/$defs/l{n + 1}"}}} for n in range(5000)}
        return {"$ref": "#/$defs/l0", "$defs": {**levels, "l5000": {"type": leaf}}}

    for make in (tower, chain):
        assert {found.change_class for found in compare_input(make("string"), make("integer"))} & HARMFUL
        assert compare_input(make("string"), make("string")) == []


def changed(schema: JsonSchema, cuts: list[int]) -> JsonSchema:
    """The schema without some keywords, chosen by number."""
    result: JsonSchema = deepcopy(schema)
    nodes: list[JsonSchema] = []
    waiting: list[Any] = [result]
    while waiting:
        node: Any = waiting.pop()
        if isinstance(node, dict):
            nodes.append(cast("JsonSchema", node))
        waiting += _inside(node)
    for cut in cuts:
        chosen = nodes[cut % len(nodes)]
        keys = [key for key in chosen if key not in {"$defs", "shared"}]
        if keys:
            chosen.pop(keys[cut % len(keys)])
    return result


def _inside(node: Any) -> list[Any]:
    if isinstance(node, dict):
        return list(cast("JsonSchema", node).values())
    return cast("list[Any]", node) if isinstance(node, list) else []
