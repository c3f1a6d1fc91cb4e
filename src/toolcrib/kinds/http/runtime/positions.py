"""Where the next page is: one pure function over the page that was just read, for each kind of paging."""

from typing import NamedTuple, assert_never, cast
from urllib.parse import urljoin

from toolcrib.contracts import (
    CursorPaging,
    Json,
    JsonObject,
    LinkPaging,
    NextUrlPaging,
    OffsetPaging,
    PageNumberPaging,
    Paging,
    pointer_names,
)
from toolcrib.core.expressions.jsonpath import select_one
from toolcrib.core.registry.checks.http import HEADER_OUT
from toolcrib.infrastructure.net import HttpResponse
from toolcrib.kinds.http.runtime.links import linked


class Page(NamedTuple):
    """A page, and what was read up to its end."""

    response: HttpResponse
    document: Json
    found: int
    """Items on this page."""
    pages: int
    """Pages so far, with this one."""
    items: int
    """Items so far, with those of this page."""
    size: int | None
    """Items that this page has at least if it is not the last one; null if nobody knows."""


class Place(NamedTuple):
    """The next page: an argument to change, or an address to ask."""

    mark: str
    """Differs from page to page, unless they run in a circle."""
    argument: str = ""
    value: Json = None
    url: str | None = None
    counted: bool = False
    """Whether it is a number of ours, and not what the other side said."""


def first_place(paging: Paging) -> Place | None:
    """What the request of the first page says about its place; null if nothing."""
    match paging:
        case CursorPaging() if paging.first is not None:
            return Place(str(paging.first), paging.cursor_in, paging.first)
        case OffsetPaging():
            return Place("0", paging.argument, 0)
        case PageNumberPaging():
            return Place(str(paging.first), paging.argument, paging.first)
        case _:
            return None


def next_place(paging: Paging, page: Page) -> Place | None:
    """The page after this one; null if this one is the last.

    Raises:
        InvalidExpression: A path of the paging cannot be applied.
    """
    match paging:
        case CursorPaging():
            cursor = _cursor(paging, page)
            return None if cursor in {None, ""} else Place(str(cursor), paging.cursor_in, cursor)
        case OffsetPaging():
            ended = _is_last(page, _number(paging.total, page))
            return None if ended else Place(str(page.items), paging.argument, page.items, counted=True)
        case PageNumberPaging():
            pages = _number(paging.total_pages, page)
            ended = page.pages >= pages if pages is not None else _is_last(page, _number(paging.total, page))
            number = paging.first + page.pages
            return None if ended else Place(str(number), paging.argument, number, counted=True)
        case LinkPaging():
            return _address(page, linked(page.response.headers.get("link", ""), "next"))
        case NextUrlPaging():
            return _address(page, select_one(paging.url_out, page.document))
        case _:
            assert_never(paging)


def with_place(arguments: JsonObject, place: Place) -> JsonObject:
    """The arguments with the place in them; a JSON pointer reaches into an argument (RFC 6901)."""
    if place.url is not None:
        return arguments
    if not place.argument.startswith("/"):
        return {**arguments, place.argument: place.value}
    return _replaced(arguments, pointer_names(place.argument), place.value)


def _replaced(document: Json, names: list[str], value: Json) -> JsonObject:
    found = cast("JsonObject", document) if isinstance(document, dict) else {}
    head, *rest = names
    return {**found, head: _replaced(found.get(head), rest, value) if rest else value}


def _cursor(paging: CursorPaging, page: Page) -> Json:
    if paging.cursor_out.startswith(HEADER_OUT):
        return page.response.headers.get(paging.cursor_out.removeprefix(HEADER_OUT).lower())
    found = select_one(paging.cursor_out, page.document)
    return found if isinstance(found, str | int | None) else str(found)


def _is_last(page: Page, total: int | None) -> bool:
    """By the number of all items where the answer tells it, else by a page that is short, or empty."""
    if page.found == 0:
        return True
    if total is not None:
        return page.items >= total
    return page.size is not None and page.found < page.size


def _number(path: str | None, page: Page) -> int | None:
    found = None if path is None else select_one(path, page.document)
    return int(found) if isinstance(found, int | float) or (isinstance(found, str) and found.isdecimal()) else None


def _address(page: Page, target: Json) -> Place | None:
    if not isinstance(target, str) or not target.strip():
        return None
    url = urljoin(page.response.url, target.strip())
    return Place(url, url=url)
