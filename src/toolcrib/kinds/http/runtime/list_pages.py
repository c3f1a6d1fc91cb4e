"""Reads all pages of a list and joins them.

For each kind of paging, a pure function finds the next page in the current one, for instance in the `Link` header
(RFC 8288).
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple, assert_never, cast
from urllib.parse import urljoin

from toolcrib.contracts import InvalidExpression, Json, JsonObject, pointer_names
from toolcrib.core.executor import CallFailed, Outcome
from toolcrib.core.expressions.jsonpath import select_one
from toolcrib.infrastructure.net import HttpResponse
from toolcrib.infrastructure.net.origins import origin_of
from toolcrib.kinds.http.runtime.exchange import Exchange
from toolcrib.kinds.http.runtime.failures import bad_response
from toolcrib.kinds.http.shape import (
    HEADER_OUT,
    CursorPaging,
    LinkPaging,
    NextUrlPaging,
    OffsetPaging,
    PageNumberPaging,
    Paging,
)

_LINK: Final = re.compile(r"""<([^<>]*)>((?:\s*;\s*[^\s;,="']+\s*(?:=\s*(?:"(?:[^"\\]|\\.)*"|[^\s";,]*))?)*)""")
_PARAMETER: Final = re.compile(r""";\s*([^\s;,="']+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";,]*)))?""")
_MAX_HEADER: Final = 20_000


def find_link(header: str, relation: str) -> str | None:
    """The first target with a relation, unresolved; null if there is none.

    Args:
        header: All `Link` fields of an answer, joined with commas.
        relation: Such as `next`; upper and lower case are the same.
    """
    for target, parameters in _LINK.findall(header[:_MAX_HEADER]):
        # The first `rel` counts (RFC 8288, section 3.3), and it may name several relations.
        found = next(
            (quoted or plain for name, quoted, plain in _PARAMETER.findall(parameters) if name.lower() == "rel"), ""
        )
        if relation in found.lower().split():
            return target
    return None


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
    """Minimum number of items of this page if it is not the last one; null if unknown."""


class NextPage(NamedTuple):
    """The next page: an argument to change, or an address to ask."""

    mark: str
    """Differs from page to page, unless they run in a cycle."""
    argument: str = ""
    value: Json = None
    url: str | None = None
    counted: bool = False
    """Whether it is computed here, and not taken from the response."""


def first_place(paging: Paging) -> NextPage | None:
    """What the request of the first page says about its place; null if nothing."""
    match paging:
        case CursorPaging() if paging.first is not None:
            return NextPage(str(paging.first), paging.cursor_in, paging.first)
        case OffsetPaging():
            return NextPage("0", paging.argument, 0)
        case PageNumberPaging():
            return NextPage(str(paging.first), paging.argument, paging.first)
        case _:
            return None


def next_place(paging: Paging, page: Page) -> NextPage | None:
    """The page after this one; null if this one is the last.

    Raises:
        InvalidExpression: A path of the paging cannot be applied.
    """
    match paging:
        case CursorPaging():
            cursor = _cursor(paging, page)
            return None if cursor in {None, ""} else NextPage(str(cursor), paging.cursor_in, cursor)
        case OffsetPaging():
            ended = _is_last(page, _number(paging.total, page))
            return None if ended else NextPage(str(page.items), paging.argument, page.items, counted=True)
        case PageNumberPaging():
            pages = _number(paging.total_pages, page)
            ended = page.pages >= pages if pages is not None else _is_last(page, _number(paging.total, page))
            number = paging.first + page.pages
            return None if ended else NextPage(str(number), paging.argument, number, counted=True)
        case LinkPaging():
            return _address(page, find_link(page.response.headers.get("link", ""), "next"))
        case NextUrlPaging():
            return _address(page, select_one(paging.url_out, page.document))
        case _:
            assert_never(paging)


def with_place(arguments: JsonObject, place: NextPage) -> JsonObject:
    """The arguments with the place in them; a JSON pointer reaches into an argument (RFC 6901)."""
    if place.url is not None:
        return arguments
    if not place.argument.startswith("/"):
        return {**arguments, place.argument: place.value}
    return _with_value(arguments, pointer_names(place.argument), place.value)


def _with_value(document: Json, names: list[str], value: Json) -> JsonObject:
    found = cast("JsonObject", document) if isinstance(document, dict) else {}
    head, *rest = names
    return {**found, head: _with_value(found.get(head), rest, value) if rest else value}


def _cursor(paging: CursorPaging, page: Page) -> Json:
    if paging.cursor_out.startswith(HEADER_OUT):
        return page.response.headers.get(paging.cursor_out.removeprefix(HEADER_OUT).lower())
    found = select_one(paging.cursor_out, page.document)
    return found if isinstance(found, str | int | None) else str(found)


def _is_last(page: Page, total: int | None) -> bool:
    """By the total number of items if the response has it, else by a page that is short or empty."""
    if page.found == 0:
        return True
    if total is not None:
        return page.items >= total
    return page.size is not None and page.found < page.size


def _number(path: str | None, page: Page) -> int | None:
    found = None if path is None else select_one(path, page.document)
    return int(found) if isinstance(found, int | float) or (isinstance(found, str) and found.isdecimal()) else None


def _address(page: Page, target: Json) -> NextPage | None:
    if not isinstance(target, str) or not target.strip():
        return None
    url = urljoin(page.response.url, target.strip())
    return NextPage(url, url=url)


MAX_LIST_BYTES: Final = 64 * 2**20
"""Bytes of all pages of one call together; the list ends there, marked incomplete."""

_NAMES: Final = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\['([^']+)'\]")
_NOWHERE: Final = float("inf")


async def follow(exchange: Exchange, paging: Paging) -> Outcome:
    """All pages as one list, within the limits of the caller, the tool and `MAX_LIST_BYTES`.

    If a following page is refused or invalid, or the pages form a cycle or lead to another origin, the list ends with
    the pages that were read, marked incomplete with a warning that says why.

    Raises:
        CallFailed: The first page was refused or is invalid.
    """
    arguments, enough, page_size = _begin(exchange, paging)
    place = first_place(paging)
    names = path_of(paging.items)
    items: list[Json] = []
    seen: set[str] = set()
    before: Sequence[Json] = ()
    page: Page | None = None
    pages = size = 0
    while True:
        arguments = arguments if place is None else with_place(arguments, place)
        at = None if place is None else place.url
        try:
            response = await (exchange.send_again_once(arguments, at) if pages else exchange.send(arguments))
            document = exchange.read(response)
            found = [] if document is None else _items(exchange, response, document, names)
        except CallFailed as failure:
            if page is None:
                raise
            return _join_pages(exchange, page, items, names, trouble=f"page {pages + 1}: {failure.error.message}")
        if document is None:
            return _outcome_at_end(exchange, response, page, items, names)
        if place is not None and _repeats(place, found, before):
            trouble = f"page {pages + 1} is page {pages} again"
            return _join_pages(exchange, cast("Page", page), items, names, trouble=trouble)
        items += found
        pages += 1
        size += len(response.body)
        page = Page(response, document, len(found), pages, len(items), page_size)
        try:
            place = _next(exchange, paging, page)
        except CallFailed as failure:
            return _join_pages(exchange, page, items, names, trouble=failure.error.message)
        if place is None or len(items) >= enough or pages >= paging.max_pages or size >= MAX_LIST_BYTES:
            return _join_pages(exchange, page, items, names, whole=place is None, asked_for=len(items) >= enough)
        if place.mark in seen or place.url == response.url:
            trouble = f"page {pages} names a next page that was read already"
            return _join_pages(exchange, page, items, names, trouble=trouble)
        seen.add(place.mark)
        before = found


def path_of(items: str) -> list[str]:
    """The path of the list in a response; empty if the response is the list."""
    return [dotted or quoted for dotted, quoted in _NAMES.findall(items)] if items.startswith("$") else [items]


def _repeats(place: NextPage, found: Sequence[Json], before: Sequence[Json]) -> bool:
    """Whether a counted page is the one before it again, because the other side does not look at the number."""
    return place.counted and bool(found) and isinstance(found[0], dict) and found == before


def _begin(exchange: Exchange, paging: Paging) -> tuple[JsonObject, float, int | None]:
    """The first arguments, how many items are enough, and how many a page has that is not the last.

    Asks for the largest pages unless the caller says how many items are enough. A size is relied on only where the
    other side is known to give it: one that gives less than it is asked for would seem to be at its end.
    """
    arguments = dict(exchange.dispatch.input)
    name = paging.limit_argument
    given = None if name is None else arguments.get(name)
    if isinstance(given, int):
        return arguments, given, given if paging.page_size is not None and given <= paging.page_size else None
    if name is not None and given is None and paging.page_size is not None:
        arguments[name] = paging.page_size
    return arguments, _NOWHERE, paging.page_size


def _next(exchange: Exchange, paging: Paging, page: Page) -> NextPage | None:
    """The next page, whose address may not leave the origins that the call may reach."""
    tool = exchange.target.tool
    try:
        place = next_place(paging, page)
    except InvalidExpression as problem:
        raise bad_response(tool, page.response, f"the next page cannot be found: {problem}") from None
    if place is None or place.url is None:
        return place
    url = _keep_tls(place.url, page.response.url)
    if origin_of(url) not in exchange.access.origins:
        problem = f"page {page.pages} names a next page on another origin, {_host(url)}, which is not followed"
        raise bad_response(tool, page.response, problem)
    return place._replace(url=url)


def _keep_tls(url: str, current: str) -> str:
    """The address with TLS if the page that names it had it: servers behind a proxy do not know that they have it."""
    upgraded = f"https{url[4:]}" if url.startswith("http://") else url
    return upgraded if origin_of(upgraded) == origin_of(current) else url


def _outcome_at_end(
    exchange: Exchange, response: HttpResponse, last: Page | None, items: list[Json], names: list[str]
) -> Outcome:
    """An answer without content (204) is where a list ends: after the last page, or before there was one."""
    if last is None:
        return exchange.make_outcome(response, None, paging={"pages": 1, "items": 0, "complete": True})
    return _join_pages(exchange, last, items, names, whole=True, asked_for=False)


def _join_pages(
    exchange: Exchange,
    page: Page,
    items: list[Json],
    names: list[str],
    *,
    whole: bool = False,
    asked_for: bool = False,
    trouble: str = "",
) -> Outcome:
    """The last page's document with the items of all pages, and why there are no more if it is for some trouble."""
    paging: JsonObject = {"pages": page.pages, "items": len(items), "complete": whole}
    warnings: list[str] = []
    if trouble:
        paging["trouble"] = trouble
        warnings.append(
            f"the list is not complete: {len(items)} items of {page.pages} pages were read, and then there was trouble "
            f"({trouble}); ask again for the rest"
        )
    elif not whole and not asked_for:
        warnings.append(
            f"the list is not complete: {len(items)} items of {page.pages} pages were read, and there are more; "
            "narrow the call, or ask for the rest"
        )
    return exchange.make_outcome(page.response, _put(page.document, names, items), warnings=warnings, paging=paging)


def _put(document: Json, names: list[str], items: list[Json]) -> Json:
    if not names:
        return items
    found = cast("JsonObject", document)
    return {**found, names[0]: _put(found[names[0]], names[1:], items)}


def _items(exchange: Exchange, response: HttpResponse, document: Json, names: list[str]) -> list[Json]:
    found = document
    for name in names:
        found = cast("JsonObject", found).get(name) if isinstance(found, dict) else None
    if not isinstance(found, list):
        what = f"has no list {'.'.join(names)!r}, which its pages are made of" if names else "is no list"
        raise bad_response(exchange.target.tool, response, f"the answer {what}", explained=True)
    return cast("list[Json]", found)


def _host(url: str) -> str:
    origin = origin_of(url)
    return "not one of HTTP" if origin is None else f"{origin[0]}://{origin[1]}:{origin[2]}"
