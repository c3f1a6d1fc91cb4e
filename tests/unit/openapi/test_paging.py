"""How pages are recognised."""

from typing import Any

import pytest

from tests.unit.openapi.documents import answering, http, tool
from toolcrib.kinds.http.shape import CursorPaging, LinkPaging, NextUrlPaging, OffsetPaging, PageNumberPaging

pytestmark = pytest.mark.requirement("providers.paging")

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
ROWS = {"type": "array", "items": {"type": "object", "properties": {"id": TEXT}}}


def paging(properties: Any, *parameters: str, method: str = "get", headers: Any = None, pageable: Any = None) -> Any:
    """The paging of an operation whose answer has some properties, or is a list."""
    schema = ROWS if properties is None else {"type": "object", "properties": properties}
    known = {"limit": {**NUMBER, "maximum": 50}, "page": NUMBER, "page_number": NUMBER, "pageNumber": NUMBER}
    asked = [{"name": name, "in": "query", "schema": known.get(name, TEXT)} for name in parameters]
    source = answering(schema, parameters=asked, **({"x-ms-pageable": pageable} if pageable else {}))
    source["responses"]["200"]["headers"] = headers or {}
    return http(tool(source, method)).paging


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            paging({"items": ROWS, "next_cursor": TEXT}, "cursor", "limit"),
            CursorPaging(
                cursor_in="cursor", cursor_out="$.next_cursor", items="items", limit_argument="limit", page_size=50
            ),
        ),
        (
            paging(
                {"data": ROWS, "response_metadata": {"properties": {"next_cursor": {"type": ["string", "null"]}}}},
                "cursor",
            ),
            CursorPaging(cursor_in="cursor", cursor_out="$.response_metadata.next_cursor", items="data"),
        ),
        (
            paging({"files": ROWS, "nextPageToken": TEXT}, "pageToken"),
            CursorPaging(cursor_in="pageToken", cursor_out="$.nextPageToken", items="files"),
        ),
        (
            paging({"data": ROWS, "has_more": {"type": "boolean"}}, "starting_after"),
            CursorPaging(cursor_in="starting_after", cursor_out="$[?$.has_more == true][-1].id", items="data"),
        ),
        (
            paging({"count": NUMBER, "next": TEXT, "previous": TEXT, "results": ROWS}, "page"),
            NextUrlPaging(url_out="$.next", items="results", argument="page"),
        ),
        (
            paging({"value": ROWS, "@odata.nextLink": TEXT}),
            NextUrlPaging(url_out="$['@odata.nextLink']", items="value"),
        ),
        (
            paging({"rows": ROWS, "more": TEXT}, pageable={"nextLinkName": "more", "itemName": "rows"}),
            NextUrlPaging(url_out="$.more", items="rows"),
        ),
        (paging(None, "page", headers={"Link": {"schema": TEXT}}), LinkPaging(argument="page", items="$")),
        (
            paging({"items": ROWS, "total": NUMBER}, "offset", "limit"),
            OffsetPaging(argument="offset", total="$.total", items="items", limit_argument="limit", page_size=50),
        ),
        (
            paging({"meta": {"properties": {"total_pages": NUMBER}}, "deals": ROWS}, "page", "limit"),
            PageNumberPaging(
                argument="page", total_pages="$.meta.total_pages", items="deals", limit_argument="limit", page_size=50
            ),
        ),
        (
            paging({"data": {"properties": {"rows": ROWS}}}, "offset", "limit"),
            OffsetPaging(argument="offset", items="$.data.rows", limit_argument="limit", page_size=50),
        ),
    ],
)
def test_pages_are_recognised_by_the_names_of_both_sides(found: Any, expected: Any) -> None:
    assert found == expected


@pytest.mark.parametrize(
    "found",
    [
        paging({"items": ROWS}, "limit"),
        paging({"items": ROWS}, "page"),
        paging({"items": ROWS, "other": ROWS, "third": ROWS}, "cursor"),
        paging({"a": ROWS, "b": ROWS, "next_cursor": TEXT}, "cursor"),
        paging({"name": TEXT, "next_cursor": TEXT}, "cursor"),
        paging({"items": ROWS, "next": TEXT}, method="post"),
        paging({"items": ROWS, "total": NUMBER}, "offset", "limit", method="post"),
        paging(None, "limit"),
    ],
)
def test_what_only_one_side_says_is_no_paging(found: Any) -> None:
    assert found is None


def test_pages_count_from_zero_where_the_parameter_says_so() -> None:
    parameters = [
        {"name": "page", "in": "query", "schema": {"type": "integer", "default": 0}},
        {"name": "size", "in": "query", "schema": NUMBER},
    ]
    found = tool(answering(ROWS, parameters=parameters), "get")
    assert http(found).paging == PageNumberPaging(argument="page", first=0, limit_argument="size")
    assert "default" not in found.input_schema["properties"]["page"]


def test_a_page_that_is_a_text_is_what_the_answer_before_it_names_and_never_a_number() -> None:
    page, limit = {"name": "page", "in": "query", "schema": TEXT}, {"name": "limit", "in": "query", "schema": NUMBER}
    rows = {"data": ROWS, "next_page": {"type": ["string", "null"]}, "total_count": NUMBER}
    named = tool(answering({"type": "object", "properties": rows}, parameters=[page, limit]))
    assert http(named).paging == CursorPaging(
        cursor_in="page", cursor_out="$.next_page", items="data", limit_argument="limit"
    )
    rows.pop("next_page")
    unnamed = tool(answering({"type": "object", "properties": rows}, parameters=[page, limit]))
    assert http(unnamed).paging is None
