"""Detects whether a response is one page of a list, from names in request and response and from vendor extensions.

Both sides must agree: a parameter that selects a page, and a response with one list and a sign of a next page. A
wrong guess would read the same page repeatedly; a missed one reads only the first page.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from toolcrib.contracts import JsonObject
from toolcrib.kinds.http.openapi.arguments import Arguments
from toolcrib.kinds.http.openapi.operations.parts import ApiOperation
from toolcrib.kinds.http.openapi.read.documents import Library
from toolcrib.kinds.http.openapi.read.nodes import Node
from toolcrib.kinds.http.openapi.responses import Answers
from toolcrib.kinds.http.openapi.schemas.keywords import follow_references, shape_of
from toolcrib.kinds.http.openapi.schemas.schemas import SchemaConverter
from toolcrib.kinds.http.shape import CursorPaging, LinkPaging, NextUrlPaging, OffsetPaging, PageNumberPaging, Paging

_CURSORS: Final = [
    "after",
    "cursor",
    "page_token",
    "pageToken",
    "next_token",
    "nextToken",
    "NextToken",
    "pagination_token",
    "paginationToken",
    "continuation_token",
    "continuationToken",
    "start_cursor",
    "startCursor",
    "next_cursor",
    "nextCursor",
    "scroll_id",
    "bookmark",
    "marker",
    "starting_after",
    "page[cursor]",
    "page[after]",
]
_NEXT_CURSORS: Final = [
    "next_cursor",
    "nextCursor",
    "next_page_token",
    "nextPageToken",
    "next_token",
    "nextToken",
    "NextToken",
    "pagination_token",
    "paginationToken",
    "continuation_token",
    "continuationToken",
    "end_cursor",
    "endCursor",
    "scroll_id",
    "bookmark",
    "next_marker",
    "nextMarker",
    "cursor",
    "after",
]
_NEXT_URLS: Final = [
    "next",
    "next_url",
    "nextUrl",
    "nextLink",
    "next_link",
    "next_page_url",
    "nextPageUrl",
    "@odata.nextLink",
    "next_href",
]
_OFFSETS: Final = ["offset", "skip", "$skip", "startAt", "start_at", "startIndex", "start_index", "page[offset]"]
_PAGES: Final = ["page", "page_number", "pageNumber", "page[number]", "pageNo", "page_no", "pageIndex"]
_LIMITS: Final = [
    "limit",
    "per_page",
    "perPage",
    "page_size",
    "pageSize",
    "pagesize",
    "max_results",
    "maxResults",
    "maxresults",
    "count",
    "size",
    "$top",
    "top",
    "page[size]",
    "page[limit]",
    "results_per_page",
    "first",
    "rows",
]
_TOTALS: Final = ["total", "total_count", "totalCount", "total_results", "totalResults", "total_items", "totalItems"]
_PAGE_TOTALS: Final = ["total_pages", "totalPages", "page_count", "pageCount", "last_page", "lastPage", "num_pages"]
_LISTS: Final = [
    "results",
    "items",
    "data",
    "records",
    "value",
    "values",
    "entries",
    "list",
    "content",
    "elements",
    "rows",
]
_CONTAINERS: Final = [
    "paging",
    "pagination",
    "meta",
    "metadata",
    "links",
    "_links",
    "response_metadata",
    "page",
    "page_info",
    "pageInfo",
    "cursors",
    "next",
    "_embedded",
    "data",
    "result",
    "response",
]
_MS_PAGEABLE: Final = "x-ms-pageable"
_STARTING_AFTER: Final = "starting_after"
_NEXT_PAGES: Final = ["next_page", "nextPage"]
"""Where the page is no number, but a text that the answer before it names."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """The one JSON answer of an operation, by RFC 9535 paths."""

    root: Node
    fields: Mapping[str, Node]
    """Members of the answer and of its containers, by path."""
    items: str
    """The list."""

    def path(self, names: list[str], *types: str) -> str | None:
        """The path of the first of some names that has one of the types."""
        for name in names:
            for path, node in self.fields.items():
                if path.endswith(_step(name)) and _has_type(node, types):
                    return path
        return None


def find_paging(
    operation: ApiOperation, answers: Answers, library: Library, arguments: Arguments, requests: SchemaConverter
) -> Paging | None:
    """How the pages of an operation are followed; `None` if it has none."""
    answer = _read(operation, answers, library)
    if answer is None:
        return None
    limit = _argument(arguments, _LIMITS)
    shared: JsonObject = {
        "items": answer.items,
        "limit_argument": limit,
        "page_size": _largest(limit, arguments, requests),
    }
    found = _cursor(operation, answer, arguments, shared) or _next_url(operation, answer, arguments, shared)
    if found is not None or operation.method != "GET":
        return found
    if "link" in answers.headers:
        return LinkPaging(argument=_argument(arguments, [*_PAGES, *_CURSORS, *_OFFSETS]), **shared)
    return _offset_or_page(answer, arguments, shared) if limit else None


def _cursor(operation: ApiOperation, answer: _Answer, arguments: Arguments, shared: JsonObject) -> Paging | None:
    name = _argument(arguments, _CURSORS)
    if name is None:
        page, path = _argument(arguments, _PAGES), answer.path(_NEXT_PAGES, "string")
        if page is None or path is None or not _is_text(arguments.properties[page]):
            return None
        return CursorPaging(cursor_in=page, cursor_out=path, first=_first(arguments, page), **shared)
    if name == _STARTING_AFTER and operation.method == "GET" and answer.path(["has_more"], "boolean"):
        # As Stripe does it: the id of the last item, while there are more.
        out = "$[?$.has_more == true][-1].id"
        return CursorPaging(cursor_in=name, cursor_out=out, first=_first(arguments, name), **shared)
    path = answer.path([*_NEXT_CURSORS, "next"], "string", "integer", "")
    if path is None:
        return None
    return CursorPaging(cursor_in=name, cursor_out=path, first=_first(arguments, name), **shared)


def _first(arguments: Arguments, name: str) -> str | int | None:
    """The cursor of the first page where a document wants one in every request.

    Documents do not say which: HubSpot, whose `after` is a number as text, takes 0; elsewhere an empty one says most
    plainly that there is none.
    """
    if name not in arguments.required:
        return None
    if arguments.properties[name].get("type") == "integer":
        return 0
    return "0" if name == "after" else ""


def _next_url(operation: ApiOperation, answer: _Answer, arguments: Arguments, shared: JsonObject) -> Paging | None:
    if operation.method != "GET":
        return None
    pageable = operation.node.get(_MS_PAGEABLE)
    written = pageable.text("nextLinkName")
    path = (_path("$", written) if written else None) or answer.path(_NEXT_URLS, "string")
    if path is None:
        return None
    argument = _argument(arguments, [*_PAGES, *_OFFSETS, *_CURSORS])
    return NextUrlPaging(url_out=path, argument=argument, **shared)


def _offset_or_page(answer: _Answer, arguments: Arguments, shared: JsonObject) -> Paging | None:
    total = answer.path(_TOTALS, "integer", "number")
    offset, page = _argument(arguments, _OFFSETS), _argument(arguments, _PAGES)
    if offset is not None:
        return OffsetPaging(argument=offset, total=total, **shared)
    if page is None or _is_text(arguments.properties[page]):
        return None
    pages = answer.path(_PAGE_TOTALS, "integer", "number")
    first = 0 if _starts_at_zero(arguments.properties[page]) else 1
    return PageNumberPaging(argument=page, first=first, total=total, total_pages=pages, **shared)


def _is_text(schema: JsonObject) -> bool:
    """Whether a page is named by a text and not by its number."""
    return schema.get("type") == "string"


def _starts_at_zero(schema: JsonObject) -> bool:
    return schema.get("default") == 0 or (schema.get("minimum") == 0 and schema.get("default") != 1)


def _read(operation: ApiOperation, answers: Answers, library: Library) -> _Answer | None:
    if len(answers.json) != 1:
        return None
    root = follow_references(library, answers.json[0])
    if root.object.get("type") == "array":
        return _Answer(root, {}, "$")
    fields = dict(_fields(library, root, "$", 2))
    written = operation.node.get(_MS_PAGEABLE).text("itemName")
    if operation.node.has(_MS_PAGEABLE):
        return _Answer(root, fields, written or "value")
    lists = [path for path, node in fields.items() if node.object.get("type") == "array"]
    top = [path for path in lists if _is_top(path)]
    items = next((_path("$", name) for name in _LISTS if _path("$", name) in top), None)
    if items is None:
        items = next((found[0] for found in (top, lists) if len(found) == 1), None)
    return _Answer(root, fields, _short(items)) if items else None


def _fields(library: Library, node: Node, path: str, depth: int) -> Iterator[tuple[str, Node]]:
    """Members by path, the containers' members after their own level."""
    members = {name: follow_references(library, member) for name, member in shape_of(library, node).properties.items()}
    for name, member in members.items():
        yield _path(path, name), member
    for name in _CONTAINERS:
        if depth and name in members and members[name].object.get("type") != "array":
            yield from _fields(library, members[name], _path(path, name), depth - 1)


def _has_type(node: Node, types: tuple[str, ...]) -> bool:
    kinds = [name for name in node.get("type").list if name != "null"] or [node.text("type")]
    return "properties" not in node.object and "allOf" not in node.object and any(name in types for name in kinds)


def _argument(arguments: Arguments, names: list[str]) -> str | None:
    return next((found for name in names if (found := arguments.find_argument(name))), None)


def _largest(limit: str | None, arguments: Arguments, requests: SchemaConverter) -> int | None:
    size = requests.follow(arguments.properties[limit]).get("maximum") if limit else None
    return size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None


def _path(path: str, name: str) -> str:
    return path + _step(name)


def _step(name: str) -> str:
    plain = name.replace("_", "a").isalnum() and name.isascii() and not name[0].isdigit()
    return f".{name}" if plain else "['" + name.replace("\\", "\\\\").replace("'", "\\'") + "']"


def _is_top(path: str) -> bool:
    return path.count(".") + path.count("[") == 1


def _short(path: str) -> str:
    """A list at the top by its name alone."""
    return path[2:] if path.startswith("$.") and _is_top(path) else path
