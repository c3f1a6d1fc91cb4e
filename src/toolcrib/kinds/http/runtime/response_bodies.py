"""Decodes a response body to JSON by its content type.

JSON that is sent as text (`text/html`, `text/plain`, or without a type) is read as JSON if the whole body is an object
or a list, unless the tool declares text. A body with a JSON content type that is not JSON is an error.
"""

import re
from email.message import Message
from pathlib import PurePath
from typing import Final, cast
from urllib.parse import parse_qsl

import orjson

from toolcrib.contracts import Json, JsonObject
from toolcrib.infrastructure.net import HttpResponse
from toolcrib.kinds.http.runtime.media import decode_text, is_json, media_type
from toolcrib.kinds.http.shape import HttpFile

MAX_SHOWN_HEADER: Final = 2_000

_TEXT: Final = re.compile(r"text/.+|.+[/+](xml|yaml|javascript|graphql)|application/x-yaml")
_LINES: Final = frozenset(
    {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"}
)
"""One JSON value per line."""
_SEQUENCE: Final = "application/json-seq"
"""RFC 7464: values between record separators."""
_FORM: Final = "application/x-www-form-urlencoded"
_UNKNOWN: Final = "application/octet-stream"
_MISTAKEN: Final = frozenset({"text/html", "text/plain", _UNKNOWN})
_NO_NAMES: Final = frozenset({"", ".", ".."})
_SHOWN: Final = re.compile(r"content-type|retry-after|x-request-id|(x-)?ratelimit(-.+)?|idempotent-replayed|link")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class BadBody(ValueError):
    """The body is not what its content type says."""


def read_body(response: HttpResponse, *, as_text: bool = False) -> Json | bytes:
    """The body: parsed JSON (a list of the values for JSON lines), a form's fields, text; null if there is none.

    Args:
        response: The response.
        as_text: Whether text is text, also if it looks like JSON.

    Returns:
        JSON, or the bytes themselves if they are neither JSON nor text.

    Raises:
        BadBody: It claims to be JSON and is not.
    """
    body = response.body
    if not body:
        return None
    kind, charset = media_type(response.headers.get("content-type") or _UNKNOWN)
    if is_json(kind):
        return _parse_json(kind, _without_bom(body, charset))
    if kind in _LINES or kind == _SEQUENCE:
        lines = body.split(b"\x1e" if kind == _SEQUENCE else b"\n")
        return [_parse_json(kind, line) for line in lines if line.strip()]
    if kind in _MISTAKEN and not as_text and body.lstrip(b" \t\r\n" + _BYTE_ORDER_MARK)[:1] in {b"{", b"["}:
        try:
            return orjson.loads(_without_bom(body, charset))
        except orjson.JSONDecodeError:
            pass
    if kind == _FORM:
        return _fields(decode_text(body, charset))
    return decode_text(body, charset, declares=kind.endswith("xml")) if _TEXT.fullmatch(kind) else body


def describe_file(response: HttpResponse) -> HttpFile:
    """A binary answer without its bytes: type, size, and the name that the other side gives it (RFC 6266)."""
    message = Message()
    message["content-disposition"] = response.headers.get("content-disposition", "")
    # The name without a path: it may end as the name of a file.
    name = PurePath((message.get_filename() or "").replace("\\", "/")).name
    return HttpFile(
        media_type=content_type(response), filename=None if name in _NO_NAMES else name, size=len(response.body)
    )


def content_type(response: HttpResponse) -> str:
    """The answer's media type without parameters."""
    return media_type(response.headers.get("content-type") or _UNKNOWN).name


def visible_headers(response: HttpResponse) -> JsonObject:
    """The headers that an envelope may show: none of them authenticates."""
    return {
        name: value[:MAX_SHOWN_HEADER] for name, value in sorted(response.headers.items()) if _SHOWN.fullmatch(name)
    }


def _parse_json(kind: str, body: bytes | str) -> Json:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as problem:
        raise BadBody(f"the answer says it is {kind} but is not: {problem}") from None


def _without_bom(body: bytes, charset: str | None) -> bytes | str:
    """JSON text without a byte order mark; decoded where its charset is not UTF-8, as old servers have it."""
    if charset in {None, "utf-8", "utf8", "us-ascii"}:
        return body.removeprefix(_BYTE_ORDER_MARK)
    return decode_text(body, charset).removeprefix("\ufeff")


def _fields(text: str) -> JsonObject:
    """A form's fields; one that is there several times is a list."""
    found: JsonObject = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        if name not in found:
            found[name] = value
        elif isinstance(found[name], list):
            cast("list[Json]", found[name]).append(value)
        else:
            found[name] = [found[name], value]
    return found
