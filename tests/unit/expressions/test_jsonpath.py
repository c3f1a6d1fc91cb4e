"""JSONPath: the standard's own suite where it is at hand, a small set always, and hostile paths."""

import json
from pathlib import Path
from typing import Any

import pytest

from toolcrib.contracts.base.errors import InvalidExpression
from toolcrib.core.expressions.jsonpath import check_path, select, select_one

COMPLIANCE_SUITE = Path(__file__).parents[4] / "shared" / "data" / "jsonpath" / "cts.json"

DOCUMENT: dict[str, Any] = {
    "data": [
        {"id": "d1", "amount": 10, "tags": ["a", "b"], "owner": {"name": "Ada"}},
        {"id": "d2", "amount": 20.5, "tags": [], "owner": None},
        {"id": "d3", "tags": ["c"], "flags": [True]},
    ],
    "paging": {"next": {"after": "c-2"}},
}


@pytest.mark.requirement("expressions.jsonpath")
@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$", [DOCUMENT]),
        ("$.paging.next.after", ["c-2"]),
        ("$['paging']['next']", [{"after": "c-2"}]),
        ("$.paging.previous", []),
        ("$.data.id", []),
        ("$.data[0].id", ["d1"]),
        ("$.data[-1].id", ["d3"]),
        ("$.data[9]", []),
        ("$.paging[0]", []),
        ("$.data[*].id", ["d1", "d2", "d3"]),
        ("$.paging.*", [{"after": "c-2"}]),
        ("$.paging.next.after.*", []),
        ("$.data[1:].id", ["d2", "d3"]),
        ("$.data[::-2].id", ["d3", "d1"]),
        ("$.data[::0]", []),
        ("$.paging[1:]", []),
        ("$.data[0]['id','amount']", ["d1", 10]),
        ("$..name", ["Ada"]),
        ("$..tags[*]", ["a", "b", "c"]),
        ("$.data[?@.amount > 10].id", ["d2"]),
        ("$.data[?@.amount <= 10].id", ["d1"]),
        ("$.data[?@.amount >= 10 && @.amount < 20].id", ["d1"]),
        ("$.data[?@.amount == 10 || @.id == 'd3'].id", ["d1", "d3"]),
        ("$.data[?!@.amount].id", ["d3"]),
        ("$.data[?@.owner].id", ["d1", "d2"]),
        ("$.data[?@.owner == null].id", ["d2"]),
        ("$.data[?@.owner != null].id", ["d1", "d3"]),
        ("$.data[?@.flags == $.data[2].flags].id", ["d3"]),
        ("$.data[?@.nope == @.neither].id", ["d1", "d2", "d3"]),
        ("$.data[?@.flags[0] == 1].id", []),
        ("$.data[?length(@.tags) == 2].id", ["d1"]),
        ("$.data[?length(@.amount) == 2].id", []),
        ("$.data[?count(@.tags[*]) == 0].id", ["d2"]),
        ("$.data[?value(@..name) == 'Ada'].id", ["d1"]),
        ("$.data[?value(@.tags[*]) == 'c'].id", ["d3"]),
        ("$.paging[?@.after == 'c-2']", [{"after": "c-2"}]),
    ],
)
def test_a_path_selects_as_the_standard_says(path: str, values: list[Any]):
    assert select(path, DOCUMENT) == values


@pytest.mark.requirement("expressions.jsonpath")
def test_the_first_value_or_null_is_selected_where_one_is_wanted():
    assert select_one("$.data[*].id", DOCUMENT) == "d1"
    assert select_one("$.paging.previous", DOCUMENT) is None


@pytest.mark.requirement("expressions.jsonpath")
@pytest.mark.skipif(not COMPLIANCE_SUITE.exists(), reason="the JSONPath compliance test suite is not at hand")
def test_the_compliance_suite_of_the_standard_passes():
    cases: list[dict[str, Any]] = json.loads(COMPLIANCE_SUITE.read_text(encoding="utf-8"))["tests"]

    assert [case["name"] for case in cases if not _complies(case)] == []
    assert len(cases) > 600


def _complies(case: dict[str, Any]) -> bool:
    path: str = case["selector"]
    may_fail = case.get("invalid_selector", False) or "match(" in path or "search(" in path
    try:
        values = select(path, case.get("document"))
    except InvalidExpression:
        return may_fail
    return not may_fail and values in case.get("results", [case.get("result")])


@pytest.mark.requirement("expressions.repairable_errors", "expressions.jsonpath")
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "JSONPath '' is not well formed: expected '$', found ''"),
        ("data.id", "JSONPath 'data.id' is not well formed: expected '$', found 'd'"),
        ("$.data[", "JSONPath '$.data[' is not well formed: unbalanced brackets"),
        ("$[?nope(@)]", "JSONPath '$[?nope(@)]' is not well formed: function 'nope' is not defined"),
        ("$[?@.a == 1e400]", "JSONPath '$[?@.a == 1e400]' is not well formed: cannot convert float infinity"),
        ("$[?@.a == !@.b]", "JSONPath filter has \"!@['b']\" where it may not stand"),
        ("$[?length(@.a) && @.b]", "JSONPath filter has \"length(@['a'])\" where it may not stand"),
        ("$[?!length(@.a)]", "JSONPath filter has \"length(@['a'])\" where it may not stand"),
    ],
)
def test_a_malformed_path_is_refused_when_checked(path: str, message: str):
    with pytest.raises(InvalidExpression) as caught:
        check_path(path)

    assert str(caught.value).startswith(message)


@pytest.mark.requirement("expressions.jsonpath_bounded")
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("$[?match(@.a, '(a|aa)+c')]", "JSONPath function match() is not available"),
        ("$[?search(@.a, 'x') && @.b]", "JSONPath function search() is not available"),
        ("$" + ".a" * 500, "JSONPath has 1,001 characters; at most 1,000 are allowed"),
        ("$[?" + "(" * 51 + "@.a" + ")" * 51 + "]", "JSONPath has more than 50 of the signs ( ! ? && ||; simplify it"),
    ],
)
def test_a_dangerous_path_is_refused_when_checked(path: str, message: str):
    with pytest.raises(InvalidExpression) as caught:
        check_path(path)

    assert str(caught.value).startswith(message)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.requirement("expressions.jsonpath_bounded")
@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("$..*..*..*..*..*", deep(60)),
        ("$" + "[*,*]" * 40, deep(60)),
        ("$[?$ == @]", [list(range(3000))] * 3000),
        ("$[?count($[*]) > 1]", list(range(3000))),
        ("$[0:,0:,0:]", list(range(400_000))),
    ],
)
def test_a_path_that_multiplies_with_the_document_is_stopped(path: str, document: Any):
    with pytest.raises(InvalidExpression, match="evaluation touches more than 1,000,000"):
        select(path, document)


@pytest.mark.requirement("expressions.jsonpath_bounded")
def test_a_document_may_be_deeper_than_the_interpreter_s_stack():
    document = deep(20_000)

    assert len(select("$..*", document)) == 20_000
    assert select("$[?@ == $[0]]", document) == [document[0]]
