"""The checks of an HTTP operation when it is saved. They send no requests."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, cast

from toolcrib.contracts import (
    SECRET_REFERENCE,
    InvalidDefinition,
    InvalidExpression,
    Json,
    JsonObject,
    ToolDefinition,
    pointer_names,
)
from toolcrib.core.expressions.jsonpath import check_path
from toolcrib.core.expressions.suggestions import listing, suggestion
from toolcrib.core.registry import ABSOLUTE, CREDENTIAL_NAME, REFERENCE_HINT
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
    template_arguments,
)

_NAMES: Final = re.compile(r"\$(\.[A-Za-z_][A-Za-z0-9_-]*|\['[^']+'\])*")
_MEDIA: Final = {"form": "application/x-www-form-urlencoded", "multipart": "multipart/"}
_OUR_PART_HEADERS: Final = frozenset({"content-disposition", "content-type", "content-transfer-encoding"})
_OUR_HEADERS: Final = frozenset({"host", "content-length", "content-type", "transfer-encoding", "connection"})
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SPREADING: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "patternProperties", "if"})
"""Keywords by which a schema names arguments elsewhere than in its properties."""
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""A header's name (RFC 9110, section 5.6.2)."""


def check_http(tool: ToolDefinition, implementation: HttpImplementation) -> None:
    """Refuse an operation that could not be called.

    Raises:
        InvalidDefinition: Names the tool, the field, what is wrong and what to do.
    """
    problem = next(_problems(tool, implementation), None)
    if problem is not None:
        raise InvalidDefinition(f"tool {tool.name!r}: {problem}")


def _problems(tool: ToolDefinition, implementation: HttpImplementation) -> Iterator[str]:
    yield from _address_problems(implementation)
    if implementation.headers:
        yield from _header_problems(implementation.headers)
    places = [
        (found.place, found.name.lower() if found.place == "header" else found.name)
        for found in implementation.parameters
    ]
    twice = next((place for place in places if places.count(place) > 1), None)
    if twice:
        yield f"two parameters are called {twice[1]!r} in the {twice[0]}; take one away"
    if implementation.body is not None:
        yield from _body_problems(implementation.body)
        yield from _template_problems(tool, implementation, implementation.body)
    if implementation.paging is not None:
        yield from _paging_problems(implementation.paging, _arguments(implementation))
        if implementation.response not in {"auto", "json"}:
            yield f"paging joins lists of JSON, and response is {implementation.response!r}; take one of them away"


def _address_problems(implementation: HttpImplementation) -> Iterator[str]:
    url = implementation.url
    if url.startswith("/") and not url.startswith("//"):
        if implementation.provider is None:
            yield f"url {url!r} begins at a base address, and there is no provider to have one; make it absolute"
    elif WHOLE_ADDRESS.fullmatch(url):
        if implementation.provider is not None:
            yield f"url {url!r} is whatever the caller says, where no provider's credentials go; take the provider away"
    elif not ABSOLUTE.fullmatch(url):
        yield f"url {url!r} is neither absolute (https://…) nor a path from '/' on; correct it"


def _header_problems(headers: Mapping[str, str]) -> Iterator[str]:
    twice = next((name for name, count in Counter(map(str.lower, headers)).items() if count > 1), None)
    if twice is not None:
        yield f"headers has {twice!r} twice, in other letters; take one away"
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            yield f"headers has {name!r}, which is not a valid header name; correct it"
        if name.lower() in _OUR_HEADERS:
            yield f"headers has {name!r}, which follows from the URL and the body; take it away"
        if CREDENTIAL_NAME.search(name) or SECRET_REFERENCE.search(value):
            yield f"the header {name!r} would hold a credential; give it as the provider's auth, by {REFERENCE_HINT}"
        if _CONTROL.search(value):
            yield f"the header {name!r} has a line break or another control character; take it away"


def _template_problems(tool: ToolDefinition, implementation: HttpImplementation, body: HttpBody) -> Iterator[str]:
    if body.template is None:
        return
    if body.argument is not None or body.fields:
        yield "the body has a template and an argument or fields; it is made in one way"
    if body.encoding != "json":
        yield f"body.template makes JSON, and this body is {body.encoding!r}; use fields or an argument"
    yield from _mark_problems(body.template)
    if tool.input_schema.keys() & _SPREADING:
        return
    known = [*tool.parameter_names(), *implementation.token_arguments, *filter(None, (tool.idempotency_key,))]
    for name in sorted(template_arguments(body.template) - set(known)):
        hint = f"{suggestion(name, known)}it takes {listing(name, known)}"
        yield f"body.template names the argument {name!r}, which input_schema does not have; {hint}"


def _mark_problems(part: Json) -> Iterator[str]:
    """Marks of arguments that are none: with other members beside, or without a name."""
    if isinstance(part, dict):
        members = cast("JsonObject", part)
        if "$argument" in members and not (len(members) == 1 and isinstance(members["$argument"], str)):
            what = 'body.template has "$argument" without the name of one, or beside other members'
            yield f'{what}; write it as {{"$argument": "NAME"}}, with nothing else in the object'
        for member in members.values():
            yield from _mark_problems(member)
    elif isinstance(part, list):
        for item in cast("list[Json]", part):
            yield from _mark_problems(item)


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
        yield f"body.encodings names {unknown[0]!r}, which is not a field on the wire; correct the name"
    for header in (name for encoding in body.encodings.values() for name in encoding.headers):
        if header.lower() in _OUR_PART_HEADERS or not _TOKEN.fullmatch(header):
            yield f"body.encodings has the part header {header!r}, which is invalid or set by Toolcrib; remove it"


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
    return frozenset({parameter.argument for parameter in implementation.parameters}) | body.argument_names
