"""JSON structures with references in their strings."""

from typing import Any

import pytest

from toolcrib.contracts.base.errors import InvalidExpression
from toolcrib.core.expressions import compile_structure, references_of, resolve

SCOPE: dict[str, Any] = {"search": {"results": [{"id": 1}, {"id": 2}]}, "input": {"name": "Acme ${input.x}"}}
PLAN: dict[str, Any] = {
    "ids": "${search.results[*].id}",
    "filters": [{"value": "for ${input.name}", "limit": 5, "${input.x}": None}],
    "plain": "{{input.name}} \\${x}",
}


def nested(levels: int, leaf: Any) -> Any:
    for _ in range(levels):
        leaf = {"a": leaf}
    return leaf


@pytest.mark.requirement("expressions.resolve", "expressions.single_pass")
def test_every_string_is_rendered_once_and_names_of_members_are_left():
    assert resolve(PLAN, SCOPE) == {
        "ids": [1, 2],
        "filters": [{"value": "for Acme ${input.x}", "limit": 5, "${input.x}": None}],
        "plain": "{{input.name}} ${x}",
    }


@pytest.mark.requirement("expressions.resolve")
@pytest.mark.parametrize("value", ["text", 1, True, None, [], {}])
def test_what_has_no_reference_comes_back_equal(value: Any):
    assert resolve(value, {}) == value
    assert references_of(value) == frozenset()


@pytest.mark.requirement("expressions.references")
def test_a_structure_reads_what_its_strings_read():
    assert references_of(PLAN) == {"search.results", "input.name"}


@pytest.mark.requirement("expressions.resolve", "expressions.repairable_errors")
def test_an_error_names_the_place_as_a_json_pointer():
    with pytest.raises(InvalidExpression) as caught:
        resolve({"a/b": ["", "${search.reslts}"]}, SCOPE)

    assert str(caught.value) == (
        "/a~1b/1: in '${search.reslts}' at column 1: no field 'reslts' at column 8; fields: results"
    )
    with pytest.raises(InvalidExpression, match=r"^/a/0: '\$\{' at column 1 is never closed"):
        references_of({"a": ["${"]})
    with pytest.raises(InvalidExpression, match=r"^in '\$\{x\}' at column 1"):
        resolve("${x}", {})


@pytest.mark.requirement("expressions.resolve", "expressions.bounded_source")
def test_a_structure_is_at_most_a_hundred_levels_deep():
    assert resolve(nested(100, "${input}"), {"input": 1}) == nested(100, 1)
    assert references_of(nested(100, "${input}")) == {"input"}
    with pytest.raises(InvalidExpression, match="structure is nested deeper than 100 levels"):
        resolve(nested(20_000, "${input}"), {"input": 1})
    with pytest.raises(InvalidExpression, match="structure is nested deeper than 100 levels"):
        references_of(nested(20_000, "${input}"))


@pytest.mark.requirement("workflow_running.compiled")
def test_a_structure_is_compiled_once_and_resolved_in_every_scope():
    structure = compile_structure({"a": ["${x}", 1], "fixed": {"b": [2]}})

    assert structure.references == {"x"}
    assert [structure.resolve({"x": x}) for x in (1, {"n": 2})] == [
        {"a": [1, 1], "fixed": {"b": [2]}},
        {"a": [{"n": 2}, 1], "fixed": {"b": [2]}},
    ]
    assert structure.source == {"a": ["${x}", 1], "fixed": {"b": [2]}}
    with pytest.raises(InvalidExpression, match=r"^/a/0: in '\$\{x\}' at column 1"):
        structure.resolve({})


@pytest.mark.requirement("workflow_running.compiled")
def test_what_does_not_compile_is_refused_before_anything_is_resolved():
    with pytest.raises(InvalidExpression, match=r"^/b: "):
        compile_structure({"a": "${x}", "b": "${x +}"})
