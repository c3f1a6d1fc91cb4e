"""The checks of an HTTP operation when it is saved. They send no requests."""

import re
from collections.abc import Iterator
from typing import Final

from toolcrib.contracts import InvalidDefinition, InvalidExpression, ToolDefinition, pointer_names
from toolcrib.core.expressions.jsonpath import check_path
from toolcrib.core.registry import ABSOLUTE
from toolcrib.kinds.http.shape import (
    HEADER_OUT,
    WHOLE_ADDRESS,
    CursorPaging,
    HttpBody,
    HttpImplementation,
    NextUrlPaging,
    OffsetPaging,
    PageNumberPaging,
    Paging,
)

_NAMES: Final = re.compile(r"\$(\.[A-Za-z_][A-Za-z0-9_-]*|\['[^']+'\])*")
_MEDIA: Final = {"form": "application/x-www-form-urlencoded", "multipart": "multipart/"}
_OUR_PART_HEADERS: Final = frozenset({"content-disposition", "content-type", "content-transfer-encoding"})
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""A header's name (RFC 9110, section 5.6.2)."""


def check_http(tool: ToolDefinition, implementation: HttpImplementation) -> None:
    """Refuse an operation that could not be called.

    Raises:
        InvalidDefinition: Names the tool, the field, what is wrong and what to do.
    """
    problem = next(_problems(implementation), None)
    if problem is not None:
        raise InvalidDefinition(f"tool {tool.name!r}: {problem}")


def _problems(implementation: HttpImplementation) -> Iterator[str]:
    url = implementation.url
    if url.startswith("/") and not url.startswith("//"):
        if implementation.provider is None:
            yield f"url {url!r} begins at a base address, and there is no provider to have one; make it absolute"
    elif WHOLE_ADDRESS.fullmatch(url):
        if implementation.provider is not None:
            yield f"url {url!r} is whatever the caller says, where no provider's credentials go; take the provider away"
    elif not ABSOLUTE.fullmatch(url):
        yield f"url {url!r} is neither absolute (https://…) nor a path from '/' on; correct it"
    places = [
        (found.place, found.name.lower() if found.place == "header" else found.name)
        for found in implementation.parameters
    ]
    twice = next((place for place in places if places.count(place) > 1), None)
    if twice:
        yield f"two parameters are called {twice[1]!r} in the {twice[0]}; take one away"
    if implementation.body is not None:
        yield from _body_problems(implementation.body)
    if implementation.paging is not None:
        yield from _paging_problems(implementation.paging, _arguments(implementation))
        if implementation.response not in {"auto", "json"}:
            yield f"paging joins lists of JSON, and response is {implementation.response!r}; take one of them away"


def _body_problems(body: HttpBody) -> Iterator[str]:
    if body.argument is not None and body.fields:
        yield "the body has an argument and fields; it is one or the other"
    if body.argument is None and body.encoding in {"text", "binary"}:
        yield f"a body of encoding {body.encoding!r} is one argument; name it in body.argument"
    encoding_name = next((name for name, media in _MEDIA.items() if body.content_type.lower().startswith(media)), None)
    if encoding_name is not None and body.encoding == "json":
        yield f"a body of type {body.content_type!r} is not JSON; give it the encoding {encoding_name!r}"
    media = _MEDIA.get(body.encoding)
    if media and not body.content_type.lower().startswith(media):
        yield f"a body of encoding {body.encoding!r} has a content type {media}…, not {body.content_type!r}"
    if body.encodings and body.encoding not in _MEDIA:
        yield f"body.encodings is for forms and multipart bodies, and this one is {body.encoding!r}; take it away"
    unknown = sorted(set(body.encodings) - set(body.fields.values())) if body.argument is None else []
    if unknown:
        yield f"body.encodings names {unknown[0]!r}, which is no field on the wire; correct the name"
    for header in (name for encoding in body.encodings.values() for name in encoding.headers):
        if header.lower() in _OUR_PART_HEADERS or not _TOKEN.fullmatch(header):
            yield f"body.encodings has the part header {header!r}, which is ours to write or is no name; take it away"


def _paging_problems(paging: Paging, arguments: frozenset[str]) -> Iterator[str]:
    start = paging.start_argument
    if isinstance(paging, CursorPaging) and paging.cursor_in.startswith("/"):
        start = pointer_names(paging.cursor_in)[0]
    for name in (start, paging.limit_argument):
        if name is not None and name not in arguments:
            yield f"paging uses the argument {name!r}, which no parameter and no body field takes; correct the name"
    if paging.items.startswith("$") and not _NAMES.fullmatch(paging.items):
        yield f"paging.items is {paging.items!r}; a path to it has names only, such as $.data.rows or $['x-rows']"
    for path in _paths(paging):
        try:
            check_path(path)
        except InvalidExpression as problem:
            yield f"paging has the path {path!r}, which cannot be applied: {problem}"


def _paths(paging: Paging) -> list[str]:
    match paging:
        case CursorPaging():
            found = [None if paging.cursor_out.startswith(HEADER_OUT) else paging.cursor_out]
        case OffsetPaging():
            found = [paging.total]
        case PageNumberPaging():
            found = [paging.total, paging.total_pages]
        case NextUrlPaging():
            found = [paging.url_out]
        case _:
            found = []
    return [path for path in found if path is not None]


def _arguments(implementation: HttpImplementation) -> frozenset[str]:
    """Every argument that reaches the request."""
    body = implementation.body or HttpBody()
    whole = {body.argument} if body.argument is not None else set[str]()
    return frozenset({parameter.argument for parameter in implementation.parameters} | set(body.fields) | whole)
