"""Follows the cursors of a paged answer and joins its lists."""

from typing import Final, cast

from toolcrib.contracts import CursorPaging, InvalidExpression, Json, JsonObject
from toolcrib.executor import Outcome
from toolcrib.expressions.jsonpath import select_one
from toolcrib.net import HttpResponse
from toolcrib.runtimes.http.exchange import Exchange
from toolcrib.runtimes.http.failures import bad_response

MAX_LIST_BYTES: Final = 64 * 2**20
"""Bytes of all pages of one call together; the list ends there, marked incomplete."""


async def follow(exchange: Exchange, paging: CursorPaging) -> Outcome:
    """All pages as one list, as far as the caller, the tool and `MAX_LIST_BYTES` want it.

    Raises:
        CallFailed: A page was refused or is none, or the pages run in a circle.
    """
    arguments = dict(exchange.dispatch.input)
    enough = _fill_page_size(arguments, paging)
    items: list[Json] = []
    cursors: set[str] = set()
    pages = size = 0
    while True:
        response = await (exchange.send_again_once(arguments) if pages else exchange.send(arguments))
        page = exchange.read(response)
        items += _items(exchange, response, page, paging)
        pages += 1
        size += len(response.body)
        cursor = _cursor(exchange, response, page, paging)
        if cursor is None or len(items) >= enough or pages >= paging.max_pages or size >= MAX_LIST_BYTES:
            found: JsonObject = {"pages": pages, "items": len(items), "complete": cursor is None}
            return exchange.outcome(response, {**page, paging.items: items}, paging=found)
        if str(cursor) in cursors:
            raise bad_response(exchange.tool, response, f"page {pages} names a next page that was read already")
        cursors.add(str(cursor))
        arguments[paging.cursor_in] = cursor


def _fill_page_size(arguments: JsonObject, paging: CursorPaging) -> float:
    """Ask for the largest pages unless the caller says how many items are enough; returns that number."""
    name = paging.limit_argument
    if name is None:
        return float("inf")
    given = arguments.get(name)
    if isinstance(given, int):
        return given
    if given is None and paging.page_size is not None:
        arguments[name] = paging.page_size
    return float("inf")


def _cursor(exchange: Exchange, response: HttpResponse, page: Json, paging: CursorPaging) -> Json:
    """Where the next page starts; null after the last one."""
    try:
        found = select_one(paging.cursor_out, page)
    except InvalidExpression as problem:
        raise bad_response(exchange.tool, response, f"the next page cannot be found: {problem}") from None
    return None if found == "" else found


def _items(exchange: Exchange, response: HttpResponse, page: Json, paging: CursorPaging) -> list[Json]:
    found = cast("JsonObject", page).get(paging.items) if isinstance(page, dict) else None
    if not isinstance(found, list):
        problem = f"the answer has no list {paging.items!r}, which its pages are made of"
        raise bad_response(exchange.tool, response, problem)
    return cast("list[Json]", found)
