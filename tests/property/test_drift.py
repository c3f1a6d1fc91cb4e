"""Differences of schemas, for any schemas of objects."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.agents.drift import compare
from toolcrib.contracts import JsonSchema
from toolcrib.registry import compile_schema

pytestmark = pytest.mark.requirement("agentic.drift")

NAMES = st.sampled_from(["id", "stage", "owner", "deal"])


def _shared() -> JsonSchema:
    return {"$ref": "#/$defs/shared"}


def _of_kind(kind: str) -> JsonSchema:
    return {"type": kind}


def _one_of(values: list[str]) -> JsonSchema:
    return {"enum": values}


def _list(items: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": items}


def _or_null(part: JsonSchema) -> JsonSchema:
    return {"anyOf": [part, {"type": "null"}]}


def _object(properties: dict[str, JsonSchema], required: set[str]) -> JsonSchema:
    return {"type": "object", "properties": properties, "required": sorted(required)}


def _with_shared(whole: JsonSchema, shared: JsonSchema) -> JsonSchema:
    return {**whole, "$defs": {"shared": shared}}


def _objects(inner: st.SearchStrategy[JsonSchema]) -> st.SearchStrategy[JsonSchema]:
    return st.builds(_object, st.dictionaries(NAMES, inner, max_size=3), st.sets(NAMES, max_size=2))


def _larger(inner: st.SearchStrategy[JsonSchema]) -> st.SearchStrategy[JsonSchema]:
    return st.one_of(_objects(inner), inner.map(_list), inner.map(_or_null))


LEAVES = st.one_of(
    st.sampled_from(["string", "integer", "boolean"]).map(_of_kind),
    st.lists(st.sampled_from(["won", "lost", "open"]), min_size=1, unique=True).map(_one_of),
    st.builds(_shared),
)
SCHEMAS = st.builds(_with_shared, _objects(st.recursive(LEAVES, _larger, max_leaves=6)), _objects(LEAVES))


@given(SCHEMAS)
def test_a_schema_does_not_differ_from_itself(schema: JsonSchema) -> None:
    compile_schema(schema)

    assert compare("tool", schema, schema) == []


@given(SCHEMAS, SCHEMAS)
def test_what_was_added_one_way_was_removed_the_other(old: JsonSchema, new: JsonSchema) -> None:
    there, back = compare("tool", old, new), compare("tool", new, old)

    def places(changes: Any, kind: str) -> set[str]:
        return {change.place for change in changes if change.kind == kind}

    assert places(there, "added") == places(back, "removed")
    assert places(there, "removed") == places(back, "added")
    assert places(there, "changed") == places(back, "changed")
