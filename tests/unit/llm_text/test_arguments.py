"""Arguments by position, by name and in an object, and how calls are written back."""

from typing import Any

import pytest

from tests.unit.llm_text.reading import block
from toolcrib.contracts import InvalidInput
from toolcrib.llm import Tool, ToolSet
from toolcrib.llm.text import parse, toolkit_of
from toolcrib.llm.text.examples import write_call
from toolcrib.llm.text.functions import ToolFunction

pytestmark = pytest.mark.requirement("text.arguments")


def function(properties: dict[str, Any], required: tuple[str, ...] = (), **more: Any) -> ToolFunction:
    schema = {"type": "object", "properties": properties, "required": list(required), **more}
    return ToolFunction(Tool("f", "", schema), "f")


TEXT, NUMBER, OBJECT = {"type": "string"}, {"type": "integer"}, {"type": "object"}
DEALS = function({"limit": NUMBER, "company": TEXT, "stage": {"enum": ["won", "lost"]}}, ("company",))
SAVE = function({"data": OBJECT, "path": TEXT}, ("data",))
CHANGE = function({"id": TEXT, "stage": TEXT, "note": {"anyOf": [TEXT, {"type": "null"}]}}, ("id",))
OPEN = ToolFunction(Tool("f", "", {"type": "object"}), "f")
NONE = function({}, additionalProperties=False)
ODD = function({"page-size": NUMBER, "page_size": NUMBER, "in": TEXT, "0": NUMBER})
REFERRED = ToolFunction(
    Tool("f", "", {"$ref": "#/$defs/In", "$defs": {"In": {"properties": {"a": {"$ref": "#/$defs/A"}}}, "A": OBJECT}}),
    "f",
)

PLACED: list[tuple[ToolFunction, str, dict[str, Any]]] = [
    (DEALS, "'Acme'", {"company": "Acme"}),
    (DEALS, "'Acme', 5, 'won'", {"company": "Acme", "limit": 5, "stage": "won"}),
    (DEALS, "'Acme', undefined, 'won'", {"company": "Acme", "stage": "won"}),
    (DEALS, "'Acme', undefined, undefined", {"company": "Acme"}),
    (DEALS, "'Acme', null", {"company": "Acme", "limit": None}),
    (DEALS, "company: 'Acme', stage: 'won'", {"company": "Acme", "stage": "won"}),
    (DEALS, "'Acme', stage='won'", {"company": "Acme", "stage": "won"}),
    (DEALS, "'Acme', stage=undefined", {"company": "Acme"}),
    (DEALS, "{company: 'Acme', limit: 5}", {"company": "Acme", "limit": 5}),
    (DEALS, "{limit: 5}", {"limit": 5}),
    (DEALS, "{company: 'Acme', color: 'red'}", {"company": "Acme", "color": "red"}),
    (DEALS, "'Acme', {limit: 5, stage: 'won'}", {"company": "Acme", "limit": 5, "stage": "won"}),
    (DEALS, "'Acme', {color: 'red'}", {"company": "Acme", "limit": {"color": "red"}}),
    (DEALS, "'Acme', {}", {"company": "Acme"}),
    (DEALS, "color: 'red'", {"color": "red"}),
    (SAVE, "{a: 1}", {"data": {"a": 1}}),
    (SAVE, "{}", {"data": {}}),
    (SAVE, "{a: 1}, 'x'", {"data": {"a": 1}, "path": "x"}),
    (SAVE, "{data: {a: 1}}", {"data": {"a": 1}}),
    (SAVE, "{data: {a: 1}, path: 'x'}", {"data": {"a": 1}, "path": "x"}),
    (SAVE, "{path: 'x'}", {"data": {"path": "x"}}),
    (SAVE, "data: {data: 1}", {"data": {"data": 1}}),
    (CHANGE, "'1', {stage: 'won', note: 'x'}", {"id": "1", "stage": "won", "note": "x"}),
    (OPEN, "{a: 1}", {"a": 1}),
    (OPEN, "a: 1", {"a": 1}),
    (OPEN, "", {}),
    (NONE, "", {}),
    (NONE, "undefined", {}),
    (ODD, "{'page-size': 1, page_size: 2}", {"page-size": 1, "page_size": 2}),
    (ODD, "page_size_: 1, in_: 'x', _0: 3", {"page-size": 1, "in": "x", "0": 3}),
    (ODD, "in: 'x'", {"in": "x"}),
    (REFERRED, "{b: 1}", {"a": {"b": 1}}),
]


@pytest.mark.parametrize(("tool", "code", "expected"), PLACED, ids=[code or "nothing" for _, code, _ in PLACED])
def test_arguments_become_the_tools_own(tool: ToolFunction, code: str, expected: dict[str, Any]) -> None:
    [found] = parse(block(f"f({code})"))
    assert found.problem is None
    assert tool.arguments(found.calls[0]) == expected


@pytest.mark.parametrize(
    ("tool", "code", "reason"),
    [
        (DEALS, "'a', 1, 'won', 4", "takes at most 3 arguments, found 4"),
        (NONE, "1", "takes at most 0 arguments, found 1"),
        (OPEN, "'a'", "takes at most 0 arguments"),
        (DEALS, "'a', company: 'b'", "is given the argument 'company' twice"),
        (ODD, "1, page_size_: 2", "is given the argument 'page_size_' twice"),
    ],
)
def test_arguments_that_have_no_place_are_refused(tool: ToolFunction, code: str, reason: str) -> None:
    [found] = parse(block(f"f({code})"))
    with pytest.raises(InvalidInput, match=reason):
        tool.arguments(found.calls[0])


@pytest.mark.parametrize(("tool", "code", "expected"), PLACED, ids=[code or "nothing" for _, code, _ in PLACED])
def test_a_call_that_is_written_for_the_model_reads_back_the_same(
    tool: ToolFunction, code: str, expected: dict[str, Any]
) -> None:
    [found] = parse(block(f"return {write_call(tool, expected)};"))
    assert found.problem is None, code
    assert tool.arguments(found.calls[0]) == expected


def test_tools_whose_names_are_no_identifiers_get_names_that_are() -> None:
    names = ["search-deals", "search_deals", "crm.search", "delete", "finalResponse", "2fa", "größe", "a b"]
    toolkit = toolkit_of(ToolSet([Tool(name, "", {"type": "object"}) for name in names]))
    shown = {function.tool.name: name for name, function in toolkit.functions.items()}
    assert shown == {
        "2fa": "_2fa",
        "a b": "a_b",
        "crm.search": "crm_search",
        "delete": "delete_",
        "finalResponse": "finalResponse_",
        "größe": "gr__e",
        "search-deals": "search_deals_",
        "search_deals": "search_deals",
    }
    assert all(toolkit.find(given) is toolkit.functions[name] for given, name in shown.items() if given != "delete")
    assert toolkit.find("crm.find") is None
    assert toolkit.closest("Search_Deal")[:2] == ["search_deals", "search_deals_"]
