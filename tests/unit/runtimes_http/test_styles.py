"""Styles beyond the table of OpenAPI: 2.0's formats, values of a media type, empty and null values."""

from typing import Any

import pytest

from tests.unit.runtimes_http.service import parameter, service
from toolcrib.kinds.http.runtime.styles import header_value, path_piece, query_pairs
from toolcrib.kinds.http.shape import HttpParameter

pytestmark = pytest.mark.requirement("runtime_http.styles")


def query(found: HttpParameter, value: Any) -> str:
    return "&".join(f"{name}={text}" for name, text in query_pairs(found, value))


@pytest.mark.parametrize(
    ("style", "explode", "in_query", "in_path", "in_header"),
    [  # csv, ssv, tsv, pipes, multi
        ("form", False, "p=a%2C,b", "a%2C,b", "a,,b"),
        ("spaceDelimited", False, "p=a%2C%20b", "a%2C%20b", "a, b"),
        ("tabDelimited", False, "p=a%2C%09b", "a%2C%09b", "a,\tb"),
        ("pipeDelimited", False, "p=a%2C%7Cb", "a%2C%7Cb", "a,|b"),
        ("form", True, "p=a%2C&p=b", "a%2C,b", "a,,b"),
    ],
)
def test_the_collection_formats_of_openapi_2(
    style: str, explode: bool, in_query: str, in_path: str, in_header: str
) -> None:
    value = ["a,", "b"]
    assert query(parameter("p", style=style, explode=explode), value) == in_query
    assert path_piece(parameter("p", "path", style=style, explode=explode), value) == in_path
    assert header_value(parameter("p", "header", style=style, explode=explode), value) == in_header


@pytest.mark.parametrize(
    ("content_type", "value", "text"),
    [
        ("application/json", {"a": [1, "ä"]}, '{"a":[1,"ä"]}'),
        ("application/vnd.x+json; charset=utf-8", "a", '"a"'),
        ("text/plain", "a b", "a b"),
        ("text/plain", {"a": 1}, '{"a":1}'),
    ],
)
async def test_a_value_may_be_one_text_of_a_media_type(content_type: str, value: Any, text: str) -> None:
    async with service() as svc:
        found = parameter("filter", content_type=content_type)
        assert (await svc.sent(svc.tool(parameters=(found,)), {"filter": value})).query == [("filter", text)]
    path = path_piece(parameter("p", "path", content_type=content_type), "a/b")
    assert path in {"a%2Fb", "%22a%2Fb%22"}
    assert header_value(parameter("p", "header", content_type="application/json"), [1]) == "[1]"


@pytest.mark.parametrize("value", [[], {}, [None], {"a": None}])
@pytest.mark.parametrize("style", ["form", "deepObject", "pipeDelimited"])
def test_nothing_is_sent_for_an_empty_value_unless_it_may_be_empty(value: Any, style: str) -> None:
    for explode in (True, False):
        assert query(parameter("p", style=style, explode=explode), value) == ""
        assert query(parameter("p", style=style, explode=explode, allow_empty=True), value) == "p="


def test_null_members_are_left_out() -> None:
    assert query(parameter("p"), ["a", None, "b"]) == "p=a&p=b"
    assert query(parameter("p", explode=False), {"a": None, "b": 1}) == "p=b,1"
    assert query(parameter("p", style="deepObject"), {"a": [None, "x"], "b": None}) == "p%5Ba%5D%5B0%5D=x"
    assert path_piece(parameter("p", "path"), ["a", None]) == "a"
    assert header_value(parameter("p", "header", explode=True), {"a": None, "b": 1}) == "b=1"


@pytest.mark.parametrize(("style", "text"), [("matrix", ";p"), ("label", "."), ("simple", "")])
@pytest.mark.parametrize("value", ["", []])
def test_an_empty_value_in_a_path_has_no_equals_sign(style: str, text: str, value: Any) -> None:
    assert path_piece(parameter("p", "path", style=style, explode=False), value) == text


def test_a_list_of_objects_is_written_with_its_positions() -> None:
    value = {"items": [{"price": "a", "n": 1}, {"price": "b"}]}
    written = query(parameter("p", style="deepObject"), value).replace("%5B", "[").replace("%5D", "]")
    assert written == "p[items][0][price]=a&p[items][0][n]=1&p[items][1][price]=b"


def test_reserved_characters_may_stay_in_deep_objects_and_media_types_too() -> None:
    assert query(parameter("p", style="deepObject", allow_reserved=True), {"a": "x/y&z"}) == "p%5Ba%5D=x/y%26z"
    json = parameter("p", content_type="application/json", allow_reserved=True)
    assert query(json, ["a"]) == "p=[%22a%22]"
